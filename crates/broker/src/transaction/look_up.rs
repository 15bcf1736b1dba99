//! Look up: asks for what has to be read before a transaction can be decided, and takes the
//! answers.
//!
//! From the question to the decision the entities keep in mind what changes, so that both together
//! are about the present.

use std::collections::BTreeMap;

use store::{EntityId, Found, MessageRow, SequenceNumber};

use super::lookups::{Lookups, Scheduled, StateLookup};
use super::table::Transaction;
use crate::api::id::TransactionId;
use crate::api::operation::Operation;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::send::cancel;
use crate::send::duplicates::inquiry::Inquiry;
use crate::send::duplicates::known::Known;
use crate::sessions::state::cost;

/// The rows of scheduled messages, by the place of the operation that cancels them.
pub(super) type Cancelled = BTreeMap<usize, BTreeMap<SequenceNumber, MessageRow>>;

/// Asks for what a transaction needs.
pub(super) fn ask(
    directory: &mut Directory,
    id: TransactionId,
    transaction: &Transaction,
    cx: &mut Context<'_>,
) -> Lookups {
    let mut lookups = Lookups::default();
    let mut ids: BTreeMap<EntityId, Vec<_>> = BTreeMap::new();
    for (place, operation) in transaction.held.iter().enumerate() {
        let entity = operation.entity();
        // The check will say that it does not exist any more.
        let Some(queue) = directory.get_mut(entity) else {
            continue;
        };
        match operation {
            Operation::Send { messages, .. } if queue.settings.requires_duplicate_detection => {
                ids.entry(entity)
                    .or_default()
                    .extend(Known::ids_of(messages));
            }
            Operation::Cancel { numbers, .. } => {
                let numbers = numbers.clone();
                let query = cancel::scheduled(queue, numbers.clone());
                let read = cx.ask(query, Purpose::Transaction(entity, id));
                queue.rows.journal.begin(read);
                lookups.scheduled.push(Scheduled {
                    place,
                    entity,
                    numbers,
                    read,
                    rows: None,
                });
            }
            Operation::SetSessionState { .. } => {
                let session = transaction.session_at(place);
                let asked = ask_state(queue, session, id, cx);
                lookups.states.extend(asked);
            }
            Operation::Send { .. } | Operation::Settle { .. } => {}
        }
    }
    for (entity, ids) in ids {
        let queue = directory.get_mut(entity);
        let queue = queue.expect("it was there when its ids were taken down");
        let inquiry = {
            let Queue {
                duplicates, rows, ..
            } = queue;
            duplicates.inquire(id, &ids, rows, cx)
        };
        lookups.inquiries.insert(entity, inquiry);
    }
    lookups
}

/// The decision is being made: what was found, if all of it is still so.
pub(super) fn conclude(
    lookups: &mut Lookups,
    directory: &mut Directory,
) -> Result<Cancelled, String> {
    let mut result = Ok(Cancelled::new());
    for asked in lookups.scheduled.drain(..) {
        // Without its entity the transaction is refused.
        let Some(queue) = directory.get_mut(asked.entity) else {
            continue;
        };
        // Also when it is refused already, since this may be the last read of the journal.
        let touched = queue.rows.journal.finish(asked.read);
        let rows = asked
            .rows
            .expect("a transaction is decided when all lookups are answered");
        let rows = cancel::check(&asked.numbers, rows, &touched);
        match (&mut result, rows) {
            (Ok(cancelled), Ok(rows)) => drop(cancelled.insert(asked.place, rows)),
            (Ok(_), Err(error)) => result = Err(error.to_string()),
            (Err(_), _) => {}
        }
    }
    for asked in lookups.states.drain(..) {
        let learnt = conclude_state(asked, directory);
        result = result.and_then(|cancelled| learnt.map(|()| cancelled));
    }
    if lookups.inquiries.values().any(Inquiry::has_failed) {
        return Err("the history of message ids cannot be read".to_owned());
    }
    result
}

/// The transaction is over.
pub(super) fn end(
    lookups: &Lookups,
    directory: &mut Directory,
    id: TransactionId,
    cx: &Context<'_>,
) {
    for entity in lookups.inquiries.keys() {
        if let Some(queue) = directory.get_mut(*entity) {
            queue.duplicates.end_inquiry(id, cx);
        }
    }
}

/// Asks, if it is not known.
fn ask_state(
    queue: &Queue,
    session: HoldId,
    id: TransactionId,
    cx: &mut Context<'_>,
) -> Option<StateLookup> {
    let query = queue.sessions.as_ref()?.unknown_state(session, queue.id)?;
    let entity = queue.id;
    Some(StateLookup {
        entity,
        session,
        read: cx.ask(query, Purpose::Transaction(entity, id)),
        found: None,
    })
}

/// The holder learns what its state takes.
fn conclude_state(asked: StateLookup, directory: &mut Directory) -> Result<(), String> {
    let unreadable = |_| "the state of a session cannot be read".to_owned();
    let found = asked
        .found
        .expect("a transaction is decided when all lookups are answered");
    let entries = found.and_then(Found::into_entries).map_err(unreadable)?;
    let queue = directory.get_mut(asked.entity);
    if let Some((sessions, _)) = queue.and_then(Queue::by_session) {
        let state = entries.first().map(|entry| &entry.value);
        sessions.learn_state(asked.session, cost(state));
    }
    Ok(())
}
