//! Endpoints: both ends of a client's connection, as spans tell them.
//!
//! The server's address is the host by which the client has come, as clients see it from outside.
//! Without one it is the address at which the connection was accepted. Nothing is looked up.
//! [OpenTelemetry: general attributes, server.address]

use std::net::SocketAddr;
use std::sync::Arc;

use dialect::virtual_host;
use hyper::http::uri::Authority;

/// The most bytes of a host that are told.
const MOST: usize = 253;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Endpoints {
    pub peer: SocketAddr,
    local: Option<SocketAddr>,
    /// The host and the port that the client has named.
    named: Option<(Arc<str>, Option<u16>)>,
}

impl Endpoints {
    /// Of a connection from `peer` that was accepted at `local`, if that is known.
    pub fn new(peer: SocketAddr, local: Option<SocketAddr>) -> Self {
        Self {
            peer,
            local,
            named: None,
        }
    }

    /// The client has named a host, which a port may follow. A virtual host is none.
    pub fn name_server(&mut self, host: &str) {
        let authority = Authority::try_from(host).ok();
        let named = authority.filter(|named| virtual_host(host).is_none() && fits(named.host()));
        self.named = named.map(|named| {
            let host = named.host().trim_matches(['[', ']']);
            (host.into(), named.port_u16())
        });
    }

    /// The address and the port of the server, as far as they are known.
    pub fn server(&self) -> (Option<String>, Option<u16>) {
        let port = self.local.map(|local| local.port());
        match &self.named {
            Some((host, named)) => (Some((**host).to_owned()), named.or(port)),
            None => {
                let address = self.local.map(|local| local.ip().to_canonical());
                (address.map(|address| address.to_string()), port)
            }
        }
    }
}

fn fits(host: &str) -> bool {
    (1..=MOST).contains(&host.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, address: &str, port: u16) {
        let local = SocketAddr::from(([127, 0, 0, 1], 5672));
        let mut endpoints = Endpoints::new(local, Some(local));
        endpoints.name_server(host);
        let expected = (Some(address.to_owned()), Some(port));
        assert_eq!(endpoints.server(), expected, "{host}");
    }

    #[test]
    fn the_host_that_the_client_names_wins_over_the_address_of_the_socket() {
        check("shop.example", "shop.example", 5672);
        check("shop.example:8443", "shop.example", 8443);
        check("[::1]:8443", "::1", 8443);
    }

    #[test]
    fn without_a_host_it_is_the_address_of_the_socket() {
        for host in ["", "vhost:shop", "two words", &"a".repeat(254)] {
            check(host, "127.0.0.1", 5672);
        }
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(Endpoints::new(peer, None).server(), (None, None));
    }
}
