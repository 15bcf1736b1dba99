//! Conformance: the behaviour of every [`Store`], as functions that a store's own tests call.
//!
//! A [`Harness`] makes, reopens and crashes one kind of store and reads all of its content. [`run`]
//! tests the named behaviours; [`random_log`] turns random words into a log of sends, settlements
//! and moves between parts, with crashes, and compares every state with a naive model. This module
//! does not depend on keys, files or threads.

mod bodies;
mod commits;
mod copies;
mod entries;
mod model;
mod random;
mod reads;
mod shares;
mod waits;

pub use random::random_log;

use bytes::Bytes;

use crate::Store;
use crate::id::{CommitId, EntityId, NamespaceId, Part, SequenceNumber};
use crate::image::Image;
use crate::query::{Found, Query, StoredMessage};
use crate::record::{BodyPointer, EntityRow, MessageRow};
use crate::write::{Write, WriteSet};

/// The operations of one kind of store that the suite needs.
pub trait Harness {
    /// The store under test.
    type Store: Store;

    /// A store on an empty disk.
    fn create(&mut self) -> Self::Store;

    /// Returns when `id` is durable.
    fn make_durable(&mut self, store: &mut Self::Store, id: CommitId);

    /// Closes the store in good order, which makes everything durable, and opens it again.
    fn reopen(&mut self, store: Self::Store) -> Self::Store;

    /// Kills the store: what is not durable may be lost. Opens it again.
    fn crash(&mut self, store: Self::Store) -> Self::Store;

    /// Everything that was submitted, by a full scan.
    fn image(&mut self, store: &mut Self::Store) -> Image;
}

/// Every named behaviour, each on a store of its own.
pub fn run(harness: &mut impl Harness) {
    commits::commits_are_numbered_from_one_and_become_durable_in_order(harness);
    reads::a_read_sees_every_commit_up_to_the_one_it_names(harness);
    reads::a_range_keeps_to_its_bounds_its_part_and_its_entity(harness);
    reads::a_range_stops_at_its_limit_of_rows_and_of_bytes(harness);
    reads::points_come_in_order_and_leave_out_what_is_not_there(harness);
    bodies::bodies_of_every_size_come_back_byte_for_byte(harness);
    bodies::removing_a_row_keeps_its_body_and_the_body_goes_by_itself(harness);
    bodies::a_large_body_leaves_nothing_behind(harness);
    bodies::a_message_sent_and_settled_at_once_leaves_nothing(harness);
    reads::the_rest_of_known_messages_is_found(harness);
    reads::delivery_counts_and_patches_come_with_their_message(harness);
    reads::rows_come_back_as_they_were_written(harness);
    entries::entries_stand_in_order_of_group_and_number(harness);
    entries::entries_stop_at_a_limit_of_number_and_of_bytes(harness);
    entries::entries_are_found_by_name_and_groups_by_their_first(harness);
    entries::entries_survive_and_go_with_their_entity(harness);
    entries::a_range_of_entries_goes_at_once_and_what_is_put_behind_it_stays(harness);
    commits::the_last_head_of_an_entity_holds(harness);
    commits::definitions_and_expiries_are_recovered(harness);
    commits::a_removed_entity_leaves_nothing_and_its_id_is_remembered(harness);
    commits::an_entity_may_come_fill_up_and_go_within_one_set(harness);
    commits::everything_is_there_after_reopening(harness);
    commits::what_was_durable_is_there_after_a_crash(harness);
    bodies::ten_thousand_settled_neighbours_leave_the_others_alone(harness);
    shares::a_shared_body_goes_with_its_last_copy(harness);
    shares::the_count_of_copies_survives_reopening_and_crashes(harness);
    shares::what_is_published_and_settled_at_once_leaves_nothing(harness);
    shares::a_large_shared_body_leaves_nothing_behind(harness);
    shares::copies_that_move_share_their_body_as_before(harness);
    shares::shared_bodies_go_with_their_home(harness);
    shares::thousands_of_neighbours_released_in_any_order_leave_the_others_alone(harness);
    copies::a_copy_has_what_the_original_had_when_it_was_made(harness);
    copies::bodies_stay_for_the_copy_when_the_original_goes_on(harness);
    copies::a_copy_of_many_survives_a_crash_and_its_bodies_go_with_it(harness);
    waits::what_waits_comes_back_any_number_of_times(harness);
    waits::what_waits_while_all_its_neighbours_are_settled_comes_back(harness);
}

/// The entity that most behaviours use.
const A: EntityId = EntityId(7);
/// Its neighbour.
const B: EntityId = EntityId(8);
const MIB: usize = 1 << 20;

fn set(fill: impl FnOnce(&mut WriteSet)) -> WriteSet {
    let mut writes = WriteSet::default();
    fill(&mut writes);
    writes
}

fn submit(store: &mut impl Store, fill: impl FnOnce(&mut WriteSet)) -> CommitId {
    store.submit(set(fill))
}

/// A body that identifies its message: no two messages have the same bytes.
#[must_use]
pub fn body_of(pointer: BodyPointer, len: usize) -> Bytes {
    let mut word = pointer.home.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ pointer.number.0;
    let mut body = Vec::with_capacity(len + 8);
    while body.len() < len {
        // A xorshift generator: bodies that do not compress to nothing.
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        body.extend_from_slice(&word.to_be_bytes());
    }
    body.truncate(len);
    Bytes::from(body)
}

/// A row like those a broker writes, with its body under its own number.
#[must_use]
pub fn row_of(entity: EntityId, number: SequenceNumber, size: usize) -> MessageRow {
    MessageRow {
        enqueued_ms: 1_700_000_000_000 + number.0 % 1_000_000,
        ttl_ms: u64::MAX,
        expires_ms: u64::MAX,
        size: u32::try_from(size).unwrap_or(u32::MAX),
        flags: 0,
        session_hash: 0,
        enqueued_number: 0,
        body: BodyPointer {
            home: entity,
            number,
        },
    }
}

/// The writes that bring a message with a body of `len` bytes into `part`.
pub fn put(set: &mut WriteSet, entity: EntityId, part: Part, number: u64, len: usize) {
    let number = SequenceNumber(number);
    let row = row_of(entity, number, len);
    set.push(Write::PutBody {
        pointer: row.body,
        body: body_of(row.body, len),
    });
    set.push(Write::PutMessage {
        entity,
        part,
        number,
        row,
    });
}

/// The writes that take such a message away again.
pub fn remove(set: &mut WriteSet, entity: EntityId, part: Part, number: u64) {
    let number = SequenceNumber(number);
    set.push(Write::RemoveMessage {
        entity,
        part,
        number,
    });
    set.push(Write::RemoveBody {
        pointer: BodyPointer {
            home: entity,
            number,
        },
    });
}

/// The writes that bring a message into `part` of several entities, with one body of `len` bytes
/// that has its home elsewhere.
pub fn publish(set: &mut WriteSet, pointer: BodyPointer, to: &[EntityId], part: Part, len: usize) {
    set.push(Write::PutBody {
        pointer,
        body: body_of(pointer, len),
    });
    let copies = u32::try_from(to.len()).unwrap_or(u32::MAX);
    set.push(Write::ShareBody { pointer, copies });
    for &entity in to {
        let mut row = row_of(entity, pointer.number, len);
        row.body = pointer;
        set.push(Write::PutMessage {
            entity,
            part,
            number: pointer.number,
            row,
        });
    }
}

/// The writes that take one of those copies away.
pub fn release(set: &mut WriteSet, pointer: BodyPointer, entity: EntityId, part: Part) {
    set.push(Write::RemoveMessage {
        entity,
        part,
        number: pointer.number,
    });
    set.push(Write::ReleaseBody { pointer });
}

/// A definition under a path made of its id.
#[must_use]
pub fn entity_row(id: EntityId) -> EntityRow {
    EntityRow {
        id,
        namespace: NamespaceId(0),
        path: format!("Queues/q-{}", id.0),
        definition: Bytes::from(format!("definition {}", id.0)),
    }
}

/// All messages of one part with `from <= number < until`, with their bodies.
#[must_use]
pub fn range(entity: EntityId, part: Part, from: u64, until: u64) -> Query {
    let (from, until) = (SequenceNumber(from), SequenceNumber(until));
    Query::Range {
        entity,
        part,
        from,
        until,
        limit: usize::MAX,
        bodies: true,
        max_bytes: usize::MAX,
    }
}

/// Reads, and panics when the store fails.
pub fn read(store: &impl Store, after: CommitId, query: &Query) -> Vec<StoredMessage> {
    store
        .reader()
        .read(after, query)
        .and_then(Found::into_messages)
        .expect("the store answers with messages")
}

/// The numbers of `messages`.
#[must_use]
pub fn numbers(messages: &[StoredMessage]) -> Vec<u64> {
    messages.iter().map(|message| message.number.0).collect()
}
