//! Schedule-message: sends messages that become available later.
//! (docs/spec/amqp.md#7.3; docs/spec/entities.md#11)
//!
//! Each message carries its time in an annotation, like a scheduled message on a link. The answer
//! also gives its sequence number, by which it can be cancelled.

use amqp::{Error, Value, encode};
use broker::{Command, SendError, Subqueue};
use bytes::Bytes;
use dialect::MessageIds;
use store::SequenceNumber;

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::message::incoming::{self, MAX_BATCH};
use crate::pending_requests::PendingOperation;
use crate::request_response::response::Status;

/// The cost of every message beside its bytes until it is answered, its number included.
const OVERHEAD: usize = 256;

pub(super) fn read(
    entity_ref: &EntityRef,
    body: &Body,
    ids: &mut MessageIds,
) -> Result<Prepared, Error> {
    if entity_ref.subqueue != Subqueue::Main {
        return Err(errors::no_sends_to_subqueue(&entity_ref.path));
    }
    let payloads = body.elements("messages", payload)?;
    if payloads.len() > MAX_BATCH {
        let what = "The list 'messages'";
        return Err(errors::out_of_range(what, MAX_BATCH, "elements"));
    }
    let messages = payloads
        .iter()
        .map(|payload| incoming::read(payload, entity_ref.max_message_size, ids))
        .collect::<Result<Vec<_>, _>>()?;
    let (entity, count) = (entity_ref.id, messages.len());
    let command = Box::new(move |request| Command::Send {
        request,
        entity,
        messages,
    });
    Ok(Prepared {
        command,
        count,
        answer: count * OVERHEAD,
        without_bodies: false,
    })
}

/// The message's own sections tell all that the other entries of its map do.
fn payload(entry: &Value) -> Option<Bytes> {
    match amqp::value::lookup(entry.as_map()?, "message")? {
        Value::Binary(payload) => Some(payload.clone()),
        _ => None,
    }
}

impl Client {
    /// The broker has taken the messages: the answer names their numbers in order. A duplicate has
    /// the number of the message that it is one of, so that a repeated request is answered alike.
    pub(crate) fn answer_schedule(
        &mut self,
        pending: &PendingOperation,
        result: Result<SequenceNumber, SendError>,
        duplicates: &[(usize, SequenceNumber)],
    ) {
        match result {
            Err(error) => {
                let error = errors::send(&error, &self.entity_name(pending.request_link));
                self.refuse_request(pending, error);
            }
            Ok(first) => {
                // What waits for its time has no level yet: its arrival is its number.
                let mut fresh = std::iter::once(first.0).chain(first.arrival().next().0..);
                let mut duplicates = duplicates.iter().peekable();
                let number = |place: usize| {
                    let known = duplicates.next_if(|(duplicate, _)| *duplicate == place);
                    let number = known.map(|(_, number)| number.0).or_else(|| fresh.next());
                    Value::Long(number.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX)))
                };
                let numbers = (0..pending.count).map(number).collect();
                let map = [(Value::from("sequence-numbers"), Value::Array(numbers))];
                self.answer_request(pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
