//! Shares: one body for several messages, removed with the last of them. Each function is one
//! sentence about every store.

use super::{A, B, Harness, MIB, body_of, numbers, publish, put, range, read, release, submit};
use crate::Store;
use crate::id::{EntityId, Part, SequenceNumber};
use crate::image::Image;
use crate::record::BodyPointer;
use crate::write::Write;

/// Another neighbour of the home.
const C: EntityId = EntityId(9);

fn at(number: u64) -> BodyPointer {
    BodyPointer {
        home: A,
        number: SequenceNumber(number),
    }
}

/// Numbers of bodies, and how many copies are left of those that are shared.
fn bodies_and_shares<H: Harness>(
    harness: &mut H,
    store: &mut H::Store,
) -> (Vec<u64>, Vec<(u64, u32)>) {
    let image = harness.image(store);
    assert_eq!(image.audit_bodies(), []);
    let bodies = image.bodies.keys().map(|(_, number)| number.0).collect();
    let shares = image.shares.iter();
    (
        bodies,
        shares
            .map(|((_, number), copies)| (number.0, *copies))
            .collect(),
    )
}

pub(super) fn a_shared_body_goes_with_its_last_copy<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        put(set, A, Part::Active, 1, 10);
        publish(set, at(2), &[A, B, C], Part::Active, 20);
        publish(set, at(3), &[B], Part::Active, 30);
    });
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![1, 2, 3], vec![(2, 3), (3, 1)])
    );
    submit(&mut store, |set| release(set, at(2), A, Part::Active));
    submit(&mut store, |set| {
        release(set, at(3), B, Part::Active);
        release(set, at(2), C, Part::Active);
    });
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![1, 2], vec![(2, 1)])
    );
    let last = submit(&mut store, |_| {});
    let left = read(&store, last, &range(B, Part::Active, 0, 9));
    assert_eq!(numbers(&left), [2]);
    assert_eq!(left[0].body, Some(body_of(at(2), 20)));
    submit(&mut store, |set| release(set, at(2), B, Part::Active));
    assert_eq!(bodies_and_shares(harness, &mut store), (vec![1], vec![]));
}

pub(super) fn the_count_of_copies_survives_reopening_and_crashes<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        for number in 1..=3 {
            publish(set, at(number), &[A, B, C], Part::Active, 10);
        }
    });
    let mut store = harness.reopen(store);
    let id = submit(&mut store, |set| release(set, at(1), B, Part::Active));
    harness.make_durable(&mut store, id);
    let mut store = harness.crash(store);
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![1, 2, 3], vec![(1, 2), (2, 3), (3, 3)])
    );
    submit(&mut store, |set| {
        for entity in [A, C] {
            release(set, at(1), entity, Part::Active);
            release(set, at(3), entity, Part::Active);
        }
    });
    let mut store = harness.reopen(store);
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![2, 3], vec![(2, 3), (3, 1)])
    );
}

pub(super) fn what_is_published_and_settled_at_once_leaves_nothing<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    for number in 1..=40 {
        let len = if number % 8 == 5 { 2 * MIB } else { 30 };
        submit(&mut store, |set| {
            publish(set, at(number), &[B, C], Part::Active, len);
            release(set, at(number), C, Part::Active);
            if number > 20 {
                release(set, at(number), B, Part::Active);
            }
        });
        if number <= 20 && number != 7 {
            submit(&mut store, |set| release(set, at(number), B, Part::Active));
        }
    }
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![7], vec![(7, 1)])
    );
    let mut store = harness.reopen(store);
    submit(&mut store, |set| release(set, at(7), B, Part::Active));
    assert_eq!(harness.image(&mut store), Image::default());
}

pub(super) fn a_large_shared_body_leaves_nothing_behind<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        for (number, len) in [(1, 3 * MIB), (2, 5), (3, 2 * MIB + 1)] {
            publish(set, at(number), &[B, C], Part::Active, len);
        }
    });
    submit(&mut store, |set| {
        for number in [3, 1, 2] {
            release(set, at(number), B, Part::Active);
        }
    });
    let mut store = harness.reopen(store);
    let found = read(&store, store.durable(), &range(C, Part::Active, 0, 9));
    assert_eq!(numbers(&found), [1, 2, 3]);
    assert!(found[0].body == Some(body_of(at(1), 3 * MIB)));
    submit(&mut store, |set| {
        for number in [1, 3] {
            release(set, at(number), C, Part::Active);
        }
    });
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![2], vec![(2, 1)])
    );
    submit(&mut store, |set| release(set, at(2), C, Part::Active));
    assert_eq!(harness.image(&mut store), Image::default());
}

pub(super) fn copies_that_move_share_their_body_as_before<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        publish(set, at(1), &[B, C], Part::Active, 10);
    });
    submit(&mut store, |set| {
        set.push(Write::RemoveMessage {
            entity: B,
            part: Part::Active,
            number: SequenceNumber(1),
        });
        let mut row = super::row_of(B, SequenceNumber(1), 10);
        row.body = at(1);
        set.push(Write::PutMessage {
            entity: B,
            part: Part::DeadLetter,
            number: SequenceNumber(1),
            row,
        });
        release(set, at(1), C, Part::Active);
    });
    let last = submit(&mut store, |_| {});
    let dead = read(&store, last, &range(B, Part::DeadLetter, 0, 9));
    assert_eq!(dead[0].body, Some(body_of(at(1), 10)));
    submit(&mut store, |set| release(set, at(1), B, Part::DeadLetter));
    assert_eq!(harness.image(&mut store), Image::default());
}

pub(super) fn shared_bodies_go_with_their_home<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let foreign = BodyPointer { home: B, ..at(1) };
    submit(&mut store, |set| {
        publish(set, at(1), &[A], Part::Active, 2 * MIB);
        publish(set, at(2), &[B, C], Part::Active, 10);
        publish(set, foreign, &[B, C], Part::DeadLetter, 10);
    });
    // The last of what was shared, and the home in the same set.
    submit(&mut store, |set| {
        for entity in [B, C] {
            release(set, at(2), entity, Part::Active);
        }
        set.push(Write::RemoveEntity(A));
    });
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (vec![1], vec![(1, 2)])
    );
    // One copy is released because its entity goes, the other goes with the home.
    submit(&mut store, |set| {
        release(set, foreign, C, Part::DeadLetter);
        set.push(Write::RemoveEntity(C));
        set.push(Write::RemoveEntity(B));
    });
    assert_eq!(harness.image(&mut store), Image::default());
    let mut store = harness.reopen(store);
    assert_eq!(harness.image(&mut store), Image::default());
}

pub(super) fn thousands_of_neighbours_released_in_any_order_leave_the_others_alone<H: Harness>(
    harness: &mut H,
) {
    const LAST: u64 = 6_000;
    let mut store = harness.create();
    let kept = |number: u64| number.is_multiple_of(997) || number > 5_700;
    for first in (1..LAST).step_by(100) {
        submit(&mut store, |set| {
            for number in first..first + 100 {
                publish(set, at(number), &[B, C], Part::Active, 20);
            }
        });
    }
    // One subscriber takes them in order, the other backwards and by leaps, after a restart.
    for first in (1..=LAST).step_by(250) {
        submit(&mut store, |set| {
            for number in (first..first + 250).filter(|number| !kept(*number)) {
                release(set, at(number), B, Part::Active);
            }
        });
    }
    let mut store = harness.reopen(store);
    for leap in (0..7).rev() {
        submit(&mut store, |set| {
            let all = (1..=LAST).filter(|number| number % 7 == leap && !kept(*number));
            for number in all.rev() {
                release(set, at(number), C, Part::Active);
            }
        });
    }
    let expected: Vec<u64> = (1..=LAST).filter(|number| kept(*number)).collect();
    let shares = expected.iter().map(|number| (*number, 2)).collect();
    let mut store = harness.reopen(store);
    assert_eq!(
        bodies_and_shares(harness, &mut store),
        (expected.clone(), shares)
    );
    let last = submit(&mut store, |_| {});
    for entity in [B, C] {
        let found = read(&store, last, &range(entity, Part::Active, 0, u64::MAX));
        assert_eq!(numbers(&found), expected);
    }
}
