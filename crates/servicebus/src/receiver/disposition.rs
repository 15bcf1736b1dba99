//! Disposition: reads a receiver's delivery state, and makes the state that answers it.
//! (docs/spec/amqp.md#5.1, #5.2)
//!
//! The answer to a success repeats the same outcome without fields: one client compares types, and
//! others take an error field for a failure. The answer to a failure is `rejected` with the error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use amqp::{DeliveryState, Error, Map, Value};
use broker::Outcome;
use bytes::{Bytes, BytesMut};

use crate::errors;
use crate::message::incoming::{MAX_PROPERTIES, MAX_PROPERTY};

/// The application properties that say why a message is dead. (docs/spec/entities.md#8.1)
const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";
/// Most characters of either.
const MAX_REASON: usize = 4_096;

/// The outcome to confirm, once it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Settlement {
    Accepted,
    Rejected,
    Released,
    Modified,
}

impl Settlement {
    /// The bare state: no error, no fields set. (docs/spec/amqp.md#5.2, #rule-15 and #rule-16)
    pub(crate) fn state(self) -> DeliveryState {
        match self {
            Self::Accepted => DeliveryState::Accepted,
            Self::Rejected => DeliveryState::Rejected(None),
            Self::Released => DeliveryState::Released,
            Self::Modified => DeliveryState::Modified {
                delivery_failed: false,
                undeliverable_here: false,
                message_annotations: None,
            },
        }
    }
}

/// The decision on a disposition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// A lock ends.
    Settle(Outcome, Settlement),
    /// Nothing is decided yet.
    Wait,
}

/// Reads a disposition. `default` is the outcome of the link's source for deliveries that are
/// settled without one. [AMQP 3.5.3]
pub(crate) fn decide(
    state: Option<&DeliveryState>,
    settled: bool,
    default: Option<&DeliveryState>,
) -> Result<Decision, Error> {
    match state {
        None | Some(DeliveryState::Received { .. }) if !settled => Ok(Decision::Wait),
        None | Some(DeliveryState::Received { .. }) => {
            let default = default.filter(|state| !matches!(state, DeliveryState::Received { .. }));
            terminal(default.unwrap_or(&DeliveryState::Released))
        }
        Some(state) => terminal(state),
    }
}

fn terminal(state: &DeliveryState) -> Result<Decision, Error> {
    Ok(match state {
        DeliveryState::Accepted => Decision::Settle(Outcome::Complete, Settlement::Accepted),
        DeliveryState::Released => Decision::Settle(Outcome::Release, Settlement::Released),
        DeliveryState::Rejected(error) => {
            let info = error
                .as_ref()
                .and_then(|error| error.info.as_deref())
                .unwrap_or_default();
            let changes = dead_letter_changes(info)?;
            Decision::Settle(Outcome::DeadLetter { changes }, Settlement::Rejected)
        }
        DeliveryState::Modified {
            undeliverable_here,
            message_annotations,
            ..
        } => {
            let properties = message_annotations.as_deref().unwrap_or_default();
            // Undeliverable-here means defer in every SDK, never dead-letter.
            let outcome = if *undeliverable_here {
                let changes = changes(properties)?;
                Outcome::Defer { changes }
            } else {
                abandon(properties)?
            };
            Decision::Settle(outcome, Settlement::Modified)
        }
        DeliveryState::Received { .. } => Decision::Wait,
        DeliveryState::Declared { .. } | DeliveryState::Transactional { .. } => {
            return Err(errors::unknown_transaction());
        }
    })
}

/// Changes for a dead letter: reason and description by their names, anything else as it is. One of
/// these that is no text is a property like any other. (docs/spec/amqp.md#5.1)
fn dead_letter_changes(info: &[(Value, Value)]) -> Result<Vec<(String, Bytes)>, Error> {
    let is_why = |(key, value): &(Value, Value)| {
        let is_text = *value == Value::Null || value.as_text().is_some();
        is_text && matches!(key.as_text(), Some(REASON | DESCRIPTION))
    };
    let (why, rest): (Map, Map) = info.iter().cloned().partition(is_why);
    let find = |name| amqp::value::lookup(&why, name).and_then(Value::as_text);
    dead_letter(find(REASON), find(DESCRIPTION), &rest)
}

/// Changes for a dead letter with these words, as a settlement of the broker has them.
///
/// # Errors
/// When a text is longer than it may be.
pub fn dead_letter_words(
    reason: Option<&str>,
    description: Option<&str>,
) -> Result<Vec<(String, Bytes)>, Error> {
    dead_letter(reason, description, &[])
}

/// Changes for a dead letter with these words, where there are any.
pub(crate) fn dead_letter(
    reason: Option<&str>,
    description: Option<&str>,
    properties: &[(Value, Value)],
) -> Result<Vec<(String, Bytes)>, Error> {
    let mut changes = changes(properties)?;
    for (name, text) in [(REASON, reason), (DESCRIPTION, description)] {
        // Empty means "not given" for the client libraries that always send it.
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            if text.len() > MAX_REASON && text.chars().count() > MAX_REASON {
                return Err(errors::out_of_range(name, MAX_REASON, "characters"));
            }
            changes.retain(|(key, _)| key != name);
            changes.push((name.to_owned(), encoded(&Value::from(text))));
        }
    }
    Ok(changes)
}

/// Abandons a message, with what its receiver says of the next delivery and changes of it.
pub(crate) fn abandon(properties: &[(Value, Value)]) -> Result<Outcome, Error> {
    let retry = dialect::retry_time(properties);
    let retry = retry.map_err(|error| errors::bad_argument(error.to_string()))?;
    let mut changes = changes(properties)?;
    changes.retain(|(key, _)| !dialect::is_retry_time(key));
    Ok(Outcome::Abandon { changes, retry })
}

/// Application properties to add or overwrite, each encoded; of equal keys the last one counts.
pub(crate) fn changes(properties: &[(Value, Value)]) -> Result<Vec<(String, Bytes)>, Error> {
    let mut changes: Vec<(String, Bytes)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut size = 0_usize;
    for (key, value) in properties {
        let key = key
            .as_text()
            .ok_or_else(|| errors::bad_argument("A property's name must be text."))?;
        if matches!(value, Value::List(_) | Value::Map(_) | Value::Array(_)) {
            return Err(errors::bad_argument(
                "A property's value must not be a list, map or array.",
            ));
        }
        let value = encoded(value);
        if key.len() > MAX_PROPERTY || value.len() > MAX_PROPERTY {
            return Err(errors::out_of_range(
                "A property's name or value",
                MAX_PROPERTY,
                "bytes",
            ));
        }
        size = size.saturating_add(key.len() + value.len());
        if size > MAX_PROPERTIES {
            return Err(errors::out_of_range(
                "The set of all properties",
                MAX_PROPERTIES,
                "bytes",
            ));
        }
        match places.entry(key) {
            Entry::Occupied(place) => changes[*place.get()].1 = value,
            Entry::Vacant(place) => {
                place.insert(changes.len());
                changes.push((key.to_owned(), value));
            }
        }
    }
    Ok(changes)
}

fn encoded(value: &Value) -> Bytes {
    let mut out = BytesMut::new();
    amqp::encode::value(&mut out, value);
    out.freeze()
}

#[cfg(test)]
#[path = "disposition_tests.rs"]
mod tests;
