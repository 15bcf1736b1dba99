//! Peer: the address of a broker, the credentials for it, and how it settles messages.

use std::net::SocketAddr;

use amqp::Symbol;
use endpoint::Config;

use crate::receiver::SettleMode;
use crate::wire::TrustStore;

/// A broker as its clients see it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it listens; the first that answers counts.
    pub addresses: Vec<SocketAddr>,
    /// What it is called when a connection is opened. [AMQP 2.7.1]
    pub host: String,
    /// The mechanism and the initial response. [AMQP 5.3.3.2]
    pub sasl: (Symbol, Vec<u8>),
    /// What is shown before links are asked for.
    pub token: Option<Token>,
    /// How its messages are completed.
    pub settle_mode: SettleMode,
    /// The trusted certificates, if clients use TLS.
    pub trust: Option<TrustStore>,
}

/// What lets one in at an entity. (docs/spec/amqp.md#2.4)
#[derive(Clone)]
pub struct Token {
    /// The entity's URL.
    pub audience: String,
    /// A shared access signature for it.
    pub text: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

impl Peer {
    pub(crate) fn config(&self) -> Config {
        Config {
            container_id: "railbus-bench".to_owned(),
            hostname: Some(self.host.clone()),
            client_sasl: Some(self.sasl.clone()),
            ..Config::default()
        }
    }
}
