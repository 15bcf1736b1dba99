//! Inquiry: what is known of the ids of a transaction's messages, before it is decided.
//!
//! Between the inquiry and the decision whatever is accepted stays among the latest ids, so that
//! both together are about the present.

use std::collections::BTreeSet;

use store::{Entry, EntryKey, Index, Query, StoreError};

use super::{Answers, IdHash, Known, answers_of};
use crate::api::command::Incoming;
use crate::api::id::{ReadId, TransactionId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::queue::Queue;

/// What is known of some ids.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// What memory knew, then also what the store knows.
    answers: Answers,
    waiting: Option<ReadId>,
    failed: bool,
}

impl Inquiry {
    pub(crate) fn waits_for(&self, read: ReadId) -> bool {
        self.waiting == Some(read)
    }

    /// The store has answered, or could not.
    pub(crate) fn answered(&mut self, found: Result<Vec<Entry>, StoreError>) {
        self.waiting = None;
        match found.and_then(|entries| answers_of(&entries)) {
            Ok(answers) => self.answers.extend(answers),
            Err(_) => self.failed = true,
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.waiting.is_none()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// What is known of these messages.
    pub(crate) fn about(&self, messages: &[Incoming]) -> Known {
        let ids: Vec<_> = messages.iter().map(IdHash::of).collect();
        let asked: BTreeSet<_> = ids.iter().flatten().collect();
        let answers = asked.into_iter().filter_map(|id| {
            let answer = self.answers.get(id)?;
            Some((*id, *answer))
        });
        Known {
            answers: answers.collect(),
            ids,
        }
    }
}

impl Queue {
    /// Asks for what is to be known of ids. Until [`end_inquiry`](Self::end_inquiry) nothing that
    /// is accepted is forgotten.
    pub(crate) fn inquire(
        &mut self,
        transaction: TransactionId,
        ids: &[Option<IdHash>],
        cx: &mut Context<'_>,
    ) -> Inquiry {
        self.start_load(cx);
        let answers = self.duplicates.known(ids);
        let keys: BTreeSet<EntryKey> = self
            .duplicates
            .undecided(ids, &self.rows.head.eras)
            .into_iter()
            .collect();
        let waiting = (!keys.is_empty()).then(|| {
            let query = Query::EntryPoints {
                entity: self.id,
                index: Index::DuplicateId,
                keys: keys.into_iter().collect(),
            };
            cx.ask(query, Purpose::Transaction(self.id, transaction))
        });
        let seen = self.duplicates.recent.accepted();
        self.duplicates.inquiries.insert(transaction, seen);
        Inquiry {
            answers,
            waiting,
            failed: false,
        }
    }

    /// The transaction is over.
    pub(crate) fn end_inquiry(&mut self, transaction: TransactionId, cx: &Context<'_>) {
        self.duplicates.inquiries.remove(&transaction);
        self.trim_recent(cx);
    }
}
