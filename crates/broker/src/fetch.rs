//! Fetch: bodies that are on their way into memory.
//!
//! The answer may be from before one of the messages was lent and came back, perhaps with other
//! properties; nothing of it is taken then, and the body is asked for again.

use std::collections::BTreeSet;

use store::SequenceNumber;

/// At most one read of bodies.
#[derive(Debug, Default)]
pub(crate) struct Fetch(Option<UnderWay>);

#[derive(Debug)]
struct UnderWay {
    /// Ascending.
    asked: Vec<SequenceNumber>,
    /// What of it has come back since it was asked for.
    returned: BTreeSet<SequenceNumber>,
}

impl Fetch {
    pub(crate) fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// The bodies of `asked`, which ascend, are asked for.
    pub(crate) fn begin(&mut self, asked: Vec<SequenceNumber>) {
        let returned = BTreeSet::new();
        self.0 = Some(UnderWay { asked, returned });
    }

    /// A message's lock has ended.
    pub(crate) fn note(&mut self, number: SequenceNumber) {
        if let Some(under_way) = &mut self.0
            && under_way.asked.binary_search(&number).is_ok()
        {
            under_way.returned.insert(number);
        }
    }

    /// The answer is here. Returns what it does not know well.
    pub(crate) fn finish(&mut self) -> BTreeSet<SequenceNumber> {
        let under_way = self.0.take();
        under_way.map_or_else(BTreeSet::new, |under_way| under_way.returned)
    }
}
