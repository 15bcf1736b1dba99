//! Update-disposition: settles locked messages by their tokens, whichever link received them.
//! (docs/spec/amqp.md#5.3, #7.3)

use amqp::Error;
use broker::{Command, Outcome, SettleError, SubqueueId};

use super::{Body, Prepared};
use crate::client::Client;
use crate::errors;
use crate::links::link::EntityRef;
use crate::pending_requests::PendingOperation;
use crate::receiver::disposition;
use crate::request_response::response::{self, Status};

pub(super) fn read(entity_ref: &EntityRef, body: &Body) -> Result<Prepared, Error> {
    let tokens = body.lock_tokens()?;
    let outcome = outcome(body)?;
    let session = body.held_session.clone();
    let (entity, subqueue, count) = (entity_ref.id, entity_ref.subqueue, tokens.len());
    let command = Box::new(move |request| Command::SettleMany {
        request,
        subqueue: SubqueueId { entity, subqueue },
        session,
        tokens,
        outcome,
    });
    Ok(Prepared {
        command,
        count,
        answer: 0,
        without_bodies: false,
    })
}

fn outcome(body: &Body) -> Result<Outcome, Error> {
    let properties = body.entries("properties-to-modify")?;
    Ok(match body.text("disposition-status")?.unwrap_or_default() {
        "completed" => Outcome::Complete,
        "abandoned" => disposition::abandon(properties)?,
        // Most SDKs spell it with one r.
        "defered" | "deferred" => Outcome::Defer {
            changes: disposition::changes(properties)?,
        },
        "suspended" => {
            let reason = body.text("deadletter-reason")?;
            let description = body.text("deadletter-description")?;
            Outcome::DeadLetter {
                changes: disposition::dead_letter(reason, description, properties)?,
            }
        }
        _ => {
            return Err(errors::bad_argument(
                "The argument 'disposition-status' is missing or not known.",
            ));
        }
    })
}

impl Client {
    /// The broker has ended the locks, or none of them.
    pub(crate) fn answer_update(
        &mut self,
        pending: &PendingOperation,
        result: Result<(), SettleError>,
    ) {
        match result {
            Ok(()) => self.answer_request(pending, Status::ok(), response::empty_map),
            Err(error) => self.refuse_request(pending, errors::settle(&error)),
        }
    }
}
