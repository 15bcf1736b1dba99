//! Value: the values that expressions calculate with. (docs/spec/entities.md#17.7)
//!
//! AMQP's many types map to a few kinds; a value without a kind (binary, list, map, null) is
//! unknown. Texts are borrowed from the message until an operation changes them.

use std::borrow::Cow;
use std::fmt;

use amqp::hexadecimal::uuid_text;
use amqp::items::{self, Item};

use crate::values::decimal;
use crate::values::ticks;

/// A value of an expression. Guids count as texts wherever texts are wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Unknown,
    Bool(bool),
    Int(i64),
    /// Only what is more than the largest `Int`.
    Unsigned(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Guid([u8; 16]),
    /// Ticks of 100 ns since the Unix epoch.
    DateTime(i64),
    /// Ticks of 100 ns.
    Duration(i64),
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are the contract's kinds")]
pub enum ValueKind {
    Unknown,
    Boolean,
    Number,
    Text,
    DateTime,
    Duration,
}

impl ValueKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "an unknown value",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::DateTime => "a time",
            Self::Duration => "a duration",
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'a> Value<'a> {
    /// An encoded item of a message; unknown if it cannot be read or has no kind.
    pub(crate) fn of_item(item: &'a [u8]) -> Self {
        match items::read(item) {
            Ok(Item::Text(text)) => Self::Text(Cow::Borrowed(text)),
            Ok(Item::Scalar(value)) => Self::of_scalar(&value),
            Ok(Item::Described(descriptor, value)) => of_described(descriptor, value),
            Ok(Item::Binary(_) | Item::Compound) | Err(_) => Self::Unknown,
        }
    }

    /// A value that was given beside a text.
    pub(crate) fn of_amqp(value: &amqp::Value) -> Value<'static> {
        match value {
            amqp::Value::Described(pair) => match (&pair.0, &pair.1) {
                (amqp::Value::Symbol(name), value) => {
                    described(name.as_str(), Value::of_amqp(value))
                }
                _ => Value::Unknown,
            },
            amqp::Value::String(text) => Value::text(text.clone()),
            amqp::Value::Symbol(name) => Value::text(name.as_str().to_owned()),
            other => Value::of_scalar(other),
        }
    }

    fn of_scalar(value: &amqp::Value) -> Self {
        match *value {
            amqp::Value::Bool(value) => Self::Bool(value),
            amqp::Value::Timestamp(ms) => Self::DateTime(ticks::of_ms(ms)),
            amqp::Value::Ulong(value) => Self::of_u64(value),
            amqp::Value::Float(value) => Self::Double(value.into()),
            amqp::Value::Double(value) => Self::Double(value),
            amqp::Value::Decimal32(bytes) => decimal::of_32(bytes),
            amqp::Value::Decimal64(bytes) => decimal::of_64(bytes),
            amqp::Value::Decimal128(bytes) => decimal::of_128(bytes),
            amqp::Value::Char(value) => Self::text(value.to_string()),
            amqp::Value::Uuid(uuid) => Self::Guid(uuid),
            _ => value.as_integer().map_or(Self::Unknown, Self::Int),
        }
    }

    pub(crate) fn of_u64(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Unsigned(value), Self::Int)
    }

    pub(crate) fn text(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }

    /// True, false, or unknown.
    pub(crate) fn truth(truth: Option<bool>) -> Self {
        truth.map_or(Self::Unknown, Self::Bool)
    }

    pub(crate) fn kind(&self) -> ValueKind {
        match self {
            Self::Unknown => ValueKind::Unknown,
            Self::Bool(_) => ValueKind::Boolean,
            Self::Int(_) | Self::Unsigned(_) | Self::Double(_) => ValueKind::Number,
            Self::Text(_) | Self::Guid(_) => ValueKind::Text,
            Self::DateTime(_) => ValueKind::DateTime,
            Self::Duration(_) => ValueKind::Duration,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// The value, borrowed from `self`.
    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Unknown => Value::Unknown,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Unsigned(value) => Value::Unsigned(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Guid(value) => Value::Guid(*value),
            Self::DateTime(value) => Value::DateTime(*value),
            Self::Duration(value) => Value::Duration(*value),
        }
    }

    /// The value with its own memory.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::text(text.into_owned()),
            Self::Unknown => Value::Unknown,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Double(value) => Value::Double(value),
            Self::Guid(value) => Value::Guid(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Duration(value) => Value::Duration(value),
        }
    }

    /// The characters of a text or a guid.
    pub(crate) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Guid(guid) => Some(Cow::Owned(uuid_text(&guid))),
            _ => None,
        }
    }
}

/// Values that .NET and Java describe. (docs/spec/amqp.md#4.2)
fn of_described<'a>(descriptor: &'a [u8], value: &'a [u8]) -> Value<'a> {
    match items::text(descriptor) {
        Some(name) => described(name, Value::of_item(value)),
        None => Value::Unknown,
    }
}

fn described<'a>(name: &str, value: Value<'a>) -> Value<'a> {
    match (name, value) {
        ("com.microsoft:timespan", Value::Int(ticks)) => Value::Duration(ticks),
        ("com.microsoft:datetime-offset", Value::Int(ticks)) => {
            Value::DateTime(ticks::since_1970(ticks))
        }
        ("com.microsoft:uri", text @ Value::Text(_)) => text,
        _ => Value::Unknown,
    }
}

/// As it is written in an expression; a value without a literal form shows its ticks.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("NULL"),
            Self::Bool(true) => f.write_str("TRUE"),
            Self::Bool(false) => f.write_str("FALSE"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Guid(guid) => write!(f, "'{}'", uuid_text(guid)),
            Self::DateTime(ticks) => write!(f, "time {ticks}"),
            Self::Duration(ticks) => write!(f, "duration {ticks}"),
        }
    }
}
