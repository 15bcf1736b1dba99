//! A caller that commits alone does not wait, keeps the order, and sees failures as any other.

use std::collections::BTreeSet;

use super::*;

fn set_of(numbers: &[u64], len: usize) -> WriteSet {
    let mut set = WriteSet::default();
    for number in numbers {
        put(&mut set, QUEUE, Part::Active, *number, len);
    }
    set
}

/// A store that never has to ask how quick the disk is.
fn buffered(path: &Path) -> RocksStore {
    try_open(path, Durability::Buffered).expect("the store opens")
}

#[test]
fn sets_that_are_alone_are_durable_at_once_and_wake_no_thread() {
    let directory = new_directory();
    let (sender, woken) = mpsc::channel();
    let wake: Wake = Arc::new(move || sender.send(()).unwrap_or_default());
    let options = Options {
        durability: Durability::Buffered,
        ..Options::default()
    };
    let mut store = RocksStore::open(directory.path(), options, wake).expect("opened");
    // The committer may be running maintenance, and takes the sets that come meanwhile.
    let (mut own, numbers) = (0, 1..=50);
    for number in numbers.clone() {
        let id = store.commit(set_of(&[number], 10), CallerLoad::Idle);
        assert_eq!(id, CommitId(number));
        own += usize::from(store.durable() == id);
    }
    store.progress.wait_for(store.last()).expect("committed");
    assert!(own > 0);
    assert!(woken.try_iter().count() <= 50 - own);
    assert_eq!(numbers_in(&store), numbers.collect::<Vec<_>>());
    let statistics = store.statistics();
    store.close().expect("closed");
    assert_eq!(statistics.snapshot().sets, 50);
    assert_eq!(numbers_in(&open(directory.path())).len(), 50);
}

#[test]
fn it_overtakes_nothing_that_is_on_its_way() {
    let directory = new_directory();
    let mut store = buffered(directory.path());
    store.hooks.hold(Sync::Later);
    let first = send(&mut store, [1], 10);
    store.hooks.wait_until_held();
    // Would wait for ever if it did not leave this to the committer.
    let second = store.commit(set_of(&[2], 10), CallerLoad::Idle);
    assert_eq!(store.durable(), CommitId(0));
    store.hooks.release();
    store.progress.wait_for(second).expect("committed");
    assert!(first < second);
    assert_eq!(numbers_in(&store), [1, 2]);
}

#[test]
fn what_takes_long_is_left_to_the_committer() {
    let directory = new_directory();
    let mut store = buffered(directory.path());
    store.hooks.hold(Sync::Later);
    let large = store.commit(set_of(&[1], 2 * MIB), CallerLoad::Idle);
    store.hooks.wait_until_held();
    assert_eq!(store.durable(), CommitId(0));
    store.hooks.release();
    store.progress.wait_for(large).expect("committed");
    // A disk of which nothing is known may be slow.
    let directory = new_directory();
    let mut store = open(directory.path());
    store.hooks.hold(Sync::Now);
    let unknown = store.commit(set_of(&[1], 10), CallerLoad::Idle);
    store.hooks.wait_until_held();
    assert_eq!(store.durable(), CommitId(0));
    store.hooks.release();
    store.progress.wait_for(unknown).expect("committed");
}

#[test]
fn its_failure_poisons_the_store() {
    let directory = new_directory();
    let mut store = buffered(directory.path());
    let first = store.commit(set_of(&[1], 10), CallerLoad::Idle);
    store.progress.wait_for(first).expect("committed");
    store.hooks.fail_next();
    let second = store.commit(set_of(&[2], 10), CallerLoad::Idle);
    assert!(store.progress.wait_for(second).is_err());
    let injected = StoreError::Io("injected fault".into());
    assert_eq!(store.failure(), Some(injected.clone()));
    let third = store.commit(set_of(&[3], 10), CallerLoad::Idle);
    assert!(store.progress.wait_for(third).is_err());
    assert_eq!(store.durable(), first);
    assert_eq!(store.close(), Err(injected));
    assert_eq!(numbers_in(&open(directory.path())), [1]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_any_mixture_all_is_kept_in_order(
        words in prop::collection::vec(any::<u8>(), 1..200),
        durability in prop_oneof![Just(Durability::Synced), Just(Durability::Buffered)],
    ) {
        let mut harness = Rocks::new(durability);
        let mut store = harness.open();
        let mut expected = BTreeSet::new();
        let mut durable = CommitId(0);
        for (number, word) in (1_u64..).zip(words) {
            let mut set = WriteSet::default();
            match expected.first().copied().filter(|_| word & 1 == 0) {
                Some(oldest) => {
                    expected.remove(&oldest);
                    remove(&mut set, QUEUE, Part::Active, oldest);
                }
                None => {
                    expected.insert(number);
                    put(&mut set, QUEUE, Part::Active, number, usize::from(word));
                }
            }
            let caller = if word & 4 == 0 { CallerLoad::Idle } else { CallerLoad::Busy };
            let id = if word & 2 == 0 { store.submit(set) } else { store.commit(set, caller) };
            prop_assert_eq!(id, CommitId(number));
            prop_assert!(durable <= store.durable() && store.durable() <= id);
            durable = store.durable();
        }
        store.progress.wait_for(store.last()).expect("committed");
        let store = harness.crash(store);
        prop_assert_eq!(numbers_in(&store), expected.into_iter().collect::<Vec<_>>());
    }
}
