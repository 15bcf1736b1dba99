//! The journal on a model disk, below whole brokers: nothing acknowledged is lost whatever the disk
//! does, and runs with a part of the store's care left out are caught.
//!
//! `RAILBUS_SIM_OPERATIONS` sets how many operations the random runs make, `RAILBUS_SIM_SEED` names
//! the first seed, and alone replays one run. `RAILBUS_SIM_LOGS` sets how many random logs are
//! tried.

use sim::recording_store::{Recording, RecordingStore};
use sim::rng::Rng;
use sim::storage::Storage;
use sim::{Control, Faults, Plan, Report, StorageKind, Violation};
use store::conformance::{self, Harness};
use store::{CommitId, Image};

/// Operations of each run.
const RUN: u64 = 10_000;
/// Seeds that a control is tried with.
const SEEDS: u64 = 3;

fn plan(seed: u64, control: Option<Control>) -> Plan {
    Plan {
        seed,
        operations: RUN,
        faults: Faults::DISK,
        storage: StorageKind::Journal(control),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn nothing_acknowledged_is_lost_whatever_the_disk_does() {
    let seed = number("RAILBUS_SIM_SEED");
    let usual = match seed {
        Some(_) => RUN,
        None if cfg!(debug_assertions) => 10 * RUN,
        None => 50 * RUN,
    };
    let runs = number("RAILBUS_SIM_OPERATIONS")
        .unwrap_or(usual)
        .div_ceil(RUN);
    let first = seed.unwrap_or(1);
    let mut total = Report::default();
    for seed in first..first + runs {
        let done = sim::run(plan(seed, None));
        total.add(&done.unwrap_or_else(|violation| panic!("{violation} --disk")));
    }
    println!("{runs} seeds from {first}: {total:?}");
    if runs < 10 {
        return;
    }
    let used = [
        total.power_cuts,
        total.kills,
        total.flips,
        total.noticed_flips,
        total.backups,
        total.released_segments,
        total.moved_bodies,
        total.reclaimed_ranges,
    ];
    assert!(
        used.iter().all(|count| *count > 0),
        "something never happened: {total:?}"
    );
}

/// The journal on a model disk as a store of the contract's suite.
struct Journal {
    rng: Rng,
    storage: Storage,
    control: Option<Control>,
}

impl Journal {
    fn new(seed: u64, control: Option<Control>) -> Self {
        Self {
            rng: Rng::new(seed),
            storage: Storage::new(StorageKind::Journal(control), seed),
            control,
        }
    }

    fn restarted(&self) -> RecordingStore {
        let store = self.storage.crash();
        let store = store.unwrap_or_else(|violation| panic!("{violation}"));
        RecordingStore::new(store, Recording::default(), self.storage.waiting())
    }
}

impl Harness for Journal {
    type Store = RecordingStore;

    fn create(&mut self) -> RecordingStore {
        self.storage = Storage::new(StorageKind::Journal(self.control), self.rng.number());
        let store = self.storage.open();
        RecordingStore::new(store, Recording::default(), self.storage.waiting())
    }

    fn make_durable(&mut self, _store: &mut RecordingStore, id: CommitId) {
        self.storage.sync_to(id);
        assert_eq!(self.storage.durable(), id, "nothing goes wrong here");
    }

    fn reopen(&mut self, _store: RecordingStore) -> RecordingStore {
        self.storage.sync_all();
        self.restarted()
    }

    fn crash(&mut self, _store: RecordingStore) -> RecordingStore {
        let (durable, submitted) = (self.storage.durable().0, self.storage.submitted().0);
        self.storage.arm();
        for id in durable..=submitted {
            if self.rng.chance(500) {
                self.storage.sync_to(CommitId(id));
            }
        }
        self.restarted()
    }

    fn image(&mut self, _store: &mut RecordingStore) -> Image {
        self.storage
            .check()
            .unwrap_or_else(|violation| panic!("{violation}"));
        self.storage.with_current(Image::clone)
    }
}

#[test]
fn the_journal_keeps_the_contract_on_a_model_disk() {
    conformance::run(&mut Journal::new(1, None));
}

#[test]
fn every_random_log_ends_as_the_model_says_whichever_call_is_the_last() {
    let first = number("RAILBUS_SIM_SEED").unwrap_or(1);
    let logs = number("RAILBUS_SIM_LOGS").unwrap_or(12);
    for seed in first..first + logs {
        random_log(seed, None);
    }
}

fn random_log(seed: u64, control: Option<Control>) {
    let mut rng = Rng::new(seed);
    let words: Vec<u64> = (0..500).map(|_| rng.number()).collect();
    conformance::random_log(&mut Journal::new(seed, control), &words);
}

/// A run with `control` left out is caught within its operations, whatever the seed.
fn check_caught(control: Control) {
    for seed in 1..=SEEDS {
        let caught = sim::run(plan(seed, Some(control)));
        let violation: Violation = caught.expect_err("the loss is seen");
        assert_eq!(violation.invariant, "I1", "{violation}");
        println!("{control:?}: {violation}");
    }
}

#[test]
fn a_store_that_does_not_sync_its_files_is_caught() {
    check_caught(Control::SkipFileSyncs);
}

#[test]
fn a_store_that_does_not_sync_its_folders_is_caught() {
    check_caught(Control::SkipFolderSyncs);
}

#[test]
fn a_store_that_believes_a_retried_sync_is_caught() {
    check_caught(Control::BelieveRetriedSync);
}

#[test]
fn a_store_that_cuts_its_journal_at_the_first_bad_checksum_is_caught() {
    check_caught(Control::CutAtDamage);
}

#[test]
fn a_merge_that_drops_what_came_back_is_caught() {
    // In a random log messages wait and come back far more often than in a run of brokers.
    for seed in 1..=SEEDS {
        let run = || random_log(seed, Some(Control::DropWhatComesBack));
        assert!(std::panic::catch_unwind(run).is_err(), "seed {seed}");
    }
}

#[test]
fn a_seed_replays_the_same_calls() {
    let plan = Plan {
        operations: 2_000,
        ..plan(7, None)
    };
    assert_eq!(sim::run(plan), sim::run(plan));
}
