//! Handed out: which of the messages that clients were given a rule is for that compares them.
//!
//! A settlement names a message by its lock, and what the message says is not in memory any more.
//! So messages are compared when they are handed out, and a rule keeps where those stand that it is
//! for. A number is that of one message for good, so what is gone needs no end here.

use std::collections::{BTreeSet, VecDeque};

use store::{EntityId, SequenceNumber};

/// The most messages that a rule keeps: the last ones.
const MOST: usize = 10_000;

/// Where the messages of one rule stand.
#[derive(Debug, Default)]
pub(super) struct HandedOut {
    places: BTreeSet<(EntityId, SequenceNumber)>,
    /// The same, in the order in which they were handed out first.
    order: VecDeque<(EntityId, SequenceNumber)>,
}

impl HandedOut {
    pub fn has(&self, entity: EntityId, number: SequenceNumber) -> bool {
        self.places.contains(&(entity, number))
    }

    /// A message is handed out that is one of the rule's, or is not, since it has changed.
    pub fn note(&mut self, entity: EntityId, number: SequenceNumber, is_one: bool) {
        let place = (entity, number);
        if !is_one {
            if self.places.remove(&place) {
                self.order.retain(|known| *known != place);
            }
        } else if self.places.insert(place) {
            self.order.push_back(place);
            if self.order.len() > MOST
                && let Some(first) = self.order.pop_front()
            {
                self.places.remove(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY: EntityId = EntityId(1);

    #[test]
    fn the_last_ones_are_kept() {
        let mut handed_out = HandedOut::default();
        let most = u64::try_from(MOST).unwrap();
        for number in 0..=most {
            handed_out.note(ENTITY, SequenceNumber(number), true);
        }
        let mut has = |number| handed_out.has(ENTITY, SequenceNumber(number));
        assert_eq!([0, 1, most].map(&mut has), [false, true, true]);
    }

    #[test]
    fn one_that_is_none_any_more_is_forgotten() {
        let mut handed_out = HandedOut::default();
        for is_one in [true, true, false] {
            handed_out.note(ENTITY, SequenceNumber(1), is_one);
            assert_eq!(handed_out.has(ENTITY, SequenceNumber(1)), is_one);
        }
        assert!(handed_out.order.is_empty());
    }
}
