//! Behaviours: each function is one sentence about every store.

use bytes::Bytes;

use super::{Harness, body_of, entity_row, numbers, put, range, read, remove, row_of};
use crate::Store;
use crate::id::{CommitId, EntityId, Part, SequenceNumber};
use crate::image::Image;
use crate::query::Query;
use crate::record::{BodyPointer, ExpiryRow, Head, MessageRow};
use crate::write::{Write, WriteSet};

const A: EntityId = EntityId(7);
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

pub(super) fn commits_are_numbered_from_one_and_become_durable_in_order<H: Harness>(
    harness: &mut H,
) {
    let mut store = harness.create();
    assert_eq!(store.durable(), CommitId(0));
    for number in 1..=20 {
        let id = submit(&mut store, |set| put(set, A, Part::Active, number, 10));
        assert_eq!(id, CommitId(number));
        assert!(store.durable() <= id);
    }
    harness.make_durable(&mut store, CommitId(3));
    assert!(store.durable() >= CommitId(3));
    harness.make_durable(&mut store, CommitId(20));
    assert_eq!(store.durable(), CommitId(20));
    assert_eq!(store.failure(), None);
}

pub(super) fn a_read_sees_every_commit_up_to_the_one_it_names<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    for number in 1..=50 {
        let id = submit(&mut store, |set| put(set, A, Part::Active, number, 10));
        let found = read(&store, id, &range(A, Part::Active, number, number + 1));
        assert_eq!(numbers(&found), [number]);
    }
}

pub(super) fn a_range_keeps_to_its_bounds_its_part_and_its_entity<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let last = submit(&mut store, |set| {
        for number in [1, 2, 255, 256, 257, 65_536, u64::MAX - 1] {
            put(set, A, Part::Active, number, 3);
        }
        put(set, A, Part::DeadLetter, 3, 3);
        put(set, B, Part::Active, 4, 3);
        put(set, EntityId(A.0 - 1), Part::Active, 5, 3);
    });
    let check = |part, from, until, expected: &[u64]| {
        let found = read(&store, last, &range(A, part, from, until));
        assert_eq!(numbers(&found), expected, "{part:?} {from}..{until}");
    };
    check(
        Part::Active,
        0,
        u64::MAX,
        &[1, 2, 255, 256, 257, 65_536, u64::MAX - 1],
    );
    check(Part::Active, 2, 257, &[2, 255, 256]);
    check(Part::Active, 3, 255, &[]);
    check(Part::Active, 257, 258, &[257]);
    check(Part::Active, 257, 257, &[]);
    check(Part::Active, 258, 257, &[]);
    check(Part::DeadLetter, 0, u64::MAX, &[3]);
    check(Part::Deferred, 0, u64::MAX, &[]);
}

pub(super) fn a_range_stops_at_its_limit_of_rows_and_of_bytes<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let last = submit(&mut store, |set| {
        for number in 1..=300 {
            put(set, A, Part::Active, number, 100);
        }
    });
    let check = |limit, bodies, max_bytes, expected: u64| {
        let (from, until) = (SequenceNumber(1), SequenceNumber::MAX);
        let query = Query::Range {
            entity: A,
            part: Part::Active,
            from,
            until,
            limit,
            bodies,
            max_bytes,
        };
        let found = read(&store, last, &query);
        assert_eq!(
            numbers(&found),
            (1..=expected).collect::<Vec<_>>(),
            "{query:?}"
        );
        assert!(found.iter().all(|message| message.body.is_some() == bodies));
    };
    check(0, true, 1_000, 0);
    check(5, false, 0, 5);
    check(5, true, usize::MAX, 5);
    check(1_000, true, usize::MAX, 300);
    check(1_000, true, 1_000, 10);
    check(1_000, true, 1_001, 11);
    check(1_000, true, 0, 1);
}

pub(super) fn points_come_in_order_and_leave_out_what_is_not_there<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let last = submit(&mut store, |set| {
        for number in [2, 4, 6] {
            put(set, A, Part::Deferred, number, 20);
        }
        put(set, A, Part::Active, 5, 20);
    });
    for bodies in [false, true] {
        let numbers_asked = [6, 5, 2, 1, 6].map(SequenceNumber).to_vec();
        let query = Query::Points {
            entity: A,
            part: Part::Deferred,
            numbers: numbers_asked,
            bodies,
        };
        let found = read(&store, last, &query);
        assert_eq!(numbers(&found), [2, 6]);
        assert!(found.iter().all(|message| message.body.is_some() == bodies));
        assert!(found.iter().all(|message| message.part == Part::Deferred));
    }
    let nothing = Query::Points {
        entity: A,
        part: Part::Active,
        numbers: vec![],
        bodies: true,
    };
    assert_eq!(read(&store, last, &nothing), []);
}

/// Around every border of the layout: nothing, small, blob size, one chunk, several.
const SIZES: [usize; 10] = [
    0,
    1,
    1_024,
    16_383,
    16_384,
    MIB - 1,
    MIB,
    MIB + 1,
    2 * MIB,
    2 * MIB + MIB / 2,
];

pub(super) fn bodies_of_every_size_come_back_byte_for_byte<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let mut last = CommitId(0);
    for (number, len) in (1..).zip(SIZES) {
        last = submit(&mut store, |set| put(set, A, Part::Active, number, len));
    }
    let expect_all = |store: &H::Store, last| {
        let found = read(store, last, &range(A, Part::Active, 0, u64::MAX));
        assert_eq!(found.len(), SIZES.len());
        for (message, len) in found.iter().zip(SIZES) {
            let body = message.body.as_ref().expect("bodies were asked for");
            assert!(
                *body == body_of(message.row.body, len),
                "the body of {len} bytes"
            );
        }
    };
    expect_all(&store, last);
    let store = harness.reopen(store);
    expect_all(&store, CommitId(0));
}

pub(super) fn removing_a_row_keeps_its_body_and_the_body_goes_by_itself<H: Harness>(
    harness: &mut H,
) {
    let mut store = harness.create();
    let moved = SequenceNumber(2);
    let row = row_of(A, moved, 50);
    submit(&mut store, |set| {
        for number in 1..=3 {
            put(set, A, Part::Active, number, 50);
        }
    });
    let last = submit(&mut store, |set| {
        set.push(Write::RemoveMessage {
            entity: A,
            part: Part::Active,
            number: moved,
        });
        set.push(Write::PutMessage {
            entity: A,
            part: Part::DeadLetter,
            number: moved,
            row,
        });
    });
    assert_eq!(
        numbers(&read(&store, last, &range(A, Part::Active, 0, 100))),
        [1, 3]
    );
    let dead = read(&store, last, &range(A, Part::DeadLetter, 0, 100));
    assert_eq!(dead[0].body, Some(body_of(row.body, 50)));
    let last = submit(&mut store, |set| remove(set, A, Part::DeadLetter, moved.0));
    assert_eq!(read(&store, last, &range(A, Part::DeadLetter, 0, 100)), []);
    let image = harness.image(&mut store);
    assert_eq!(
        image.bodies.keys().map(|key| key.1.0).collect::<Vec<_>>(),
        [1, 3]
    );
}

pub(super) fn a_large_body_leaves_nothing_behind<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        for (number, len) in [
            (1, 3 * MIB),
            (2, 5),
            (3, 2 * MIB + 1),
            (4, 2 * MIB),
            (5, 2 * MIB),
        ] {
            put(set, A, Part::Active, number, len);
        }
    });
    let mut store = harness.reopen(store);
    for number in [3, 1] {
        submit(&mut store, |set| remove(set, A, Part::Active, number));
    }
    let image = harness.image(&mut store);
    assert_eq!(
        image.bodies.keys().map(|key| key.1.0).collect::<Vec<_>>(),
        [2, 4, 5]
    );
    submit(&mut store, |set| {
        for number in [2, 4, 5] {
            remove(set, A, Part::Active, number);
        }
    });
    assert_eq!(harness.image(&mut store), Image::default());
}

pub(super) fn a_message_sent_and_settled_at_once_leaves_nothing<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let mut last = CommitId(0);
    for number in 1..=40 {
        last = submit(&mut store, |set| {
            put(
                set,
                A,
                Part::Active,
                number,
                if number == 5 { 2 * MIB } else { 30 },
            );
            if number > 20 {
                remove(set, A, Part::Active, number);
            }
        });
        if number <= 20 && number != 7 {
            last = submit(&mut store, |set| remove(set, A, Part::Active, number));
        }
    }
    assert_eq!(
        numbers(&read(&store, last, &range(A, Part::Active, 0, 100))),
        [7]
    );
    let mut store = harness.reopen(store);
    let image = harness.image(&mut store);
    assert_eq!(
        image.messages.keys().map(|key| key.2.0).collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(
        image.bodies.keys().map(|key| key.1.0).collect::<Vec<_>>(),
        [7]
    );
}

pub(super) fn delivery_counts_and_patches_come_with_their_message<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let (one, two) = (SequenceNumber(1), SequenceNumber(2));
    let patch = Bytes::from_static(b"changed");
    submit(&mut store, |set| {
        put(set, A, Part::Active, 1, 10);
        put(set, A, Part::Active, 2, 10);
        set.push(Write::PutDeliveryCount {
            entity: A,
            number: one,
            count: 1,
        });
        set.push(Write::PutPatch {
            entity: A,
            number: one,
            patch: Bytes::from_static(b"first"),
        });
    });
    let last = submit(&mut store, |set| {
        set.push(Write::PutDeliveryCount {
            entity: A,
            number: one,
            count: 2,
        });
        set.push(Write::PutPatch {
            entity: A,
            number: one,
            patch: patch.clone(),
        });
        set.push(Write::PutDeliveryCount {
            entity: A,
            number: two,
            count: 9,
        });
        set.push(Write::RemoveDeliveryCount {
            entity: A,
            number: two,
        });
    });
    let points = |bodies| {
        let numbers = vec![one, two];
        Query::Points {
            entity: A,
            part: Part::Active,
            numbers,
            bodies,
        }
    };
    for query in [points(true), range(A, Part::Active, 0, 10)] {
        let found = read(&store, last, &query);
        assert_eq!(
            (found[0].delivery_count, &found[0].patch),
            (2, &Some(patch.clone()))
        );
        assert_eq!((found[1].delivery_count, &found[1].patch), (0, &None));
    }
    let found = read(&store, last, &points(false));
    assert_eq!((found[0].delivery_count, &found[0].patch), (2, &None));
    let last = submit(&mut store, |set| {
        set.push(Write::RemoveDeliveryCount {
            entity: A,
            number: one,
        });
        set.push(Write::RemovePatch {
            entity: A,
            number: one,
        });
    });
    let found = read(&store, last, &points(true));
    assert_eq!((found[0].delivery_count, &found[0].patch), (0, &None));
}

pub(super) fn rows_come_back_as_they_were_written<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let elsewhere = BodyPointer {
        home: B,
        number: SequenceNumber(99),
    };
    let plain = row_of(A, SequenceNumber(1), 0);
    let rows = [
        plain,
        MessageRow {
            ttl_ms: 60_000,
            expires_ms: plain.enqueued_ms + 60_000,
            ..plain
        },
        MessageRow {
            ttl_ms: 0,
            expires_ms: 0,
            enqueued_ms: 0,
            ..plain
        },
        MessageRow { ttl_ms: 5, ..plain },
        MessageRow {
            expires_ms: 5,
            size: u32::MAX,
            flags: u32::MAX,
            ..plain
        },
        MessageRow {
            session_hash: u64::MAX,
            body: elsewhere,
            ..plain
        },
        MessageRow {
            body: BodyPointer {
                home: A,
                number: SequenceNumber(1_000),
            },
            ..plain
        },
    ];
    let rows: Vec<_> = (1..)
        .zip(rows)
        .map(|(number, row)| {
            let own = row.body == plain.body;
            let body = BodyPointer {
                home: A,
                number: SequenceNumber(number),
            };
            (
                SequenceNumber(number),
                if own { MessageRow { body, ..row } } else { row },
            )
        })
        .collect();
    let last = submit(&mut store, |set| {
        for &(number, row) in &rows {
            set.push(Write::PutMessage {
                entity: A,
                part: Part::Scheduled,
                number,
                row,
            });
        }
    });
    let (from, until) = (SequenceNumber(0), SequenceNumber::MAX);
    let (limit, max_bytes) = (100, 0);
    let query = Query::Range {
        entity: A,
        part: Part::Scheduled,
        from,
        until,
        limit,
        bodies: false,
        max_bytes,
    };
    let found = read(&store, last, &query);
    let found: Vec<_> = found
        .iter()
        .map(|message| (message.number, message.row))
        .collect();
    assert_eq!(found, rows);
}

/// A head with every field in use.
fn full_head() -> Head {
    let mut head = Head {
        next_number: SequenceNumber(1 << 40),
        last_enqueued_ms: 77,
        ..Head::empty()
    };
    for (step, part) in (1..).zip(Part::ALL) {
        let part = head.part_mut(part);
        part.count = step * 1_000;
        part.bytes = step << 33;
        part.resume = step * 10;
        part.stragglers = (1..=step).map(SequenceNumber).collect();
    }
    head
}

pub(super) fn the_last_head_of_an_entity_holds<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let head = |next| Head {
        next_number: SequenceNumber(next),
        ..Head::empty()
    };
    submit(&mut store, |set| {
        set.push(Write::PutHead {
            entity: A,
            head: head(5),
        });
        set.push(Write::PutHead {
            entity: B,
            head: head(2),
        });
    });
    submit(&mut store, |set| {
        set.push(Write::PutHead {
            entity: A,
            head: head(6),
        });
    });
    submit(&mut store, |set| {
        set.push(Write::PutHead {
            entity: B,
            head: head(3),
        });
        set.push(Write::PutHead {
            entity: A,
            head: full_head(),
        });
    });
    let mut store = harness.reopen(store);
    let recovery = store.recover().expect("the heads are readable");
    assert_eq!(recovery.heads, [(A, full_head()), (B, head(3))]);
}

pub(super) fn definitions_and_expiries_are_recovered<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    assert_eq!(
        store.recover().expect("an empty store is readable"),
        crate::Recovery::default()
    );
    let changed = crate::EntityRow {
        definition: Bytes::from_static(b"changed"),
        ..entity_row(A)
    };
    let expiry = |block, due_ms| ExpiryRow {
        entity: A,
        part: Part::DeadLetter,
        block,
        due_ms,
    };
    let put_expiry = |block, due_ms| Write::PutExpiry {
        entity: A,
        part: Part::DeadLetter,
        block,
        due_ms,
    };
    submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(B)));
        set.push(Write::PutEntity(entity_row(A)));
        set.push(put_expiry(1, 100));
        set.push(put_expiry(2, 200));
        set.push(put_expiry(300, 300));
    });
    submit(&mut store, |set| {
        set.push(Write::PutEntity(changed.clone()));
        set.push(put_expiry(2, 150));
        set.push(Write::RemoveExpiry {
            entity: A,
            part: Part::DeadLetter,
            block: 1,
        });
    });
    let mut store = harness.reopen(store);
    let recovery = store.recover().expect("the definitions are readable");
    assert_eq!(recovery.entities, [changed, entity_row(B)]);
    assert_eq!(recovery.expiries, [expiry(2, 150), expiry(300, 300)]);
    assert_eq!(recovery.last_entity, Some(B));
}

pub(super) fn a_removed_entity_leaves_nothing_and_its_id_is_remembered<H: Harness>(
    harness: &mut H,
) {
    let mut store = harness.create();
    let fill = |set: &mut WriteSet, entity| {
        let number = SequenceNumber(1);
        set.push(Write::PutEntity(entity_row(entity)));
        set.push(Write::PutHead {
            entity,
            head: Head::empty(),
        });
        put(set, entity, Part::Active, 1, 2 * MIB);
        put(set, entity, Part::TransferDeferred, u64::MAX - 1, 10);
        set.push(Write::PutDeliveryCount {
            entity,
            number,
            count: 3,
        });
        set.push(Write::PutPatch {
            entity,
            number,
            patch: Bytes::from_static(b"p"),
        });
        set.push(Write::PutExpiry {
            entity,
            part: Part::Active,
            block: 0,
            due_ms: 9,
        });
    };
    submit(&mut store, |set| {
        fill(set, A);
        fill(set, B);
    });
    let mut store = harness.reopen(store);
    submit(&mut store, |set| set.push(Write::RemoveEntity(B)));
    let mut expected = Image::default();
    for write in set(|set| fill(set, A)).as_slice() {
        expected.apply(write).expect("the writes keep the contract");
    }
    expected.last_entity = Some(B);
    assert!(
        harness.image(&mut store) == expected,
        "only the other entity is left"
    );
    let mut store = harness.reopen(store);
    assert!(harness.image(&mut store) == expected, "nothing comes back");
    assert_eq!(store.recover().expect("readable").last_entity, Some(B));
}

pub(super) fn everything_is_there_after_reopening<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    for number in 1..=100 {
        submit(&mut store, |set| put(set, A, Part::Active, number, 100));
    }
    let mut store = harness.reopen(store);
    assert_eq!(
        store.durable(),
        CommitId(0),
        "ids start again with each opening"
    );
    let found = read(&store, CommitId(0), &range(A, Part::Active, 0, 1_000));
    assert_eq!(numbers(&found), (1..=100).collect::<Vec<_>>());
    assert_eq!(
        submit(&mut store, |set| remove(set, A, Part::Active, 1)),
        CommitId(1)
    );
}

pub(super) fn what_was_durable_is_there_after_a_crash<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let mut durable = 0;
    for round in 0..3_u64 {
        for number in round * 100 + 1..=round * 100 + 50 {
            let id = submit(&mut store, |set| put(set, A, Part::Active, number, 2_000));
            if number % 100 == 25 {
                harness.make_durable(&mut store, id);
                durable = number;
            }
        }
        store = harness.crash(store);
        let found = numbers(&read(
            &store,
            CommitId(0),
            &range(A, Part::Active, 0, 1_000),
        ));
        let expected = |until: u64| -> Vec<u64> { (round * 100 + 1..=until).collect() };
        let found: Vec<_> = found
            .into_iter()
            .filter(|number| *number > round * 100)
            .collect();
        let until = found.last().copied().unwrap_or(0);
        assert!(
            until >= durable,
            "durable up to #{durable}, found up to #{until}"
        );
        assert_eq!(found, expected(until), "what survives has no gap");
        let image = harness.image(&mut store);
        assert_eq!(image.audit_bodies(), []);
    }
}

pub(super) fn ten_thousand_settled_neighbours_leave_the_others_alone<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let kept = |number: u64| number.is_multiple_of(997) || number > 10_000;
    for first in (1..10_500).step_by(100) {
        submit(&mut store, |set| {
            for number in first..first + 100 {
                put(set, A, Part::Active, number, 20);
            }
        });
    }
    for first in (1..10_000).step_by(250) {
        submit(&mut store, |set| {
            for number in (first..first + 250).filter(|number| !kept(*number)) {
                remove(set, A, Part::Active, number);
            }
        });
    }
    let expected: Vec<u64> = (1..10_501).filter(|number| kept(*number)).collect();
    let last = submit(&mut store, |_| {});
    let found = read(&store, last, &range(A, Part::Active, 0, u64::MAX));
    assert_eq!(numbers(&found), expected);
    let mut store = harness.reopen(store);
    let image = harness.image(&mut store);
    assert_eq!(
        image.messages.keys().map(|key| key.2.0).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(
        image.bodies.keys().map(|key| key.1.0).collect::<Vec<_>>(),
        expected
    );
}
