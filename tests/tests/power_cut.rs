//! Power cuts: whatever the disk had not synced is lost in part, at any call, and nothing that was
//! accepted is; and the controls, without which this would prove nothing.
//!
//! `RAILBUS_CRASH_CYCLES` sets how many cuts there are, `RAILBUS_CRASH_SEED` repeats a run.

use e2e::crash::{Site, cycles, seed};
use e2e::disk_faults::Lies;
use e2e::{DiskFaults, Fault};

/// Calls within which the power goes: a start has about a hundred, a message three.
const CALLS: u64 = 700;
/// Cuts of a control, at most.
const CONTROL: u64 = 200;

/// Cuts the power `cycles` times, in the way of each of `faults` in turn.
fn cut(site: &mut Site, cycles: u64, fault: Fault, lies: Lies) -> Result<(), String> {
    for _ in 0..cycles {
        let faults = DiskFaults {
            fault,
            at: site.dice().roll_scale(CALLS),
            seed: site.dice().roll_any(),
            lies,
        };
        site.fault(faults)
            .map_err(|violation| format!("{faults:?}: {violation}"))?;
    }
    Ok(())
}

fn check(fault: Fault, default: u64) {
    let (seed, cycles) = (seed(), cycles(default));
    let mut site = Site::new(seed);
    let mut held = cut(&mut site, cycles, fault, Lies::Never);
    // Where a cut falls is chance, and some cycles end before theirs.
    while held.is_ok() && site.tally().ended < cycles && site.tally().cycles < 4 * cycles {
        held = cut(&mut site, 1, fault, Lies::Never);
    }
    let tally = site.tally();
    println!("{tally:?}");
    if let Err(violation) = held {
        panic!(
            "RAILBUS_CRASH_SEED={seed}, cycle {}: {violation}",
            tally.cycles
        );
    }
    assert!(tally.ended >= cycles, "cuts come: {tally:?}");
    assert!(
        tally.accepted > tally.cycles,
        "something is sent: {tally:?}"
    );
    let steps = site.steps();
    println!("{steps:?}");
    assert!(steps.iter().all(|(_, taken)| *taken > 0), "{steps:?}");
}

#[test]
fn nothing_accepted_is_lost_when_files_keep_a_prefix_of_what_was_not_synced() {
    check(Fault::CutTail, 12);
}

#[test]
fn nothing_accepted_is_lost_when_files_keep_any_page_of_what_was_not_synced() {
    check(Fault::CutPages, 12);
}

#[test]
fn a_disk_that_does_not_sync_files_is_noticed() {
    let mut site = Site::new(seed());
    let found = cut(&mut site, CONTROL, Fault::CutPages, Lies::Files);
    let found = found.expect_err("messages are lost, and that is seen");
    println!("after {} cuts: {found}", site.tally().cycles);
}

#[test]
fn a_disk_that_does_not_sync_directories_is_noticed() {
    let mut site = Site::new(seed());
    let found = cut(&mut site, CONTROL, Fault::CutTail, Lies::Directories);
    let found = found.expect_err("files are lost, and that is seen");
    println!("after {} cuts: {found}", site.tally().cycles);
}
