//! Renew-lock: message locks start anew, all of them or none. (docs/spec/amqp.md#7.3)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId, SubqueueId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::link::Standing;
use crate::response::Status;

pub(super) fn read(standing: &Standing, body: &Body) -> Result<Prepared, Error> {
    let tokens = body.lock_tokens()?;
    let (entity, subqueue, count) = (standing.id, standing.subqueue, tokens.len());
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
    /// The broker has renewed locks: the answer says until when, on the machine's real clock.
    pub(crate) fn handle_renewed(&mut self, request: RequestId, result: Result<u64, RequestError>) {
        let Some(asked) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&asked, &error),
            Ok(left) => {
                let until = self.now.wall.0.saturating_add(left);
                let until = Value::Timestamp(i64::try_from(until).unwrap_or(i64::MAX));
                let expirations = Value::Array(vec![until; asked.count]);
                let map = [(Value::from("expirations"), expirations)];
                self.answer_request(&asked, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
