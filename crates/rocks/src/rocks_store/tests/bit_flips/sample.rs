//! Sample stores: small ones that have something of everything a store can hold.

use bytes::Bytes;
use journal::STAGED_FROM;
use journal::file_system::{OsFileSystem, os};
use journal::witness::WitnessState;
use store::{BodyPointer, Entry, EntryKey, Head, Index, Write};

use super::*;
use crate::restore;

pub(super) const TOPIC: EntityId = EntityId(2);
pub(super) const SUBSCRIPTIONS: [EntityId; 2] = [EntityId(3), EntityId(4)];

/// In what state the files of a store are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// It was closed.
    Closed,
    /// Its process was killed: part of the contents is in the journal only.
    Crashed,
    /// The power went: the witness on the disk is an older one.
    PowerCut,
    /// Its process was killed, and what it had buffered was synced before.
    Buffered,
    /// It is a backup, which is restored.
    Backup,
    /// It was closed, and has a body in a file of its own.
    Staged,
    /// It has many messages, most of them in tables; its process was killed.
    Large,
}

impl Shape {
    fn durability(self) -> Durability {
        match self {
            Self::Buffered => Durability::Buffered,
            _ => Durability::Synced,
        }
    }

    /// The number of bytes of journals and tables of which one may be flipped.
    pub fn stride(self) -> usize {
        match self {
            Self::Large => 16,
            _ => 1,
        }
    }

    /// Opens what has this shape at `path`.
    pub fn open(self, path: &Path) -> Result<RocksStore, StoreError> {
        if self != Self::Backup {
            return try_open(path, self.durability());
        }
        let target = path.join("restored");
        let options = Options {
            memory_bytes: 24 << 20,
            ..Options::default()
        };
        match restore(path, &target, &options) {
            Ok(_) => try_open(&target, self.durability()),
            Err(error) => Err(StoreError::Io(error.to_string())),
        }
    }

    /// Makes a store of this shape.
    pub fn build(self) -> TempDir {
        let directory = new_directory();
        let mut store = try_open(directory.path(), self.durability()).expect("opened");
        if self == Self::Staged {
            stage(&mut store, 500);
        }
        fill(&mut store, 0);
        if self == Self::Large {
            fill_with_many(&mut store, 0..40);
        }
        make_permanent(&store);
        fill(&mut store, 100);
        if self == Self::Large {
            fill_with_many(&mut store, 40..50);
        }
        if self == Self::Buffered {
            sync(&store);
        }
        let copy = new_directory();
        match self {
            Self::Closed | Self::Staged => {
                store.close().expect("closed");
                return directory;
            }
            Self::Crashed | Self::Buffered | Self::Large => {
                store.hooks.hold(Sync::Later);
                copy_at_rest(&store, directory.path(), copy.path());
            }
            Self::PowerCut => {
                let witnessed = Witness::read(&OsFileSystem, &directory.path().join("witness"));
                fill(&mut store, 200);
                store.hooks.hold(Sync::Later);
                copy_at_rest(&store, directory.path(), copy.path());
                let WitnessState::Position(witnessed) = witnessed.expect("read") else {
                    panic!("the witness of a store that has commits");
                };
                drop(
                    Witness::open(&os(), &copy.path().join("witness"), witnessed).expect("written"),
                );
            }
            Self::Backup => {
                let target = copy.path().join("backup");
                let backup = Store::backup(&store).expect("it can");
                backup.back_up(&target).expect("backed up");
                store.hooks.hold(Sync::Later);
                for entry in fs::read_dir(&target).expect("listed") {
                    let entry = entry.expect("listed");
                    let moved = copy.path().join(entry.file_name());
                    fs::rename(entry.path(), moved).expect("moved");
                }
                fs::remove_dir(&target).expect("removed");
            }
        }
        store.hooks.release();
        drop(store);
        copy
    }
}

fn make_permanent(store: &RocksStore) {
    store.unapplied.request_apply(store.last());
    let applied = store.progress.wait_until_applied(store.last());
    applied.expect("applied");
    store.open_store.database.flush().expect("flushed");
}

/// As once a second.
fn sync(store: &RocksStore) {
    let submitter = store.submitter.as_ref().expect("it is open");
    let mut commits = submitter.commit_lock.lock().expect("no panic before");
    commits.run_maintenance().expect("synced");
}

/// Sends a large body through a file of its own.
fn stage(store: &mut RocksStore, number: u64) {
    let stager = Store::stager(store).expect("it has one");
    let mut set = WriteSet::default();
    put(&mut set, QUEUE, Part::Active, number, STAGED_FROM + 5_000);
    for (_, body) in set.bodies_mut() {
        *body = stager.stage(body.clone());
    }
    commit(store, set);
}

fn commit(store: &mut RocksStore, set: WriteSet) {
    let id = store.submit(set);
    store.progress.wait_for(id).expect("committed");
}

/// The size of the messages of a thousand.
pub(super) fn size_in(thousand: u64) -> usize {
    80 + usize::try_from(thousand).expect("small") * 3
}

/// Commits a thousand messages for each of some thousands, and settles a few of them.
fn fill_with_many(store: &mut RocksStore, thousands: std::ops::Range<u64>) {
    for thousand in thousands {
        let first = 10_000 + thousand * 1_000;
        let id = send(store, first..first + 1_000, size_in(thousand));
        store.progress.wait_for(id).expect("committed");
        let id = settle(store, (first..first + 1_000).step_by(23));
        store.progress.wait_for(id).expect("committed");
    }
}

/// Commits some of every kind of write, with numbers from `base` on.
fn fill(store: &mut RocksStore, base: u64) {
    let mut set = WriteSet::default();
    for entity in [QUEUE, TOPIC].into_iter().chain(SUBSCRIPTIONS) {
        set.push(Write::PutEntity(conformance::entity_row(entity)));
    }
    commit(store, set);
    for number in base + 1..=base + 20 {
        let mut set = WriteSet::default();
        let size = if number % 5 == 0 { 700 } else { 90 };
        put(&mut set, QUEUE, Part::Active, number, size);
        commit(store, set);
    }
    for (from, until) in [(2, 4), (9, 9)] {
        let id = settle(store, base + from..=base + until);
        store.progress.wait_for(id).expect("committed");
    }
    let id = dead_letter(store, base + 10..=base + 12, 90);
    store.progress.wait_for(id).expect("committed");
    publish_some(store, base);
    attach_some(store, base);
    commit(store, entries(base));
    commit(store, heads(store, base));
}

/// Heads that count the messages that are there.
fn heads(store: &RocksStore, base: u64) -> WriteSet {
    let image = store.image().expect("readable");
    let mut set = WriteSet::default();
    for entity in image.entities.keys().copied() {
        let mut head = Head::empty();
        head.next_number = SequenceNumber(base + 1_000);
        for (&(of, part, _), row) in &image.messages {
            if of == entity {
                head.part_mut(part).count += 1;
                head.part_mut(part).bytes += u64::from(row.size);
            }
        }
        set.push(Write::PutHead { entity, head });
    }
    set
}

fn publish_some(store: &mut RocksStore, base: u64) {
    for number in base + 1..=base + 4 {
        let pointer = BodyPointer {
            home: TOPIC,
            number: SequenceNumber(number),
        };
        let mut set = WriteSet::default();
        conformance::publish(&mut set, pointer, &SUBSCRIPTIONS, Part::Active, 120);
        commit(store, set);
        if number % 2 == 0 {
            let mut set = WriteSet::default();
            conformance::release(&mut set, pointer, SUBSCRIPTIONS[0], Part::Active);
            commit(store, set);
        }
    }
}

/// Writes a count, a patch and a deadline.
fn attach_some(store: &mut RocksStore, base: u64) {
    let number = SequenceNumber(base + 1);
    let mut set = WriteSet::default();
    set.push(Write::PutDeliveryCount {
        entity: QUEUE,
        number,
        count: 3,
    });
    let patch = Bytes::from_static(b"a patch");
    set.push(Write::PutPatch {
        entity: QUEUE,
        number,
        patch,
    });
    let (part, block) = (Part::Active, base / 100);
    set.push(Write::PutExpiry {
        entity: QUEUE,
        part,
        block,
        due_ms: 77,
    });
    commit(store, set);
}

fn entries(base: u64) -> WriteSet {
    let mut set = WriteSet::default();
    let indexes = [
        Index::Schedule,
        Index::Session,
        Index::SessionState,
        Index::Rule,
    ];
    let named = |step| {
        let group = Bytes::from(format!("group {base} {step}"));
        EntryKey::new(group, SequenceNumber(0))
    };
    for index in indexes {
        for step in 1..=4 {
            let key = named(step);
            let value = Bytes::from(format!("value {step}"));
            set.push(Write::PutEntry {
                entity: QUEUE,
                index,
                key,
                value,
            });
        }
        set.push(Write::RemoveEntry {
            entity: QUEUE,
            index,
            key: named(1),
        });
        let keys = Box::new(named(3)..named(4));
        set.push(Write::RemoveEntries {
            entity: QUEUE,
            index,
            keys,
        });
    }
    set
}

/// The entries of one index.
pub(super) fn entries_of(
    store: &RocksStore,
    entity: EntityId,
    index: Index,
) -> Result<Vec<Entry>, StoreError> {
    let query = store::Query::Entries {
        entity,
        index,
        from: EntryKey::new(Bytes::new(), SequenceNumber(0)),
        until: EntryKey::new(
            Bytes::from(vec![u8::MAX; EntryKey::MAX_GROUP]),
            SequenceNumber::MAX,
        ),
        limit: usize::MAX,
        max_bytes: usize::MAX,
    };
    store
        .reader()
        .read(CommitId(0), &query)
        .and_then(Found::into_entries)
}
