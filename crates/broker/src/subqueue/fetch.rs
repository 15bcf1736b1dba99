//! Fetch: bodies that are on their way into memory.
//!
//! The answer may be from before one of the messages was lent and came back, perhaps with other
//! properties; nothing of it is taken then, and the body is asked for again.

use std::collections::BTreeSet;

use store::SequenceNumber;

use crate::api::id::ReadId;

/// Reads of bodies, a few of them.
#[derive(Debug, Default)]
pub(crate) struct Fetch(Vec<UnderWay>);

#[derive(Debug)]
struct UnderWay {
    read: ReadId,
    /// Ascending.
    asked: Vec<SequenceNumber>,
    /// What of it has come back since it was asked for.
    returned: BTreeSet<SequenceNumber>,
}

impl Fetch {
    /// How many reads are under way.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether the message's body is on its way, and will be taken.
    pub(crate) fn is_asked(&self, number: SequenceNumber) -> bool {
        let mut asked = self.0.iter().filter(|under_way| under_way.has(number));
        asked.any(|under_way| !under_way.returned.contains(&number))
    }

    /// The bodies of `asked`, which ascend, are asked for.
    pub(crate) fn begin(&mut self, read: ReadId, asked: Vec<SequenceNumber>) {
        self.0.push(UnderWay {
            read,
            asked,
            returned: BTreeSet::new(),
        });
    }

    /// A message's lock has ended.
    pub(crate) fn note(&mut self, number: SequenceNumber) {
        for under_way in self.0.iter_mut().filter(|it| it.has(number)) {
            under_way.returned.insert(number);
        }
    }

    /// The answer is here. Returns what it does not know well.
    pub(crate) fn finish(&mut self, read: ReadId) -> BTreeSet<SequenceNumber> {
        let at = self.0.iter().position(|under_way| under_way.read == read);
        let at = at.expect("a read is under way until it is answered");
        self.0.swap_remove(at).returned
    }
}

impl UnderWay {
    fn has(&self, number: SequenceNumber) -> bool {
        self.asked.binary_search(&number).is_ok()
    }
}
