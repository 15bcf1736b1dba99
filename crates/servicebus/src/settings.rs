//! Settings of connections, shared by all of them. Durations are milliseconds, sizes bytes.

use access::RequiredRight;
use amqp::Symbol;
use broker::Tier;

use crate::jms::connection::is_client_provider;
use crate::jms::{DELAYED_DELIVERY, SHARED_SUBS};

const ANONYMOUS_RELAY: Symbol = Symbol::new("ANONYMOUS-RELAY");

/// Which entities one transaction may touch. (docs/spec/amqp.md#8.3)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CrossEntity {
    /// As in the cloud on connections that have put a token, any on others.
    #[default]
    Auto,
    /// One top-level entity, or what a session that began with a coordinator allows.
    AsCloud,
    /// Every entity of the namespace.
    Any,
}

/// Connections that may make dynamic nodes. (docs/spec/amqp.md#3.7)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DynamicNodeRight {
    /// Connections with Manage for the namespace.
    #[default]
    Manage,
    /// Connections with Send and Listen for the namespace.
    SendListen,
    /// No connection.
    Off,
}

impl DynamicNodeRight {
    /// The rights for the namespace that it takes; `None` if no connection makes nodes.
    #[must_use]
    pub fn required(self) -> Option<&'static [RequiredRight]> {
        match self {
            Self::Manage => Some(&[RequiredRight::Manage]),
            Self::SendListen => Some(&[RequiredRight::Send, RequiredRight::Listen]),
            Self::Off => None,
        }
    }
}

/// The settings of every connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the namespace, for error texts.
    pub namespace: String,
    /// Largest message of entities that do not say otherwise.
    pub max_message_size: u64,
    /// Credit a client sender starts with; topped up at half.
    pub sender_credit: u32,
    /// Most messages that one request may delete. (docs/spec/entities.md#4)
    pub batch_delete: usize,
    /// What it does without. (docs/spec/entities.md#4)
    pub tier: Tier,
    /// How long a link outlives its token.
    pub token_grace: u32,
    /// Close a connection without links after this long; `None` keeps it. (docs/spec/amqp.md#1.5)
    pub idle_connection: Option<u32>,
    /// Close a connection that has not authenticated after this time, unless anonymous clients have
    /// rights.
    pub authentication_time_out: u32,
    /// Which entities one transaction may touch.
    pub cross_entity: CrossEntity,
    /// Connections that may make dynamic nodes.
    pub dynamic_nodes: DynamicNodeRight,
    /// Whether senders without a target address are accepted. (docs/spec/amqp.md#3.9)
    pub anonymous_relay: bool,
    /// Whether there are subscriptions and entities by attaching, and delayed delivery.
    /// (docs/spec/amqp.md#13)
    pub jms: bool,
    /// The AMQP engine's settings.
    pub endpoint: endpoint::Config,
}

impl Settings {
    /// The settings of a connection's AMQP engine, with what it offers. (docs/spec/amqp.md#1.4)
    pub(crate) fn endpoint_config(&self) -> endpoint::Config {
        let mut config = self.endpoint.clone();
        if self.anonymous_relay {
            config.available_capabilities.push(ANONYMOUS_RELAY);
        }
        if self.jms {
            let capabilities = [DELAYED_DELIVERY, SHARED_SUBS];
            config.available_capabilities.extend(capabilities);
            // A message over the relay would find no entity where an attach makes one.
            config.withholds = |open, it| *it == ANONYMOUS_RELAY && is_client_provider(open);
        }
        config
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "railbus".to_owned(),
            max_message_size: 262_144,
            sender_credit: 1_000,
            batch_delete: 4_000,
            tier: Tier::Standard,
            token_grace: 60_000,
            idle_connection: None,
            authentication_time_out: 60_000,
            cross_entity: CrossEntity::Auto,
            dynamic_nodes: DynamicNodeRight::Manage,
            anonymous_relay: false,
            jms: false,
            endpoint: endpoint::Config::default(),
        }
    }
}
