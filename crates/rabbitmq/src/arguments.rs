//! Arguments: what a queue is declared with, and what that is here. (docs/spec/rabbitmq.md#6.2, #7)
//!
//! One table says of each argument what values it takes and whether it acts. An argument that would
//! have to act and cannot is refused, since a queue without it is another queue. Arguments are kept
//! with the queue, as metadata, to be shown and compared.

use std::collections::BTreeMap;

use amqp::{Map, Value};
use broker::{QueueSettings, StoreOnlyProperties};
use serde_json::Value as Json;

/// How the metadata of a queue begins that one of these clients has declared.
const METADATA: &str = "rabbitmq:";
/// Most bytes of it, as of any metadata.
const MAX_METADATA: usize = 1_024;
/// Ten years, in milliseconds.
const MAX_TTL: i64 = 315_360_000_000;
/// How often RabbitMQ's quorum queues deliver a message again, if nothing is said.
const DELIVERY_LIMIT: i64 = 20;

const TYPE: &str = "x-queue-type";
const TTL: &str = "x-message-ttl";
const LIMIT: &str = "x-delivery-limit";
const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
const DEAD_LETTER_KEY: &str = "x-dead-letter-routing-key";
const CLASSIC: &str = "classic";
const QUORUM: &str = "quorum";

/// What an argument does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Effect {
    Acts,
    /// It is kept and shown: it is about a cluster, or about how RabbitMQ stores messages.
    Kept,
    /// It would act in RabbitMQ.
    Missing,
}

/// The arguments that RabbitMQ knows. Others are kept.
const EFFECTS: [(&str, Effect); 23] = [
    (TYPE, Effect::Acts),
    (TTL, Effect::Acts),
    (LIMIT, Effect::Acts),
    (DEAD_LETTER_EXCHANGE, Effect::Acts),
    (DEAD_LETTER_KEY, Effect::Acts),
    ("x-dead-letter-strategy", Effect::Kept),
    ("x-queue-leader-locator", Effect::Kept),
    ("x-quorum-initial-group-size", Effect::Kept),
    ("x-quorum-target-group-size", Effect::Kept),
    ("x-member-placement-tag", Effect::Kept),
    ("x-consumer-disconnected-timeout", Effect::Kept),
    ("x-queue-mode", Effect::Kept),
    ("x-queue-version", Effect::Kept),
    ("x-expires", Effect::Missing),
    ("x-max-length", Effect::Missing),
    ("x-max-length-bytes", Effect::Missing),
    ("x-overflow", Effect::Missing),
    ("x-single-active-consumer", Effect::Missing),
    ("x-max-priority", Effect::Missing),
    ("x-consumer-timeout", Effect::Missing),
    ("x-delayed-retry-type", Effect::Missing),
    ("x-delayed-retry-min", Effect::Missing),
    ("x-delayed-retry-max", Effect::Missing),
];

/// A value of an argument.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Argument {
    Integer(i64),
    Text(String),
    Bool(bool),
}

/// What a queue is declared with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Arguments(BTreeMap<String, Argument>);

impl Argument {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(it) => Some(Self::Bool(*it)),
            Value::String(_) | Value::Symbol(_) => value.as_text().map(|it| Self::Text(it.into())),
            Value::Timestamp(_) => None,
            other => other.as_integer().map(Self::Integer),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Integer(it) => Value::Long(*it),
            Self::Text(it) => Value::String(it.clone()),
            Self::Bool(it) => Value::Bool(*it),
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::Integer(it) => Json::from(*it),
            Self::Text(it) => Json::from(it.as_str()),
            Self::Bool(it) => Json::from(*it),
        }
    }

    fn of_json(value: &Json) -> Option<Self> {
        match value {
            Json::Bool(it) => Some(Self::Bool(*it)),
            Json::String(it) => Some(Self::Text(it.clone())),
            other => other.as_i64().map(Self::Integer),
        }
    }

    /// Its type as RabbitMQ's texts name it.
    fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "long",
            Self::Text(_) => "longstr",
            Self::Bool(_) => "bool",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Integer(it) => it.to_string(),
            Self::Text(it) => it.clone(),
            Self::Bool(it) => it.to_string(),
        }
    }
}

impl Arguments {
    /// Reads and checks the arguments of a declaration.
    ///
    /// # Errors
    /// When one is invalid or would have no effect; the text is RabbitMQ's where it has one.
    pub(crate) fn read(map: &Map, queue: &str) -> Result<Self, String> {
        let mut arguments = BTreeMap::new();
        for (key, value) in map {
            let invalid = |key: &str, why: &str| {
                format!("invalid arg '{key}' for queue '{queue}' in vhost '/': {why}")
            };
            let key = key.as_text().ok_or("a key of the arguments is no text")?;
            let argument = Argument::of(value);
            let argument = argument.ok_or_else(|| invalid(key, "the type is not accepted"))?;
            check(key, &argument).map_err(|why| invalid(key, &why))?;
            arguments.insert(key.to_owned(), argument);
        }
        let kind = Argument::Text(CLASSIC.to_owned());
        arguments.entry(TYPE.to_owned()).or_insert(kind);
        let arguments = Self(arguments);
        arguments.check_together(queue)?;
        if arguments.metadata().len() > MAX_METADATA {
            return Err(format!("the arguments of queue '{queue}' are too long"));
        }
        Ok(arguments)
    }

    fn check_together(&self, queue: &str) -> Result<(), String> {
        let invalid = |key: &str, why: &str| {
            Err(format!(
                "invalid arg '{key}' for queue '{queue}' in vhost '/'{why}"
            ))
        };
        if self.text(TYPE) == Some(CLASSIC) && self.0.contains_key(LIMIT) {
            return invalid(LIMIT, " of queue type rabbit_classic_queue");
        }
        match (self.text(DEAD_LETTER_EXCHANGE), self.text(DEAD_LETTER_KEY)) {
            (None, Some(_)) => invalid(DEAD_LETTER_KEY, ": routing_key_but_no_dlx_defined"),
            (Some(""), None) => invalid(
                DEAD_LETTER_EXCHANGE,
                ": the default exchange needs x-dead-letter-routing-key here",
            ),
            (Some(exchange), _) if !exchange.is_empty() => invalid(
                DEAD_LETTER_EXCHANGE,
                ": only the default exchange takes dead letters here",
            ),
            _ => Ok(()),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Argument::Text(text) => Some(text),
            _ => None,
        }
    }

    fn integer(&self, key: &str) -> Option<i64> {
        match self.0.get(key)? {
            Argument::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// `classic` or `quorum`.
    pub(crate) fn kind(&self) -> &str {
        self.text(TYPE).unwrap_or(QUORUM)
    }

    /// The settings of a queue that is declared so.
    pub(crate) fn settings(&self) -> QueueSettings {
        let default_limit = if self.kind() == QUORUM {
            DELIVERY_LIMIT
        } else {
            -1
        };
        let limit = self.integer(LIMIT).unwrap_or(default_limit);
        let ttl = self.integer(TTL).and_then(|ttl| u64::try_from(ttl).ok());
        let dead_letters = self.text(DEAD_LETTER_KEY).map(str::to_owned);
        QueueSettings {
            // A negative limit is none.
            max_delivery_count: u32::try_from(limit).map_or(u32::MAX, |it| it.saturating_add(1)),
            default_message_time_to_live: ttl.map_or(u64::MAX, |ttl| ttl.max(1)),
            dead_lettering_on_message_expiration: dead_letters.is_some(),
            forward_dead_lettered_messages_to: dead_letters,
            ..QueueSettings::default()
        }
    }

    /// As they are kept with the queue.
    pub(crate) fn metadata(&self) -> String {
        let json = self
            .0
            .iter()
            .map(|(key, value)| (key.clone(), value.json()));
        format!("{METADATA}{}", Json::Object(json.collect()))
    }

    /// Those of a queue: as it was declared, or as its settings are.
    pub(crate) fn of_queue(settings: &QueueSettings, properties: &StoreOnlyProperties) -> Self {
        let metadata = properties.user_metadata.as_deref();
        let declared = metadata.and_then(|text| text.strip_prefix(METADATA));
        let declared = declared.and_then(|text| serde_json::from_str::<Json>(text).ok());
        if let Some(Json::Object(map)) = declared {
            let entries = map.into_iter();
            let entries = entries.filter_map(|(key, it)| Some((key, Argument::of_json(&it)?)));
            return Self(entries.collect());
        }
        let mut arguments = BTreeMap::from([
            (TYPE.to_owned(), Argument::Text(QUORUM.to_owned())),
            (
                LIMIT.to_owned(),
                Argument::Integer(i64::from(settings.max_delivery_count) - 1),
            ),
        ]);
        let ttl = settings.default_message_time_to_live;
        if let Some(ttl) = i64::try_from(ttl).ok().filter(|ttl| *ttl <= MAX_TTL) {
            arguments.insert(TTL.to_owned(), Argument::Integer(ttl));
        }
        Self(arguments)
    }

    /// As clients are told.
    pub(crate) fn map(&self) -> Map {
        let entries = self.0.iter();
        entries
            .map(|(key, value)| (Value::String(key.clone()), value.value()))
            .collect()
    }

    /// The text of the first difference that counts, if a queue that is there has `current`.
    /// A queue that was not declared by one of these clients is compared by what is given.
    pub(crate) fn difference(
        &self,
        current: &Self,
        was_declared: bool,
        queue: &str,
    ) -> Option<String> {
        let known = EFFECTS.iter().map(|(key, _)| *key);
        let mut differing = known.filter(|key| {
            let (given, current) = (self.0.get(*key), current.0.get(*key));
            given != current && (was_declared || given.is_some())
        });
        let key = differing.next()?;
        let shown = |argument: Option<&Argument>| match argument {
            Some(it) => format!("the value '{}' of type '{}'", it.text(), it.type_name()),
            None => "none".to_owned(),
        };
        let (received, existing) = match (self.0.get(key), current.0.get(key)) {
            (Some(given), Some(current)) => (
                format!("'{}'", given.text()),
                format!("'{}'", current.text()),
            ),
            (given, current) => (shown(given), shown(current)),
        };
        Some(format!(
            "inequivalent arg '{key}' for queue '{queue}' in vhost '/': received {received} but \
             current is {existing}"
        ))
    }
}

/// Whether a queue was declared by one of these clients.
pub(crate) fn was_declared(properties: &StoreOnlyProperties) -> bool {
    let metadata = properties.user_metadata.as_deref();
    metadata.is_some_and(|text| text.starts_with(METADATA))
}

/// Checks one argument by itself; says why it is invalid.
fn check(key: &str, argument: &Argument) -> Result<(), String> {
    let integer = || match argument {
        Argument::Integer(number) => Ok(*number),
        other => Err(format!("\"expected integer, got {}\"", other.type_name())),
    };
    let text = || match argument {
        Argument::Text(text) => Ok(text.as_str()),
        other => Err(format!("{{unacceptable_type,{}}}", other.type_name())),
    };
    let effect = EFFECTS.iter().find(|(name, _)| *name == key);
    match (key, effect.map(|(_, effect)| *effect)) {
        (TYPE, _) => match text()? {
            CLASSIC | QUORUM => Ok(()),
            other => Err(format!("\"unsupported queue type '{other}'\"")),
        },
        (TTL, _) => match integer()? {
            negative @ ..0 => Err(format!("{{value_negative,{negative}}}")),
            0..=MAX_TTL => Ok(()),
            large => Err(format!("{{value_too_large,{large}}}")),
        },
        (LIMIT, _) => integer().map(drop),
        (DEAD_LETTER_EXCHANGE | DEAD_LETTER_KEY, _) => text().map(drop),
        // What it says is so without it.
        ("x-single-active-consumer", _) if *argument == Argument::Bool(false) => Ok(()),
        ("x-overflow", _) if *argument == Argument::Text("drop-head".to_owned()) => Ok(()),
        (_, Some(Effect::Missing)) => Err("it has no effect here".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
