//! Look: what the ledger asks of the books. Nothing here walks over more than it returns.

use bytes::Bytes;
use store::image::{Image, MessageKey, NumberKey};
use store::{EntityId, MessageRow, Part, SequenceNumber};

use super::{Books, Place};
use crate::message::MessageId;

impl Books {
    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many of them are not in what is left of a subscription.
    #[must_use]
    pub fn living(&self) -> usize {
        let live = |key: &&MessageKey| self.is_live(key.0);
        self.rows.keys().filter(live).count()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Where a message stands now.
    #[must_use]
    pub fn place(&self, id: MessageId) -> Option<Place> {
        self.places.get(&id).copied()
    }

    /// When a message expires, if it is there.
    #[must_use]
    pub fn expires_ms(&self, id: MessageId) -> Option<u64> {
        let (_, row) = self.rows.get(&self.place(id)?.key())?;
        Some(row.expires_ms)
    }

    /// The number that an entity gives out next.
    #[must_use]
    pub fn next_number(&self, entity: EntityId) -> SequenceNumber {
        let tally = self.tallies.get(&entity);
        tally.map_or(SequenceNumber::FIRST, |tally| tally.next)
    }

    /// Available messages from a number on.
    pub fn numbered(
        &self,
        entity: EntityId,
        from: SequenceNumber,
    ) -> impl Iterator<Item = (SequenceNumber, MessageId)> {
        let part = Part::Active;
        let all = (entity, part, from)..=(entity, part, SequenceNumber::MAX);
        self.rows
            .range(all)
            .map(|((_, _, number), (id, _))| (*number, *id))
    }

    /// Which message is deferred under a number.
    #[must_use]
    pub fn deferred(&self, entity: EntityId, number: SequenceNumber) -> Option<MessageId> {
        let part = Part::Deferred;
        Some(self.rows.get(&(entity, part, number))?.0)
    }

    /// Failed deliveries of what stands there.
    #[must_use]
    pub fn count(&self, place: Place) -> u32 {
        let key = (place.entity, place.number);
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// The changed properties of what stands there, encoded.
    #[must_use]
    pub fn patch(&self, place: Place) -> Option<&Bytes> {
        self.patches.get(&(place.entity, place.number))
    }

    /// The body that a row points to.
    #[must_use]
    pub fn body(&self, row: &MessageRow) -> Option<&Bytes> {
        let body = self.bodies.get(&(row.body.home, row.body.number))?;
        Some(&body.bytes)
    }

    /// Messages of one part in the order of their numbers.
    pub fn rows(
        &self,
        entity: EntityId,
        part: Part,
    ) -> impl Iterator<Item = (MessageId, &MessageRow)> {
        let all = (entity, part, SequenceNumber(0))..=(entity, part, SequenceNumber::MAX);
        self.rows.range(all).map(|(_, (id, row))| (*id, row))
    }

    /// The least number of one part.
    #[must_use]
    pub fn first_number(&self, entity: EntityId, part: Part) -> Option<SequenceNumber> {
        let all = (entity, part, SequenceNumber(0))..=(entity, part, SequenceNumber::MAX);
        Some(self.rows.range(all).next()?.0.2)
    }

    /// Messages whose deadline is past, the longest overdue first.
    pub fn overdue(&self, wall_ms: u64) -> impl Iterator<Item = (MessageId, EntityId)> {
        let past = self.deadlines.iter();
        let past = past.take_while(move |(due, _)| *due <= wall_ms);
        past.filter_map(|(_, key)| Some((self.rows.get(key)?.0, key.0)))
    }

    /// The greatest enqueued time that an entity gave out.
    #[must_use]
    pub fn last_enqueued_ms(&self, entity: EntityId) -> u64 {
        self.heads
            .get(&entity)
            .map_or(0, |head| head.last_enqueued_ms)
    }

    /// Messages and bytes of one part.
    #[must_use]
    pub fn tally(&self, entity: EntityId, part: Part) -> (u64, u64) {
        self.tallies
            .get(&entity)
            .map_or((0, 0), |tally| tally.parts[part as usize])
    }

    /// What the states of an entity's sessions take.
    #[must_use]
    pub fn state_bytes(&self, entity: EntityId) -> u64 {
        self.tallies
            .get(&entity)
            .map_or(0, |tally| tally.state_bytes)
    }

    /// Which message stands there.
    #[must_use]
    pub fn message(&self, place: Place) -> Option<MessageId> {
        Some(self.rows.get(&place.key())?.0)
    }

    /// Whether the store's entries are those that were written.
    #[must_use]
    pub fn has_entries(&self, image: &Image) -> bool {
        self.entries == image.entries
    }

    /// Which part a number stands in.
    pub(super) fn find(&self, (entity, number): NumberKey) -> Option<(Part, MessageId)> {
        Part::ALL.into_iter().find_map(|part| {
            let (id, _) = self.rows.get(&(entity, part, number))?;
            Some((part, *id))
        })
    }
}
