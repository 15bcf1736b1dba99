//! Ready line: the one line on stdout, printed when the first send would succeed.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::keys::ConnectionKey;

/// Prints the line.
pub fn announce(addresses: &[SocketAddr], key: &ConnectionKey) {
    let mut stdout = std::io::stdout().lock();
    // stdout may be closed; the broker serves all the same.
    drop(writeln!(stdout, "{}", line(addresses, key)).and_then(|()| stdout.flush()));
}

fn line(addresses: &[SocketAddr], key: &ConnectionKey) -> String {
    let listen: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let entity = key
        .entity
        .as_ref()
        .map(|path| format!("EntityPath={path};"))
        .unwrap_or_default();
    format!(
        "railbus ready listen={} connection-string=\"Endpoint=sb://{};SharedAccessKeyName={};SharedAccessKey={};{}UseDevelopmentEmulator=true;\"",
        listen.join(","),
        addresses.first().map(endpoint).unwrap_or_default(),
        key.rule,
        key.key,
        entity,
    )
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
        assert_eq!(line(&addresses, &key), expected);
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
}
