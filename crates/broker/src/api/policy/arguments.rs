//! Arguments: what RabbitMQ's clients say of a queue when they declare it, and what they read back.
//! (docs/spec/rabbitmq.md#6.2, #7)
//!
//! Most arguments are keys of policies with `x-` before them. An argument that would have to act
//! and cannot is refused, since a queue without it is another queue; unknown ones are kept.
//! Arguments are kept with the queue, as metadata, to be shown and compared.

use serde_json::{Map, Value as Json};

use crate::api::order::EntityInfo;
use crate::api::policy::PolicyLayer;
use crate::api::policy::key::{Key, check_together};
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
/// Arguments that classic queues do not have.
const OF_QUORUM: &[&str] = &[
    LIMIT,
    "x-delayed-retry-type",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
    "x-consumer-timeout",
];

/// Arguments that quorum queues do not have.
const OF_CLASSIC: &[&str] = &[MAX_PRIORITY];

/// What a queue is declared with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueArguments {
    arguments: Map<String, Json>,
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
    pub fn read(arguments: Map<String, Json>, queue: &str) -> Result<Self, String> {
        for (name, value) in &arguments {
            check(name, value).map_err(|why| invalid(name, queue, &format!(": {why}")))?;
        }
        let arguments = Self {
            arguments,
            auto_delete: false,
            exclusive: false,
        };
        arguments.check_together(queue)?;
        if arguments.metadata().len() > MAX_METADATA {
            return Err(format!("the arguments of queue '{queue}' are too long"));
        }
        Ok(arguments)
    }

    fn check_together(&self, queue: &str) -> Result<(), String> {
        let refused = |name: &str, why: &str| Err(invalid(name, queue, why));
        let has = |name: &str| self.arguments.contains_key(name);
        let of_quorum = OF_QUORUM.iter().find(|name| has(name));
        if let Some(name) = of_quorum.filter(|_| self.kind() == CLASSIC) {
            return refused(name, " of queue type rabbit_classic_queue");
        }
        let of_classic = OF_CLASSIC.iter().find(|name| has(name));
        if let Some(name) = of_classic.filter(|_| self.kind() == QUORUM) {
            return refused(name, " of queue type rabbit_quorum_queue");
        }
        if has(DEAD_LETTER_KEY) && !has(DEAD_LETTER_EXCHANGE) {
            return refused(DEAD_LETTER_KEY, ": routing_key_but_no_dlx_defined");
        }
        check_together("x-", &self.arguments)
            .map_err(|text| format!("invalid arguments for queue '{queue}' in vhost '/': {text}"))
    }

    /// Those of a queue: as it was declared, or as its settings are.
    #[must_use]
    pub fn of(info: &EntityInfo) -> Self {
        let declared = declared(info);
        let mut arguments = declared.unwrap_or_else(|| of_settings(&info.queue.settings));
        let kind = || QUORUM.into();
        arguments.entry(TYPE).or_insert_with(kind);
        Self {
            arguments,
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
            ..QueueSettings::default()
        };
        for (name, value) in &self.arguments {
            if let Some(key) = key_of(name) {
                key.apply(&mut settings, value);
            }
        }
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
        Self { arguments, ..*self }
    }

    /// As they are kept with the queue.
    #[must_use]
    pub fn metadata(&self) -> String {
        format!("{METADATA}{}", Json::Object(self.with_type().arguments))
    }

    /// As clients are told.
    #[must_use]
    pub fn entries(&self) -> &Map<String, Json> {
        &self.arguments
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
    pub fn difference(&self, info: &EntityInfo) -> Option<String> {
        let current = Self::of(info);
        let was_declared = declared(info).is_some();
        let given = if was_declared {
            self.with_type()
        } else {
            self.clone()
        };
        if was_declared && given.auto_delete != current.auto_delete {
            return Some(format!(
                "inequivalent arg 'auto_delete' for queue '{}' in vhost '/': received '{}' but \
                 current is '{}'",
                info.queue.path, given.auto_delete, current.auto_delete
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
            "inequivalent arg '{name}' for queue '{}' in vhost '/': received {received} but \
             current is {existing}",
            info.queue.path
        ))
    }
}

/// The arguments with which a queue was declared, if a client of RabbitMQ has done so.
fn declared(info: &EntityInfo) -> Option<Map<String, Json>> {
    let metadata = info.store_only.user_metadata.as_deref()?;
    serde_json::from_str(metadata.strip_prefix(METADATA)?).ok()
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
    if settings.overflow == Overflow::RejectPublish {
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    arguments
}

/// The key of policies that an argument is.
fn key_of(name: &str) -> Option<&'static Key> {
    let key = name.strip_prefix("x-")?;
    let key = (!key.starts_with("railbus-")).then_some(key)?;
    Key::find(key, PolicyLayer::User)
}

/// Whether an argument is one whose value means something.
fn is_known(name: &str) -> bool {
    OTHERS.contains(&name) || key_of(name).is_some()
}

fn invalid(name: &str, queue: &str, why: &str) -> String {
    format!("invalid arg '{name}' for queue '{queue}' in vhost '/'{why}")
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
        (Some(0), _) => Err("{value_zero,0}".to_owned()),
        (Some(highest), _) if highest > MAX_LEVEL.into() => {
            Err(format!("{{max_value_exceeded,{highest}}}"))
        }
        (Some(_), _) => Ok(()),
        (None, Some(below)) => Err(format!("{{value_negative,{below}}}")),
        (None, None) => Err(format!("{{unacceptable_type,{}}}", type_name(value))),
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
