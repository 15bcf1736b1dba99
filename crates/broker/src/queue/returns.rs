//! Returns: how often messages of a queue were handed out and came back, whatever the reason.
//!
//! Receivers of RabbitMQ's dialect are told (docs/spec/rabbitmq.md#10.2). The counts are in memory
//! alone, for [`MOST`] messages of a queue at most: a release writes nothing, and so a restart
//! begins anew, as does a message that newer ones have crowded out.

use std::collections::BTreeMap;

use store::SequenceNumber;

/// Most messages of a queue whose returns are counted. Beyond it the oldest is forgotten.
const MOST: usize = 65_536;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Returns(BTreeMap<SequenceNumber, u32>);

impl Returns {
    /// A message that was handed out has come back.
    pub(crate) fn note(&mut self, number: SequenceNumber) {
        let count = self.0.entry(number).or_default();
        *count = count.saturating_add(1);
        if self.0.len() > MOST {
            self.0.pop_first();
        }
    }

    /// A message is gone.
    pub(crate) fn forget(&mut self, number: SequenceNumber) {
        self.0.remove(&number);
    }

    /// How often a message has come back.
    pub(crate) fn of(&self, number: SequenceNumber) -> u32 {
        self.0.get(&number).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_are_counted_until_their_message_is_gone() {
        let mut returns = Returns::default();
        let (one, two) = (SequenceNumber(1), SequenceNumber(2));
        returns.note(one);
        returns.note(one);
        returns.note(two);
        assert_eq!((returns.of(one), returns.of(two)), (2, 1));
        returns.forget(one);
        assert_eq!((returns.of(one), returns.of(two)), (0, 1));
    }

    #[test]
    fn the_number_of_messages_is_bounded() {
        let mut returns = Returns::default();
        let last = MOST as u64 + 5;
        (1..=last).for_each(|number| returns.note(SequenceNumber(number)));
        assert_eq!(returns.0.len(), MOST);
        assert_eq!(returns.of(SequenceNumber(5)), 0);
        assert_eq!(returns.of(SequenceNumber(last)), 1);
    }
}
