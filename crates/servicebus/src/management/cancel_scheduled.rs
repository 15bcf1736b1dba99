//! Cancel-scheduled-message: removes scheduled messages before their activation, all or none.
//! (docs/spec/amqp.md#7.3)

use amqp::Error;
use broker::{Command, RequestError, RequestId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::links::link::EntityRef;
use crate::request_response::response::{self, Status};

/// The cost of every number until it is answered.
const OVERHEAD: usize = 64;

/// Most numbers of one request.
const MAX_NUMBERS: usize = 16_384;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let numbers = body.sequence_numbers(MAX_NUMBERS)?;
    let (entity, count) = (entity_ref.id, numbers.len());
    let command = Box::new(move |request| Command::CancelScheduled {
        request,
        entity,
        numbers,
    });
    Ok(Prepared {
        command,
        count,
        answer: count * OVERHEAD,
        without_bodies: false,
    })
}

impl Client {
    /// The broker has taken the messages back, or none of them.
    pub(crate) fn handle_cancelled(
        &mut self,
        request: RequestId,
        result: Result<(), RequestError>,
    ) {
        let Some(pending) = self.answered(request) else {
            return;
        };
        match result {
            Ok(()) => self.answer_request(&pending, Status::ok(), response::empty_map),
            Err(error) => self.refuse_by_broker(&pending, &error),
        }
    }
}
