//! Options: the settings that a server is started with. Plain values, passed as a whole.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::AccessRules;
use broker::{BrokerSettings, FaultRule, NamespaceDefinition, Policy};
use entity::{QueueDefinition, TopicDefinition};
use rustls::ServerConfig;
use tokio::sync::watch;

use crate::credentials::development_issuer::DevelopmentIssuer;
use crate::telemetry::TelemetryOptions;

/// The current configuration of TLS handshakes. The holder of the sender may replace it at any
/// time.
pub type Certificate = watch::Receiver<Arc<ServerConfig>>;

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes any free port. Every address speaks every protocol.
    pub listen: Vec<SocketAddr>,
    /// Bounds on what clients may take up.
    pub limits: Limits,
    /// What holds for every AMQP connection.
    pub connections: servicebus::Settings,
    /// What management over HTTP says of the namespace.
    pub admin: admin::Settings,
    /// The access rules of the namespace, until they are
    /// [replaced](crate::Server::replace_access_rules).
    pub rules: AccessRules,
    /// Issues tokens while `rules` have the development key alone.
    pub development_issuer: Option<DevelopmentIssuer>,
    /// Without one no TLS is spoken.
    pub certificate: Option<Certificate>,
    /// Which peers may connect without TLS.
    pub plain: PlaintextPolicy,
    /// Whether broker time is virtual and can be moved over HTTP.
    pub virtual_clock: bool,
    /// Where backups are made that are asked for over HTTP; none are when there is no such place.
    pub backup_directory: Option<PathBuf>,
    /// The collector of traces and metrics.
    pub telemetry: TelemetryOptions,
    /// What holds for every entity.
    pub broker: BrokerSettings,
    /// Queues that exist before the first client is let in.
    pub queues: Vec<QueueDefinition>,
    /// Topics with their subscriptions, likewise.
    pub topics: Vec<TopicDefinition>,
    /// Policies that are there at the start.
    pub policies: Vec<Policy>,
    /// Fault rules of the default namespace at the start.
    pub faults: Vec<FaultRule>,
    /// Namespaces besides the default one that are there at the start.
    pub namespaces: Vec<ConfiguredNamespace>,
}

/// A namespace besides the default one. Its hosts and keys are these from the start on; entities
/// and policies that it has besides these stay.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ConfiguredNamespace {
    pub definition: NamespaceDefinition,
    pub queues: Vec<QueueDefinition>,
    pub topics: Vec<TopicDefinition>,
    pub policies: Vec<Policy>,
    pub faults: Vec<FaultRule>,
}

/// Whose connections may go without TLS.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PlaintextPolicy {
    /// No peer.
    Nobody,
    /// Peers on this machine.
    #[default]
    Local,
    /// Every peer.
    Everyone,
}

impl PlaintextPolicy {
    /// Whether a connection from that address may.
    #[must_use]
    pub fn allows(self, peer: IpAddr) -> bool {
        match self {
            Self::Nobody => false,
            Self::Local => peer.to_canonical().is_loopback(),
            Self::Everyone => true,
        }
    }
}

/// Bounds on what clients may take up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections in total.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Wrong keys and tokens that an address may show at once before answers to it are delayed.
    pub wrong_credentials_per_address: u32,
    /// From being accepted to the first byte, and an HTTP request's header.
    pub handshake: Duration,
    /// Bytes of messages one connection may have given to the broker without an answer.
    pub unanswered_bytes_per_connection: usize,
    /// The same for all connections together.
    pub unanswered_bytes: usize,
    /// Bytes one connection may leave unread before its own input waits.
    pub unwritten_bytes_per_connection: usize,
    /// An HTTP request's line and headers together; 8 KiB at least.
    pub http_header_bytes: usize,
    /// The body of a request of management; those of our own interface have less.
    pub http_body_bytes: usize,
    /// How long connections may take to close when the server stops: half of it for the answers to
    /// what they have sent, the rest for the peer's close.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 5_000,
            wrong_credentials_per_address: 64,
            handshake: Duration::from_secs(30),
            unanswered_bytes_per_connection: 8 << 20,
            unanswered_bytes: 256 << 20,
            unwritten_bytes_per_connection: 8 << 20,
            http_header_bytes: 16 << 10,
            http_body_bytes: admin::MAX_BODY,
            shutdown_grace: Duration::from_secs(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plain: PlaintextPolicy, peer: &str, expected: bool) {
        assert_eq!(plain.allows(peer.parse().unwrap()), expected, "{peer}");
    }

    #[test]
    fn what_comes_from_this_machine_is_local() {
        for peer in ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"] {
            check(PlaintextPolicy::Local, peer, true);
        }
        for peer in [
            "192.168.0.1",
            "10.0.0.127",
            "fe80::1",
            "::ffff:10.0.0.1",
            "::",
        ] {
            check(PlaintextPolicy::Local, peer, false);
        }
    }

    #[test]
    fn every_value_of_the_policy_applies() {
        for peer in ["127.0.0.1", "192.168.0.1", "::1"] {
            check(PlaintextPolicy::Everyone, peer, true);
            check(PlaintextPolicy::Nobody, peer, false);
        }
    }
}
