//! Failed calls: each call to the disk fails once, or writes a part only, one after the other. The
//! broker goes on or says why it ends, and nothing that was accepted is lost.
//!
//! `RAILBUS_FAILED_FROM` and `RAILBUS_FAILED_UNTIL` name the calls, `RAILBUS_CRASH_SEED` repeats a
//! run. Without them each fault gets a sample, more of it where calls are few.

use e2e::crash::{Site, number, seed};
use e2e::{DiskFaults, Fault};

/// The calls that fail when none are named: of the start, and of some messages.
const SAMPLE: [(u64, usize); 2] = [(1, 7), (120, 61)];
const LAST: u64 = 400;

fn calls() -> Vec<u64> {
    let from = number("RAILBUS_FAILED_FROM", 0);
    if from > 0 {
        return (from..number("RAILBUS_FAILED_UNTIL", from + 1)).collect();
    }
    let [(start, step), (traffic, wide)] = SAMPLE;
    (start..traffic)
        .step_by(step)
        .chain((traffic..LAST).step_by(wide))
        .collect()
}

fn check(fault: Fault) {
    let seed = seed();
    for at in calls() {
        // Anew each time: so call N is the same one, and the store is made in these calls.
        let mut site = Site::new(seed.wrapping_add(at));
        let faults = DiskFaults {
            fault,
            at,
            seed: site.dice().roll_any(),
            ..DiskFaults::NONE
        };
        // A second life on what is left, with the same call of a start that recovers.
        for _ in 0..2 {
            if let Err(violation) = site.fault(faults) {
                panic!(
                    "RAILBUS_CRASH_SEED={seed} RAILBUS_FAILED_FROM={at}: {faults:?}: {violation}"
                );
            }
        }
    }
}

#[test]
fn a_call_that_fails_with_eio_loses_nothing_that_was_accepted() {
    check(Fault::Eio);
}

#[test]
fn a_call_that_fails_with_enospc_loses_nothing_that_was_accepted() {
    check(Fault::Enospc);
}

#[test]
fn a_write_that_is_cut_short_changes_nothing() {
    check(Fault::Short);
}
