//! Bodies: bodies of every size, stored apart from their rows and removed by themselves. Each
//! function is one sentence about every store.

use super::{A, Harness, MIB, body_of, numbers, put, range, read, remove, row_of, submit};
use crate::id::{CommitId, Part, SequenceNumber};
use crate::image::Image;
use crate::write::Write;

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
