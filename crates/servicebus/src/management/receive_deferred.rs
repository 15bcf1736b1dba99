//! Receive-by-sequence-number: the only way to receive a deferred message.
//! (docs/spec/amqp.md#7.3; docs/spec/entities.md#12)

use amqp::Error;
use broker::{Command, Delivery, ReceiveMode, RequestError, RequestId, SubqueueId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::message::delivery::View;
use crate::message::message_list::{self, ListedMessage};
use crate::receiver;
use crate::request_response::response::Status;

/// The answer holds whole messages, so it is bounded by their number.
const MAX_NUMBERS: usize = 4_096;
/// The assumed size of a message before it is read.
const USUAL_BYTES: usize = 256 << 10;
/// Most bytes of the messages of one answer, unless it is a single one.
const MAX_BYTES: usize = 32 << 20;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let numbers = body.sequence_numbers(MAX_NUMBERS)?;
    let mode = match body.integer("receiver-settle-mode")? {
        Some(0) => ReceiveMode::ReceiveAndDelete,
        None | Some(1) => ReceiveMode::PeekLock,
        Some(_) => {
            return Err(errors::bad_argument(
                "The argument 'receiver-settle-mode' must be 0 or 1.",
            ));
        }
    };
    let session = body.held_session.clone();
    let (entity, subqueue, count) = (entity_ref.id, entity_ref.subqueue, numbers.len());
    let command = Box::new(move |request| Command::ReceiveDeferred {
        request,
        subqueue: SubqueueId { entity, subqueue },
        session,
        numbers,
        mode,
        max_bytes: MAX_BYTES,
    });
    Ok(Prepared {
        command,
        count,
        answer: (count * USUAL_BYTES).min(MAX_BYTES),
        without_bodies: false,
    })
}

impl Client {
    /// The broker has found and locked (or taken) deferred messages.
    pub(crate) fn handle_deferred(
        &mut self,
        request: RequestId,
        result: Result<Vec<Delivery>, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(found) => {
                let now = self.now;
                let messages = found.iter().map(|delivery| {
                    let lock = receiver::lock(delivery, now);
                    ListedMessage {
                        message: &delivery.message,
                        view: View::Deferred(lock),
                        token: lock.map(|lock| lock.token),
                    }
                });
                self.answer_request(&pending, Status::ok(), |out| {
                    message_list::write(out, messages);
                });
            }
        }
    }
}
