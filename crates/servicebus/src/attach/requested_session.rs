//! Requested session: the session filter of an attach. (docs/spec/amqp.md#3.4, #3.5)

use amqp::{Attach, Error, Map, Value};
use broker::SessionFilter;
use bytes::Bytes;

use crate::errors;

const FILTER: &str = "com.microsoft:session-filter";
const FILTER_CODE: u64 = 0x0000_0013_7000_000C;
const NON_EXCLUSIVE: &str = "com.microsoft:non-exclusive-session-filter";
const TIMEOUT: &str = "com.microsoft:timeout";
/// How long a client waits by default.
const DEFAULT_TIMEOUT_MS: u64 = 65_000;
/// Most characters of a session's id. (docs/spec/entities.md#4)
const MAX_ID: usize = 128;

/// The session filter of an attach, as it was received.
#[derive(Debug)]
pub(crate) struct RequestedSession {
    key: Value,
    pub(crate) value: Value,
}

/// Refuses a session that is not exclusive, with the text by which .NET knows that the server has
/// none. (docs/spec/amqp.md#3.5)
pub(crate) fn check_exclusive(attach: &Attach) -> Result<(), Error> {
    let source = attach.source.as_deref();
    let filters = source.and_then(|source| source.filter.as_deref());
    let mut keys = filters.unwrap_or_default().iter().map(|(key, _)| key);
    if keys.any(|key| key.as_text() == Some(NON_EXCLUSIVE)) {
        return Err(errors::non_exclusive_session());
    }
    Ok(())
}

impl RequestedSession {
    /// The session filter of an attach, if there is one.
    pub(crate) fn of(attach: &Attach) -> Option<Self> {
        let source = attach.source.as_deref()?;
        let mut filters = source.filter.as_deref()?.iter();
        let is_session_filter = |key: &Value, value: &Value| {
            let described = match value {
                Value::Described(pair) => {
                    pair.0 == Value::Ulong(FILTER_CODE) || pair.0.as_text() == Some(FILTER)
                }
                _ => false,
            };
            described || key.as_text() == Some(FILTER)
        };
        let (key, value) = filters
            .find(|(key, value)| is_session_filter(key, value))?
            .clone();
        Some(Self { key, value })
    }

    /// The session that it requests.
    pub(crate) fn filter(&self, attach: &Attach) -> Result<SessionFilter, Error> {
        let id = match &self.value {
            Value::Described(pair) => &pair.1,
            value => value,
        };
        match id {
            Value::Null => Ok(SessionFilter::Next {
                timeout_ms: timeout(attach)?,
            }),
            Value::String(id) => {
                check_id(id)?;
                Ok(SessionFilter::ById(Bytes::copy_from_slice(id.as_bytes())))
            }
            _ => Err(errors::bad_argument(
                "The session filter must be a string or null.",
            )),
        }
    }

    /// The filter of the reply, in the form that the client used: the session that it asked for as
    /// it wrote it, or the one that it was assigned.
    pub(crate) fn granted(self, id: &Bytes) -> Map {
        let assigned = || Value::String(String::from_utf8_lossy(id).into_owned());
        let value = match self.value {
            Value::Described(pair) if pair.1 == Value::Null => {
                Value::Described(Box::new((pair.0, assigned())))
            }
            Value::Null => assigned(),
            asked => asked,
        };
        vec![(self.key, value)]
    }
}

/// Refuses ids that are too long.
pub(crate) fn check_id(id: &str) -> Result<(), Error> {
    // Bytes bound characters, so short ids need no counting.
    if id.len() > MAX_ID && id.chars().count() > MAX_ID {
        return Err(errors::out_of_range("The session id", MAX_ID, "characters"));
    }
    Ok(())
}

/// How long the client waits for its next session, in milliseconds of any integral type.
fn timeout(attach: &Attach) -> Result<u64, Error> {
    let properties = attach.properties.as_deref().unwrap_or_default();
    match amqp::value::lookup(properties, TIMEOUT) {
        None | Some(Value::Null) => Ok(DEFAULT_TIMEOUT_MS),
        Some(value) => {
            let timeout = value.as_integer().map(u64::try_from);
            timeout.and_then(Result::ok).ok_or_else(|| {
                errors::bad_argument(format!("The property '{TIMEOUT}' must be a number."))
            })
        }
    }
}
