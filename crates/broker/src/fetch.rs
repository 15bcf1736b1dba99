//! Fetch: bodies that are on their way into memory.
//!
//! The answer may be from before one of the messages was lent and came back, perhaps with other
//! properties; nothing of it is taken then, and the body is asked for again.

use std::collections::BTreeSet;

use store::SequenceNumber;

/// At most one read of bodies.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    /// What has come back since it was asked for; nothing while none is under way.
    returned: Option<BTreeSet<SequenceNumber>>,
}

impl Fetch {
    pub(crate) fn is_under_way(&self) -> bool {
        self.returned.is_some()
    }

    pub(crate) fn begin(&mut self) {
        self.returned = Some(BTreeSet::new());
    }

    /// A message's lock has ended.
    pub(crate) fn note(&mut self, number: SequenceNumber) {
        if let Some(returned) = &mut self.returned {
            returned.insert(number);
        }
    }

    /// The answer is here. Returns what it does not know well.
    pub(crate) fn finish(&mut self) -> BTreeSet<SequenceNumber> {
        self.returned.take().unwrap_or_default()
    }
}
