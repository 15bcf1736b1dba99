//! The simulator against the broker: random runs with all faults, each named by its seed.
//!
//! `RAILBUS_SIM_OPERATIONS` sets how many operations the long run makes (default 10,000,000 in
//! release, 10,000 otherwise), `RAILBUS_SIM_SEED` names its first seed, and alone replays one run.
//! `cargo xtask sim` sets both.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sim::{Faults, Plan, Report, StorageKind};

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
    )
}

/// Operations of every run but for what the drain takes, so that a seed alone names one.
const RUN: u64 = 30_000;

/// Runs `runs` seeds from `first` on, on all processors. Each run is one thread's.
fn run_all(first: u64, runs: u64) -> Report {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let work = || run_some(first, runs, &next);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut total = Report::default();
        for worker in workers {
            total.add(&worker.join().expect("a violation has been printed"));
        }
        total
    })
}

/// Takes seeds until none is left.
fn run_some(first: u64, runs: u64, next: &AtomicU64) -> Report {
    let mut total = Report::default();
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        if run >= runs {
            return total;
        }
        let plan = Plan {
            seed: first.wrapping_add(run),
            operations: RUN,
            faults: Faults::ALL,
            storage: StorageKind::Memory,
        };
        match sim::run(plan) {
            Ok(report) => total.add(&report),
            Err(violation) => {
                // The others need not go on.
                next.store(runs, Ordering::Relaxed);
                panic!("{violation}");
            }
        }
    }
}

fn check(plan: Plan) -> Report {
    match sim::run(plan) {
        Ok(report) => report,
        Err(violation) => panic!("{violation}"),
    }
}

#[test]
fn without_faults_everything_sent_is_received() {
    for seed in 1..=5 {
        let report = check(Plan {
            seed,
            operations: 5_000,
            faults: Faults::NONE,
            storage: StorageKind::Memory,
        });
        assert_eq!(report.crashes, 0);
        assert!(report.accepted > 100, "too little happened: {report:?}");
    }
}

#[test]
fn nothing_accepted_is_lost_whatever_breaks() {
    let first = from_environment("RAILBUS_SIM_SEED");
    let usual = match first {
        Some(_) => RUN,
        None if cfg!(debug_assertions) => RUN,
        None => 10_000_000,
    };
    let wanted = from_environment("RAILBUS_SIM_OPERATIONS").unwrap_or(usual);
    let first = first.unwrap_or(1_000);
    let runs = wanted.div_ceil(RUN);
    let total = run_all(first, runs);
    println!("{runs} seeds from {first}: {total:?}");
    if runs < 10 {
        // Not everything happens in every run.
        return;
    }
    assert!(
        total.crashes > 0 && total.cuts > 0 && total.write_sets > 0,
        "no fault happened, or nothing was checked: {total:?}"
    );
    let used = [
        total.activated,
        total.waited,
        total.waited_over_crash,
        total.cancelled,
        total.duplicates,
        total.forwarded,
        total.accepts,
        total.committed,
        total.timed_out,
        total.published,
        total.routed,
        total.snapshot_changes,
        total.rabbitmq_accepted,
        total.rabbitmq_deliveries,
        total.rabbitmq_completions,
        total.rabbitmq_returns,
        total.rabbitmq_session_returns,
        total.declared,
        total.bound,
        total.unmade,
        total.purges,
        total.publications,
        total.unroutable,
        total.node_deliveries,
        total.policies,
        total.subscribed,
        total.unsubscribed,
        total.exclusive_queues,
        total.expired_entities,
        total.governed_completions,
        total.refused_dead_letters,
        total.refused_by_length,
        total.accepted_with_room,
        total.injected,
        total.copies,
        total.deleted,
        total.calls,
        total.redriven,
    ];
    assert!(
        used.iter().all(|count| *count > 0),
        "a feature was not used: {total:?}"
    );
}

#[test]
fn a_story_may_end_after_any_of_its_commits() {
    let swept = sim::World::sweep().unwrap_or_else(|violation| panic!("{violation}"));
    println!("{swept:?}");
    assert!(
        swept.commits > 60 && swept.endings == 3 * swept.commits,
        "the story is too short: {swept:?}"
    );
}

#[test]
fn a_seed_replays_the_same_run() {
    let plan = Plan {
        seed: 7,
        operations: 3_000,
        faults: Faults::ALL,
        storage: StorageKind::Memory,
    };
    assert_eq!(check(plan), check(plan));
}
