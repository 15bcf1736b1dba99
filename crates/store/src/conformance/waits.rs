//! Waits: rows that go to the scheduled part and come back under their own numbers, as those of
//! messages that wait for their next delivery. Each function is one sentence about every store.

use super::{A, Harness, body_of, numbers, put, range, read, remove, row_of, submit};
use crate::Store;
use crate::id::{Part, SequenceNumber};
use crate::write::{Write, WriteSet};

const BYTES: usize = 50;

fn change_part(set: &mut WriteSet, number: u64, from: Part, part: Part) {
    let number = SequenceNumber(number);
    set.push(Write::RemoveMessage {
        entity: A,
        part: from,
        number,
    });
    set.push(Write::PutMessage {
        entity: A,
        part,
        number,
        row: row_of(A, number, BYTES),
    });
}

fn wait(set: &mut WriteSet, number: u64) {
    change_part(set, number, Part::Active, Part::Scheduled);
}

fn come_back(set: &mut WriteSet, number: u64) {
    change_part(set, number, Part::Scheduled, Part::Active);
}

fn check(store: &mut impl Store, part: Part, expected: &[u64]) {
    let last = submit(store, |_| {});
    let found = read(store, last, &range(A, part, 0, u64::MAX));
    assert_eq!(numbers(&found), expected, "{part:?}");
    for message in found {
        let body = body_of(message.row.body, BYTES);
        assert_eq!(message.body, Some(body), "{}", message.number);
    }
}

/// Whatever of it is applied together, be it all or each set by itself.
pub(super) fn what_waits_comes_back_any_number_of_times<H: Harness>(harness: &mut H) {
    for reads_between in [false, true] {
        for is_crash in [false, true] {
            let mut store = harness.create();
            let mut last = submit(&mut store, |set| {
                for number in 1..=12 {
                    put(set, A, Part::Active, number, BYTES);
                }
            });
            let mut step = |store: &mut H::Store, fill: &dyn Fn(&mut WriteSet)| {
                last = submit(store, fill);
                if reads_between {
                    read(store, last, &range(A, Part::Active, 0, 1));
                }
            };
            step(&mut store, &|set| (1..=6).for_each(|it| wait(set, it)));
            step(&mut store, &|set| (2..=6).for_each(|it| come_back(set, it)));
            step(&mut store, &|set| {
                for number in [3, 5] {
                    wait(set, number);
                }
            });
            step(&mut store, &|set| {
                come_back(set, 5);
                remove(set, A, Part::Active, 6);
                // Its neighbours go, enough of them to be removed as a range.
                for number in 7..=12 {
                    remove(set, A, Part::Active, number);
                }
            });
            harness.make_durable(&mut store, last);
            let mut store = if is_crash {
                harness.crash(store)
            } else {
                harness.reopen(store)
            };
            check(&mut store, Part::Active, &[2, 4, 5]);
            check(&mut store, Part::Scheduled, &[1, 3]);
            submit(&mut store, |set| {
                for number in [2, 4, 5] {
                    remove(set, A, Part::Active, number);
                }
                for number in [1, 3] {
                    remove(set, A, Part::Scheduled, number);
                }
            });
            let mut store = harness.reopen(store);
            let image = harness.image(&mut store);
            assert_eq!((image.messages.len(), image.bodies.len()), (0, 0));
        }
    }
}

/// Enough of them that what they took on the disk is given back as a whole.
pub(super) fn what_waits_while_all_its_neighbours_are_settled_comes_back<H: Harness>(
    harness: &mut H,
) {
    let (most, waiting) = (70_000, 35_000);
    let mut store = harness.create();
    for first in (1..=most).step_by(1_000) {
        submit(&mut store, |set| {
            for number in first..first + 1_000 {
                put(set, A, Part::Active, number, BYTES);
            }
        });
    }
    submit(&mut store, |set| wait(set, waiting));
    for first in (1..=most).step_by(1_000) {
        let last = submit(&mut store, |set| {
            for number in (first..first + 1_000).filter(|number| *number != waiting) {
                remove(set, A, Part::Active, number);
            }
        });
        read(&store, last, &range(A, Part::Active, 0, 1));
    }
    let last = submit(&mut store, |set| come_back(set, waiting));
    read(&store, last, &range(A, Part::Active, 0, 1));
    let mut store = harness.reopen(store);
    check(&mut store, Part::Active, &[waiting]);
    let mut store = harness.reopen(store);
    check(&mut store, Part::Active, &[waiting]);
}
