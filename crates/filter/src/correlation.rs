//! Correlation filter: some properties, each equal to a value. (docs/spec/entities.md#17.4)
//!
//! Values of a correlation filter are exact: numbers are equal when they are so mathematically,
//! whatever their types, and texts character by character. Names of application properties are
//! found in any case, as SQL filters find them.

use std::borrow::Cow;

use amqp::hexadecimal::uuid_text;

use crate::expression::dialect::Dialect;
use crate::expression::fields::Fields;
use crate::expression::needs::Needs;
use crate::message::Message;
use crate::message::property::Property;
use crate::values::value::Value;

mod index;

pub(crate) use index::Index;

/// Integers from here on, and below its negative, are no doubles' business.
const BEYOND_INTEGERS: f64 = 18_446_744_073_709_551_616.0;

/// The fields of a correlation filter. Those that are set must be equal.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the contract's")]
pub struct Correlation {
    pub content_type: Option<String>,
    pub correlation_id: Option<String>,
    pub label: Option<String>,
    pub message_id: Option<String>,
    pub reply_to: Option<String>,
    pub reply_to_session_id: Option<String>,
    pub session_id: Option<String>,
    pub to: Option<String>,
    /// Application properties; of equal names the first counts.
    pub properties: Vec<(String, amqp::Value)>,
}

/// A field of a correlation filter that is a text: its names, and where it is.
#[derive(Debug)]
pub struct CorrelationField {
    /// The property of a message that it is compared with.
    pub property: Property,
    /// In Atom descriptions and in a `Config.json`.
    pub element: &'static str,
    /// In requests of AMQP.
    pub key: &'static str,
    /// Its value.
    pub slot: fn(&mut Correlation) -> &mut Option<String>,
    get: fn(&Correlation) -> &Option<String>,
}

macro_rules! fields {
    ($($property:ident $element:literal $key:literal $field:ident;)*) => {
        impl CorrelationField {
            /// All of them, in the order in which Atom descriptions and AMQP list them.
            /// (docs/spec/admin.md#7)
            pub const ALL: &[Self] = &[$(Self {
                property: Property::$property,
                element: $element,
                key: $key,
                slot: |fields| &mut fields.$field,
                get: |fields| &fields.$field,
            },)*];
        }
    };
}

fields! {
    CorrelationId "CorrelationId" "correlation-id" correlation_id;
    MessageId "MessageId" "message-id" message_id;
    To "To" "to" to;
    ReplyTo "ReplyTo" "reply-to" reply_to;
    Label "Label" "label" label;
    SessionId "SessionId" "session-id" session_id;
    ReplyToSessionId "ReplyToSessionId" "reply-to-session-id" reply_to_session_id;
    ContentType "ContentType" "content-type" content_type;
}

impl CorrelationField {
    /// Its text, if it is set.
    #[must_use]
    pub fn of<'a>(&self, fields: &'a Correlation) -> Option<&'a String> {
        (self.get)(fields).as_ref()
    }
}

/// Why fields make no correlation filter.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum CorrelationError {
    #[error("a correlation filter needs at least one field")]
    Empty,
    #[error("the property {0:?} has a value that no message's can equal")]
    UnusableValue(String),
}

/// The field that one condition of a filter tests.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Field {
    System(Property),
    User(Box<str>),
}

/// A value in the only form it has, so that equal values are the same.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Key<'a> {
    Text(Cow<'a, str>),
    Bool(bool),
    Integer(i128),
    /// The bits of a number that is no integer.
    Double(u64),
    DateTime(i64),
    Duration(i64),
}

/// A correlation filter that was found sound.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelationFilter {
    fields: Correlation,
    /// In the order of the fields, each once.
    conditions: Vec<(Field, Key<'static>)>,
}

impl CorrelationFilter {
    /// The filter with these fields.
    ///
    /// # Errors
    /// When none is set, or a value is of a type that is never equal to anything.
    pub fn new(fields: Correlation) -> Result<Self, CorrelationError> {
        let mut conditions = system_conditions(&fields);
        for (name, value) in &fields.properties {
            let key = Key::of(Value::of_amqp(value))
                .ok_or_else(|| CorrelationError::UnusableValue(name.clone()))?;
            conditions.push((Field::User(name.as_str().into()), key));
        }
        if conditions.is_empty() {
            return Err(CorrelationError::Empty);
        }
        conditions.sort_by(|left, right| left.0.cmp(&right.0));
        conditions.dedup_by(|next, kept| next.0 == kept.0);
        Ok(Self { fields, conditions })
    }

    /// The conditions that it was made from.
    #[must_use]
    pub fn fields(&self) -> &Correlation {
        &self.fields
    }

    /// The parts of a message that it asks for.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        for (field, _) in &self.conditions {
            match field {
                Field::System(property) => needs.add(*property),
                Field::User(_) => needs.application_properties = true,
            }
        }
        needs
    }

    /// Whether all fields of `message` equal those of the filter. What is missing equals nothing.
    #[must_use]
    pub fn matches(&self, message: &Message<'_>) -> bool {
        self.conditions.iter().all(|(field, wanted)| {
            let value = match field {
                Field::System(property) => message.system(*property),
                Field::User(name) => message.user(name, Dialect::Sql).into_value(),
            };
            Key::of(value).as_ref() == Some(wanted)
        })
    }

    /// Whether it matches just what the other one does.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.conditions == other.conditions
    }

    pub(crate) fn conditions(&self) -> &[(Field, Key<'static>)] {
        &self.conditions
    }
}

fn system_conditions(fields: &Correlation) -> Vec<(Field, Key<'static>)> {
    let set = CorrelationField::ALL.iter().filter_map(|field| {
        let text = field.of(fields)?.clone();
        Some((Field::System(field.property), Key::Text(Cow::Owned(text))))
    });
    set.collect()
}

impl<'a> Key<'a> {
    /// `None` for what equals nothing.
    pub(crate) fn of(value: Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Unknown => return None,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(value) => Self::Integer(value.into()),
            Value::Unsigned(value) => Self::Integer(value.into()),
            Value::Double(value) if value.is_nan() => return None,
            Value::Double(value) if value.fract() == 0.0 && value.abs() < BEYOND_INTEGERS => {
                Self::Integer(value as i128)
            }
            Value::Double(value) => Self::Double(value.to_bits()),
            Value::Text(text) => Self::Text(text),
            Value::Guid(guid) => Self::Text(Cow::Owned(uuid_text(&guid))),
            Value::DateTime(ticks) => Self::DateTime(ticks),
            Value::Duration(ticks) => Self::Duration(ticks),
        })
    }
}
