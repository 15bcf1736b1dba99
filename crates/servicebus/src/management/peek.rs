//! Peek-message: reads messages without locking or removing them.
//! (docs/spec/amqp.md#7.3; docs/spec/entities.md#13)

use amqp::Error;
use broker::{Browsed, Command, RequestError, RequestId, SubqueueId};
use bytes::Bytes;
use store::SequenceNumber;

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::message::delivery::{self, LockedUntil, View};
use crate::message::message_list::{self, ListedMessage};
use crate::request_response::response::{self, Status};

/// Most messages, and most bytes of them, in one answer.
const MAX_MESSAGES: usize = 250;
const MAX_BYTES: usize = 256 << 10;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let from = body.integer("from-sequence-number")?.unwrap_or_default();
    let from = SequenceNumber(u64::try_from(from).unwrap_or_default());
    let count = match usize::try_from(body.integer("message-count")?.unwrap_or(1)) {
        Ok(count) if count > 0 => count.min(MAX_MESSAGES),
        _ => {
            return Err(errors::bad_argument(
                "The argument 'message-count' must be at least 1.",
            ));
        }
    };
    let without_bodies = body.flag("omit-message-body")?;
    let (entity, subqueue, max_bytes) = (entity_ref.id, entity_ref.subqueue, MAX_BYTES);
    let session = body.session()?.filter(|_| entity_ref.sessions);
    let session = session.map(|session| Bytes::copy_from_slice(session.as_bytes()));
    let command: super::CommandBuilder = match session {
        Some(session) => Box::new(move |request| Command::PeekSession {
            request,
            entity,
            session,
            from,
            count,
            max_bytes,
        }),
        None => Box::new(move |request| Command::Peek {
            request,
            subqueue: SubqueueId { entity, subqueue },
            state: None,
            from,
            count,
            max_bytes,
        }),
    };
    Ok(Prepared {
        command,
        count,
        answer: MAX_BYTES,
        without_bodies,
    })
}

impl Client {
    /// The broker has browsed. Nothing found is 204 with an empty map.
    pub(crate) fn handle_browsed(
        &mut self,
        request: RequestId,
        result: Result<Vec<Browsed>, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(found) if found.is_empty() => {
                self.answer_request(&pending, Status::no_content(), response::empty_map);
            }
            Ok(mut found) => {
                if pending.without_bodies {
                    found.iter_mut().for_each(delivery::remove_body);
                }
                let now = self.now.wall.0;
                let messages = found.iter().map(|message| ListedMessage {
                    message,
                    view: View::Peek(LockedUntil::of(message.lock, now)),
                    token: None,
                });
                self.answer_request(&pending, Status::ok(), |out| {
                    message_list::write(out, messages);
                });
            }
        }
    }
}
