//! How the store keeps routers and bindings: a router as the definition of an entity, its bindings
//! as the entries of that entity which a start reads, by their numbers.

use amqp::{Value, decode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{EntityId, Entry, EntryKey, Index, SequenceNumber, StoreError, Write};

use super::binding::{Binding, encoded_arguments};
use super::headers::HeaderMatch;
use super::pattern;
use super::target::Target;
use crate::api::router::{RouterError, RouterKind, RouterSettings};

/// What a definition says of a router.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct StoredRouter {
    kind: StoredKind,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alternate: Option<String>,
    /// An AMQP map.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<u8>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredKind {
    Direct,
    Fanout,
    Topic,
    Headers,
}

#[derive(Deserialize, Serialize)]
struct StoredBinding {
    target: StoredTarget,
    key: String,
    /// An AMQP map.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredTarget {
    Entity(u64),
    Router(u64),
}

impl StoredRouter {
    pub(crate) fn of(settings: &RouterSettings) -> Self {
        Self {
            kind: match settings.kind {
                RouterKind::Direct => StoredKind::Direct,
                RouterKind::Fanout => StoredKind::Fanout,
                RouterKind::Topic => StoredKind::Topic,
                RouterKind::Headers => StoredKind::Headers,
            },
            durable: settings.durable,
            auto_delete: settings.auto_delete,
            internal: settings.internal,
            alternate: settings.alternate.clone(),
            arguments: encoded_arguments(&settings.arguments),
        }
    }

    pub(crate) fn settings(self) -> Result<RouterSettings, StoreError> {
        Ok(RouterSettings {
            kind: match self.kind {
                StoredKind::Direct => RouterKind::Direct,
                StoredKind::Fanout => RouterKind::Fanout,
                StoredKind::Topic => RouterKind::Topic,
                StoredKind::Headers => RouterKind::Headers,
            },
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            alternate: self.alternate,
            arguments: decoded_arguments(self.arguments)?,
        })
    }
}

/// The write of a new binding.
pub(super) fn put(router: EntityId, number: u64, binding: &Binding) -> Write {
    let stored = StoredBinding {
        target: match binding.target {
            Target::Entity(id) => StoredTarget::Entity(id.0),
            Target::Router(id) => StoredTarget::Router(id.0),
        },
        key: binding.key.clone(),
        arguments: encoded_arguments(&binding.arguments),
    };
    let json = serde_json::to_vec(&stored).expect("a binding is plain data");
    Write::PutEntry {
        entity: router,
        index: Index::Rule,
        key: key_of(number),
        value: Bytes::from(json),
    }
}

/// The write of a binding that goes.
pub(super) fn remove(router: EntityId, number: u64) -> Write {
    Write::RemoveEntry {
        entity: router,
        index: Index::Rule,
        key: key_of(number),
    }
}

/// What an entry of a router of this kind says.
pub(super) fn decode_binding(
    kind: RouterKind,
    entry: &Entry,
) -> Result<(u64, Binding), StoreError> {
    let stored: StoredBinding =
        serde_json::from_slice(&entry.value).map_err(|error| damaged(error.to_string()))?;
    let binding = Binding {
        target: match stored.target {
            StoredTarget::Entity(id) => Target::Entity(EntityId(id)),
            StoredTarget::Router(id) => Target::Router(EntityId(id)),
        },
        key: stored.key,
        arguments: decoded_arguments(stored.arguments)?,
    };
    check(kind, &binding.key, &binding.arguments).map_err(|error| damaged(error.to_string()))?;
    Ok((entry.key.number.0, binding))
}

/// Whether a router of this kind can have a binding with this key and these arguments.
pub(super) fn check(
    kind: RouterKind,
    key: &str,
    arguments: &[(String, Value)],
) -> Result<(), RouterError> {
    match kind {
        RouterKind::Topic if pattern::has_too_many_hashes(key) => Err(RouterError::TooManyHashes),
        RouterKind::Headers => HeaderMatch::compile(arguments).map(drop),
        RouterKind::Direct | RouterKind::Fanout | RouterKind::Topic => Ok(()),
    }
}

/// Bindings have no group, so a start reads them in the order of their numbers.
fn key_of(number: u64) -> EntryKey {
    EntryKey::new(Bytes::new(), SequenceNumber(number))
}

fn decoded_arguments(encoded: Vec<u8>) -> Result<Vec<(String, Value)>, StoreError> {
    if encoded.is_empty() {
        return Ok(Vec::new());
    }
    let map = decode::value(&Bytes::from(encoded)).map_err(|error| damaged(error.to_string()))?;
    let Value::Map(map) = map else {
        return Err(damaged("its arguments are no map".to_owned()));
    };
    let arguments = map.into_iter().map(|(name, value)| match name {
        Value::String(name) => Ok((name, value)),
        _ => Err(damaged("an argument has no name".to_owned())),
    });
    arguments.collect()
}

pub(super) fn damaged(detail: String) -> StoreError {
    StoreError::Corrupt {
        what: "a router or one of its bindings".to_owned(),
        detail,
    }
}
