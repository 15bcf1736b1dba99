//! `railbus health`: whether a broker would accept a send, for health checks in images without
//! another client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Deserialize;

use crate::arguments::HealthArguments;
use crate::command_error::CommandError;
use crate::remote::connection_string::ConnectionString;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};
use crate::stdout;

/// The response of a healthy broker. (docs/spec/admin.md#1)
#[derive(Deserialize)]
struct Health {
    message: String,
}

/// Asks the broker that the arguments name and prints its answer.
pub fn run(arguments: &HealthArguments) -> Result<(), CommandError> {
    let HealthArguments { listen, broker } = arguments;
    let remote = match listen.first() {
        Some(&address) if broker.connection_string.is_none() => {
            let string = ConnectionString::anonymous(reachable(address), broker.ca.is_some());
            Remote::of(string, broker.ca.clone())
        }
        _ => Remote::new(broker)?,
    };
    let health: Health = runtime()?.block_on(remote.call(Call::get("/health")))?;
    stdout::print_line(health.message)
}

/// The address at which a listener on `address` is reachable.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listening: &str, expected: &str) {
        let address = reachable(listening.parse().unwrap());
        assert_eq!(address.to_string(), expected);
    }

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_loopback() {
        check("0.0.0.0:5672", "127.0.0.1:5672");
        check("[::]:5672", "[::1]:5672");
        check("10.0.0.1:5672", "10.0.0.1:5672");
    }
}
