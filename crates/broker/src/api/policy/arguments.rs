//! Arguments: what RabbitMQ's clients say of a queue when they declare it, and what they read back.
//! (docs/spec/rabbitmq.md#6.2, #7)
//!
//! Most arguments are keys of policies with `x-` before them. An argument that would have to act
//! and cannot is refused, since a queue without it is another queue; unknown ones are kept.
//! Arguments are kept with the queue, as metadata, to be shown and compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::api::declared::{Declared, QueueType};
use crate::api::info::EntityInfo;
use crate::api::kind::EntityKind;
use crate::api::policy::key::{ALTERNATE_EXCHANGE, Key};
use crate::api::policy::{PolicyLayer, check_together};
use crate::api::resource::Resource;
use crate::api::settings::{Overflow, Priorities, QueueSettings};

/// How the metadata of a queue begins that a client of RabbitMQ has declared.
const METADATA: &str = "rabbitmq:";
/// Most bytes of it, as of any metadata.
const MAX_METADATA: usize = 1_024;
/// Ten years, in milliseconds.
const MAX_SPAN: u64 = 315_360_000_000;
/// Failed deliveries of a quorum queue that says nothing of them.
const DELIVERY_LIMIT: u32 = 20;

const TYPE: &str = "x-queue-type";
const LIMIT: &str = "x-delivery-limit";
const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
const DEAD_LETTER_KEY: &str = "x-dead-letter-routing-key";
const OVERFLOW: &str = "x-overflow";
const SINGLE_CONSUMER: &str = "x-single-active-consumer";
const MAX_PRIORITY: &str = "x-max-priority";
/// The highest priority that a message can have.
const MAX_LEVEL: u8 = u8::MAX;
const CLASSIC: &str = "classic";
const QUORUM: &str = "quorum";

/// Arguments that are compared, besides keys of policies.
const OTHERS: &[&str] = &[
    TYPE,
    SINGLE_CONSUMER,
    MAX_PRIORITY,
    "x-quorum-initial-group-size",
    "x-quorum-target-group-size",
];
/// Arguments that classic queues do not have, besides keys of policies that they do not have.
const OF_QUORUM: &[&str] = &["x-quorum-initial-group-size", "x-quorum-target-group-size"];
/// Arguments that only streams have.
const OF_STREAMS: &[&str] = &[
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
];
/// The same strategy on both types, though policies give it to quorum queues alone.
/// (docs/spec/rabbitmq.md#7)
const STRATEGY: &str = "x-dead-letter-strategy";
/// What the metadata have beside the arguments: the types of integers that are no long.
const INTEGERS: &str = "$integers";

/// The type in which a client has sent an integer, if it is no long. They are compared by value,
/// and come back as they were sent. (docs/spec/rabbitmq.md#6.2)
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "AMQP names them so")]
pub enum IntegerType {
    Ubyte,
    Ushort,
    Uint,
    Ulong,
    Byte,
    Short,
    Int,
}

/// Arguments that quorum queues do not have.
const OF_CLASSIC: &[&str] = &[MAX_PRIORITY];

/// What a queue is declared with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueArguments {
    arguments: Map<String, Json>,
    /// Types of integers, where they are no long.
    integers: BTreeMap<String, IntegerType>,
    /// Whether the queue goes with its last receiver, which is no argument.
    auto_delete: bool,
    /// Whether the queue belongs to the connection that declares it, which is no argument.
    exclusive: bool,
}

impl QueueArguments {
    /// Checks the arguments of a declaration.
    ///
    /// # Errors
    /// When one is invalid or would have no effect; the text is RabbitMQ's where it has one.
    pub fn read(arguments: Map<String, Json>, queue: Resource<'_>) -> Result<Self, String> {
        for (name, value) in &arguments {
            check(name, value).map_err(|why| invalid(name, queue, &format!(": {why}")))?;
        }
        let arguments = Self::new(arguments, BTreeMap::new());
        arguments.check_together(queue)?;
        arguments.check_length(queue)?;
        Ok(arguments)
    }

    fn new(arguments: Map<String, Json>, integers: BTreeMap<String, IntegerType>) -> Self {
        Self {
            arguments,
            integers,
            auto_delete: false,
            exclusive: false,
        }
    }

    /// The same, with the types in which integers were sent.
    ///
    /// # Errors
    /// When all together is too long to be kept.
    pub fn with_integers(
        self,
        integers: BTreeMap<String, IntegerType>,
        queue: Resource<'_>,
    ) -> Result<Self, String> {
        let arguments = Self { integers, ..self };
        arguments.check_length(queue)?;
        Ok(arguments)
    }

    fn check_length(&self, queue: Resource<'_>) -> Result<(), String> {
        match self.metadata().len() > MAX_METADATA {
            true => Err(format!("the arguments of {queue} are too long")),
            false => Ok(()),
        }
    }

    fn check_together(&self, queue: Resource<'_>) -> Result<(), String> {
        let refused = |name: &str, why: &str| Err(invalid(name, queue, why));
        let has = |name: &str| self.arguments.contains_key(name);
        let queue_type = self.declared().queue_type;
        let foreign = |name: &&String| !has_type(name, queue_type);
        if let Some(name) = self.arguments.keys().find(foreign) {
            return refused(
                name,
                &format!(" of queue type rabbit_{}_queue", self.kind()),
            );
        }
        if has(DEAD_LETTER_KEY) && !has(DEAD_LETTER_EXCHANGE) {
            return refused(DEAD_LETTER_KEY, ": routing_key_but_no_dlx_defined");
        }
        check_together("x-", &self.arguments)
            .map_err(|text| format!("invalid arguments for {queue}: {text}"))
    }

    /// Those of a queue: as it was declared, or as its settings are.
    #[must_use]
    pub fn of(info: &EntityInfo) -> Self {
        let declared = declared(info);
        let given = || Self::new(of_settings(&info.queue.settings), BTreeMap::new());
        let Self {
            mut arguments,
            integers,
            ..
        } = declared.unwrap_or_else(given);
        let kind = || match info.queue.settings.queue_type() {
            QueueType::Quorum => QUORUM.into(),
            QueueType::Classic => CLASSIC.into(),
        };
        arguments.entry(TYPE).or_insert_with(kind);
        Self {
            arguments,
            integers,
            auto_delete: info.queue.settings.auto_delete,
            exclusive: info.queue.settings.exclusive,
        }
    }

    /// The settings of a queue that is declared so.
    #[must_use]
    pub fn settings(&self) -> QueueSettings {
        let has_default_limit = self.kind() == QUORUM && !self.arguments.contains_key(LIMIT);
        let mut settings = QueueSettings {
            max_delivery_count: if has_default_limit {
                DELIVERY_LIMIT + 1
            } else {
                u32::MAX
            },
            auto_delete: self.auto_delete,
            exclusive: self.exclusive,
            priorities: self.priorities(),
            single_active_receiver: self.arguments.get(SINGLE_CONSUMER) == Some(&Json::Bool(true)),
            declared: Some(Declared {
                has_overflow: false,
                ..self.declared()
            }),
            ..QueueSettings::default()
        };
        for (name, value) in &self.arguments {
            if let Some(key) = key_of(name) {
                key.apply(&mut settings, value);
            }
        }
        settings.declared = Some(self.declared());
        settings
    }

    /// The levels of a quorum queue, or those that a classic one is declared with.
    fn priorities(&self) -> Option<Priorities> {
        if self.kind() == QUORUM {
            return Some(Priorities::QUORUM);
        }
        let highest = self.arguments.get(MAX_PRIORITY)?.as_u64()?;
        let highest = u8::try_from(highest).unwrap_or(MAX_LEVEL);
        Some(Priorities {
            highest,
            default: 0,
        })
    }

    /// What the queue remembers of its declaration.
    fn declared(&self) -> Declared {
        Declared {
            queue_type: match self.kind() {
                QUORUM => QueueType::Quorum,
                _ => QueueType::Classic,
            },
            has_overflow: self.arguments.contains_key(OVERFLOW),
        }
    }

    /// Of a queue that goes with its last receiver, or does not.
    #[must_use]
    pub fn with_auto_delete(self, auto_delete: bool) -> Self {
        Self {
            auto_delete,
            ..self
        }
    }

    /// Of a queue that belongs to the connection that declares it, or does not.
    #[must_use]
    pub fn with_exclusive(self, exclusive: bool) -> Self {
        Self { exclusive, ..self }
    }

    /// Whether the queue belongs to a connection.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// With the type, which may be left out.
    fn with_type(&self) -> Self {
        let mut arguments = self.arguments.clone();
        arguments.entry(TYPE).or_insert_with(|| CLASSIC.into());
        Self {
            arguments,
            ..self.clone()
        }
    }

    /// As they are kept with the queue.
    #[must_use]
    pub fn metadata(&self) -> String {
        let mut kept = self.with_type().arguments;
        if !self.integers.is_empty() {
            let integers = serde_json::to_value(&self.integers);
            kept.insert(INTEGERS.to_owned(), integers.expect("names are plain data"));
        }
        format!("{METADATA}{}", Json::Object(kept))
    }

    /// As clients are told.
    #[must_use]
    pub fn entries(&self) -> &Map<String, Json> {
        &self.arguments
    }

    /// The type in which an integer was sent; without one, a long.
    #[must_use]
    pub fn integer_type(&self, name: &str) -> Option<IntegerType> {
        self.integers.get(name).copied()
    }

    /// `classic` or `quorum`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text(TYPE).unwrap_or(CLASSIC)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name)?.as_str()
    }

    /// The text of the first difference that counts from a queue that is there.
    /// A queue that was not declared by a client of RabbitMQ is compared by what is given.
    #[must_use]
    pub fn difference(&self, info: &EntityInfo, virtual_host: &str) -> Option<String> {
        let queue = Resource::queue(&info.queue.path, virtual_host);
        let current = Self::of(info);
        let was_declared = declared(info).is_some();
        let given = if was_declared {
            self.with_type()
        } else {
            self.clone()
        };
        if was_declared && given.auto_delete != current.auto_delete {
            return Some(format!(
                "inequivalent arg 'auto_delete' for {queue}: received '{}' but current is '{}'",
                given.auto_delete, current.auto_delete
            ));
        }
        let names = given.arguments.keys().chain(current.arguments.keys());
        let mut names = names.filter(|name| is_known(name));
        let name = names.find(|name| {
            let (given, current) = (given.arguments.get(*name), current.arguments.get(*name));
            given != current && (was_declared || given.is_some())
        })?;
        let whole = |value: Option<&Json>| match value {
            Some(it) => format!("the value '{}' of type '{}'", text(it), type_name(it)),
            None => "none".to_owned(),
        };
        let (received, existing) = match (given.arguments.get(name), current.arguments.get(name)) {
            (Some(given), Some(current)) => {
                (format!("'{}'", text(given)), format!("'{}'", text(current)))
            }
            (given, current) => (whole(given), whole(current)),
        };
        Some(format!(
            "inequivalent arg '{name}' for {queue}: received {received} but current is {existing}"
        ))
    }
}

/// The arguments with which a queue was declared, if a client of RabbitMQ has done so.
fn declared(info: &EntityInfo) -> Option<QueueArguments> {
    let metadata = info.store_only.user_metadata.as_deref()?;
    of_metadata(metadata)
}

fn of_metadata(metadata: &str) -> Option<QueueArguments> {
    let kept = metadata.strip_prefix(METADATA)?;
    let mut arguments: Map<String, Json> = serde_json::from_str(kept).ok()?;
    let integers = arguments.remove(INTEGERS);
    let integers = integers.and_then(|it| serde_json::from_value(it).ok());
    Some(QueueArguments::new(arguments, integers.unwrap_or_default()))
}

/// The arguments that say what a queue has.
fn of_settings(settings: &QueueSettings) -> Map<String, Json> {
    let span = |span: u64| (span <= MAX_SPAN).then_some(span);
    let limit = settings.max_delivery_count;
    let limit = (limit != u32::MAX).then(|| u64::from(limit.saturating_sub(1)));
    let numbers = [
        ("x-message-ttl", span(settings.default_message_time_to_live)),
        ("x-expires", span(settings.expires)),
        ("x-max-length", settings.max_length),
        ("x-max-length-bytes", settings.max_length_bytes),
        (LIMIT, limit),
    ];
    let numbers = numbers.into_iter();
    let mut arguments: Map<String, Json> = numbers
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    if settings.overflow != Overflow::DropHead {
        // A queue that was not declared is shown as a quorum queue, for which both are one.
        arguments.insert(OVERFLOW.to_owned(), "reject-publish".into());
    }
    arguments
}

/// The key of policies that an argument is.
fn key_of(name: &str) -> Option<&'static Key> {
    let key = name.strip_prefix("x-")?;
    let is_of_queues = !key.starts_with("railbus-") && key != ALTERNATE_EXCHANGE;
    Key::find(key, PolicyLayer::User).filter(|_| is_of_queues)
}

/// Whether an argument is one whose value means something.
fn is_known(name: &str) -> bool {
    OTHERS.contains(&name) || key_of(name).is_some()
}

/// Whether queues of a type have an argument. Unknown ones are kept by all.
fn has_type(name: &str, queue_type: QueueType) -> bool {
    if OF_STREAMS.contains(&name) {
        return false;
    }
    match key_of(name) {
        _ if name == STRATEGY => true,
        Some(key) => key.fits(EntityKind::Queue, queue_type),
        None if queue_type == QueueType::Quorum => !OF_CLASSIC.contains(&name),
        None => !OF_QUORUM.contains(&name),
    }
}

fn invalid(name: &str, queue: Resource<'_>, why: &str) -> String {
    format!("invalid arg '{name}' for {queue}{why}")
}

/// Checks one argument by itself; says why it is invalid.
fn check(name: &str, value: &Json) -> Result<(), String> {
    match name {
        TYPE | DEAD_LETTER_EXCHANGE | DEAD_LETTER_KEY if !value.is_string() => {
            return Err(format!("{{unacceptable_type,{}}}", type_name(value)));
        }
        TYPE if value != CLASSIC && value != QUORUM => {
            return Err(format!("\"unsupported queue type '{}'\"", text(value)));
        }
        SINGLE_CONSUMER if !value.is_boolean() => {
            return Err(format!("{{unacceptable_type,{}}}", type_name(value)));
        }
        MAX_PRIORITY => return check_max_priority(value),
        INTEGERS => return Err("the name is not accepted".to_owned()),
        _ => {}
    }
    let Some(key) = key_of(name) else {
        return Ok(());
    };
    if key.check(value).is_err() {
        return Err(why_not(key, value));
    }
    let is_span = matches!(key.name, "message-ttl" | "expires");
    match value.as_u64().filter(|span| is_span && *span > MAX_SPAN) {
        Some(large) => Err(format!("{{value_too_large,{large}}}")),
        None => Ok(()),
    }
}

fn check_max_priority(value: &Json) -> Result<(), String> {
    match (value.as_u64(), value.as_i64()) {
        (Some(highest), _) if highest > MAX_LEVEL.into() => {
            Err(format!("{{max_value_exceeded,{highest}}}"))
        }
        (Some(_), _) => Ok(()),
        (None, Some(below)) => Err(format!("{{value_negative,{below}}}")),
        (None, None) => Err(format!("\"expected integer, got {}\"", type_name(value))),
    }
}

fn why_not(key: &Key, value: &Json) -> String {
    match value {
        Json::String(_) if key.has_words() => format!("invalid_{}", key.name.replace('-', "_")),
        _ if key.has_words() => format!("{{unacceptable_type,{}}}", type_name(value)),
        Json::Number(number) if number.as_i64() == Some(0) => "{value_zero,0}".to_owned(),
        Json::Number(number) if number.is_i64() => format!("{{value_negative,{number}}}"),
        _ => format!("\"expected integer, got {}\"", type_name(value)),
    }
}

/// The type of a value as RabbitMQ's texts name it.
fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "void",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "double",
        Json::Number(_) => "long",
        Json::String(_) => "longstr",
        Json::Array(_) => "array",
        Json::Object(_) => "table",
    }
}

fn text(value: &Json) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
