//! Door: one shard's way into a store that it shares with others.
//!
//! Ids are the store's own, given out in the order in which sets come, whoever sends them: so they rise
//! for each door though not by one, and the store's watermark holds for all. Whoever waits is woken by
//! every group, of which each shard has a part as long as all are busy.

use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard};

use rocks::{Options, RocksStore};
use store::{CommitId, EntityId, Reader, Recovery, Statistics, Store, StoreError, WriteSet};

/// Ids of a shard's entities begin here, times its number: there is one of each in a store.
const IDS: u64 = 1 << 32;

/// A store that several shards share.
pub struct Shared(Arc<Mutex<RocksStore>>);

/// See the module.
pub struct Door {
    shared: Arc<Mutex<RocksStore>>,
    number: u64,
}

impl Shared {
    /// Opens the store at `path`; `bells` are rung when it has made progress.
    pub fn open(path: &Path, bells: Vec<SyncSender<()>>) -> Self {
        std::fs::create_dir_all(path).expect("made");
        let wake = move || {
            for bell in &bells {
                // One that has been rung and not heard needs no more.
                let _ = bell.try_send(());
            }
        };
        let store = RocksStore::open(path, Options::default(), Arc::new(wake));
        Self(Arc::new(Mutex::new(store.expect("opens"))))
    }

    /// The door of the shard of that number.
    pub fn door(&self, number: u64) -> Door {
        let shared = self.0.clone();
        Door { shared, number }
    }

    /// How its commits have been going.
    pub fn statistics(&self) -> Statistics {
        self.0.lock().expect("no panic").statistics().snapshot()
    }
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, RocksStore> {
        self.shared.lock().expect("no panic")
    }
}

impl Store for Door {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.lock().submit(writes)
    }

    fn durable(&self) -> CommitId {
        self.lock().durable()
    }

    fn failure(&self) -> Option<StoreError> {
        self.lock().failure()
    }

    fn is_nearly_full(&self) -> bool {
        self.lock().is_nearly_full()
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.lock().reader()
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        let mut recovery = self.lock().recover()?;
        let is_own = |id: EntityId| id.0 / IDS == self.number;
        recovery.entities.retain(|row| is_own(row.id));
        recovery.heads.retain(|(id, _)| is_own(*id));
        recovery.expiries.retain(|row| is_own(row.entity));
        recovery.rules.retain(|(id, _)| is_own(*id));
        let last = recovery.entities.iter().map(|row| row.id).max();
        recovery.last_entity = last.or(Some(EntityId(self.number * IDS)));
        Ok(recovery)
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.failure().map_or(Ok(()), Err)
    }
}
