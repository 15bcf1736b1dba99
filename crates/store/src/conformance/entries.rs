//! Entries: ordered by group and number, replaced, removed, found by range, by name and by group.

use bytes::Bytes;

use super::{Harness, entity_row};
use crate::Store;
use crate::entry::{Entry, EntryKey, Index};
use crate::id::{CommitId, EntityId, SequenceNumber};
use crate::query::{Found, Query};
use crate::write::{Write, WriteSet};

const A: EntityId = EntityId(1);
const B: EntityId = EntityId(2);

fn key(group: &[u8], number: u64) -> EntryKey {
    EntryKey::new(Bytes::copy_from_slice(group), SequenceNumber(number))
}

fn put(set: &mut WriteSet, entity: EntityId, index: Index, key: EntryKey, value: &'static str) {
    set.push(Write::PutEntry {
        entity,
        index,
        key,
        value: Bytes::from_static(value.as_bytes()),
    });
}

fn submit(store: &mut impl Store, fill: impl FnOnce(&mut WriteSet)) -> CommitId {
    let mut set = WriteSet::default();
    fill(&mut set);
    store.submit(set)
}

fn find(store: &impl Store, after: CommitId, query: &Query) -> Vec<(Vec<u8>, u64, String)> {
    let found = store.reader().read(after, query);
    let found = found.and_then(Found::into_entries);
    let found = found.expect("the store answers with entries");
    found.iter().map(plain).collect()
}

fn plain(entry: &Entry) -> (Vec<u8>, u64, String) {
    let value = String::from_utf8_lossy(&entry.value).into_owned();
    (entry.key.group.to_vec(), entry.key.number.0, value)
}

fn all_of(entity: EntityId, index: Index) -> Query {
    between(entity, index, key(b"", 0), key(&[u8::MAX; 64], u64::MAX))
}

fn between(entity: EntityId, index: Index, from: EntryKey, until: EntryKey) -> Query {
    Query::Entries {
        entity,
        index,
        from,
        until,
        limit: usize::MAX,
        max_bytes: usize::MAX,
    }
}

pub(super) fn entries_stand_in_order_of_group_and_number<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let last = submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(A)));
        put(set, A, Index::Session, key(b"b", 2), "b2");
        put(set, A, Index::Session, key(b"aa", 1), "aa1");
        put(set, A, Index::Session, key(b"b", 1), "old");
        put(set, A, Index::Session, key(b"b", 1), "b1");
        put(set, A, Index::Session, key(b"a\0", 7), "a07");
        put(set, A, Index::Session, key(b"", 9), "9");
        put(set, A, Index::Schedule, key(b"b", 1), "another index");
        put(set, B, Index::Session, key(b"b", 1), "another entity");
    });
    let found = find(&store, last, &all_of(A, Index::Session));
    let values: Vec<_> = found.iter().map(|(_, _, value)| value.as_str()).collect();
    assert_eq!(values, ["9", "b1", "b2", "a07", "aa1"]);
    let query = between(A, Index::Session, key(b"b", 2), key(b"aa", 1));
    let values: Vec<_> = find(&store, last, &query)
        .into_iter()
        .map(|e| e.2)
        .collect();
    assert_eq!(values, ["b2", "a07"]);
    let backwards = between(A, Index::Session, key(b"b", 2), key(b"b", 1));
    assert_eq!(find(&store, last, &backwards), []);
}

pub(super) fn entries_stop_at_a_limit_of_number_and_of_bytes<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    let last = submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(A)));
        for number in 0..5 {
            put(set, A, Index::Schedule, key(b"12345678", number), "value");
        }
    });
    let check = |limit, max_bytes, expected: usize| {
        let query = Query::Entries {
            entity: A,
            index: Index::Schedule,
            from: key(b"", 0),
            until: key(&[u8::MAX; 9], 0),
            limit,
            max_bytes,
        };
        assert_eq!(find(&store, last, &query).len(), expected);
    };
    check(usize::MAX, usize::MAX, 5);
    check(3, usize::MAX, 3);
    check(0, usize::MAX, 0);
    check(usize::MAX, 0, 1);
    check(usize::MAX, 21, 1);
    check(usize::MAX, 22, 2);
}

pub(super) fn entries_are_found_by_name_and_groups_by_their_first<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(A)));
        for (group, number) in [("x", 3), ("x", 4), ("y", 1), ("zz", 2), ("zz", 9), ("k", 1)] {
            put(set, A, Index::Session, key(group.as_bytes(), number), "");
        }
        put(set, A, Index::SessionState, key(b"after", 0), "");
    });
    let last = submit(&mut store, |set| {
        set.push(Write::RemoveEntry {
            entity: A,
            index: Index::Session,
            key: key(b"k", 1),
        });
        set.push(Write::RemoveEntry {
            entity: A,
            index: Index::Session,
            key: key(b"was never there", 1),
        });
    });
    let groups = |after: Option<&'static str>, limit| {
        let query = Query::Groups {
            entity: A,
            index: Index::Session,
            after: after.map(Bytes::from),
            limit,
        };
        let found = find(&store, last, &query).into_iter();
        let name = |group: Vec<u8>| String::from_utf8_lossy(&group).into_owned();
        found
            .map(|(group, number, _)| (name(group), number))
            .collect::<Vec<_>>()
    };
    let owned = |groups: &[(&str, u64)]| {
        let owned = groups
            .iter()
            .map(|(group, number)| ((*group).to_owned(), *number));
        owned.collect::<Vec<_>>()
    };
    assert_eq!(groups(None, 9), owned(&[("x", 3), ("y", 1), ("zz", 2)]));
    assert_eq!(groups(Some("x"), 9), owned(&[("y", 1), ("zz", 2)]));
    assert_eq!(groups(Some("k"), 1), owned(&[("x", 3)]));
    assert_eq!(groups(Some("zz"), 9), []);
    let query = Query::EntryPoints {
        entity: A,
        index: Index::Session,
        keys: vec![key(b"zz", 9), key(b"k", 1), key(b"x", 3), key(b"x", 3)],
    };
    let found: Vec<_> = find(&store, last, &query)
        .into_iter()
        .map(|e| e.1)
        .collect();
    assert_eq!(found, [3, 9]);
}

pub(super) fn a_range_of_entries_goes_at_once_and_what_is_put_behind_it_stays<H: Harness>(
    harness: &mut H,
) {
    let remove = |set: &mut WriteSet, from: EntryKey, until: EntryKey| {
        set.push(Write::RemoveEntries {
            entity: A,
            index: Index::DuplicateId,
            keys: Box::new(from..until),
        });
    };
    let mut store = harness.create();
    submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(A)));
        set.push(Write::PutEntity(entity_row(B)));
        for group in [&b"a"[..], b"b", b"c", b"d", b"aa"] {
            put(set, A, Index::DuplicateId, key(group, 1), "early");
        }
        put(set, A, Index::Session, key(b"b", 1), "another index");
        put(set, B, Index::DuplicateId, key(b"b", 1), "another entity");
    });
    // With what is put in the same set, before and after it, and in the next one.
    submit(&mut store, |set| {
        put(set, A, Index::DuplicateId, key(b"bb", 1), "before it");
        put(set, A, Index::DuplicateId, key(b"b", 2), "before it");
        remove(set, key(b"b", 1), key(b"d", 1));
        put(set, A, Index::DuplicateId, key(b"c", 2), "after it");
        remove(set, key(b"z", 1), key(b"a", 1));
    });
    let last = submit(&mut store, |set| {
        put(set, A, Index::DuplicateId, key(b"b", 1), "later");
    });
    let expected = [
        (b"a".to_vec(), 1, "early"),
        (b"b".to_vec(), 1, "later"),
        (b"c".to_vec(), 2, "after it"),
        (b"d".to_vec(), 1, "early"),
        (b"aa".to_vec(), 1, "early"),
        (b"bb".to_vec(), 1, "before it"),
    ];
    let expected = expected.map(|(group, number, value)| (group, number, value.to_owned()));
    assert_eq!(find(&store, last, &all_of(A, Index::DuplicateId)), expected);
    assert_eq!(find(&store, last, &all_of(A, Index::Session)).len(), 1);
    assert_eq!(find(&store, last, &all_of(B, Index::DuplicateId)).len(), 1);
    let mut store = harness.reopen(store);
    let last = submit(&mut store, |set| {
        remove(set, key(b"", 0), key(&[u8::MAX; 9], 0));
    });
    assert_eq!(find(&store, last, &all_of(A, Index::DuplicateId)), []);
}

pub(super) fn entries_survive_and_go_with_their_entity<H: Harness>(harness: &mut H) {
    let mut store = harness.create();
    submit(&mut store, |set| {
        set.push(Write::PutEntity(entity_row(A)));
        set.push(Write::PutEntity(entity_row(B)));
        for entity in [A, B] {
            for index in Index::ALL {
                put(set, entity, index, key(b"group", 1), "kept");
            }
        }
    });
    let mut store = harness.reopen(store);
    let last = submit(&mut store, |set| set.push(Write::RemoveEntity(A)));
    for index in Index::ALL {
        assert_eq!(find(&store, last, &all_of(A, index)), []);
        assert_eq!(find(&store, last, &all_of(B, index)).len(), 1);
    }
    assert!(
        harness
            .image(&mut store)
            .entries
            .keys()
            .all(|place| place.0 == B)
    );
}
