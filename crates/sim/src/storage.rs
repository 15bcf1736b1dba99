//! Storage: what the simulated broker's write sets go to.
//!
//! A memory store answers the broker, and knows what has to be there. On top of a model disk the
//! same write sets go through the store's journal: what that has made durable is acknowledged, and
//! what it finds after a restart is where the memory store goes on.

use std::cell::{Cell, RefCell};

use store::image::ContractViolation;
use store::{CommitId, Image, MemoryDisk, MemoryStore};

use crate::journaled::{Control, DiskCounts, Journaled};
use crate::recording_store::Recording;
use crate::violation::Violation;

/// What is below the broker of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StorageKind {
    /// Memory, which loses what was not durable.
    Memory,
    /// The journal on a model disk, perhaps with something left out.
    Journal(Option<Control>),
}

/// The storage of one simulated machine.
pub struct Storage {
    memory: MemoryDisk,
    journaled: Option<RefCell<Journaled>>,
    /// Write sets that are not in the journal.
    waiting: Recording,
    /// A failure was simulated above the journal.
    failed: Cell<bool>,
    violation: RefCell<Option<Violation>>,
}

impl Storage {
    /// Empty storage.
    #[must_use]
    pub fn new(kind: StorageKind, seed: u64) -> Self {
        let journaled = match kind {
            StorageKind::Memory => None,
            StorageKind::Journal(control) => Some(RefCell::new(Journaled::new(seed, control))),
        };
        Self {
            memory: MemoryDisk::new(),
            journaled,
            waiting: Recording::default(),
            failed: Cell::new(false),
            violation: RefCell::default(),
        }
    }

    /// A store on what is durable.
    #[must_use]
    pub fn open(&self) -> MemoryStore {
        self.memory.open()
    }

    /// Where a store notes its write sets for the journal.
    #[must_use]
    pub fn waiting(&self) -> Option<Recording> {
        self.journaled.as_ref().map(|_| self.waiting.clone())
    }

    /// The newest set submitted to the open store.
    #[must_use]
    pub fn submitted(&self) -> CommitId {
        self.memory.submitted()
    }

    /// The newest durable set of the open store.
    #[must_use]
    pub fn durable(&self) -> CommitId {
        self.memory.durable()
    }

    /// Makes every set up to and including `id` durable, unless that fails.
    pub fn sync_to(&self, id: CommitId) {
        let Some(journaled) = &self.journaled else {
            return self.memory.sync_to(id);
        };
        let mut journaled = journaled.borrow_mut();
        if self.failed.get() || journaled.has_failed() || id <= self.memory.durable() {
            return;
        }
        let sets = self.waiting.up_to(id);
        if !journaled.commit(sets, id) {
            return;
        }
        self.waiting.forget(id);
        self.memory.sync_to(id);
        let maintained = self.memory.with_durable(|image| journaled.maintain(image));
        if let Err(violation) = maintained {
            self.violation.borrow_mut().get_or_insert(violation);
        }
    }

    /// Makes everything submitted durable.
    pub fn sync_all(&self) {
        self.sync_to(self.submitted());
    }

    /// Loses what is not durable, and opens a store on the rest.
    ///
    /// # Errors
    /// When the journal has lost more, or has something else.
    pub fn crash(&self) -> Result<MemoryStore, Violation> {
        let Some(journaled) = &self.journaled else {
            return Ok(self.memory.crash());
        };
        let expected = |commit| {
            self.memory
                .with_durable(|image| self.with_waiting(image, commit))
        };
        let reached = journaled.borrow_mut().restart(expected)?;
        self.waiting.clear();
        self.failed.set(false);
        Ok(self.memory.crash_after(reached))
    }

    /// `durable` with what waits, up to and including `commit`.
    fn with_waiting(&self, durable: &Image, commit: CommitId) -> Image {
        let mut image = durable.clone();
        for set in self.waiting.up_to(commit) {
            for write in set.as_slice() {
                // Reported when it was submitted.
                let _reported = image.apply(write);
            }
        }
        image
    }

    /// From now on nothing becomes durable, until the next crash.
    pub fn fail(&self, reason: &str) {
        self.failed.set(true);
        self.memory.fail(reason);
    }

    /// Whether the journal failed, so that only a restart helps.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let journaled = self.journaled.as_ref();
        journaled.is_some_and(|journaled| journaled.borrow().has_failed())
    }

    /// What was found wrong with the journal since the last restart.
    ///
    /// # Errors
    /// The first of it.
    pub fn check(&self) -> Result<(), Violation> {
        self.violation.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Lets one of the next calls to the model disk go wrong, if there is one.
    pub fn arm(&self) {
        if let Some(journaled) = &self.journaled {
            journaled.borrow_mut().arm();
        }
    }

    /// Lets all calls to the model disk go well.
    pub fn heal(&self) {
        if let Some(journaled) = &self.journaled {
            journaled.borrow_mut().heal();
        }
    }

    /// What happened to the model disk.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        let journaled = self.journaled.as_ref();
        journaled.map_or_else(DiskCounts::default, |journaled| journaled.borrow().counts())
    }

    /// Sets whether the disk is nearly full.
    pub fn set_nearly_full(&self, nearly_full: bool) {
        self.memory.set_nearly_full(nearly_full);
    }

    /// Looks at everything that was submitted.
    pub fn with_current<R>(&self, look: impl FnOnce(&Image) -> R) -> R {
        self.memory.with_current(look)
    }

    /// Writes that broke the storage contract, the first few of them.
    #[must_use]
    pub fn violations(&self) -> Vec<ContractViolation> {
        self.memory.violations()
    }
}
