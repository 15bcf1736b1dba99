//! Ceilings: how long messages may live that were there when their queue's time to live was
//! shortened.
//!
//! Rows stay as they were written; a ceiling lowers the deadline that is read from them. It is kept
//! with the entity's definition, so that a message is not spared by a restart, nor by a longer time
//! that comes later. A ceiling goes when no message is left, nor one that waits to come back.
//! (docs/spec/rabbitmq.md#12.2)

use serde::{Deserialize, Serialize};
use store::{MessageRow, SequenceNumber};

/// Most ceilings of a queue. Beyond it the oldest one gives way to the next, which is higher.
const MOST: usize = 64;

/// One ceiling.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Ceiling {
    /// It is for messages that arrived before this one.
    below: u64,
    ttl_ms: u64,
}

/// Numbers and times rise from one to the next.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Ceilings(Vec<Ceiling>);

impl Ceilings {
    /// Messages that arrived before this one live no longer than that.
    pub(crate) fn lower(&mut self, below: SequenceNumber, ttl_ms: u64) {
        self.0.retain(|ceiling| ceiling.ttl_ms < ttl_ms);
        let below = below.0;
        self.0.push(Ceiling { below, ttl_ms });
        if self.0.len() > MOST {
            self.0.remove(0);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// When the message of a row expires.
    pub(crate) fn expires_ms(&self, number: SequenceNumber, row: &MessageRow) -> u64 {
        let ceiling = self
            .0
            .iter()
            .find(|ceiling| number.arrival().0 < ceiling.below);
        ceiling.map_or(row.expires_ms, |ceiling| {
            let expires_ms = row.enqueued_ms.saturating_add(ceiling.ttl_ms);
            expires_ms.min(row.expires_ms)
        })
    }
}

#[cfg(test)]
mod tests {
    use store::{BodyPointer, EntityId};

    use super::*;

    fn expires(ceilings: &Ceilings, number: u64, expires_ms: u64) -> u64 {
        let number = SequenceNumber(number);
        let row = MessageRow {
            enqueued_ms: 1_000,
            ttl_ms: u64::MAX,
            expires_ms,
            size: 1,
            flags: 0,
            session_hash: 0,
            enqueued_number: 0,
            body: BodyPointer {
                home: EntityId(1),
                number,
            },
        };
        ceilings.expires_ms(number, &row)
    }

    #[test]
    fn a_message_has_the_lowest_ceiling_that_came_after_it() {
        let mut ceilings = Ceilings::default();
        ceilings.lower(SequenceNumber(10), 50);
        ceilings.lower(SequenceNumber(20), 90);
        assert_eq!(expires(&ceilings, 9, u64::MAX), 1_050);
        assert_eq!(expires(&ceilings, 10, u64::MAX), 1_090);
        assert_eq!(expires(&ceilings, 20, u64::MAX), u64::MAX);
        assert_eq!(expires(&ceilings, 9, 1_020), 1_020);
        ceilings.lower(SequenceNumber(30), 40);
        assert_eq!(ceilings.0.len(), 1);
        assert_eq!(expires(&ceilings, 9, u64::MAX), 1_040);
    }

    #[test]
    fn their_number_is_bounded() {
        let mut ceilings = Ceilings::default();
        for step in 1..1_000 {
            ceilings.lower(SequenceNumber(step), step);
        }
        assert_eq!(ceilings.0.len(), MOST);
    }
}
