//! The simulator against the broker: random runs with all faults, each named by its seed.
//!
//! `RAILBUS_SIM_OPERATIONS` sets how many operations the long run makes (default 1,000,000 in
//! release, 20,000 otherwise), `RAILBUS_SIM_SEED` replays one run.

use sim::{Faults, Plan, Report};

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
    )
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
        });
        assert_eq!(report.crashes, 0);
        assert!(report.accepted > 100, "too little happened: {report:?}");
    }
}

#[test]
fn nothing_accepted_is_lost_whatever_breaks() {
    let usual = if cfg!(debug_assertions) {
        20_000
    } else {
        1_000_000
    };
    let wanted = from_environment("RAILBUS_SIM_OPERATIONS").unwrap_or(usual);
    if let Some(seed) = from_environment("RAILBUS_SIM_SEED") {
        println!(
            "{:?}",
            check(Plan {
                seed,
                operations: 20_000,
                faults: Faults::ALL
            })
        );
        return;
    }
    let (mut seed, mut total) = (1_000, Report::default());
    while total.operations < wanted {
        let report = check(Plan {
            seed,
            operations: 20_000.min(wanted),
            faults: Faults::ALL,
        });
        total.add(&report);
        seed += 1;
    }
    println!("seeds 1000 to {}: {total:?}", seed - 1);
    assert!(
        total.crashes > 0 && total.cuts > 0 && total.write_sets > 0,
        "no fault happened, or nothing was checked: {total:?}"
    );
    let used = [
        total.activated,
        total.cancelled,
        total.duplicates,
        total.forwarded,
    ];
    assert!(
        used.iter().all(|count| *count > 0),
        "a feature was not used: {total:?}"
    );
}

#[test]
fn a_seed_replays_the_same_run() {
    let plan = Plan {
        seed: 7,
        operations: 3_000,
        faults: Faults::ALL,
    };
    assert_eq!(check(plan), check(plan));
}
