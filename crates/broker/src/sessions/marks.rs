//! Marks: where earlier deletions have come to, so that none walks over what those deleted.
//!
//! Invariant: below a mark nothing can be deleted; whatever becomes so lowers it.

use store::SequenceNumber;

use crate::queue::session_key::SessionKey;

/// How many deletions' marks are remembered.
const MARKS: usize = 16;

/// Where deletions have come to: of one session each, or of all.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: Vec<(Option<SessionKey>, SequenceNumber)>,
}

impl Marks {
    pub(super) fn of(&self, session: Option<&SessionKey>) -> Option<SequenceNumber> {
        let found = self.marks.iter().find(|(of, _)| of.as_ref() == session);
        found.map(|(_, mark)| *mark)
    }

    pub(super) fn set(&mut self, session: Option<&SessionKey>, mark: SequenceNumber) {
        self.marks.retain(|(of, _)| of.as_ref() != session);
        if self.marks.len() == MARKS {
            self.marks.remove(0);
        }
        self.marks.push((session.cloned(), mark));
    }

    /// A message may be deleted that could not before.
    pub(super) fn lower(&mut self, number: SequenceNumber) {
        for (_, mark) in &mut self.marks {
            *mark = (*mark).min(number);
        }
    }
}
