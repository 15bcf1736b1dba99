//! Evaluate: whether a selector selects a message, as a receiver would see it now.
//!
//! Evaluating is background work with a budget of its own, so that neither stops the other: a unit
//! for each message, and more for a selector that takes long.

use std::borrow::Cow;

use filter::{Facts, Message, Selector};
use store::{MessageRow, SequenceNumber};

use crate::message::bodies::Body;
use crate::message::patch::Patch;

/// Steps of an evaluation for one unit of work.
const STEPS: u32 = 1_024;

/// Whether `selector` selects a message, and what finding out cost in units of work.
pub(crate) fn evaluate(
    selector: &Selector,
    number: SequenceNumber,
    row: &MessageRow,
    delivery_count: u32,
    body: &Body,
) -> (bool, usize) {
    let payload = match &body.patch {
        Some(patch) => Cow::Owned(patch.applied(&body.payload)),
        None => Cow::Borrowed(&body.payload),
    };
    let facts = facts(number, row, delivery_count, body);
    let Ok(message) = Message::read(&payload, facts) else {
        // It was checked when it came in; what cannot be read now is not selected.
        return (false, 0);
    };
    let (truth, steps) = selector.evaluate_at_cost(&message);
    (truth == Some(true), (steps / STEPS) as usize)
}

fn facts<'a>(
    number: SequenceNumber,
    row: &MessageRow,
    delivery_count: u32,
    body: &'a Body,
) -> Facts<'a> {
    let signed = |value: u64| i64::try_from(value).ok();
    let first = match row.enqueued_number {
        0 => number.0,
        first => first,
    };
    Facts {
        enqueued_time_ms: signed(row.enqueued_ms),
        expires_at_ms: signed(row.expires_ms),
        sequence_number: signed(number.0),
        enqueued_sequence_number: signed(first),
        delivery_count: Some(delivery_count),
        state: Some(0),
        dead_letter_source: body.patch.as_deref().and_then(Patch::source),
        ..Facts::default()
    }
}
