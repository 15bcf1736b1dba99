//! Transport: how a connection came, which decides what it may do.

use std::net::SocketAddr;

use access::Locality;

/// The transport of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// It came through a listener that only this machine can reach.
    pub is_loopback: bool,
    pub is_tls: bool,
    /// It uses TLS, or may do without.
    pub is_private: bool,
    /// From where.
    pub peer: SocketAddr,
    /// To where, if that is known.
    pub local: Option<SocketAddr>,
}

impl Transport {
    /// Where the peer is, as far as that decides whose tokens count.
    pub fn locality(&self) -> Locality {
        locality(self.is_loopback, self.peer)
    }
}

/// Where the peer of a listener is.
pub fn locality(is_loopback: bool, peer: SocketAddr) -> Locality {
    match is_loopback && peer.ip().to_canonical().is_loopback() {
        true => Locality::Loopback,
        false => Locality::Network,
    }
}
