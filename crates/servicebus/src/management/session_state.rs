//! Get-session-state and set-session-state: bytes that the holder of a session stores with it.
//! (docs/spec/amqp.md#7.3; docs/spec/entities.md#18)

use amqp::{Error, Value, encode};
use broker::{Command, RequestError, RequestId};
use bytes::Bytes;

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::request_response::response::{self, Status};

pub(super) fn read_get(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    super::check_sessions(entity_ref)?;
    let (entity, session) = (entity_ref.id, body.needed_session()?);
    let command = Box::new(move |request| Command::GetSessionState {
        request,
        entity,
        session,
    });
    Ok(Prepared {
        command,
        count: 1,
        answer: usize::try_from(entity_ref.max_message_size).unwrap_or(usize::MAX),
        without_bodies: false,
    })
}

/// A state is as large as one message at most. (docs/spec/entities.md#4)
pub(super) fn read_set(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    super::check_sessions(entity_ref)?;
    let (entity, session) = (entity_ref.id, body.needed_session()?);
    let state = match body.get("session-state") {
        None => None,
        // It clears the state, as null does.
        Some(Value::Binary(state)) if state.is_empty() => None,
        // An allocation of its own, since it may wait while the old one is read.
        Some(Value::Binary(state)) => Some(Bytes::copy_from_slice(state)),
        Some(_) => {
            return Err(errors::bad_argument(
                "The argument 'session-state' must be binary or null.",
            ));
        }
    };
    let limit = usize::try_from(entity_ref.max_message_size).unwrap_or(usize::MAX);
    if state.as_ref().is_some_and(|state| state.len() > limit) {
        return Err(errors::out_of_range("The session state", limit, "bytes"));
    }
    let command = Box::new(move |request| Command::SetSessionState {
        request,
        entity,
        session,
        state,
    });
    Ok(Prepared {
        command,
        count: 1,
        answer: 0,
        without_bodies: false,
    })
}

impl Client {
    /// The broker has read a state. The key is there too when there is none.
    pub(crate) fn handle_state(
        &mut self,
        request: RequestId,
        result: Result<Option<Bytes>, RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(state) => {
                let state = state.map_or(Value::Null, Value::Binary);
                let map = [(Value::from("session-state"), state)];
                self.answer_request(&pending, Status::ok(), |out| encode::map(out, &map));
            }
        }
    }

    /// The broker has set a state.
    pub(crate) fn handle_state_set(
        &mut self,
        request: RequestId,
        result: Result<(), RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Err(error) => self.refuse_by_broker(&pending, &error),
            Ok(()) => self.answer_request(&pending, Status::ok(), response::empty_map),
        }
    }
}
