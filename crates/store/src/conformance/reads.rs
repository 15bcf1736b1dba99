//! Reads: the rows and bodies that each query returns. Each function is one sentence about every
//! store.

use bytes::Bytes;

use super::{A, B, Harness, numbers, put, range, read, row_of, submit};
use crate::id::{EntityId, Part, SequenceNumber};
use crate::query::{BodyLocation, KnownMessage, Query, StoredMessage};
use crate::record::{BodyPointer, MessageRow};
use crate::write::Write;

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
            max_bytes: usize::MAX,
        };
        let found = read(&store, last, &query);
        assert_eq!(numbers(&found), [2, 6]);
        assert!(found.iter().all(|message| message.body.is_some() == bodies));
        assert!(found.iter().all(|message| message.part == Part::Deferred));
    }
    for (max_bytes, expected) in [(0, 1), (20, 1), (21, 2), (40, 2), (41, 3)] {
        let query = Query::Points {
            entity: A,
            part: Part::Deferred,
            numbers: [2, 4, 6].map(SequenceNumber).to_vec(),
            bodies: true,
            max_bytes,
        };
        assert_eq!(read(&store, last, &query).len(), expected);
    }
    let nothing = Query::Points {
        entity: A,
        part: Part::Active,
        numbers: vec![],
        bodies: true,
        max_bytes: usize::MAX,
    };
    assert_eq!(read(&store, last, &nothing), []);
}

pub(super) fn the_rest_of_known_messages_is_found<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let first = submit(&mut store, |set| {
        for number in [1, 2, 3, 5, 400, 100_000] {
            put(set, A, Part::Active, number, 10 * number.min(40) as usize);
        }
    });
    let before = read(&store, first, &range(A, Part::Active, 0, u64::MAX));
    let seen = read(&store, first, &rows_only(A, Part::Active));
    let last = submit(&mut store, |set| {
        set.push(Write::RemoveMessage {
            entity: A,
            part: Part::Active,
            number: SequenceNumber(3),
        });
        set.push(Write::RemoveBody {
            pointer: before[2].row.body,
        });
        set.push(Write::PutPatch {
            entity: A,
            number: SequenceNumber(5),
            patch: Bytes::from_static(b"changed"),
        });
    });
    let now = read(&store, last, &range(A, Part::Active, 0, u64::MAX));
    // Where the bodies were, nothing, and what was never true.
    let told = [
        |row: &StoredMessage| row.body_location,
        |_: &StoredMessage| BodyLocation::UNKNOWN,
        |row: &StoredMessage| {
            BodyLocation([row.body_location.0[0], 7, u64::from(row.row.size) << 32])
        },
        |row: &StoredMessage| BodyLocation([u64::MAX, u64::MAX, u64::from(row.row.size) << 32]),
        |_: &StoredMessage| BodyLocation([1, 0, u64::MAX]),
    ];
    for told in told {
        for asked in [&[1, 2, 3, 5][..], &[2, 3, 400, 100_000], &[5], &[3], &[]] {
            let rows = seen.iter().filter(|row| asked.contains(&row.number.0));
            let known = rows.map(|row| KnownMessage {
                number: row.number,
                row: row.row,
                delivery_count: 7,
                body_location: told(row),
            });
            let query = Query::Bodies {
                entity: A,
                part: Part::Active,
                known: known.collect(),
            };
            let mut found = read(&store, last, &query);
            // It may be found as it was.
            found.retain(|message| {
                *message
                    != StoredMessage {
                        delivery_count: 7,
                        ..before[2].clone()
                    }
            });
            let expected = now.iter().filter(|row| asked.contains(&row.number.0));
            let expected = expected.map(|row| StoredMessage {
                delivery_count: 7,
                ..row.clone()
            });
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}

fn rows_only(entity: EntityId, part: Part) -> Query {
    Query::Range {
        entity,
        part,
        from: SequenceNumber(0),
        until: SequenceNumber::MAX,
        limit: usize::MAX,
        bodies: false,
        max_bytes: 0,
    }
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
            max_bytes: usize::MAX,
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
            enqueued_number: u64::MAX,
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
