//! Commits: order, heads, definitions, and the content after reopening and crashes. Each function
//! is one sentence about every store.

use bytes::Bytes;

use super::{A, B, Harness, MIB, entity_row, numbers, put, range, read, remove, set, submit};
use crate::Store;
use crate::id::{CommitId, Part, SequenceNumber};
use crate::image::Image;
use crate::record::{EntityRow, ExpiryRow, Head, Recovery};
use crate::write::{Write, WriteSet};

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

/// A head with every field in use.
fn full_head() -> Head {
    let mut head = Head {
        next_number: SequenceNumber(1 << 40),
        last_enqueued_ms: 77,
        periods: vec![0, 78, u64::MAX],
        schedule_from: (1 << 41, SequenceNumber(u64::MAX)),
        session_state_bytes: 1 << 42,
        accessed_ms: 79,
        parts: Head::empty().parts,
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
        Recovery::default()
    );
    let changed = EntityRow {
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

pub(super) fn an_entity_may_come_fill_up_and_go_within_one_set<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| put(set, A, Part::Active, 1, 10));
    let last = submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(B)));
        put(set, B, Part::Active, 1, 2 * MIB);
        put(set, B, Part::Active, 2, 10);
        put(set, B, Part::Scheduled, 3, 10);
        remove(set, B, Part::Active, 2);
        set.push(Write::PutHead {
            entity: B,
            head: full_head(),
        });
        set.push(Write::RemoveEntity(B));
    });
    for part in Part::ALL {
        assert_eq!(numbers(&read(&store, last, &range(B, part, 0, 10))), []);
    }
    let mut expected = Image::default();
    for write in set(|set| put(set, A, Part::Active, 1, 10)).as_slice() {
        expected.apply(write).expect("the writes keep the contract");
    }
    expected.last_entity = Some(B);
    let mut store = harness.reopen(store);
    assert!(
        harness.image(&mut store) == expected,
        "only the other entity is left"
    );
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
