//! Namespaces: the worlds of one broker, what orders about them say and what they are answered.
//!
//! A namespace has a name, host names that choose it, and keys. One is always there, the default
//! one, which has no definition. Names are host labels, so that every name can be part of a host
//! name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{EntityId, NamespaceId};

use crate::api::contents::{Contents, FrozenEntity, LoadTarget, Piece};
use crate::api::entity_error::EntityError;
use crate::api::fault::{FaultDescription, FaultRule};
use crate::api::page::Page;
use crate::api::snapshot::SnapshotDescription;
use crate::api::store_only::AuthorizationRule;
use crate::api::time::Wall;

/// The most namespaces besides the default one.
pub const MAX_NAMESPACES: usize = 10_000;
/// The name of the namespace that is always there.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The most characters of a name: those of a label of a host name.
const MAX_NAME: usize = 63;
/// The most characters of a host name.
const MAX_HOST: usize = 253;
/// The most host names and the most keys of one namespace.
const MAX_HOSTS: usize = 32;
const MAX_KEYS: usize = 12;
/// The most characters of a key, and of its name.
const MAX_KEY: usize = 256;
/// The hosts of a namespace that need not be listed: its name before one of these.
const DOMAINS: [&str; 2] = [".localhost", ".servicebus.windows.net"];

/// What a namespace is, besides its entities.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct NamespaceDefinition {
    pub name: String,
    /// In lower case, without ports, besides those that follow from the name.
    pub hosts: Vec<String>,
    pub keys: Vec<AuthorizationRule>,
    /// Whether what happens to its messages is recorded; `None` takes the broker's setting.
    pub lineage: Option<bool>,
    pub limits: NamespaceLimits,
}

/// What one namespace may have at most, below what the broker allows each. A limit is for what
/// comes: what is there already stays.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct NamespaceLimits {
    /// Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_entities: Option<u32>,
    /// AMQP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Bytes of messages and of states of sessions, in all entities together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// An order about namespaces.
#[derive(Clone, Debug, PartialEq)]
pub enum NamespaceOrder {
    /// Makes a namespace that is not there, with the entities of another or none. Answered by
    /// [`NamespaceAnswer::One`].
    Create {
        /// What it will be.
        definition: Box<NamespaceDefinition>,
        /// The name of the namespace whose entities it gets.
        like: Option<String>,
    },
    /// Gives a namespace that is there other hosts and keys. Answered by [`NamespaceAnswer::One`].
    Replace(Box<NamespaceDefinition>),
    /// Deletes a namespace with all that is in it. Answered by [`NamespaceAnswer::Done`].
    Remove(String),
    /// Deletes all messages of a namespace, and makes its entities those that it was made with.
    /// Answered by [`NamespaceAnswer::Done`].
    Reset(String),
    /// Gives a namespace these fault rules instead of those it has. Answered by
    /// [`NamespaceAnswer::Faults`].
    ReplaceFaults {
        /// Its name.
        name: String,
        /// In the order in which they are looked at.
        rules: Vec<FaultRule>,
    },
    /// Gives a namespace one more fault rule, behind those it has. Answered by
    /// [`NamespaceAnswer::Faults`].
    AddFault {
        /// Its name.
        name: String,
        /// None of its name is there.
        rule: Box<FaultRule>,
    },
    /// Answered by [`NamespaceAnswer::Faults`].
    ListFaults(String),
    /// Keeps what the entities of a namespace have at this moment, under a name that is free.
    /// Answered by [`NamespaceAnswer::Snapshots`] with that one.
    TakeSnapshot {
        /// The namespace's name.
        name: String,
        /// The snapshot's name.
        snapshot: String,
    },
    /// In the order in which they were taken. Answered by [`NamespaceAnswer::Snapshots`].
    ListSnapshots(String),
    /// Answered by [`NamespaceAnswer::Done`].
    RemoveSnapshot {
        /// The namespace's name.
        name: String,
        /// The snapshot's name.
        snapshot: String,
    },
    /// Gives a namespace the entities and messages of one of its snapshots instead of those it has.
    /// Answered by [`NamespaceAnswer::Done`].
    Restore {
        /// The namespace's name.
        name: String,
        /// The snapshot's name.
        snapshot: String,
    },
    /// Makes a namespace with the entities and messages of another. Answered by
    /// [`NamespaceAnswer::One`].
    Fork {
        /// The name of the other one.
        name: String,
        /// As they are in this snapshot of it; as they are now if none is named.
        snapshot: Option<String>,
        /// What the new one will be.
        definition: Box<NamespaceDefinition>,
    },
    /// Keeps what a namespace has at this moment until it is released, or the broker ends. Answered
    /// by [`NamespaceAnswer::Contents`].
    Export(String),
    /// Begins to load these entities, which no client sees yet. Answered by
    /// [`NamespaceAnswer::Loading`].
    BeginLoad(Vec<FrozenEntity>),
    /// Brings a piece of what is loaded. Answered by [`NamespaceAnswer::Done`].
    Load {
        /// What has begun.
        load: EntityId,
        /// A few messages and entries.
        piece: Box<Piece>,
    },
    /// Makes what was loaded a namespace's, in one commit. Answered by [`NamespaceAnswer::One`].
    EndLoad {
        /// What has begun.
        load: EntityId,
        /// The namespace, which is there, or is made.
        target: LoadTarget,
    },
    /// Lets go of what was exported, or of a load that does not end. Answered by
    /// [`NamespaceAnswer::Done`].
    Release(EntityId),
    /// Answered by [`NamespaceAnswer::One`].
    Describe(String),
    /// All but the default one, in the order of their names. Answered by [`NamespaceAnswer::Some`].
    List {
        /// How many to leave out.
        skip: usize,
        /// How many to show at most.
        top: usize,
    },
}

impl NamespaceOrder {
    /// Whether it copies entities with their messages.
    pub(crate) fn copies(&self) -> bool {
        matches!(
            self,
            Self::TakeSnapshot { .. }
                | Self::Restore { .. }
                | Self::Fork { .. }
                | Self::Export(_)
                | Self::EndLoad { .. }
        )
    }

    /// Whether it brings messages.
    pub(crate) fn loads(&self) -> bool {
        matches!(self, Self::BeginLoad(_) | Self::Load { .. })
    }
}

/// What an order about namespaces has done or found.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum NamespaceAnswer {
    One(Box<NamespaceDescription>),
    Some(Page<NamespaceDescription>),
    Faults(Vec<FaultDescription>),
    Snapshots(Vec<SnapshotDescription>),
    Contents(Box<Contents>),
    /// The id of what is being loaded.
    Loading(EntityId),
    Done,
}

/// A namespace at one moment.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct NamespaceDescription {
    pub id: NamespaceId,
    pub definition: NamespaceDefinition,
    pub created: Wall,
    /// Queues, topics and subscriptions.
    pub entities: usize,
}

/// What is to be known of a namespace that was created or changed, or that is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct NamespaceChange {
    pub id: NamespaceId,
    /// `None` when it is gone.
    pub definition: Option<Arc<NamespaceDefinition>>,
}

impl NamespaceDefinition {
    /// Whether it makes sense by itself.
    ///
    /// # Errors
    /// Names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), EntityError> {
        check_name(&self.name)?;
        if self.name == DEFAULT_NAMESPACE {
            return invalid(format!(
                "namespace '{DEFAULT_NAMESPACE}': this name is that of the default namespace"
            ));
        }
        check_count("hosts", self.hosts.len(), MAX_HOSTS)?;
        check_count("keys", self.keys.len(), MAX_KEYS)?;
        let NamespaceLimits {
            max_entities,
            max_connections,
            max_bytes,
        } = self.limits;
        for (member, limit) in [
            ("max-entities", max_entities.map(u64::from)),
            ("max-connections", max_connections.map(u64::from)),
            ("max-bytes", max_bytes),
        ] {
            if limit == Some(0) {
                return invalid(format!("{member}: 0 is below the minimum of 1"));
            }
        }
        for (index, host) in self.hosts.iter().enumerate() {
            check_host(host)?;
            if self.hosts[..index].contains(host) {
                return invalid(format!("host '{host}': it is listed twice"));
            }
        }
        for (index, key) in self.keys.iter().enumerate() {
            let name = &key.key_name;
            if !(1..=MAX_KEY).contains(&name.len()) || name.chars().any(char::is_control) {
                return invalid(format!(
                    "key '{}': its name has 1 to {MAX_KEY} bytes and no control characters",
                    name.escape_debug()
                ));
            }
            let texts = [&key.primary_key, &key.secondary_key];
            if key.primary_key.is_empty() || texts.iter().any(|text| text.len() > MAX_KEY) {
                return invalid(format!("key '{name}': a key has 1 to {MAX_KEY} bytes"));
            }
            let before = &self.keys[..index];
            if before.iter().any(|before| before.key_name == *name) {
                return invalid(format!("key '{name}': it is listed twice"));
            }
        }
        Ok(())
    }

    /// Whether a host name in lower case is one of its.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        name_in_host(host) == Some(&self.name) || self.hosts.iter().any(|own| own == host)
    }
}

/// The name of the namespace that a host name in lower case has as its first label, where a
/// namespace need not list it.
#[must_use]
pub fn name_in_host(host: &str) -> Option<&str> {
    let mut domains = DOMAINS.iter();
    let name = domains.find_map(|domain| host.strip_suffix(domain))?;
    check_name(name).is_ok().then_some(name)
}

fn check_name(name: &str) -> Result<(), EntityError> {
    if name.len() <= MAX_NAME && is_label(name) {
        return Ok(());
    }
    invalid(format!(
        "namespace '{}': a name has 1 to {MAX_NAME} lower-case letters, digits and '-', \
         and begins and ends with a letter or digit",
        name.escape_debug()
    ))
}

/// Every client may name the broker by `localhost` or an address, so neither tells one namespace
/// from another: all clients that know no other name would be locked out of theirs.
fn check_host(host: &str) -> Result<(), EntityError> {
    if host.len() > MAX_HOST || !host.split('.').all(is_label) {
        return invalid(format!(
            "host '{}': a host name has 1 to {MAX_HOST} lower-case letters, digits, '-' and '.', \
             and no port",
            host.escape_debug()
        ));
    }
    // A name whose last label is a number is an address. [WHATWG URL 3.5]
    let is_address = host
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    if host == "localhost" || is_address {
        return invalid(format!(
            "host '{host}': it leads to all namespaces; the host of one is a name of its own, \
             such as 'shop.example.com'"
        ));
    }
    Ok(())
}

/// Whether a text can be a label of a host name.
pub(crate) fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty()
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn check_count(what: &str, count: usize, limit: usize) -> Result<(), EntityError> {
    if count <= limit {
        return Ok(());
    }
    invalid(format!("{what}: a namespace can have {limit} of them"))
}

fn invalid<T>(text: String) -> Result<T, EntityError> {
    Err(EntityError::Invalid(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, hosts: &[&str], expected: Option<&str>) {
        let definition = NamespaceDefinition {
            name: name.to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            keys: Vec::new(),
            lineage: None,
            limits: NamespaceLimits::default(),
        };
        let error = definition.check().err().map(|error| error.to_string());
        match (error, expected) {
            (None, None) => {}
            (Some(error), Some(part)) => assert!(error.contains(part), "{error}"),
            (error, _) => panic!("{name} {hosts:?}: {error:?}"),
        }
    }

    #[test]
    fn a_name_is_a_label_of_a_host_name() {
        for name in ["a", "orders-test", "42", &"a".repeat(63)] {
            check(name, &[], None);
        }
        for name in ["", "a/b", "A", "-a", "a-", "a.b", "a b", &"a".repeat(64)] {
            check(name, &[], Some("a name has 1 to 63"));
        }
        check("default", &[], Some("that of the default namespace"));
    }

    #[test]
    fn hosts_have_no_port_and_are_listed_once() {
        check("a", &["orders.example.com", "local-host"], None);
        for host in ["", "a:5672", "A.b", "a..b", "a/b"] {
            check("a", &[host], Some("a host name has"));
        }
        for host in ["localhost", "127.0.0.1", "127.1", "42"] {
            check("a", &[host], Some("it leads to all namespaces"));
        }
        check("a", &["b", "b"], Some("listed twice"));
        check("a", &["b"; 33], Some("can have 32"));
    }

    #[test]
    fn a_name_is_found_in_the_hosts_that_need_not_be_listed() {
        for (host, name) in [
            ("orders.localhost", Some("orders")),
            ("orders.servicebus.windows.net", Some("orders")),
            ("localhost", None),
            (".localhost", None),
            ("a.b.localhost", None),
            ("orders.example.com", None),
        ] {
            assert_eq!(name_in_host(host), name, "{host}");
        }
    }
}
