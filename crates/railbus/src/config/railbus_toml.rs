//! `railbus.toml`: all settings of `railbus serve`. Every key is optional; an unknown key is an
//! error.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use broker::{FaultRule, Policy, Tier};
use entity::{Count, EntityPath, Millis, NamespaceName, QueueDefinition, Size, TopicDefinition};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::certificates::{self, AuthCertificate};
use super::choice::{self, LogFormat, Right};
use super::entities::{Entities, collect};
use super::error::Error;
use super::faults;
use super::issuers::{self, AuthIssuer};
use super::namespaces::{self, NamespaceConfig};
use super::toml_file::TomlFile;
use crate::serve::host_name::HostName;

/// 1 second to 1 hour.
type TimeOut = Millis<1_000, 3_600_000>;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RailbusToml {
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// Relative to the file.
    pub data_dir: Option<PathBuf>,
    /// Relative to the file.
    pub backup_dir: Option<PathBuf>,
    /// Relative to the file.
    pub entities: Option<PathBuf>,
    pub ephemeral: bool,
    /// Relative to the file, as are the next two.
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_dir: Option<PathBuf>,
    /// Authorities of client certificates, relative to the file.
    pub tls_client_authority: Option<PathBuf>,
    pub tls_name: Vec<String>,
    #[serde(deserialize_with = "choice::read")]
    pub durability: Option<rocks::Durability>,
    pub log_format: Option<LogFormat>,
    /// Relative to the file.
    pub audit_log: Option<PathBuf>,
    /// The name that the broker has in the place of a namespace in the cloud.
    #[serde(rename = "as")]
    pub host: Option<HostName>,
    /// What management over HTTP calls the namespace.
    pub namespace: Option<NamespaceName>,
    #[serde(deserialize_with = "choice::read")]
    pub sku: Option<Tier>,
    pub max_message_size: Option<Size<1_024, { 100 << 20 }>>,
    pub memory: Option<Size<{ 16 << 20 }, { 1 << 40 }>>,
    #[serde(deserialize_with = "choice::read")]
    pub expiry: Option<broker::Expiry>,
    #[serde(deserialize_with = "choice::read")]
    pub locks_on_disconnect: Option<broker::LocksOnDisconnect>,
    #[serde(deserialize_with = "choice::read")]
    pub session_count_on_disconnect: Option<broker::SessionCountOnDisconnect>,
    #[serde(deserialize_with = "choice::read")]
    pub forward_failures: Option<broker::ForwardFailures>,
    /// Whether queues that were declared without a dead-letter exchange keep their dead letters.
    pub keep_undead_lettered: Option<bool>,
    /// Connections that may make dynamic nodes.
    #[serde(deserialize_with = "choice::read")]
    pub dynamic_nodes: Option<servicebus::DynamicNodeRight>,
    /// Whether senders without a target address are accepted.
    pub anonymous_relay: Option<bool>,
    /// Whether JMS clients make subscriptions and entities by attaching.
    pub jms: Option<bool>,
    pub allow_development_key: bool,
    #[serde(deserialize_with = "choice::read")]
    pub plain: Option<server::PlaintextPolicy>,
    pub virtual_clock: bool,
    /// Whether what happens to messages is recorded, in namespaces that do not say.
    pub lineage: Option<bool>,
    pub auth: Auth,
    pub transactions: TransactionsConfig,
    pub limits: LimitsConfig,
    pub telemetry: TelemetryConfig,
    pub queues: Vec<QueueDefinition>,
    pub topics: Vec<TopicDefinition>,
    pub policies: Vec<Policy>,
    pub faults: Vec<FaultRule>,
    pub namespaces: Vec<NamespaceConfig>,
}

/// `[transactions]`: what they may touch.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TransactionsConfig {
    #[serde(deserialize_with = "choice::read")]
    pub cross_entity: Option<servicebus::CrossEntity>,
}

/// `[telemetry]`: the collector of OpenTelemetry. The standard variables win over it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetryConfig {
    /// The URL of the collector; none gets anything without it.
    pub endpoint: Option<String>,
    pub traces: bool,
    pub metrics: bool,
    pub service_name: Option<String>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            traces: true,
            metrics: true,
            service_name: None,
        }
    }
}

/// `[auth]`: access rules.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auth {
    /// The rights of anonymous clients.
    pub anonymous: Vec<Right>,
    pub rules: Vec<AuthRule>,
    pub issuers: Vec<AuthIssuer>,
    pub certificates: Vec<AuthCertificate>,
}

/// One of `[[auth.rules]]`.
#[derive(Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthRule {
    pub name: String,
    pub primary_key: String,
    pub secondary_key: Option<String>,
    pub rights: Vec<Right>,
    /// The queue or topic it holds for; the whole namespace otherwise.
    pub entity: Option<EntityPath>,
}

// Written by hand, so that no key can be printed by mistake.
impl std::fmt::Debug for AuthRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthRule")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// `[limits]`: what clients may take up.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitsConfig {
    pub connections: Option<Count<1, 1_000_000>>,
    pub connections_per_address: Option<Count<1, 1_000_000>>,
    /// Wrong keys and tokens at once before answers to their address are delayed.
    pub wrong_credentials_per_address: Option<Count<1, 1_000_000>>,
    /// From being accepted until a connection is open.
    pub handshake_time_out: Option<TimeOut>,
    /// Until a connection has shown a right, unless everyone has one.
    pub authentication_time_out: Option<TimeOut>,
    /// Silence for this long ends a connection.
    pub idle_time_out: Option<TimeOut>,
    /// A connection without links is closed after this time; never by default.
    pub unused_connection_time_out: Option<TimeOut>,
    pub frame_size: Option<Size<512, { 1 << 20 }>>,
    pub sessions_per_connection: Option<Count<1, 5_000>>,
    pub links_per_session: Option<Count<1, 65_536>>,
    /// Links of all sessions together.
    pub links_per_connection: Option<Count<1, 65_536>>,
    pub unsettled_per_session: Option<Count<1, 1_000_000>>,
    /// Unfinished multi-frame messages of one connection.
    pub partial_bytes_per_connection: Option<Size<{ 64 << 10 }, { 1 << 30 }>>,
    /// Messages given to the broker that it has not answered; over all connections unfinished
    /// messages may fill half of it, so a message that comes in several frames cannot be larger
    /// than that.
    pub unanswered_bytes_per_connection: Option<Size<{ 64 << 10 }, { 1 << 30 }>>,
    pub unanswered_bytes: Option<Size<{ 64 << 10 }, { 1 << 40 }>>,
    /// Bytes that a client leaves unread before it is not read any more itself.
    pub unwritten_bytes_per_connection: Option<Size<{ 64 << 10 }, { 1 << 30 }>>,
    /// An HTTP request's line and headers.
    pub http_header_size: Option<Size<{ 8 << 10 }, { 1 << 20 }>>,
    /// The body of a request of management.
    pub http_body_size: Option<Size<1_024, { 64 << 20 }>>,
    /// Messages on their way to one connection.
    pub outgoing_bytes_per_connection: Option<Size<{ 64 << 10 }, { 1 << 30 }>>,
    /// Messages that one batch delete may ask for: 4,000 as Premium has it, by default.
    pub messages_per_batch_delete: Option<Count<1, 4_000>>,
    /// Dynamic nodes that are there by one connection.
    pub dynamic_nodes_per_connection: Option<Count<1, 100_000>>,
    /// What all dynamic nodes take of memory, with their messages.
    pub dynamic_node_bytes: Option<Size<{ 64 << 10 }, { 1 << 40 }>>,
    /// From a transaction's first operation to its discharge.
    pub transaction_time_out: Option<TimeOut>,
    /// Between two tries of a forward to a full destination.
    pub forward_retry_interval: Option<TimeOut>,
    /// Until such a forward fails.
    pub forward_retry_time_out: Option<Millis<0, 86_400_000>>,
    /// Messages sent and settled in one transaction.
    pub operations_per_transaction: Option<Count<1, 100_000>>,
    /// Transactions that are open at a time.
    pub transactions_per_connection: Option<Count<1, 10_000>>,
    /// What one transaction holds until it is discharged.
    pub bytes_per_transaction: Option<Size<{ 64 << 10 }, { 1 << 30 }>>,
    /// What all transactions hold together.
    pub transaction_bytes: Option<Size<{ 64 << 10 }, { 1 << 40 }>>,
    /// The record of what happens to the messages of one namespace; nothing is recorded with 0.
    pub lineage_bytes: Option<Size<0, { 1 << 30 }>>,
    /// Free disk space below which sends are refused.
    pub reserve_bytes: Option<Size<0, { u64::MAX }>>,
    /// What the scrubber reads of the store in a second; 0 if nothing.
    pub scrub_bytes: Option<Size<0, { 1 << 30 }>>,
}

/// Reads and checks `file`; returns its settings and its entities.
pub fn read_railbus_toml(path: &Path) -> Result<(RailbusToml, Entities), Error> {
    let mut file = TomlFile::<RailbusToml>::read(path)?;
    check_rules(&file)?;
    issuers::check(&file)?;
    certificates::check(&file)?;
    let queues = std::mem::take(&mut file.value.queues);
    let topics = std::mem::take(&mut file.value.topics);
    let tier = file.value.sku.unwrap_or_default();
    let policies = std::mem::take(&mut file.value.policies);
    let namespaces = std::mem::take(&mut file.value.namespaces);
    let refuse = |path, message| file.error(path, message);
    faults::check(&file.value.faults, refuse)?;
    let mut entities = Entities {
        faults: file.value.faults.clone(),
        ..collect(queues, topics, policies, tier, refuse)?
    };
    namespaces::collect(namespaces, tier, refuse, &mut entities)?;
    // The package's own file has comments alone.
    if file.is_blank() {
        entities.warn_if_none(path);
    }
    Ok((file.value, entities))
}

fn check_rules(file: &TomlFile<'_, RailbusToml>) -> Result<(), Error> {
    let mut seen = HashMap::new();
    for (index, rule) in file.value.auth.rules.iter().enumerate() {
        let refuse = |key: &str, message: String| {
            Err(file.error(format!("auth.rules[{index}].{key}"), message))
        };
        if rule.name.is_empty() || rule.name.len() > 256 {
            return refuse("name", "a rule's name has 1 to 256 characters".to_owned());
        }
        if rule.primary_key.is_empty() {
            return refuse("primary-key", "a key is not empty".to_owned());
        }
        if rule.secondary_key.as_ref().is_some_and(String::is_empty) {
            return refuse("secondary-key", "a key is not empty".to_owned());
        }
        if rule.rights.is_empty() {
            return refuse("rights", "a rule has at least one right".to_owned());
        }
        let entity = rule
            .entity
            .clone()
            .map(|path| path.into_string().to_lowercase());
        if let Some(first) = seen.insert((rule.name.clone(), entity), index) {
            return refuse(
                "name",
                format!(
                    "the rule `{}` is there already, as auth.rules[{first}]",
                    rule.name
                ),
            );
        }
    }
    Ok(())
}

/// Reads an address with port. `localhost` is 127.0.0.1.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse().ok())
    {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse()
        .map_err(|_| format!("`{text}` is not an address with a port, such as 127.0.0.1:5672"))
}

fn addresses<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts
        .iter()
        .map(|text| parse_address(text).map_err(D::Error::custom))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RailbusToml, String> {
        read_all(text).map(|(config, _)| config)
    }

    fn read_all(text: &str) -> Result<(RailbusToml, Entities), String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("railbus.toml");
        std::fs::write(&file, text).unwrap();
        read_railbus_toml(&file).map_err(|error| {
            error
                .to_string()
                .replace(&format!("{}/", directory.path().display()), "")
        })
    }

    #[test]
    fn a_file_without_anything_is_worth_a_warning() {
        let (_, entities) = read_all("\n").unwrap();
        let [warning] = &entities.warnings[..] else {
            panic!("{:?}", entities.warnings);
        };
        let expected = "railbus.toml:1: the file declares no queue and no topic";
        assert!(warning.ends_with(expected), "{warning}");
        let mut all = Entities::default();
        all.add(entities);
        assert_eq!(all.warnings.len(), 1);
        let (_, entities) = read_all("# queues come over HTTP").unwrap();
        assert_eq!(entities.warnings, Vec::<String>::new());
    }

    fn check_error(text: &str, expected: &str) {
        assert_eq!(read(text).unwrap_err(), expected);
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"
            listen = ["127.0.0.1:5672", "localhost:0"]
            data-dir = "data"
            entities = "Config.json"
            tls-certificate = "server.pem"
            tls-key = "server.key"
            tls-dir = "authority"
            tls-client-authority = "clients.pem"
            tls-name = ["broker.example"]
            durability = "buffered"
            log-format = "json"
            audit-log = "audit.log"
            as = 'shop.servicebus.windows.net'
            namespace = 'shop'
            sku = 'premium'
            max-message-size = 1048576
            memory = "256MiB"
            expiry = "cloud"
            locks-on-disconnect = "drop"
            session-count-on-disconnect = "raise"
            forward-failures = "dead-letter"
            keep-undead-lettered = true
            dynamic-nodes = "send-listen"
            anonymous-relay = true
            jms = false
            virtual-clock = true
            lineage = true
            [auth]
            anonymous = ["send", "listen"]
            [[auth.rules]]
            name = "sender"
            primary-key = "first"
            secondary-key = "second"
            rights = ["send"]
            entity = "orders"
            [transactions]
            cross-entity = "as-cloud"
            [limits]
            connections = 10
            idle-time-out = "PT1M"
            messages-per-batch-delete = 500
            dynamic-nodes-per-connection = 50
            dynamic-node-bytes = "1MiB"
            unused-connection-time-out = "PT5M"
            transaction-time-out = "PT30S"
            forward-retry-interval = "PT2S"
            forward-retry-time-out = "PT0S"
            operations-per-transaction = 1000
            transactions-per-connection = 2
            bytes-per-transaction = "1MiB"
            transaction-bytes = "2MiB"
            lineage-bytes = "1MiB"
            reserve-bytes = "1GiB"
            scrub-bytes = "1MiB"
            [[queues]]
            name = "orders"
            lock-duration = "PT30S"
            max-delivery-count = 5
            default-message-time-to-live = "P14D"
            [[topics]]
            name = "events"
        "#;
        let (config, entities) = read_all(text).unwrap();
        assert_eq!(config.listen.len(), 2);
        assert_eq!(config.max_message_size, Some(Size(1_048_576)));
        assert_eq!(config.namespace.unwrap().into_string(), "shop");
        assert_eq!(config.sku, Some(Tier::Premium));
        assert_eq!(config.memory, Some(Size(256 << 20)));
        assert!(config.virtual_clock);
        assert_eq!(config.lineage, Some(true));
        assert_eq!(config.limits.lineage_bytes, Some(Size(1 << 20)));
        let as_cloud = Some(servicebus::CrossEntity::AsCloud);
        assert_eq!(config.transactions.cross_entity, as_cloud);
        assert_eq!(
            config.auth.rules[0].secondary_key.as_deref(),
            Some("second")
        );
        let send_listen = Some(servicebus::DynamicNodeRight::SendListen);
        assert_eq!(config.dynamic_nodes, send_listen);
        assert_eq!(config.keep_undead_lettered, Some(true));
        assert_eq!(config.anonymous_relay, Some(true));
        assert_eq!(config.jms, Some(false));
        assert_eq!(config.limits.dynamic_nodes_per_connection, Some(Count(50)));
        assert_eq!(config.limits.dynamic_node_bytes, Some(Size(1 << 20)));
        assert_eq!(config.limits.idle_time_out, Some(Millis(60_000)));
        assert_eq!(config.limits.messages_per_batch_delete, Some(Count(500)));
        assert_eq!(entities.topics[0].path, "events");
        let queue = &entities.queues[0];
        assert_eq!(queue.settings.lock_duration, 30_000);
        assert_eq!(
            queue.settings.default_message_time_to_live,
            14 * 24 * 3_600_000
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = read("durability = 'synced'\nspeed = 'high'\n").unwrap_err();
        assert!(
            error.starts_with(
                "railbus.toml:2: speed: unknown field `speed`, expected one of `listen`"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_value_outside_its_range_is_refused_with_line_and_path() {
        check_error(
            "[[queues]]\nname = 'a'\n\n[[queues]]\nname = 'b'\nlock-duration = 'PT1H'\n",
            "railbus.toml:6: queues[1].lock-duration: PT1H is above the maximum of PT5M",
        );
        check_error(
            "[limits]\nconnections = 0\n",
            "railbus.toml:2: limits.connections: 0 is below the minimum of 1",
        );
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        check_error(
            "[[queues]]\nname = 'a'\n[[queues]]\nname = 'A'\n",
            "railbus.toml:4: queues[1].name: the queue `A` is there already, as queues[0]",
        );
        check_error(
            "[[queues]]\nname = 'a'\n[[topics]]\nname = 'A'\n",
            "railbus.toml:4: topics[0].name: the entity `A` is there already, as queues[0]",
        );
    }

    #[test]
    fn broken_toml_is_refused_with_its_line() {
        let error = read("durability = 'synced'\nlisten = [\n").unwrap_err();
        assert!(error.starts_with("railbus.toml:"), "{error}");
    }

    #[test]
    fn a_key_is_never_in_an_error_or_in_debug() {
        let error = read("[[auth.rules]]\nname = 'a'\nrights = ['send']\nprimary-key = 31337\n")
            .unwrap_err();
        assert_eq!(
            error,
            "railbus.toml:4: auth.rules[0].primary-key: a key is a string"
        );
        let config =
            read("[[auth.rules]]\nname = 'a'\nrights = ['send']\nprimary-key = 'hush'\n").unwrap();
        assert!(!format!("{config:?}").contains("hush"));
    }
}
