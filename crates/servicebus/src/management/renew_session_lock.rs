//! Renew-session-lock: restarts the lock duration of a session. (docs/spec/amqp.md#7.3)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::links::link::EntityRef;
use crate::request_response::response::Status;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    super::check_sessions(entity_ref)?;
    let (entity, session) = (entity_ref.id, body.needed_session()?);
    let command = Box::new(move |request| Command::RenewSession {
        request,
        entity,
        session,
    });
    Ok(Prepared {
        command,
        count: 1,
        answer: 0,
        without_bodies: false,
    })
}

impl Client {
    /// The broker has renewed a session's lock: the answer says until when, on the machine's real
    /// clock.
    pub(crate) fn handle_session_renewed(
        &mut self,
        request: RequestId,
        result: Result<u64, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(left) => {
                let until = self.now.wall.0.saturating_add(left);
                let until = Value::Timestamp(i64::try_from(until).unwrap_or(i64::MAX));
                let map = [(Value::from("expiration"), until)];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }
}
