//! Ids: namespaces, entities, sequence numbers, parts of an entity, commits. None is a bare
//! integer.

use std::fmt;

/// A namespace; part of every entity's identity. There is one at first.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NamespaceId(pub u32);

/// An entity of any namespace. Never reused, so nothing of a deleted entity acts on its successor.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EntityId(pub u64);

impl EntityId {
    /// Set in the ids of entities that live in memory alone.
    const VOLATILE: u64 = 1 << 63;

    /// The id of an entity that no store keeps. Ids of stored entities count up from 1, so none is
    /// both.
    #[must_use]
    pub const fn volatile(number: u64) -> Self {
        Self(number | Self::VOLATILE)
    }

    /// Whether no store keeps the entity.
    #[must_use]
    pub const fn is_volatile(self) -> bool {
        self.0 & Self::VOLATILE != 0
    }
}

/// A message's place in its entity. Assigned on arrival, never reused.
///
/// In a queue with levels of priority a number is that of the level, the highest first, and behind
/// it the message's [`arrival`](Self::arrival): so the order of numbers is that of delivery there
/// too. All numbers are below 2^53, which a JSON number can hold.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SequenceNumber(pub u64);

impl SequenceNumber {
    /// The number of an entity's first message.
    pub const FIRST: Self = Self(1);
    /// Above every number in use.
    pub const MAX: Self = Self(u64::MAX);

    /// How many bits of a number count the messages of its entity: a million of them a second take
    /// a year.
    const ARRIVAL_BITS: u32 = 45;
    /// Above every number of a queue with levels.
    pub const END_OF_LEVELS: Self = Self(1 << (Self::ARRIVAL_BITS + u8::BITS));

    /// Which of its entity's messages it is, in the order of their arrival.
    #[must_use]
    pub const fn arrival(self) -> Self {
        Self(self.0 & ((1 << Self::ARRIVAL_BITS) - 1))
    }

    /// The number at a level of the message that arrives as this one.
    #[must_use]
    pub const fn at_level(self, level: u8) -> Self {
        let rank = (u8::MAX - level) as u64;
        Self(rank << Self::ARRIVAL_BITS | self.arrival().0)
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A part of an entity. A message is in exactly one part.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Part {
    /// Available or locked.
    Active = 0,
    /// In the dead-letter subqueue.
    DeadLetter = 1,
    /// In the transfer dead-letter subqueue.
    Transfer = 2,
    /// Deferred out of `Active`.
    Deferred = 3,
    /// Waiting for its scheduled time.
    Scheduled = 4,
    /// Deferred out of `DeadLetter`.
    DeadLetterDeferred = 5,
    /// Deferred out of `Transfer`.
    TransferDeferred = 6,
}

impl Part {
    /// Every part, by its number.
    pub const ALL: [Self; 7] = [
        Self::Active,
        Self::DeadLetter,
        Self::Transfer,
        Self::Deferred,
        Self::Scheduled,
        Self::DeadLetterDeferred,
        Self::TransferDeferred,
    ];
}

/// A submitted write set. Ids rise by one per [`submit`](crate::Store::submit), from 1; 0 is
/// "nothing yet".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CommitId(pub u64);

impl CommitId {
    /// The id of the next write set.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_higher_levels_come_first_and_a_json_number_holds_them() {
        let arrivals = [SequenceNumber::FIRST, SequenceNumber((1 << 45) - 1)];
        let numbers = [u8::MAX, 31, 4, 0].map(|level| arrivals.map(|it| it.at_level(level)));
        let numbers = numbers.as_flattened();
        assert!(numbers.is_sorted());
        for (number, arrival) in numbers.iter().zip(arrivals.iter().cycle()) {
            assert_eq!(number.arrival(), *arrival);
            assert_eq!(number.arrival().arrival(), *arrival);
            assert!(*number < SequenceNumber::END_OF_LEVELS && number.0 < 1 << 53);
        }
    }
}
