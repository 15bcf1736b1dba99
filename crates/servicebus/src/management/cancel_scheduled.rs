//! Cancel-scheduled-message: removes scheduled messages before their activation, all or none.
//! (docs/spec/amqp.md#7.3)

use amqp::{Error, Value};
use broker::{Command, RequestError, RequestId};
use store::SequenceNumber;

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::incoming::MAX_BATCH;
use crate::link::EntityRef;
use crate::response::{self, Status};

/// The cost of every number until it is answered.
const OVERHEAD: usize = 64;

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let number = |value: &Value| u64::try_from(value.as_integer()?).ok().map(SequenceNumber);
    let numbers = body.elements("sequence-numbers", number)?;
    if numbers.len() > MAX_BATCH {
        let what = "The array 'sequence-numbers'";
        return Err(errors::out_of_range(what, MAX_BATCH, "elements"));
    }
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
