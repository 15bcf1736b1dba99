//! Tombstone: what is left of a deleted subscription or queue until the bodies it shared are
//! released.
//!
//! The rows of a subscription point to bodies that other subscriptions need, and so may those of a
//! queue that a router sends to, so it cannot go in one write: clients no longer find it, and its
//! rows are removed in bounded pieces. Its definition marks it as a tombstone, so a restart
//! continues the removal. When the topic of a subscription is deleted, all bodies are, and with
//! them every tombstone of the topic; but a topic or queue whose bodies a snapshot has stays as a
//! tombstone until that is gone. What a removed snapshot has of an entity goes as a tombstone too.
//!
//! Rows that cannot be read are passed over: they go with the tombstone, and the bodies that they
//! share stay until all of their home goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use store::{
    EntityId, EntityRow, EntryKey, Head, Index, NamespaceId, Part, Query, SequenceNumber,
    StoreError, StoredMessage, Write,
};

use crate::context::alarms::Alarm;
use crate::context::read::Purpose;
use crate::context::{Context, RETRY_MS};
use crate::message::row;
use crate::message::stored::ReadRows;

/// Most rows that are read at once.
const PIECE: usize = 1_024;

/// Which bodies go with the rows that point to them.
#[derive(Clone, Debug)]
pub(crate) enum Bodies {
    /// All. It was made when no snapshot had copies of its rows.
    All,
    /// Those that belong to no snapshot.
    NotLent,
    /// Those that belong to the snapshot that it is part of: of each home, from a number on.
    Owned(Arc<BTreeMap<EntityId, SequenceNumber>>),
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Tombstone {
    pub id: EntityId,
    pub namespace: NamespaceId,
    /// Of a subscription.
    pub topic: Option<EntityId>,
    head: Head,
    bodies: Bodies,
    /// Whether nothing is left but bodies that belong to a snapshot.
    pub is_home_only: bool,
    /// The part that is being emptied.
    part: usize,
    /// How many rows are read at once: fewer than a piece before those that cannot be read.
    limit: usize,
    is_reading: bool,
    alarm: Alarm,
}

impl Tombstone {
    /// Of what a head says; nothing is done before the next tick.
    pub(crate) fn new(
        id: EntityId,
        namespace: NamespaceId,
        topic: Option<EntityId>,
        head: Head,
        bodies: Bodies,
    ) -> Self {
        Self {
            id,
            namespace,
            topic,
            head,
            bodies,
            is_home_only: false,
            part: 0,
            limit: PIECE,
            is_reading: false,
            alarm: Alarm::default(),
        }
    }

    /// How it is written: a definition that makes it a tombstone again after a restart.
    pub(crate) fn mark(&self, row: EntityRow, cx: &mut Context<'_>) {
        cx.write(Write::PutEntity(row));
        self.write_head(cx);
    }

    fn write_head(&self, cx: &mut Context<'_>) {
        cx.write(Write::PutHead {
            entity: self.id,
            head: self.head.clone(),
        });
    }

    /// It is woken instead of the subscription.
    pub(crate) fn take_alarm(&mut self, alarm: Alarm) {
        self.alarm = alarm;
    }

    /// Wants a tick at once, or after a while if something went wrong.
    pub(crate) fn set_alarm(&mut self, after_ms: u64, cx: &mut Context<'_>) {
        let mono = cx.broker_now.mono.after(after_ms);
        let alarm = Alarm {
            mono: (!self.is_reading).then_some(mono),
            wall: None,
        };
        cx.shared.alarms.set(self.id, self.alarm, alarm);
        self.alarm = alarm;
    }

    /// Its rows are gone; bodies stay that others need.
    pub(crate) fn rest(&mut self, cx: &mut Context<'_>) {
        let first = EntryKey::new(Bytes::new(), SequenceNumber(0));
        let last = vec![u8::MAX; EntryKey::MAX_GROUP];
        let last = EntryKey::new(last, SequenceNumber::MAX);
        for index in Index::ALL {
            cx.write(Write::RemoveEntries {
                entity: self.id,
                index,
                keys: Box::new(first.clone()..last.clone()),
            });
        }
        cx.shared.alarms.set(self.id, self.alarm, Alarm::default());
        self.alarm = Alarm::default();
        self.is_home_only = true;
        self.returns_bodies(cx);
    }

    /// Whether it has rows whose bodies belong to a snapshot, as long as that is there.
    pub(crate) fn borrows(&self) -> bool {
        matches!(self.bodies, Bodies::NotLent) && !self.is_home_only
    }

    fn returns_bodies(&self, cx: &mut Context<'_>) {
        cx.shared.lent.is_to_check |= matches!(self.bodies, Bodies::NotLent);
    }

    /// It needs no alarm any more.
    pub(crate) fn end(mut self, cx: &mut Context<'_>) {
        cx.shared.alarms.set(self.id, self.alarm, Alarm::default());
        self.alarm = Alarm::default();
        self.returns_bodies(cx);
        cx.write(Write::RemoveEntity(self.id));
    }

    /// Reads the next rows. Returns whether there are none left.
    pub(crate) fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_reading {
            return false;
        }
        let Some(query) = self.next_query() else {
            return true;
        };
        cx.ask(query, Purpose::Tombstone(self.id));
        self.is_reading = true;
        self.set_alarm(0, cx);
        false
    }

    fn next_query(&mut self) -> Option<Query> {
        loop {
            let part = *Part::ALL.get(self.part)?;
            let head = self.head.part(part);
            if head.count == 0 {
                self.part += 1;
            } else if !head.stragglers.is_empty() {
                let numbers = head.stragglers.iter().take(self.limit);
                return Some(Query::Points {
                    entity: self.id,
                    part,
                    numbers: numbers.copied().collect(),
                    bodies: false,
                    max_bytes: usize::MAX,
                });
            } else {
                return Some(Query::Range {
                    entity: self.id,
                    part,
                    from: SequenceNumber(head.resume),
                    until: SequenceNumber::MAX,
                    limit: self.limit,
                    bodies: false,
                    max_bytes: usize::MAX,
                });
            }
        }
    }

    /// Rows came back, and go. Returns whether there are none left.
    pub(crate) fn loaded(&mut self, rows: ReadRows, cx: &mut Context<'_>) -> bool {
        self.is_reading = false;
        let part = Part::ALL.get(self.part);
        let part = *part.expect("a part is emptied before the next one is read");
        match rows {
            Ok(rows) => self.remove_rows(part, &rows, cx),
            Err(error) if self.pass_damage(part, &error) => {}
            Err(_) => {
                self.set_alarm(RETRY_MS, cx);
                return false;
            }
        }
        self.write_head(cx);
        self.advance(cx)
    }

    /// Removes what was read.
    fn remove_rows(&mut self, part: Part, rows: &[StoredMessage], cx: &mut Context<'_>) {
        for stored in rows {
            self.remove_row(part, stored, cx);
        }
        let limit = std::mem::replace(&mut self.limit, PIECE);
        let head = self.head.part_mut(part);
        if !head.stragglers.is_empty() {
            // Some may stand behind the first of the others: in a queue with levels one of those
            // came last.
            head.stragglers.drain(..limit.min(head.stragglers.len()));
            return;
        }
        if let Some(last) = rows.last() {
            head.resume = head.resume.max(last.number.next().0);
        }
        if rows.len() < limit {
            head.count = 0;
        }
    }

    /// A read met damage: the next one ends before it, or begins behind it. Returns whether that is
    /// known.
    fn pass_damage(&mut self, part: Part, error: &StoreError) -> bool {
        let head = self.head.part_mut(part);
        let named = head.stragglers.len().min(self.limit);
        match error {
            error if named > 1 && error.is_damage() => self.limit = 1,
            error if named == 1 && error.is_damage() => {
                self.limit = PIECE;
                head.stragglers.remove(0);
            }
            StoreError::UnreadableRows {
                intact: 0, until, ..
            } => {
                self.limit = PIECE;
                head.resume = until.0.max(head.resume.saturating_add(1));
            }
            StoreError::UnreadableRows { intact, .. } => self.limit = *intact,
            _ => return false,
        }
        true
    }

    fn remove_row(&mut self, part: Part, stored: &StoredMessage, cx: &mut Context<'_>) {
        let pointer = stored.row.body;
        let (entity, number) = (self.id, stored.number);
        cx.write(Write::RemoveMessage {
            entity,
            part,
            number,
        });
        if stored.delivery_count > 0 {
            cx.write(Write::RemoveDeliveryCount { entity, number });
        }
        cx.write(Write::RemovePatch { entity, number });
        let goes = match &self.bodies {
            Bodies::All => true,
            Bodies::NotLent => !cx.shared.lent.covers(pointer),
            Bodies::Owned(owned) => {
                let from = owned.get(&pointer.home);
                from.is_some_and(|from| pointer.number.arrival() >= *from)
            }
        };
        if goes {
            cx.write(if row::is_shared(&stored.row) {
                Write::ReleaseBody { pointer }
            } else {
                Write::RemoveBody { pointer }
            });
        }
        let head = self.head.part_mut(part);
        head.count = head.count.saturating_sub(1);
        head.bytes = head.bytes.saturating_sub(u64::from(stored.row.size));
    }
}
