//! Journaled: the store's journal on a model disk, below what the broker under test writes.
//!
//! Each group of write sets becomes a record, is merged into the index, and its segment goes when
//! nothing needs it. All of that is the real store's; only threads are left out, and a model of
//! ordered tables is in the place of RocksDB. Any
//! call to the disk may be the last one before a power cut, or fail. After each restart the index
//! must be as after some commit, not before the newest that was acknowledged, with every body.
//!
//! Copies of the disk are opened as well: with a flipped bit, which must be noticed, and from a
//! backup, which must be whole.

mod control;
mod indexer;
mod opening;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use index::model::ModelTables;
use journal::FileSystem;
use journal::directory::Layout;
use journal::witness::Witness;
use store::{CommitId, Image, StoreError, WriteSet};

use crate::model_disk::{Fault, ModelDisk, Swallowed};
use crate::rng::Rng;
use crate::violation::Violation;
pub use control::Control;
use indexer::Group;
use opening::{Opened, Start};

/// A segment ends at this size, so that a run has many.
const SEGMENT_BYTES: u64 = 48 << 10;
/// Writes that a start gives to the index at once, as the store does it, and fewer.
const WRITES_AT_ONCE: [usize; 3] = [32_768, 64, 1];
/// Power cuts that one restart has at most.
const MOST_CUTS: u32 = 3;

/// What happened to a disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct DiskCounts {
    pub calls: u64,
    pub records: u64,
    pub cuts: u64,
    /// Restarts of the process without a power cut.
    pub kills: u64,
    pub failures: u64,
    pub flips: u64,
    /// Flips that were noticed.
    pub noticed: u64,
    pub backups: u64,
    pub released: u64,
    pub moved: u64,
    /// Times that files of settled ranges were dropped.
    pub reclaimed: u64,
}

/// A copy that was made while the journal was open.
struct Backup {
    root: PathBuf,
    tables: ModelTables,
    image: Image,
}

/// The journal, its disk and the tables of its index.
pub struct Journaled {
    disk: ModelDisk,
    rng: Rng,
    control: Option<Control>,
    tables: Arc<ModelTables>,
    /// None after a failure, until the restart.
    opened: Option<Opened>,
    /// The newest commit of each record of this opening.
    records: BTreeMap<u64, CommitId>,
    /// The newest record that was acknowledged.
    acknowledged: u64,
    backup: Option<Backup>,
    counts: DiskCounts,
}

impl Journaled {
    /// An empty journal on a disk of its own.
    #[must_use]
    pub fn new(seed: u64, control: Option<Control>) -> Self {
        let mut rng = Rng::new(seed ^ 0xd15c);
        let swallowed = Swallowed {
            files: control == Some(Control::SkipFileSyncs),
            folders: control == Some(Control::SkipFolderSyncs),
        };
        let disk = ModelDisk::new(rng.number(), rng.chance(500), swallowed);
        let tables = Arc::new(ModelTables::new(rng.number()));
        let mut journaled = Self {
            disk,
            rng,
            control,
            tables,
            opened: None,
            records: BTreeMap::new(),
            acknowledged: 0,
            backup: None,
            counts: DiskCounts::default(),
        };
        journaled.opened = journaled.open().ok();
        journaled
    }

    fn root() -> &'static Path {
        Path::new("/store")
    }

    fn open(&mut self) -> Result<Opened, StoreError> {
        let start = Start {
            disk: &self.disk,
            root: Self::root(),
            tables: self.tables.clone(),
            control: self.control,
            writes_at_once: WRITES_AT_ONCE[self.rng.below(WRITES_AT_ONCE.len())],
        };
        let opened = start.open()?;
        self.acknowledged = opened.position;
        self.records = BTreeMap::from([(opened.position, CommitId::default())]);
        Ok(opened)
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        DiskCounts {
            calls: self.disk.calls(),
            ..self.counts
        }
    }

    /// Whether only a restart helps.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.opened.is_none()
    }

    /// Lets one of the next calls go wrong.
    pub fn arm(&mut self) {
        let calls = self.rng.between(0, 60);
        // A control that only failed syncs can show has more of them.
        let (cuts, syncs) = match self.control {
            Some(Control::BelieveRetriedSync) => (100, 900),
            _ => (400, 600),
        };
        if self.rng.chance(cuts) {
            self.disk.cut_after(calls);
        } else {
            let any = Fault::ALL[self.rng.below(Fault::ALL.len())];
            let fault = if self.rng.chance(syncs) {
                Fault::Sync
            } else {
                any
            };
            self.disk.fail_after(calls, fault);
            // A sync that fails is often the first sign of a disk's end. What it lost is seen only
            // before a later write to the same page.
            if fault == Fault::Sync && self.rng.chance(900) {
                self.disk.cut_behind_failure(self.rng.between(2, 4));
            }
        }
    }

    /// Lets all calls that come go well.
    pub fn heal(&mut self) {
        self.disk.heal();
    }

    /// Makes `sets`, the newest of which is `last`, durable as one record, or as several if one of
    /// them copies an entity, which has a record of its own. Returns whether they may be
    /// acknowledged.
    pub fn commit(&mut self, sets: Vec<WriteSet>, last: CommitId) -> bool {
        let mut left = sets.len() as u64;
        let mut sets = sets.into_iter().peekable();
        while let Some(first) = sets.next() {
            let is_alone = first.has_copy();
            let mut group = Group {
                sets: vec![first],
                ..Group::default()
            };
            if !is_alone {
                let others = std::iter::from_fn(|| sets.next_if(|set| !set.has_copy()));
                group.sets.extend(others);
            }
            left -= group.sets.len() as u64;
            if !self.append(group, CommitId(last.0 - left)) {
                return false;
            }
        }
        true
    }

    fn append(&mut self, mut group: Group, last: CommitId) -> bool {
        let Some(mut opened) = self.opened.take() else {
            return false;
        };
        self.records.insert(opened.position + 1, last);
        if opened.append(&mut group).is_err() {
            self.counts.failures += 1;
            return false;
        }
        self.counts.records += 1;
        self.acknowledged = opened.position;
        opened.unapplied.push(group);
        self.opened = Some(opened);
        true
    }

    /// What other threads do meanwhile, or some of it. `image` is what was made durable.
    ///
    /// # Errors
    /// When a backup does not have it, or the index fails.
    pub fn maintain(&mut self, image: &Image) -> Result<(), Violation> {
        let Some(mut opened) = self.opened.take() else {
            return Ok(());
        };
        if self.rng.chance(300) {
            self.apply(&mut opened)?;
        }
        if self.rng.chance(100) {
            self.tables.flush();
        }
        if self.rng.chance(200) {
            let reclaimed = understood(opened.indexer.reclaim())?;
            self.counts.reclaimed += u64::from(reclaimed);
        }
        let done = self.keep_up(&mut opened, image)?;
        if done.is_ok() {
            self.opened = Some(opened);
            if self.rng.chance(50) {
                self.move_few();
            }
        } else {
            self.counts.failures += 1;
        }
        Ok(())
    }

    /// What may fail of that.
    fn keep_up(&mut self, opened: &mut Opened, image: &Image) -> Result<io::Result<()>, Violation> {
        if self.rng.chance(100)
            && let Err(error) = opened.witness.sync()
        {
            return Ok(Err(error));
        }
        if self.rng.chance(200)
            && let Err(error) = self.release(opened)?
        {
            return Ok(Err(error));
        }
        if self.rng.chance(5) {
            let made = self.back_up(opened, image)?;
            if made.is_ok() {
                self.counts.backups += 1;
                self.check_backup()?;
            } else {
                self.backup = None;
            }
            return Ok(made);
        }
        Ok(Ok(()))
    }

    /// The index gets what is durable.
    fn apply(&mut self, opened: &mut Opened) -> Result<(), Violation> {
        let groups = std::mem::take(&mut opened.unapplied);
        understood(opened.indexer.apply(groups))
    }

    /// Gives up the segments that nothing needs, for good.
    fn release(&mut self, opened: &mut Opened) -> Result<io::Result<()>, Violation> {
        for id in understood(opened.indexer.dead())? {
            if let Err(error) = opened.files.release(id, SEGMENT_BYTES) {
                return Ok(Err(error));
            }
            self.counts.released += 1;
            understood(opened.indexer.forget(id))?;
        }
        Ok(Ok(()))
    }

    /// Writes the few bodies that are left in a segment again.
    fn move_few(&mut self) {
        let Some(opened) = &self.opened else { return };
        let segments = opened.indexer.segments();
        if segments.is_empty() {
            return;
        }
        let segment = segments[self.rng.below(segments.len())];
        let moves = opened.read_few(segment);
        let last = self
            .records
            .values()
            .next_back()
            .copied()
            .unwrap_or_default();
        match moves {
            Ok(moves) if moves.is_empty() => {}
            Ok(moves) => {
                self.counts.moved += moves.len() as u64;
                let group = Group {
                    moves,
                    ..Group::default()
                };
                self.append(group, last);
            }
            Err(_) => {
                self.counts.failures += 1;
                self.opened = None;
            }
        }
    }

    /// Makes a copy that shares its segments.
    fn back_up(&mut self, opened: &mut Opened, image: &Image) -> Result<io::Result<()>, Violation> {
        let sealed = opened.seal().into_iter().collect();
        opened.unapplied.push(Group {
            sealed,
            position: opened.position,
            ..Group::default()
        });
        self.apply(opened)?;
        self.tables.flush();
        Ok(self.copy_files(opened, image))
    }

    fn copy_files(&mut self, opened: &Opened, image: &Image) -> io::Result<()> {
        if let Some(before) = self.backup.take() {
            self.disk.remove_directory(&before.root)?;
        }
        let root = PathBuf::from(format!("/backup-{}", opened.position));
        let layout = Layout::new(&root);
        self.disk.create_directory(&layout.journal())?;
        opened.files.link_into(&layout.journal())?;
        self.disk
            .link(&Layout::new(Self::root()).format(), &layout.format())?;
        let system: Arc<dyn FileSystem> = Arc::new(self.disk.clone());
        Witness::open(&system, &layout.witness(), opened.position).map_err(io::Error::other)?;
        self.disk.sync_directory(&root)?;
        self.disk.sync_directory(Path::new("/"))?;
        self.backup = Some(Backup {
            root,
            tables: self.tables.fork(),
            image: image.clone(),
        });
        Ok(())
    }

    /// Opens a copy of the backup's files.
    fn check_backup(&self) -> Result<(), Violation> {
        let Some(backup) = &self.backup else {
            return Ok(());
        };
        let disk = self.disk.fork();
        disk.restart();
        let start = Start {
            disk: &disk,
            root: &backup.root,
            tables: Arc::new(backup.tables.fork()),
            control: self.control,
            writes_at_once: WRITES_AT_ONCE[0],
        };
        let compared = start
            .open()
            .map_err(|error| error.to_string())
            .and_then(|opened| opened.compare(&backup.image, false));
        compared
            .map(drop)
            .map_err(|what| Violation::new("I1", format!("a backup is not whole: {what}")))
    }

    /// The process ends, with a power cut or without, and starts again. Returns the newest commit
    /// that is there; `expected` tells what has to be there after a commit.
    ///
    /// # Errors
    /// When an acknowledged commit is gone, or there is something else than what was committed.
    pub fn restart(&mut self, expected: impl Fn(CommitId) -> Image) -> Result<CommitId, Violation> {
        self.opened = None;
        let (acknowledged, records) = (self.acknowledged, std::mem::take(&mut self.records));
        if self.rng.chance(800) || self.disk.is_off() {
            self.disk.cut();
            self.counts.cuts += 1;
        } else {
            self.counts.kills += 1;
        }
        self.crash_tables();
        self.disk.restart();
        self.check_backup()?;
        for _flip in 0..self.rng.below(4) {
            self.check_flipped_bit(acknowledged, &records, &expected)?;
        }
        let opened = self.open_through_cuts()?;
        let reached = find(&records, acknowledged, opened.position)?;
        let compared = opened.compare(&expected(reached), false);
        compared.map_err(|what| {
            Violation::new("I1", format!("after a restart at {reached:?}: {what}"))
        })?;
        self.opened = Some(opened);
        Ok(reached)
    }

    /// What is not flushed is lost, or some of it.
    fn crash_tables(&mut self) {
        let kept = self.rng.below(self.tables.unflushed() + 1);
        self.tables.crash(kept);
    }

    /// Starts, some of it several times, since the power may be cut again.
    fn open_through_cuts(&mut self) -> Result<Opened, Violation> {
        for cut in 0.. {
            if cut < MOST_CUTS && self.rng.chance(300) {
                self.disk.cut_after(self.rng.between(0, 60));
            }
            match self.open() {
                Ok(opened) => {
                    self.disk.heal();
                    return Ok(opened);
                }
                Err(_) if self.disk.is_off() => {
                    self.counts.cuts += 1;
                    self.crash_tables();
                    self.disk.restart();
                }
                Err(error) => {
                    let what = format!("the store does not open after a power cut: {error}");
                    return Err(Violation::new("I1", what));
                }
            }
        }
        unreachable!("the last opening is not cut")
    }

    /// Flips a bit on a copy of the disk, and opens that.
    fn check_flipped_bit(
        &mut self,
        acknowledged: u64,
        records: &BTreeMap<u64, CommitId>,
        expected: impl Fn(CommitId) -> Image,
    ) -> Result<(), Violation> {
        let disk = self.disk.fork();
        disk.reseed(self.rng.number());
        let Some(place) = disk.flip_bit(Self::root()) else {
            return Ok(());
        };
        self.counts.flips += 1;
        let start = Start {
            disk: &disk,
            root: Self::root(),
            tables: Arc::new(self.tables.fork()),
            control: self.control,
            writes_at_once: WRITES_AT_ONCE[self.rng.below(WRITES_AT_ONCE.len())],
        };
        let Ok(opened) = start.open() else {
            self.counts.noticed += 1;
            return Ok(());
        };
        let silent = |what: String| {
            Violation::new(
                "I1",
                format!("a flipped bit in {place} is not noticed: {what}"),
            )
        };
        let reached = find(records, acknowledged, opened.position)
            .map_err(|violation| silent(violation.what))?;
        let refused = opened.compare(&expected(reached), true).map_err(silent)?;
        self.counts.noticed += u64::from(refused > 0);
        Ok(())
    }
}

/// Model tables do not fail, so the index understands all that is in them.
fn understood<T>(result: Result<T, StoreError>) -> Result<T, Violation> {
    result.map_err(|error| Violation::new("I1", format!("the index fails: {error}")))
}

/// The commit that the record at `position` ended with.
fn find(
    records: &BTreeMap<u64, CommitId>,
    acknowledged: u64,
    position: u64,
) -> Result<CommitId, Violation> {
    match records.get(&position) {
        Some(commit) if position >= acknowledged => Ok(*commit),
        _ => {
            let what =
                format!("the journal ends at {position}, and {acknowledged} was acknowledged");
            Err(Violation::new("I1", what))
        }
    }
}
