//! Lookups: what has to be read before a transaction can be decided.
//!
//! Ids of messages for entities that detect duplicates, unless memory knows them, the rows of
//! scheduled messages that are to be cancelled, and states of sessions that are to be set.

use std::collections::BTreeMap;

use store::{EntityId, Found, SequenceNumber, StoreError};

use crate::api::id::ReadId;
use crate::api::incoming::Incoming;
use crate::context::clients::HoldId;
use crate::message::stored::ReadRows;
use crate::send::duplicates::inquiry::Inquiry;
use crate::send::duplicates::known::Known;

/// Scheduled messages to be cancelled: where the operation stands, and their rows.
#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) place: usize,
    pub(super) entity: EntityId,
    pub(super) numbers: Vec<SequenceNumber>,
    pub(super) read: ReadId,
    pub(super) rows: Option<ReadRows>,
}

/// A state that is being read for what it takes.
#[derive(Debug)]
pub(super) struct StateLookup {
    pub(super) entity: EntityId,
    pub(super) session: HoldId,
    pub(super) read: ReadId,
    pub(super) found: Option<Result<Found, StoreError>>,
}

/// All lookups of one transaction.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    pub(super) inquiries: BTreeMap<EntityId, Inquiry>,
    pub(super) scheduled: Vec<Scheduled>,
    pub(super) states: Vec<StateLookup>,
}

impl Lookups {
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

    /// What is known of the messages' ids.
    pub(super) fn known(&self, entity: EntityId, messages: &[Incoming]) -> Known {
        let inquiry = self.inquiries.get(&entity);
        inquiry.map_or_else(Known::default, |inquiry| inquiry.about(messages))
    }
}
