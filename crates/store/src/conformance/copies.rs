//! Copies: an entity with the messages and entries of another one, and with the same bodies. Each
//! function is one sentence about every store.

use bytes::Bytes;

use super::{A, B, Harness, MIB, body_of, numbers, publish, put, range, read, row_of, submit};
use crate::Store;
use crate::entry::{EntryKey, Index};
use crate::id::{CommitId, EntityId, Part, SequenceNumber};
use crate::image::Image;
use crate::record::BodyPointer;
use crate::write::Write;

/// The copy. Its id is not that of a neighbour of the original.
const COPY: EntityId = EntityId(30);

fn at(number: u64) -> BodyPointer {
    BodyPointer {
        home: A,
        number: SequenceNumber(number),
    }
}

fn copy(store: &mut impl Store, from: EntityId, to: EntityId) -> CommitId {
    submit(store, |set| set.push(Write::Copy { from, to }))
}

fn remove_row(set: &mut crate::WriteSet, entity: EntityId, part: Part, number: u64) {
    let number = SequenceNumber(number);
    set.push(Write::RemoveMessage {
        entity,
        part,
        number,
    });
}

/// What an entity has in an image, without its id.
fn content(image: &Image, entity: EntityId) -> Vec<String> {
    let messages = image.messages.iter().filter(|(key, _)| key.0 == entity);
    let messages = messages.map(|(key, row)| format!("{:?} {:?} {row:?}", key.1, key.2));
    let counts = image.delivery_counts.iter();
    let counts = counts.filter(|(key, _)| key.0 == entity);
    let counts = counts.map(|(key, count)| format!("{:?} {count}", key.1));
    let patches = image.patches.iter().filter(|(key, _)| key.0 == entity);
    let patches = patches.map(|(key, patch)| format!("{:?} {patch:?}", key.1));
    let expiries = image.expiries.iter().filter(|(key, _)| key.0 == entity);
    let expiries = expiries.map(|(key, due)| format!("{:?} {:?} {due}", key.1, key.2));
    let entries = image.entries.iter().filter(|(key, _)| key.0 == entity);
    let entries = entries.map(|(key, value)| format!("{:?} {:?} {value:?}", key.1, key.2));
    messages
        .chain(counts)
        .chain(patches)
        .chain(expiries)
        .chain(entries)
        .collect()
}

pub(super) fn a_copy_has_what_the_original_had_when_it_was_made<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        for (number, part) in (1..).zip(Part::ALL) {
            put(set, A, part, number, 10);
        }
        put(set, A, Part::Active, 20, 3 * MIB);
        publish(set, BodyPointer { home: B, ..at(1) }, &[B], Part::Active, 5);
        publish(set, at(21), &[A, B], Part::Active, 7);
        let number = SequenceNumber(20);
        set.push(Write::PutDeliveryCount {
            entity: A,
            number,
            count: 3,
        });
        set.push(Write::PutPatch {
            entity: A,
            number,
            patch: Bytes::from_static(b"patch"),
        });
        set.push(Write::PutExpiry {
            entity: A,
            part: Part::Active,
            block: 2,
            due_ms: 77,
        });
        for index in Index::ALL {
            set.push(Write::PutEntry {
                entity: A,
                index,
                key: EntryKey::new("group", SequenceNumber(index as u64)),
                value: Bytes::from_static(b"value"),
            });
        }
    });
    copy(&mut store, A, COPY);
    let image = harness.image(&mut store);
    let kept = content(&image, A);
    assert_eq!(kept.len(), 9 + 3 + Index::ALL.len());
    assert_eq!(content(&image, COPY), kept);
    submit(&mut store, |set| {
        put(set, A, Part::Active, 22, 10);
        remove_row(set, A, Part::DeadLetter, 2);
        let index = Index::Session;
        set.push(Write::RemoveEntry {
            entity: A,
            index,
            key: EntryKey::new("group", SequenceNumber(index as u64)),
        });
        set.push(Write::RemovePatch {
            entity: A,
            number: SequenceNumber(20),
        });
    });
    let mut store = harness.reopen(store);
    let image = harness.image(&mut store);
    assert_ne!(content(&image, A), kept);
    assert_eq!(content(&image, COPY), kept);
    assert_eq!(image.shares[&(A, SequenceNumber(21))], 2, "as before");
}

pub(super) fn bodies_stay_for_the_copy_when_the_original_goes_on<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        for number in 1..=40 {
            put(set, A, Part::Active, number, 100);
        }
    });
    copy(&mut store, A, COPY);
    submit(&mut store, |set| {
        for number in 1..=30 {
            remove_row(set, A, Part::Active, number);
        }
        // One goes to another part and comes back.
        remove_row(set, A, Part::Active, 31);
        let (part, number) = (Part::Deferred, SequenceNumber(31));
        let row = row_of(A, number, 100);
        set.push(Write::PutMessage {
            entity: A,
            part,
            number,
            row,
        });
        put(set, A, Part::Active, 41, 100);
    });
    let mut store = harness.reopen(store);
    let copied = read(&store, store.durable(), &range(COPY, Part::Active, 0, 99));
    assert_eq!(numbers(&copied), Vec::from_iter(1..=40));
    for message in &copied {
        assert_eq!(message.body, Some(body_of(at(message.number.0), 100)));
    }
    let left = read(&store, store.durable(), &range(A, Part::Active, 0, 99));
    assert_eq!(numbers(&left), Vec::from_iter(32..=41));
    let deferred = read(&store, store.durable(), &range(A, Part::Deferred, 0, 99));
    assert_eq!(deferred[0].body, Some(body_of(at(31), 100)));
    // The copy goes, and with it what is its alone.
    submit(&mut store, |set| {
        set.push(Write::RemoveEntity(COPY));
        for number in 1..=30 {
            set.push(Write::RemoveBody {
                pointer: at(number),
            });
        }
    });
    let image = harness.image(&mut store);
    assert_eq!(image.audit_bodies(), []);
    assert_eq!(image.bodies.len(), 11);
}

pub(super) fn a_copy_of_many_survives_a_crash_and_its_bodies_go_with_it<H: Harness>(
    harness: &mut H,
) {
    const MANY: u64 = 5_000;
    let mut store = harness.create();
    for thousand in 0..MANY / 1_000 {
        submit(&mut store, |set| {
            for number in 1..=1_000 {
                put(set, A, Part::Active, thousand * 1_000 + number, 50);
            }
        });
    }
    let copied = copy(&mut store, A, COPY);
    harness.make_durable(&mut store, copied);
    submit(&mut store, |set| remove_row(set, A, Part::Active, 1));
    let mut store = harness.crash(store);
    let image = harness.image(&mut store);
    let rows = |entity| image.messages.keys().filter(|key| key.0 == entity).count();
    assert_eq!(rows(COPY), 5_000);
    assert!(rows(A) >= 4_999);
    submit(&mut store, |set| {
        for number in 1..=MANY {
            let (part, number) = (Part::Active, SequenceNumber(number));
            if image.messages.contains_key(&(A, part, number)) {
                remove_row(set, A, part, number.0);
            }
        }
    });
    submit(&mut store, |set| {
        for number in 1..=MANY {
            remove_row(set, COPY, Part::Active, number);
            set.push(Write::RemoveBody {
                pointer: at(number),
            });
        }
    });
    let mut store = harness.reopen(store);
    assert_eq!(harness.image(&mut store), Image::default());
}
