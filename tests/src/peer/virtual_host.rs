//! Virtual host: a peer that names one, as RabbitMQ's clients do.

use std::net::SocketAddr;

use super::{Peer, connect};
use crate::Credentials;

impl Peer {
    /// Connects with the well-known key to a virtual host, without waiting for an answer.
    ///
    /// # Panics
    /// When no broker listens.
    #[must_use]
    pub fn in_virtual_host(address: SocketAddr, name: &str) -> Self {
        let login = Credentials::DEVELOPMENT.login();
        Self::with(connect(address), login, &format!("vhost:{name}"))
    }
}
