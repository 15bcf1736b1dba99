//! Described values: the types of Service Bus that AMQP does not have. (docs/spec/amqp.md#4.2)
//!
//! Every form that a value is written in (JSON, TOML, XML) reads and writes them through here.

use amqp::{Symbol, Value};

/// A value of one of these types.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Described<T> {
    /// In ticks of 100 ns.
    Duration(i64),
    /// With more digits than a timestamp has: in ticks since the year 1.
    Time(i64),
    /// A URI.
    Uri(T),
}

const TIMESPAN: &str = "com.microsoft:timespan";
const DATETIME_OFFSET: &str = "com.microsoft:datetime-offset";
const URI: &str = "com.microsoft:uri";

impl<'a> Described<&'a str> {
    /// The value, if it is of one of these types.
    #[must_use]
    pub fn of(value: &'a Value) -> Option<Self> {
        let Value::Described(pair) = value else {
            return None;
        };
        match (pair.0.as_text()?, &pair.1) {
            (TIMESPAN, Value::Long(ticks)) => Some(Self::Duration(*ticks)),
            (DATETIME_OFFSET, Value::Long(ticks)) => Some(Self::Time(*ticks)),
            (URI, Value::String(text)) => Some(Self::Uri(text)),
            _ => None,
        }
    }
}

impl<T: Into<String>> From<Described<T>> for Value {
    fn from(described: Described<T>) -> Self {
        let (name, value) = match described {
            Described::Duration(ticks) => (TIMESPAN, Self::Long(ticks)),
            Described::Time(ticks) => (DATETIME_OFFSET, Self::Long(ticks)),
            Described::Uri(text) => (URI, Self::String(text.into())),
        };
        Self::Described(Box::new((Symbol::new(name).into(), value)))
    }
}
