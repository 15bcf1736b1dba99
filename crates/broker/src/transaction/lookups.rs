//! Lookups: what has to be read before a transaction can be decided.
//!
//! Ids of messages for entities that detect duplicates, unless memory knows them, the rows of
//! scheduled messages that are to be cancelled, and states of sessions that are to be set. From the
//! question to the decision the entities keep in mind what changes, so that both together are about
//! the present.

use std::collections::BTreeMap;

use store::{EntityId, Found, MessageRow, SequenceNumber, StoreError};

use super::{Transaction, states};
use crate::api::command::Operation;
use crate::api::id::{ReadId, TransactionId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::stored::ReadRows;
use crate::send::cancel;
use crate::send::duplicates::{Inquiry, Known};

/// Scheduled messages to be cancelled: where the operation stands, and their rows.
#[derive(Debug)]
struct Scheduled {
    place: usize,
    entity: EntityId,
    numbers: Vec<SequenceNumber>,
    read: ReadId,
    rows: Option<ReadRows>,
}

/// All lookups of one transaction.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    inquiries: BTreeMap<EntityId, Inquiry>,
    scheduled: Vec<Scheduled>,
    states: Vec<states::Asked>,
}

/// The rows of scheduled messages, by the place of the operation that cancels them.
pub(super) type Cancelled = BTreeMap<usize, BTreeMap<SequenceNumber, MessageRow>>;

impl Lookups {
    /// Asks for what a transaction needs.
    pub(super) fn ask(
        directory: &mut Directory,
        id: TransactionId,
        transaction: &Transaction,
        cx: &mut Context<'_>,
    ) -> Self {
        let mut lookups = Self::default();
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
                    let query = queue.scheduled(numbers.clone());
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
                    let asked = states::Asked::ask(queue, session, id, cx);
                    lookups.states.extend(asked);
                }
                Operation::Send { .. } | Operation::Settle { .. } => {}
            }
        }
        for (entity, ids) in ids {
            let queue = directory.get_mut(entity);
            let queue = queue.expect("it was there when its ids were taken down");
            let inquiry = queue.inquire(id, &ids, cx);
            lookups.inquiries.insert(entity, inquiry);
        }
        lookups
    }

    /// One of them was answered.
    pub(super) fn answered(&mut self, read: ReadId, found: Result<Found, StoreError>) {
        let of_rows = self.scheduled.iter_mut().find(|asked| asked.read == read);
        if let Some(asked) = of_rows {
            asked.rows = Some(found.and_then(Found::into_messages));
            return;
        }
        if let Some(asked) = self.states.iter_mut().find(|asked| asked.read == read) {
            asked.found = Some(found);
            return;
        }
        let asked = self
            .inquiries
            .values_mut()
            .find(|inquiry| inquiry.waits_for(read));
        let inquiry = asked.expect("an answer is to one of the lookups");
        inquiry.answered(found.and_then(Found::into_entries));
    }

    pub(super) fn are_answered(&self) -> bool {
        let inquired = self.inquiries.values().all(Inquiry::is_answered);
        let scheduled = self.scheduled.iter().all(|asked| asked.rows.is_some());
        inquired && scheduled && self.states.iter().all(|asked| asked.found.is_some())
    }

    /// The decision is being made: what was found, if all of it is still so.
    pub(super) fn conclude(&mut self, directory: &mut Directory) -> Result<Cancelled, String> {
        let mut result = Ok(Cancelled::new());
        for asked in self.scheduled.drain(..) {
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
        for asked in self.states.drain(..) {
            let learnt = asked.conclude(directory);
            result = result.and_then(|cancelled| learnt.map(|()| cancelled));
        }
        if self.inquiries.values().any(Inquiry::has_failed) {
            return Err("the history of message ids can not be read".to_owned());
        }
        result
    }

    /// What is known of the messages' ids.
    pub(super) fn known(
        &self,
        entity: EntityId,
        messages: &[crate::api::command::Incoming],
    ) -> Known {
        let inquiry = self.inquiries.get(&entity);
        inquiry.map_or_else(Known::default, |inquiry| inquiry.about(messages))
    }

    /// The transaction is over.
    pub(super) fn end(&self, directory: &mut Directory, id: TransactionId, cx: &Context<'_>) {
        for entity in self.inquiries.keys() {
            if let Some(queue) = directory.get_mut(*entity) {
                queue.end_inquiry(id, cx);
            }
        }
    }
}
