//! Ready line: the one line on stdout, printed when the first send would succeed.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::serve::host_name::HostName;
use crate::serve::keys::ConnectionKey;

/// The port of AMQP within TLS, which needs no mention.
const AMQPS_PORT: u16 = 5_671;

/// Prints the line. A broker that stands in for a namespace has its name as the endpoint.
pub fn announce(addresses: &[SocketAddr], host: Option<&HostName>, key: Option<&ConnectionKey>) {
    let mut stdout = std::io::stdout().lock();
    // stdout may be closed; the broker serves all the same.
    drop(writeln!(stdout, "{}", line(addresses, host, key)).and_then(|()| stdout.flush()));
}

fn line(addresses: &[SocketAddr], host: Option<&HostName>, key: Option<&ConnectionKey>) -> String {
    let listen: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let key = key.map(credentials).unwrap_or_default();
    let (endpoint, end) = match host {
        Some(host) => (cloud_endpoint(host, addresses), ""),
        None => {
            let endpoint = addresses.first().map(endpoint).unwrap_or_default();
            (endpoint, "UseDevelopmentEmulator=true;")
        }
    };
    format!(
        "railbus ready listen={} connection-string=\"Endpoint=sb://{endpoint};{key}{end}\"",
        listen.join(","),
    )
}

fn credentials(key: &ConnectionKey) -> String {
    let entity = key.entity.as_ref();
    let entity = entity.map(|path| format!("EntityPath={path};"));
    format!(
        "SharedAccessKeyName={};SharedAccessKey={};{}",
        key.rule,
        key.key,
        entity.unwrap_or_default()
    )
}

/// The name of the namespace; with a port if the usual one of TLS does not listen.
fn cloud_endpoint(host: &HostName, addresses: &[SocketAddr]) -> String {
    let has_port = |address: &SocketAddr| address.port() == AMQPS_PORT;
    match addresses.first() {
        Some(first) if !addresses.iter().any(has_port) => format!("{host}:{}/", first.port()),
        _ => format!("{host}/"),
    }
}

/// The address that listens, as `localhost` where that name leads to it: 127.0.0.1, ::1, or all
/// addresses. Other loopback addresses are not what `localhost` means.
fn endpoint(address: &SocketAddr) -> String {
    let ip = address.ip();
    let is_localhost = ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    if is_localhost || ip.is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], entity: Option<&str>, expected: &str) {
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|text| text.parse().unwrap()).collect();
        let key = ConnectionKey {
            rule: "RootManageSharedAccessKey".to_owned(),
            key: "SAS_KEY_VALUE".to_owned(),
            entity: entity.map(str::to_owned),
        };
        assert_eq!(line(&addresses, None, Some(&key)), expected);
    }

    #[test]
    fn the_line_is_what_scripts_rely_on() {
        check(
            &["127.0.0.1:5672", "127.0.0.1:5671", "127.0.0.1:5300"],
            None,
            "railbus ready listen=127.0.0.1:5672,127.0.0.1:5671,127.0.0.1:5300 connection-string=\"Endpoint=sb://localhost:5672;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;\"",
        );
    }

    #[test]
    fn an_address_that_localhost_does_not_mean_stands_itself() {
        let endpoint = |text: &str| endpoint(&text.parse().unwrap());
        assert_eq!(endpoint("127.0.0.9:40001"), "127.0.0.9:40001");
        assert_eq!(endpoint("10.1.2.3:7000"), "10.1.2.3:7000");
        assert_eq!(endpoint("0.0.0.0:5672"), "localhost:5672");
        assert_eq!(endpoint("[::1]:5672"), "localhost:5672");
        assert_eq!(endpoint("[2001:db8::1]:5672"), "[2001:db8::1]:5672");
    }

    #[test]
    fn the_endpoint_is_the_first_address_that_was_bound() {
        check(
            &["10.1.2.3:7000"],
            Some("orders"),
            "railbus ready listen=10.1.2.3:7000 connection-string=\"Endpoint=sb://10.1.2.3:7000;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;EntityPath=orders;UseDevelopmentEmulator=true;\"",
        );
    }

    #[test]
    fn a_broker_in_the_place_of_a_namespace_has_its_name() {
        let host: HostName = "shop.servicebus.windows.net".parse().unwrap();
        let line = |ports: &[&str]| {
            let addresses: Vec<_> = ports.iter().map(|text| text.parse().unwrap()).collect();
            line(&addresses, Some(&host), None)
        };
        assert_eq!(
            line(&["127.0.0.1:5672", "127.0.0.1:5671"]),
            "railbus ready listen=127.0.0.1:5672,127.0.0.1:5671 \
             connection-string=\"Endpoint=sb://shop.servicebus.windows.net/;\""
        );
        assert_eq!(
            line(&["127.0.0.1:40001"]),
            "railbus ready listen=127.0.0.1:40001 \
             connection-string=\"Endpoint=sb://shop.servicebus.windows.net:40001/;\""
        );
    }
}
