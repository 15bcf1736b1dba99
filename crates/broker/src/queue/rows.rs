//! Rows: what an entity has in the store, and what is counted of it.
//!
//! Every row of an entity is put and removed here, so that the head's counters are exact and reads
//! that are under way hear of it. A queue with sessions finds rows by their session too: whatever
//! puts or removes such a row does the same with its entry.

use bytes::Bytes;
use store::{
    BodyPointer, EntityId, Head, Index, MessageRow, NamespaceId, Part, PartHead, SequenceNumber,
    Write,
};

use crate::api::settings::Priorities;
use crate::api::traffic::Traffic;
use crate::context::Context;
use crate::message::Message;
use crate::message::patch::Patch;
use crate::message::row;
use crate::queue::journal::Journal;
use crate::queue::origins::Origins;
use crate::queue::returns::Returns;
use crate::queue::session_key;
use crate::queue::session_key::SessionIds;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Rows {
    pub id: EntityId,
    pub namespace: NamespaceId,
    /// The topic whose size these rows count towards.
    topic: Option<EntityId>,
    /// How sessions are told apart, if messages belong to some.
    pub session_ids: Option<SessionIds>,
    pub head: Head,
    pub origins: Origins,
    pub journal: Journal,
    pub traffic: Traffic,
    pub returns: Returns,
    /// The levels of its messages, if it has any.
    priorities: Option<Priorities>,
    /// Whether the head is to be written at the end of the turn.
    is_touched: bool,
}

impl Rows {
    /// The rows of an entity as its head says.
    pub(crate) fn new(
        id: EntityId,
        namespace: NamespaceId,
        topic: Option<EntityId>,
        session_ids: Option<SessionIds>,
        priorities: Option<Priorities>,
        head: Head,
    ) -> Self {
        Self {
            id,
            namespace,
            topic,
            session_ids,
            head,
            origins: Origins::default(),
            journal: Journal::default(),
            traffic: Traffic::default(),
            returns: Returns::default(),
            priorities,
            is_touched: false,
        }
    }

    /// How many messages a part has.
    pub(crate) fn count(&self, part: Part) -> u64 {
        self.head.part(part).count
    }

    /// No message of a part has a smaller number, but for a few stragglers.
    pub(crate) fn resume(&self, part: Part) -> SequenceNumber {
        SequenceNumber(self.head.part(part).resume)
    }

    /// Above every number in use.
    pub(crate) fn end(&self) -> SequenceNumber {
        match self.priorities {
            Some(_) => SequenceNumber::END_OF_LEVELS,
            None => self.head.next_number,
        }
    }

    /// Whether messages of a higher priority come before others.
    pub(crate) fn has_levels(&self) -> bool {
        self.priorities.is_some()
    }

    /// The arrival of the next message, whatever its level.
    pub(crate) fn next_arrival(&self) -> SequenceNumber {
        self.head.next_number
    }

    /// Bytes of all messages, subqueues included.
    pub(crate) fn message_bytes(&self) -> u64 {
        let parts = self.head.parts.iter();
        parts.fold(0, |sum, part| part.bytes.saturating_add(sum))
    }

    /// The number of the next message that enters, which has this priority.
    pub(crate) fn take_number(&mut self, priority: Option<u8>) -> SequenceNumber {
        let arrival = self.take_arrival();
        match self.priorities {
            Some(priorities) => arrival.at_level(priorities.level(priority)),
            None => arrival,
        }
    }

    /// The number of something that is not available yet, and has no level.
    pub(crate) fn take_arrival(&mut self) -> SequenceNumber {
        let number = self.head.next_number;
        self.head.next_number = number.next();
        number
    }

    /// Numbers for messages that may come later or never; returns the first. No other message gets
    /// them.
    pub(crate) fn promise_numbers(&mut self, count: usize, cx: &mut Context<'_>) -> SequenceNumber {
        let first = self.head.next_number;
        self.head.next_number = SequenceNumber(first.0.saturating_add(count as u64));
        self.touch(cx);
        first
    }

    /// The enqueued time of what is enqueued now: it never decreases.
    pub(crate) fn take_enqueued_time(&mut self, cx: &Context<'_>) -> u64 {
        let enqueued = cx.now.wall.0.max(self.head.last_enqueued_ms);
        self.head.last_enqueued_ms = enqueued;
        enqueued
    }

    /// The pointer of a body that arrives here under this number.
    pub(crate) fn pointer(&self, number: SequenceNumber) -> BodyPointer {
        BodyPointer {
            home: self.id,
            number,
        }
    }

    /// The same of a scheduled message, which may have come with a copy.
    pub(crate) fn scheduled_pointer(&self, number: SequenceNumber) -> BodyPointer {
        self.origins.body_of(self.id, number)
    }

    /// What a row knows of its session; 0 where that is only a property.
    pub(crate) fn session_hash(&self, session: Option<&Bytes>) -> u64 {
        let session = self.session_ids.zip(session);
        session.map_or(0, |(ids, session)| ids.key(session).hash)
    }

    /// The head is to be written at the end of the turn.
    pub(crate) fn touch(&mut self, cx: &mut Context<'_>) {
        if !self.is_touched {
            self.is_touched = true;
            cx.shared.touched.push(self.id);
        }
    }

    /// Writes a row into a part.
    pub(crate) fn put(
        &mut self,
        part: Part,
        number: SequenceNumber,
        row: MessageRow,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(
            number.arrival() < self.head.next_number,
            "a number is taken before its row is written"
        );
        self.touch(cx);
        self.traffic.arrive(part);
        let head = self.head.part_mut(part);
        if head.count == 0 || number.0 < head.resume {
            head.resume = number.0;
        }
        head.count = head.count.saturating_add(1);
        head.bytes = head.bytes.saturating_add(u64::from(row.size));
        self.weigh(row.size, true, cx);
        if part == Part::Scheduled {
            // Not all of them have a number above those that are there.
            self.journal.note_scheduled(number);
        }
        cx.write(Write::PutMessage {
            entity: self.id,
            part,
            number,
            row,
        });
        // The entry of an active message tells its session's id, so it is written where that is
        // known.
        if self.session_ids.is_some() && matches!(part, Part::Deferred | Part::Scheduled) {
            self.put_session_entry(part, number, row.session_hash, Bytes::new(), cx);
        }
    }

    /// Writes the entry by which a message is found in its session.
    pub(crate) fn put_session_entry(
        &self,
        part: Part,
        number: SequenceNumber,
        hash: u64,
        value: Bytes,
        cx: &mut Context<'_>,
    ) {
        cx.write(Write::PutEntry {
            entity: self.id,
            index: Index::Session,
            key: session_key::of(part, hash, number),
            value,
        });
    }

    /// Removes a row from a part.
    pub(crate) fn remove(
        &mut self,
        part: Part,
        number: SequenceNumber,
        row: &MessageRow,
        cx: &mut Context<'_>,
    ) {
        self.touch(cx);
        self.traffic.depart(part);
        let head = self.head.part_mut(part);
        // Saturating, since a head comes from the disk and this must not bring the broker down.
        head.count = head.count.saturating_sub(1);
        head.bytes = head.bytes.saturating_sub(u64::from(row.size));
        self.weigh(row.size, false, cx);
        cx.write(Write::RemoveMessage {
            entity: self.id,
            part,
            number,
        });
        self.journal.note(number);
        if self.session_ids.is_some()
            && matches!(part, Part::Active | Part::Deferred | Part::Scheduled)
        {
            cx.write(Write::RemoveEntry {
                entity: self.id,
                index: Index::Session,
                key: session_key::of(part, row.session_hash, number),
            });
        }
    }

    /// The state of a session takes `after` bytes instead of `before`.
    pub(crate) fn weigh_state(&self, before: u64, after: u64, cx: &mut Context<'_>) {
        let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        let grown = signed(after) - signed(before);
        cx.shared.namespaces.weigh(self.namespace, grown);
        if let Some(topic) = self.topic {
            cx.shared.topics.weigh(topic, grown);
        }
    }

    /// A message of this size has come, or gone.
    fn weigh(&self, size: u32, came: bool, cx: &mut Context<'_>) {
        if self.id.is_volatile() {
            cx.shared.volatile.weigh(size, came);
            return;
        }
        let bytes = i64::from(size);
        let bytes = if came { bytes } else { -bytes };
        cx.shared.namespaces.weigh(self.namespace, bytes);
        if let Some(topic) = self.topic {
            cx.shared.topics.weigh(topic, bytes);
        }
    }

    /// Removes what belongs to a message whose row has gone, but its body. `patched` tells whether
    /// it may have a patch.
    pub(crate) fn remove_belongings(
        &mut self,
        message: &Message,
        patched: bool,
        cx: &mut Context<'_>,
    ) {
        let (entity, number) = (self.id, message.number);
        self.returns.forget(number);
        if message.delivery_count > 0 {
            cx.write(Write::RemoveDeliveryCount { entity, number });
        }
        if patched {
            cx.write(Write::RemovePatch { entity, number });
        }
    }

    /// Removes the body of a message whose row has gone, or its share of it, unless it belongs to
    /// a snapshot.
    pub(crate) fn remove_body(row: &MessageRow, cx: &mut Context<'_>) {
        let pointer = row.body;
        if cx.shared.lent.covers(pointer) {
            return;
        }
        cx.write(if row::is_shared(row) {
            Write::ReleaseBody { pointer }
        } else {
            Write::RemoveBody { pointer }
        });
    }

    pub(crate) fn put_delivery_count(
        &self,
        number: SequenceNumber,
        count: u32,
        cx: &mut Context<'_>,
    ) {
        if count > 0 {
            cx.write(Write::PutDeliveryCount {
                entity: self.id,
                number,
                count,
            });
        }
    }

    /// Writes a message's patch, if there is anything in it.
    pub(crate) fn put_patch(&self, number: SequenceNumber, patch: &Patch, cx: &mut Context<'_>) {
        if !patch.is_empty() {
            cx.write(Write::PutPatch {
                entity: self.id,
                number,
                patch: patch.encode(),
            });
        }
    }

    /// Writes the head, whose places of available messages the caller has set.
    pub(crate) fn write_head(&mut self, cx: &mut Context<'_>) {
        self.is_touched = false;
        let next = self.head.next_number;
        let aside = [
            Part::Deferred,
            Part::DeadLetterDeferred,
            Part::TransferDeferred,
            Part::Scheduled,
        ];
        for part in aside {
            raise_when_empty(self.head.part_mut(part), next);
        }
        cx.write(Write::PutHead {
            entity: self.id,
            head: self.head.clone(),
        });
    }
}

fn raise_when_empty(part: &mut PartHead, next: SequenceNumber) {
    if part.count == 0 {
        part.resume = next.0;
    }
}
