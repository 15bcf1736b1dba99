//! Inquiry: what is known of the ids of a transaction's messages, before it is decided.
//!
//! Between the inquiry and the decision whatever is accepted stays among the latest ids, so that
//! both together are about the present.

use std::collections::BTreeSet;

use store::{Entry, StoreError};

use super::known::{Answers, Known, answers_of};
use crate::api::id::ReadId;
use crate::api::incoming::Incoming;
use crate::message::id::IdHash;

/// What is known of some ids.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// What memory knew, then also what the store knows.
    pub(super) answers: Answers,
    pub(super) waiting: Option<ReadId>,
    pub(super) failed: bool,
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
