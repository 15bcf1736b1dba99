//! Changes: the changes that an action makes to a message, apart from the message.
//!
//! Applied, they make a new encoded message. Sections and application properties without a change
//! stay byte for byte as they were received.

use amqp::Symbol;
use amqp::message::descriptor;
use bytes::{Bytes, BytesMut};

use crate::message::Message;
use crate::message::property::Property;
use crate::message::rewrite;
use crate::values::ticks;
use crate::values::value::Value;

/// Most bytes of everything in front of the body. (docs/spec/entities.md#4)
const MAX_PROPERTIES: usize = 64 << 10;

/// A copy outgrew the quota of its properties: another reason to dead-letter it.
/// (docs/spec/entities.md#8.2)
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("The size quota for this stream has been exceeded.")]
pub struct HeaderSizeExceeded;

impl HeaderSizeExceeded {
    /// The reason of the dead letter; the text of this error is its description.
    pub const REASON: &str = "HeaderSizeExceeded";
}

/// A change of a property that is not the application's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SystemChange {
    /// A property that holds a text gets it, or loses what it had.
    Text(Property, Option<String>),
    /// In milliseconds; `None` lets the message live as long as its entity does.
    TimeToLive(Option<u64>),
}

/// The changes to a copy. Each property occurs at most once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    system: Vec<SystemChange>,
    /// By name; `None` is removed.
    user: Vec<(String, Option<amqp::Value>)>,
}

impl Changes {
    /// Changes of properties that are not the application's.
    #[must_use]
    pub fn system(&self) -> &[SystemChange] {
        &self.system
    }

    /// Application properties that are set to a value or, by `None`, removed.
    #[must_use]
    pub fn user(&self) -> &[(String, Option<amqp::Value>)] {
        &self.user
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.user.is_empty()
    }

    pub(crate) fn set_system(&mut self, change: SystemChange) {
        self.system.push(change);
    }

    /// Sets an application property, whatever else was to become of it.
    pub(crate) fn set_user(&mut self, name: String, value: amqp::Value) {
        self.put_user(name, Some(value));
    }

    pub(crate) fn remove_user(&mut self, name: String) {
        self.put_user(name, None);
    }

    fn put_user(&mut self, name: String, value: Option<amqp::Value>) {
        match self.user.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.user.push((name, value)),
        }
    }

    /// The new session id, if there is a change of it.
    #[must_use]
    pub fn session_id(&self) -> Option<Option<&str>> {
        self.system.iter().find_map(|change| match change {
            SystemChange::Text(Property::SessionId, session) => Some(session.as_deref()),
            _ => None,
        })
    }

    /// The new time to live in milliseconds, if there is a change of it. An inner `None` is that of
    /// the entity.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Option<u64>> {
        self.system.iter().find_map(|change| match change {
            SystemChange::TimeToLive(ms) => Some(*ms),
            SystemChange::Text(..) => None,
        })
    }

    /// The changed message, encoded.
    ///
    /// # Errors
    /// When it has more properties now than a message may have.
    pub fn apply(&self, message: &Message<'_>) -> Result<Bytes, HeaderSizeExceeded> {
        let bytes = message.bytes();
        let sections = message.sections();
        let mut out = BytesMut::with_capacity(bytes.len() + 64);
        rewrite::header(&mut out, &bytes[sections.header.clone()], &self.system);
        out.extend_from_slice(&bytes[sections.delivery_annotations.clone()]);
        let annotations = &bytes[sections.message_annotations.clone()];
        let annotated = rewrite::annotations(&self.system);
        rewrite::map(
            &mut out,
            annotations,
            descriptor::MESSAGE_ANNOTATIONS,
            &annotated,
        );
        rewrite::properties(&mut out, &bytes[sections.properties.clone()], &self.system);
        let properties = &bytes[sections.application_properties.clone()];
        rewrite::map(
            &mut out,
            properties,
            descriptor::APPLICATION_PROPERTIES,
            &self.user,
        );
        if out.len() > MAX_PROPERTIES {
            return Err(HeaderSizeExceeded);
        }
        out.extend_from_slice(&bytes[sections.body.start..sections.footer.end]);
        Ok(out.freeze())
    }
}

impl SystemChange {
    pub(crate) fn of(property: Property, value: Value<'static>) -> Self {
        match value {
            Value::Duration(ticks) => {
                let ms = u64::try_from(ticks::to_ms(ticks));
                Self::TimeToLive(Some(ms.expect("an action sets no negative time to live")))
            }
            Value::Unknown if property == Property::TimeToLive => Self::TimeToLive(None),
            value => Self::Text(property, value.into_text().map(|text| text.into_owned())),
        }
    }
}

/// The conversion of a value that replaces another. (docs/spec/entities.md#17.10)
pub(crate) enum Conversion {
    /// The type that comes of itself.
    None,
    Symbol,
    /// The type of this value, if it can be had without asking for it. In C# any integer may
    /// become a float.
    LikeScalar(amqp::Value),
}

impl Conversion {
    pub(crate) fn convert(&self, value: Value<'static>) -> amqp::Value {
        let converted = match (self, &value) {
            (Self::Symbol, Value::Text(text)) if text.is_ascii() => {
                Some(Symbol::from(text.clone().into_owned()).into())
            }
            (Self::LikeScalar(amqp::Value::Symbol(_)), _) => return Self::Symbol.convert(value),
            (Self::LikeScalar(like), Value::Int(integer)) => narrowed(*integer, like),
            (Self::LikeScalar(amqp::Value::Float(_)), Value::Double(double)) => {
                let float = *double as f32;
                (f64::from(float) == *double).then_some(amqp::Value::Float(float))
            }
            _ => None,
        };
        converted.unwrap_or_else(|| plain(value))
    }
}

/// The type of each kind. (docs/spec/entities.md#17.10)
fn plain(value: Value<'static>) -> amqp::Value {
    match value {
        Value::Unknown => amqp::Value::Null,
        Value::Bool(value) => amqp::Value::Bool(value),
        Value::Int(value) => amqp::Value::Long(value),
        Value::Unsigned(value) => amqp::Value::Ulong(value),
        Value::Double(value) => amqp::Value::Double(value),
        Value::Text(text) => amqp::Value::String(text.into_owned()),
        Value::Guid(guid) => amqp::Value::Uuid(guid),
        Value::DateTime(ticks) => amqp::Value::Timestamp(ticks::to_ms(ticks)),
        Value::Duration(ticks) => amqp::Value::Described(Box::new((
            Symbol::new("com.microsoft:timespan").into(),
            amqp::Value::Long(ticks),
        ))),
    }
}

/// An integer in the type that the property had, if it fits in there.
fn narrowed(integer: i64, like: &amqp::Value) -> Option<amqp::Value> {
    use amqp::Value as To;
    match like {
        To::Byte(_) => integer.try_into().ok().map(To::Byte),
        To::Short(_) => integer.try_into().ok().map(To::Short),
        To::Int(_) => integer.try_into().ok().map(To::Int),
        To::Ubyte(_) => integer.try_into().ok().map(To::Ubyte),
        To::Ushort(_) => integer.try_into().ok().map(To::Ushort),
        To::Uint(_) => integer.try_into().ok().map(To::Uint),
        To::Ulong(_) => integer.try_into().ok().map(To::Ulong),
        To::Double(_) => Some(To::Double(integer as f64)),
        To::Float(_) => Some(To::Float(integer as f32)),
        _ => None,
    }
}
