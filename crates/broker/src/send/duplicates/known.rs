//! Known: what is known of the ids of some messages.
//!
//! What the store answers is about the moment of the question; what was accepted since is known in
//! memory. Of an id that stands in two periods the later acceptance counts.

use std::collections::BTreeMap;

use store::{Entry, EntryKey, StoreError};

use crate::api::incoming::Incoming;
use crate::message::id::{Acceptance, IdHash};

/// Bytes of an id's hash, and of the beginning of its period in front of it.
pub(super) const HASH: usize = 16;
pub(super) const START: usize = 8;

/// What the store knows of the ids that were looked up.
pub(super) type Answers = BTreeMap<IdHash, Acceptance>;

/// The ids of a send's messages, and what the store knows of those that were looked up.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(super) ids: Vec<Option<IdHash>>,
    pub(super) answers: Answers,
}

impl Known {
    /// The ids of messages.
    pub(crate) fn ids_of(messages: &[Incoming]) -> impl Iterator<Item = Option<IdHash>> {
        messages.iter().map(IdHash::of)
    }

    /// What a lookup found.
    pub(crate) fn of(entries: &[Entry]) -> Result<Self, StoreError> {
        let answers = answers_of(entries)?;
        let ids = Vec::new();
        Ok(Self { ids, answers })
    }

    /// The id of one of the messages.
    pub(crate) fn id(&self, message: usize) -> Option<IdHash> {
        self.ids.get(message).copied().flatten()
    }
}

/// Of each id what was accepted last: an earlier period may know it too.
pub(super) fn answers_of(entries: &[Entry]) -> Result<Answers, StoreError> {
    let mut answers = Answers::new();
    for entry in entries {
        let id = id_of(&entry.key).ok_or_else(damaged)?;
        let found = Acceptance::decode(&entry.value).ok_or_else(damaged)?;
        let answer = answers.entry(id).or_insert(found);
        if answer.at < found.at {
            *answer = found;
        }
    }
    Ok(answers)
}

pub(super) fn damaged() -> StoreError {
    StoreError::Corrupt {
        what: "the history of message ids".to_owned(),
        detail: "an entry that was not written here".to_owned(),
    }
}

/// The id that a key is about.
pub(super) fn id_of(key: &EntryKey) -> Option<IdHash> {
    let is_one = matches!(key.group.len(), HASH) || key.group.len() == START + HASH;
    let hash = key.group.last_chunk().filter(|_| is_one)?;
    Some(IdHash(*hash))
}
