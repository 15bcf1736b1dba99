//! Batch-delete-messages: deletes the oldest messages without receiving them.
//! (docs/spec/amqp.md#7.3)
//!
//! A client purges an entity by a loop of these requests, so the number of messages that one
//! request deletes is bounded. (docs/spec/entities.md#20)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId, SubqueueId, Wall};
use bytes::Bytes;

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::request_response::response::{self, Status};

/// The operation.
const COUNT: &str = "message-count";
const BEFORE: &str = "enqueued-time-utc";

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let count = body.integer(COUNT)?.ok_or_else(|| missing(COUNT))?;
    let before = body.time(BEFORE)?.ok_or_else(|| missing(BEFORE))?;
    let session = body.session()?;
    let session = session.map(|session| Bytes::copy_from_slice(session.as_bytes()));
    // A negative number is not within any limit either.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (entity, subqueue) = (entity_ref.id, entity_ref.subqueue);
    let enqueued_before = Wall(u64::try_from(before).unwrap_or_default());
    let command = Box::new(move |request| Command::DeleteMessages {
        request,
        subqueue: SubqueueId { entity, subqueue },
        session,
        enqueued_before,
        count,
    });
    Ok(Prepared {
        command,
        count,
        answer: 0,
        without_bodies: false,
    })
}

/// Whether the number of messages of one request is within its bound.
pub(super) fn check_count(count: usize, most: usize) -> Result<(), Error> {
    let within = (count <= most).then_some(());
    within.ok_or_else(|| errors::number_out_of_range(COUNT, most))
}

fn missing(key: &str) -> Error {
    errors::bad_argument(format!("The argument '{key}' is missing."))
}

impl Client {
    /// The broker has deleted messages. None is 204 with an empty map.
    pub(crate) fn handle_deleted(
        &mut self,
        request: RequestId,
        result: Result<usize, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(0) => self.answer_request(&pending, Status::no_content(), response::empty_map),
            Ok(count) => {
                let count = i32::try_from(count).unwrap_or(i32::MAX);
                let map = [(Value::from(COUNT), Value::Int(count))];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
