//! Books: what the store must hold, kept from the write sets alone as they are submitted.
//!
//! Each set is applied in the time that its own writes take, and comes back as [`Changes`]: which
//! messages moved and which counts rose, for the ledger to explain. What a set leaves behind is
//! checked against itself (`check.rs`): heads count what is there, every row has its body, nothing
//! is orphaned, every row can be found again. (Invariants I4, I8, I9, I10, I11, and I6's "exactly
//! once")

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use store::image::{ExpiryKey, FullEntryKey, Image, MessageKey, NumberKey};
use store::{
    BodyPointer, EntityId, EntityRow, Head, MessageRow, Part, SequenceNumber, Write, WriteSet,
};

use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

mod check;
mod entities;
mod fan_out;
mod history;
mod look;
mod rows;
mod schedule;
mod sessions;

pub use fan_out::{FanOut, Offers};
pub use history::Forgotten;
pub use schedule::Due;
use sessions::{Hashes, Member, StatePlace};
pub use sessions::{Kind, StateChange};

/// Where a message stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Place {
    pub entity: EntityId,
    pub part: Part,
    pub number: SequenceNumber,
}

impl Place {
    fn key(self) -> MessageKey {
        (self.entity, self.part, self.number)
    }
}

/// A message came, went, or went elsewhere. One that came and went in one set moved twice.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Move {
    pub id: MessageId,
    pub from: Option<Place>,
    pub to: Option<Place>,
    pub row: MessageRow,
    /// The row that it had where it came from.
    pub old_row: Option<MessageRow>,
    /// What a subscription took it from.
    pub copy_of: Option<MessageId>,
}

/// A delivery count was written.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Counted {
    pub id: MessageId,
    pub before: u32,
    pub after: u32,
}

/// What one write set did.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Changes {
    pub moves: Vec<Move>,
    pub counts: Vec<Counted>,
    /// Message ids that are remembered no longer.
    pub forgotten: Vec<Forgotten>,
    /// In order.
    pub states: Vec<StateChange>,
    /// How many numbers were left out.
    pub skipped: Vec<(EntityId, u64)>,
    /// What left topics, in order.
    pub fan_outs: Vec<FanOut>,
    /// Bodies that were removed.
    pub passed: BTreeMap<NumberKey, Bytes>,
    pub created: Vec<EntityRow>,
    /// Subscriptions of which only tombstones are left.
    pub tombstones: Vec<EntityId>,
    pub removed: BTreeSet<EntityId>,
    /// Whose rows or heads were written.
    pub entities: BTreeSet<EntityId>,
}

/// What a set has touched so far and what must be looked at when it is complete.
#[derive(Debug, Default)]
struct Page {
    changes: Changes,
    /// Rows that were removed and not put elsewhere.
    left: BTreeMap<MessageId, (Place, MessageRow)>,
    /// Everything that ever left a place, and what that was, in order.
    order: Vec<(MessageId, EntityId)>,
    bodies: BTreeSet<NumberKey>,
    numbers: BTreeSet<NumberKey>,
    blocks: BTreeSet<ExpiryKey>,
    dated: Vec<(MessageKey, u64)>,
    /// Scheduled messages whose rows or entries were written.
    due: BTreeSet<(EntityId, Due)>,
    /// Entries of histories that were written.
    history: BTreeSet<FullEntryKey>,
    /// Rows of sessions, or their entries, that were written.
    members: BTreeSet<Member>,
    /// States that were written, and whose they are.
    states: BTreeMap<StatePlace, Option<Session>>,
    state_changes: Vec<(StatePlace, Option<Bytes>)>,
}

#[derive(Debug)]
struct Body {
    /// As it was sent, whatever is a copy of it.
    id: MessageId,
    bytes: Bytes,
    pointers: u32,
    /// How many rows should point to it, if several may.
    shares: Option<u32>,
}

/// An entity, counted.
#[derive(Clone, Copy, Debug)]
struct Tally {
    /// Messages and bytes, by part.
    parts: [(u64, u64); Part::ALL.len()],
    next: SequenceNumber,
    /// What the states of its sessions take.
    state_bytes: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            parts: Default::default(),
            next: SequenceNumber::FIRST,
            state_bytes: 0,
        }
    }
}

/// Everything that was submitted, as far as messages go.
#[derive(Debug, Default)]
pub struct Books {
    rows: BTreeMap<MessageKey, (MessageId, MessageRow)>,
    places: BTreeMap<MessageId, Place>,
    bodies: BTreeMap<NumberKey, Body>,
    counts: BTreeMap<NumberKey, u32>,
    patches: BTreeMap<NumberKey, Bytes>,
    expiries: BTreeMap<ExpiryKey, u64>,
    entries: BTreeMap<FullEntryKey, Bytes>,
    /// When numbers were accepted, as the entries of histories say.
    accepted: BTreeMap<NumberKey, u64>,
    heads: BTreeMap<EntityId, Head>,
    tallies: BTreeMap<EntityId, Tally>,
    /// Deadlines of what stands in a queue itself.
    deadlines: BTreeSet<(u64, MessageKey)>,
    kinds: BTreeMap<EntityId, Kind>,
    /// Entities that are there.
    live: BTreeSet<EntityId>,
    /// What entities are to be, by their paths in lower case.
    expected: BTreeMap<String, Kind>,
    /// Whose each number is, or was.
    names: BTreeMap<NumberKey, MessageId>,
    /// How many copies were ever made of what was sent.
    copies: BTreeMap<MessageId, u16>,
    /// What topics had for messages when they accepted them.
    offered_first: BTreeMap<MessageId, Offers>,
    routers: BTreeSet<EntityId>,
    /// What was published to a router, so that whatever arrives of it is a copy.
    published: BTreeSet<MessageId>,
    hashes: Hashes,
    /// Numbers that were left out, and that no message has got yet.
    skipped: BTreeSet<NumberKey>,
    /// Available messages by their sessions.
    sessions: BTreeMap<(EntityId, Session, SequenceNumber), MessageId>,
}

impl Books {
    /// Empty books of entities of these kinds.
    #[must_use]
    pub fn new(kinds: BTreeMap<EntityId, Kind>) -> Self {
        Self {
            live: kinds.keys().copied().collect(),
            kinds,
            ..Self::default()
        }
    }

    /// The books of what a crash has left.
    ///
    /// # Errors
    /// When that is not consistent.
    pub fn after_crash(&self, image: &Image) -> Result<Self, Violation> {
        let mut books = Self {
            kinds: self.kinds.clone(),
            live: image
                .entities
                .values()
                .filter(|row| !entities::is_tombstone(row) && !entities::is_router(row))
                .map(|row| row.id)
                .collect(),
            expected: self.expected.clone(),
            names: self.names.clone(),
            copies: self.copies.clone(),
            routers: {
                let routers = image
                    .entities
                    .values()
                    .filter(|row| entities::is_router(row));
                routers.map(|row| row.id).collect()
            },
            published: self.published.clone(),
            hashes: self.hashes.clone(),
            counts: image.delivery_counts.clone(),
            patches: image.patches.clone(),
            expiries: image.expiries.clone(),
            entries: image.entries.clone(),
            heads: image.heads.clone(),
            ..Self::default()
        };
        for (&(home, number), body) in &image.bodies {
            books.put_body(BodyPointer { home, number }, body)?;
        }
        for (key, copies) in &image.shares {
            if let Some(body) = books.bodies.get_mut(key) {
                body.shares = Some(*copies);
            }
        }
        // What was lost is given out again.
        let next = |entity| image.heads.get(&entity).map(|head| head.next_number);
        books.names.retain(|(entity, number), _| {
            next(*entity).is_some_and(|next| number.arrival() < next)
        });
        books
            .kinds
            .retain(|entity, _| image.last_entity.is_none_or(|last| *entity <= last));
        let mut page = Page::default();
        for (&entity, head) in &image.heads {
            books.tallies.entry(entity).or_default().next = head.next_number;
            page.changes.entities.insert(entity);
        }
        for (&(entity, part, number), row) in &image.messages {
            let place = Place {
                entity,
                part,
                number,
            };
            books.put_row(place, *row, &mut page)?;
        }
        books.note_entries(&mut page);
        books.count_states();
        // Nothing was given a number just now.
        page.changes.moves.clear();
        books.check(&page)?;
        Ok(books)
    }

    /// Applies a set.
    ///
    /// # Errors
    /// I6, I8, I9 or I12, when what it leaves cannot be.
    pub fn apply(&mut self, set: &WriteSet) -> Result<Changes, Violation> {
        let mut page = Page::default();
        for write in set.as_slice() {
            if let Write::PutBody { pointer, body } = write {
                page.bodies.insert((pointer.home, pointer.number));
                self.put_body(*pointer, body)?;
            }
        }
        for write in set.as_slice() {
            self.apply_one(write, &mut page)?;
        }
        let left = std::mem::take(&mut page.left);
        page.changes
            .moves
            .extend(left.into_iter().map(|(id, (from, row))| Move {
                id,
                from: Some(from),
                to: None,
                row,
                old_row: Some(row),
                copy_of: None,
            }));
        page.changes.skipped = self.check_numbering(&page)?;
        self.check(&page)?;
        page.changes.states = Self::state_changes(&mut page);
        Ok(page.changes)
    }

    fn apply_one(&mut self, write: &Write, page: &mut Page) -> Result<(), Violation> {
        match *write {
            Write::PutMessage {
                entity,
                part,
                number,
                row,
            } => self.put_row(
                Place {
                    entity,
                    part,
                    number,
                },
                row,
                page,
            ),
            Write::RemoveMessage {
                entity,
                part,
                number,
            } => self.remove_row(
                Place {
                    entity,
                    part,
                    number,
                },
                page,
            ),
            Write::RemoveBody { pointer } => self.remove_body(pointer, page),
            // It numbers bodies, not messages.
            Write::PutHead { entity, .. } if self.routers.contains(&entity) => Ok(()),
            Write::PutHead { entity, ref head } => {
                self.heads.insert(entity, head.clone());
                page.changes.entities.insert(entity);
                Ok(())
            }
            Write::PutDeliveryCount {
                entity,
                number,
                count,
            } => {
                self.put_count((entity, number), count, page);
                Ok(())
            }
            Write::RemoveDeliveryCount { entity, number } => {
                self.counts.remove(&(entity, number));
                Ok(())
            }
            Write::PutPatch {
                entity,
                number,
                ref patch,
            } => {
                self.patches.insert((entity, number), patch.clone());
                page.numbers.insert((entity, number));
                Ok(())
            }
            Write::RemovePatch { entity, number } => {
                self.patches.remove(&(entity, number));
                Ok(())
            }
            Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            } => {
                let before = self.expiries.insert((entity, part, block), due_ms);
                if before.is_none_or(|before| before < due_ms) {
                    page.blocks.insert((entity, part, block));
                }
                Ok(())
            }
            Write::RemoveExpiry {
                entity,
                part,
                block,
            } => {
                self.expiries.remove(&(entity, part, block));
                page.blocks.insert((entity, part, block));
                Ok(())
            }
            Write::ShareBody { pointer, copies } => self.share_body(pointer, copies, page),
            Write::ReleaseBody { pointer } => self.release_body(pointer, page),
            Write::RemoveEntity(entity) => self.remove_entity(entity, page),
            Write::PutEntity(ref row) => {
                self.define(row, page);
                Ok(())
            }
            Write::PutEntry {
                entity,
                index,
                ref key,
                ref value,
            } => {
                let place = (entity, index, key.clone());
                self.put_entry(place, value.clone(), page);
                Ok(())
            }
            Write::RemoveEntry {
                entity,
                index,
                ref key,
            } => {
                self.remove_entry(&(entity, index, key.clone()), page);
                Ok(())
            }
            Write::RemoveEntries {
                entity,
                index,
                ref keys,
            } => {
                self.remove_entries(entity, index, keys, page);
                Ok(())
            }
            Write::Copy { .. } => unreachable!("no order of a simulated administrator copies"),
            // Bodies went first.
            Write::PutBody { .. } => Ok(()),
        }
    }
}
