//! Keys of definitions: one row for each, with its values, where it applies and how it is merged.
//! (docs/spec/rabbitmq.md#12.1, #13)
//!
//! Keys of RabbitMQ that need what is not there yet are refused by name. Those that mean nothing to
//! this broker are stored.

use serde_json::{Map, Value as Json};

use crate::api::declared::{Declared, QueueType};
use crate::api::delayed_retry::{self, RetriedMessages};
use crate::api::kind::EntityKind;
use crate::api::policy::PolicyLayer;
use crate::api::settings::{DeadLetterStrategy, Overflow, QueueSettings};

const ALL: &[EntityKind] = &[
    EntityKind::Queue,
    EntityKind::Topic,
    EntityKind::Subscription,
];
/// What receivers take messages from.
const RECEIVED: &[EntityKind] = &[EntityKind::Queue, EntityKind::Subscription];
const QUEUE: &[EntityKind] = &[EntityKind::Queue];
/// What senders send messages to.
const SENT_TO: &[EntityKind] = &[EntityKind::Queue, EntityKind::Topic];
/// Other kinds of queue, which are not there.
const NONE: &[EntityKind] = &[];

const BOTH: &[QueueType] = &[QueueType::Classic, QueueType::Quorum];
const QUORUM: &[QueueType] = &[QueueType::Quorum];
const CLASSIC: &[QueueType] = &[QueueType::Classic];

/// The values of a key.
#[derive(Clone, Copy)]
enum Values {
    /// Whole numbers from this one on; the text says what it is not otherwise.
    From(i64, &'static str),
    Words(&'static [&'static str], &'static str),
    Text(&'static str),
    Flag,
    Any,
}

/// What becomes of a key that a user policy and an operator policy have.
#[derive(Clone, Copy)]
enum Merge {
    Least,
    Most,
    Operator,
    /// The least, where a negative one is no limit.
    Limit,
    /// Operator policies do not have it.
    UserOnly,
}

/// One key.
pub(crate) struct Key {
    pub name: &'static str,
    values: Values,
    /// The kinds of entity that have it. A policy with a key that is not theirs does not apply.
    kinds: &'static [EntityKind],
    /// The types of queue that have it. (docs/spec/rabbitmq.md#13)
    types: &'static [QueueType],
    merge: Merge,
    /// Gives an entity with settings of its own what the key says.
    apply: fn(&mut QueueSettings, &Json),
}

const STORED: Key = Key {
    name: "",
    values: Values::Any,
    kinds: QUEUE,
    types: BOTH,
    merge: Merge::UserOnly,
    apply: |_, _| {},
};

/// All keys.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: MESSAGE_TTL,
        values: Values::From(0, "a valid message TTL"),
        kinds: ALL,
        types: BOTH,
        merge: Merge::Least,
        apply: |it, value| lower(&mut it.default_message_time_to_live, value),
    },
    Key {
        name: "expires",
        values: Values::From(1, "a valid queue expiry"),
        kinds: RECEIVED,
        types: BOTH,
        merge: Merge::Least,
        apply: |it, value| lower(&mut it.expires, value),
    },
    Key {
        name: "max-length",
        values: Values::From(0, "a valid maximum length"),
        kinds: RECEIVED,
        types: BOTH,
        merge: Merge::Least,
        apply: |it, value| limit(&mut it.max_length, value),
    },
    Key {
        name: "max-length-bytes",
        values: Values::From(0, "a valid maximum length in bytes"),
        kinds: RECEIVED,
        types: BOTH,
        merge: Merge::Least,
        apply: |it, value| limit(&mut it.max_length_bytes, value),
    },
    Key {
        name: "overflow",
        values: Values::Words(
            &["drop-head", "reject-publish", "reject-publish-dlx"],
            "a valid overflow value",
        ),
        kinds: QUEUE,
        types: BOTH,
        merge: Merge::Operator,
        apply: |it, value| {
            if it.declared.is_some_and(Declared::fixes_overflow) {
                return;
            }
            it.overflow = match value.as_str() {
                Some("drop-head") => Overflow::DropHead,
                // Quorum queues take the word for `reject-publish`, as RabbitMQ's do.
                Some("reject-publish-dlx") if it.queue_type() == QueueType::Classic => {
                    Overflow::RejectPublishDlx
                }
                _ => Overflow::RejectPublish,
            };
        },
    },
    Key {
        name: "delivery-limit",
        values: Values::From(i64::MIN, "a valid delivery limit"),
        kinds: RECEIVED,
        types: QUORUM,
        merge: Merge::Limit,
        // A negative one is no limit, and leaves what the entity has.
        apply: |it, value| {
            if let Some(limit) = value.as_u64() {
                let count = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX);
                it.max_delivery_count = it.max_delivery_count.min(count);
            }
        },
    },
    Key {
        name: "delayed-retry-type",
        values: Values::Words(delayed_retry::WORDS, "a valid delayed retry type"),
        kinds: RECEIVED,
        types: QUORUM,
        merge: Merge::Operator,
        apply: |it, value| {
            let word = value.as_str().and_then(RetriedMessages::parse);
            it.delayed_retry.messages = word.unwrap_or_default();
        },
    },
    Key {
        name: "delayed-retry-min",
        values: Values::From(1, "a valid delayed retry minimum"),
        kinds: RECEIVED,
        types: QUORUM,
        merge: Merge::Most,
        apply: |it, value| limit(&mut it.delayed_retry.min, value),
    },
    Key {
        name: "delayed-retry-max",
        values: Values::From(1, "a valid delayed retry maximum"),
        kinds: RECEIVED,
        types: QUORUM,
        merge: Merge::Least,
        apply: |it, value| limit(&mut it.delayed_retry.max, value),
    },
    Key {
        name: "consumer-timeout",
        values: Values::From(0, "a valid consumer timeout"),
        kinds: RECEIVED,
        types: QUORUM,
        apply: |it, value| limit(&mut it.consumer_timeout, value),
        ..STORED
    },
    Key {
        name: "railbus-lock-duration",
        values: Values::From(1, "a valid lock duration"),
        kinds: RECEIVED,
        apply: |it, value| unless_set(it, value, |it| &mut it.lock_duration),
        ..STORED
    },
    Key {
        name: "railbus-auto-delete-on-idle",
        values: Values::From(1, "a valid idle time"),
        kinds: ALL,
        apply: |it, value| unless_set(it, value, |it| &mut it.auto_delete_on_idle),
        ..STORED
    },
    Key {
        name: "railbus-max-size",
        values: Values::From(0, "a valid size"),
        kinds: SENT_TO,
        apply: |it, value| unless_set(it, value, |it| &mut it.max_size),
        ..STORED
    },
    Key {
        name: "railbus-dead-letter-on-expiry",
        values: Values::Flag,
        kinds: RECEIVED,
        apply: |it, value| {
            it.dead_lettering_on_message_expiration |= value.as_bool().unwrap_or_default();
        },
        ..STORED
    },
    Key {
        name: RETROACTIVE,
        values: Values::Flag,
        kinds: ALL,
        ..STORED
    },
    Key {
        name: "dead-letter-exchange",
        values: Values::Text("a valid dead letter exchange"),
        apply: |it, value| {
            if it.forward_dead_lettered_messages_to.is_none() && it.dead_letter_router.is_none() {
                it.dead_letter_router = value.as_str().map(str::to_owned);
                it.dead_lettering_on_message_expiration = true;
            }
        },
        ..STORED
    },
    Key {
        name: "dead-letter-routing-key",
        values: Values::Text("a valid dead letter routing key"),
        apply: |it, value| {
            if it.dead_letter_key.is_none() {
                it.dead_letter_key = value.as_str().map(str::to_owned);
            }
        },
        ..STORED
    },
    Key {
        name: "dead-letter-strategy",
        values: Values::Words(
            &["at-most-once", "at-least-once"],
            "a valid dead letter strategy",
        ),
        types: QUORUM,
        apply: |it, value| {
            if value == "at-least-once" {
                it.dead_letter_strategy = DeadLetterStrategy::AtLeastOnce;
            }
        },
        ..STORED
    },
    // Routers have it. A queue to which such a policy applies makes nothing of it, as in RabbitMQ.
    Key {
        name: ALTERNATE_EXCHANGE,
        values: Values::Text("a valid alternate exchange name"),
        kinds: ALL,
        ..STORED
    },
    // What means nothing here.
    Key {
        name: "consumer-disconnected-timeout",
        values: Values::From(0, "a valid timeout"),
        types: QUORUM,
        ..STORED
    },
    Key {
        name: "max-in-memory-length",
        values: Values::From(0, "a valid maximum memory length"),
        types: QUORUM,
        merge: Merge::Least,
        ..STORED
    },
    Key {
        name: "max-in-memory-bytes",
        values: Values::From(0, "a valid maximum memory in bytes"),
        types: QUORUM,
        merge: Merge::Least,
        ..STORED
    },
    Key {
        name: "target-group-size",
        values: Values::From(0, "a valid target group size"),
        types: QUORUM,
        merge: Merge::Most,
        ..STORED
    },
    Key {
        name: "member-placement-tag",
        types: QUORUM,
        merge: Merge::Operator,
        ..STORED
    },
    Key {
        name: "queue-leader-locator",
        ..STORED
    },
    Key {
        name: "initial-cluster-size",
        values: Values::From(1, "a valid cluster size"),
        ..STORED
    },
    Key {
        name: "queue-mode",
        values: Values::Words(&["default", "lazy"], "a valid queue mode value"),
        types: CLASSIC,
        ..STORED
    },
    Key {
        name: "queue-version",
        values: Values::From(1, "a valid queue version"),
        types: CLASSIC,
        merge: Merge::Operator,
        ..STORED
    },
    // Of kinds of queue that are not there.
    Key {
        name: "max-age",
        kinds: NONE,
        ..STORED
    },
    Key {
        name: "stream-max-segment-size-bytes",
        values: Values::From(0, "a valid segment size"),
        kinds: NONE,
        ..STORED
    },
    Key {
        name: "stream-filter-size-bytes",
        values: Values::From(0, "a valid filter size"),
        kinds: NONE,
        ..STORED
    },
];

const MESSAGE_TTL: &str = "message-ttl";

/// Whether messages that are there take over a time to live that has become shorter; they do if
/// nothing is said.
const RETROACTIVE: &str = "railbus-retroactive";

/// The router for messages that match no binding of one that has none of its own.
pub(crate) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// What RabbitMQ knows and this broker does not do yet.
const NOT_YET: &[&str] = &[
    "federation-upstream",
    "federation-upstream-set",
    "railbus-clear-ttl-on-dead-letter",
];

impl Key {
    /// The key of a name, if policies of this layer may have it.
    pub(crate) fn find(name: &str, layer: PolicyLayer) -> Option<&'static Self> {
        let is_allowed =
            |key: &&Self| layer == PolicyLayer::User || !matches!(key.merge, Merge::UserOnly);
        let mut keys = KEYS.iter();
        keys.find(|key| key.name == name).filter(is_allowed)
    }

    /// Whether entities of this kind have it, of queues those of this type.
    pub(crate) fn fits(&self, kind: EntityKind, queue_type: QueueType) -> bool {
        let has_type = kind != EntityKind::Queue || self.types.contains(&queue_type);
        has_type && self.kinds.contains(&kind)
    }

    /// Whether its values are some words.
    pub(crate) fn has_words(&self) -> bool {
        matches!(self.values, Values::Words(..))
    }

    /// Whether it may have this value.
    pub(crate) fn check(&self, value: &Json) -> Result<(), String> {
        let not = |what: &str| Err(format!("{} is not {what}", shown(value)));
        match self.values {
            Values::From(least, what) => match value.as_i64() {
                Some(number) if number >= least => Ok(()),
                // A whole number that is larger.
                None if value.is_u64() => Ok(()),
                _ => not(what),
            },
            Values::Words(words, what) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(()),
                _ => not(what),
            },
            Values::Text(what) if !value.is_string() => not(what),
            Values::Flag if !value.is_boolean() => not("a boolean"),
            Values::Text(_) | Values::Flag | Values::Any => Ok(()),
        }
    }

    /// Gives an entity with settings of its own what the key says.
    pub(crate) fn apply(&self, settings: &mut QueueSettings, value: &Json) {
        (self.apply)(settings, value);
    }

    fn merge(&self, user: &Json, operator: &Json) -> Json {
        let number = |value: &Json| value.as_i64().unwrap_or(i64::MAX);
        let user_is_less = number(user) <= number(operator);
        let is_unlimited = number(user) < 0 || number(operator) < 0;
        let takes_user = match self.merge {
            Merge::Least => user_is_less,
            Merge::Most => !user_is_less,
            Merge::Limit => user_is_less != is_unlimited,
            Merge::Operator => false,
            Merge::UserOnly => true,
        };
        if takes_user { user } else { operator }.clone()
    }
}

/// Whether a policy of a layer may say this.
pub(crate) fn check(name: &str, value: &Json, layer: PolicyLayer) -> Result<(), String> {
    match Key::find(name, layer) {
        Some(key) => key.check(value),
        None if NOT_YET.contains(&name) => {
            Err(format!("{name}: this broker does not support it yet"))
        }
        None => {
            let value = shown(value);
            Err(format!(
                "[{{<<\"{name}\">>,{value}}}] are not recognised policy settings"
            ))
        }
    }
}

/// What a user policy and an operator policy say together.
pub(crate) fn merged(user: &Map<String, Json>, operator: &Map<String, Json>) -> Map<String, Json> {
    let mut merged = user.clone();
    for (name, value) in operator {
        let key = KEYS.iter().find(|key| key.name == name);
        let value = match (key, user.get(name)) {
            (Some(key), Some(of_user)) => key.merge(of_user, value),
            _ => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// The settings in force for an entity that has these of its own.
pub(crate) fn in_force(own: &QueueSettings, definition: &Map<String, Json>) -> QueueSettings {
    let mut settings = own.clone();
    for key in KEYS {
        if let Some(value) = definition.get(key.name) {
            key.apply(&mut settings, value);
        }
    }
    settings
}

/// The longest life that policies leave messages that are there already. A user policy can spare
/// them, though from itself alone.
pub(crate) fn stored_time_to_live(
    user: Option<&Map<String, Json>>,
    operator: Option<&Map<String, Json>>,
) -> Option<u64> {
    let spares = |user: &&Map<String, Json>| {
        let is_retroactive = user.get(RETROACTIVE).and_then(Json::as_bool);
        is_retroactive == Some(false)
    };
    let user = user.filter(|user| !spares(user));
    let layers = user.into_iter().chain(operator);
    let times = layers.filter_map(|layer| layer.get(MESSAGE_TTL)?.as_u64());
    times.min()
}

/// A value as the texts of RabbitMQ show it.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => format!("<<\"{text}\">>"),
        other => other.to_string(),
    }
}

fn lower(setting: &mut u64, value: &Json) {
    *setting = (*setting).min(value.as_u64().unwrap_or(u64::MAX));
}

fn limit(setting: &mut Option<u64>, value: &Json) {
    let limit = value.as_u64().unwrap_or(u64::MAX);
    *setting = Some(setting.map_or(limit, |own| own.min(limit)));
}

/// What an entity has of its own wins. Clients send whole descriptions, so only what differs from
/// the default counts as theirs. (docs/spec/entities.md#21)
fn unless_set(
    settings: &mut QueueSettings,
    value: &Json,
    slot: fn(&mut QueueSettings) -> &mut u64,
) {
    let default = *slot(&mut QueueSettings::default());
    let setting = slot(settings);
    if *setting == default {
        *setting = value.as_u64().unwrap_or(default);
    }
}
