//! Renew-lock: restarts the lock duration of message locks, all of them or none.
//! (docs/spec/amqp.md#7.3)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId, SubqueueId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::links::link::EntityRef;
use crate::request_response::response::Status;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let tokens = body.lock_tokens()?;
    let (entity, subqueue, count) = (entity_ref.id, entity_ref.subqueue, tokens.len());
    let command = Box::new(move |request| Command::Renew {
        request,
        subqueue: SubqueueId { entity, subqueue },
        tokens,
    });
    Ok(Prepared {
        command,
        count,
        answer: 0,
        without_bodies: false,
    })
}

impl Client {
    /// Handles renewed locks: the answer has their new end, on the machine's real clock.
    pub(crate) fn handle_renewed(&mut self, request: RequestId, result: Result<u64, RequestError>) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(left) => {
                let until = self.now.wall.0.saturating_add(left);
                let until = Value::Timestamp(i64::try_from(until).unwrap_or(i64::MAX));
                let expirations = Value::Array(vec![until; pending.count]);
                let map = [(Value::from("expirations"), expirations)];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
