//! Entries: small ordered records of an entity besides its messages. Some are indexes of its
//! messages (due time, session, message id); others belong to no message (a session's state).
//!
//! The store orders and bounds them and does not look inside; the meaning of each index is the
//! broker's. Entries of one index are ordered by group, shorter groups first, then by number. An
//! entry that is put again is replaced.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::id::SequenceNumber;

/// The index of an entry.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Index {
    /// Scheduled messages by the time at which they are due.
    Schedule = 0,
    /// Messages that are available or locked, by session.
    Session = 1,
    /// The state that a client stores with a session.
    SessionState = 2,
    /// Message ids that would be duplicates, by the period in which they were accepted.
    DuplicateId = 3,
    /// The same by time of acceptance, the format before periods.
    DuplicateTime = 4,
    /// A subscription's rules, by name, and a router's bindings, by number; all of them are read at
    /// a start.
    Rule = 5,
    /// Sessions whose messages expire as a whole, while it takes more than one set.
    SessionExpiry = 6,
}

impl Index {
    /// Every index, by its number.
    pub const ALL: [Self; 7] = [
        Self::Schedule,
        Self::Session,
        Self::SessionState,
        Self::DuplicateId,
        Self::DuplicateTime,
        Self::Rule,
        Self::SessionExpiry,
    ];
}

/// An entry's place in its index.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct EntryKey {
    /// At most [`EntryKey::MAX_GROUP`] bytes.
    pub group: Bytes,
    /// Tells the entries of a group apart; 0 where there is one only.
    pub number: SequenceNumber,
}

impl EntryKey {
    /// Longer groups cannot be stored.
    pub const MAX_GROUP: usize = 1_024;

    /// The key of a group's entry.
    #[must_use]
    pub fn new(group: impl Into<Bytes>, number: SequenceNumber) -> Self {
        let group = group.into();
        Self { group, number }
    }

    /// The key of an entry whose group is a time or another number.
    #[must_use]
    pub fn by_u64(group: u64, number: SequenceNumber) -> Self {
        Self::new(Bytes::copy_from_slice(&group.to_be_bytes()), number)
    }

    /// The group of such an entry; `None` for any other.
    #[must_use]
    pub fn group_u64(&self) -> Option<u64> {
        Some(u64::from_be_bytes(self.group.as_ref().try_into().ok()?))
    }
}

impl Ord for EntryKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.group.len().cmp(&other.group.len());
        lengths
            .then_with(|| self.group.cmp(&other.group))
            .then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for EntryKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An entry as the store has it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Entry {
    pub key: EntryKey,
    pub value: Bytes,
}

impl Entry {
    /// Its size against a query's bound, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.key.group.len() + self.value.len() + size_of::<u64>()
    }
}
