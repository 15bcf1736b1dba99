//! Kills: the process gets SIGKILL at any moment, and nothing that was accepted is lost; and a
//! broker that works for long keeps its memory.
//!
//! `RAILBUS_CRASH_CYCLES` sets how many kills there are, `RAILBUS_CRASH_SEED` repeats a run,
//! `RAILBUS_SOAK_MESSAGES` sets how long a broker works.

use e2e::crash::{Site, cycles, number, seed};
use e2e::{DiskFaults, Fault};

/// Calls to the disk within which half of the kills come.
const CALLS: u64 = 700;
/// Resident memory of a broker with `memory = '16MiB'`, however long it works, in KiB.
const MOST: u64 = 96 * 1_024;

/// A kill at a call to the disk, or at an acceptance.
fn kill(site: &mut Site) -> Result<(), String> {
    if site.dice().roll(2) == 0 {
        return site.kill();
    }
    let faults = DiskFaults {
        fault: Fault::Kill,
        at: site.dice().roll_scale(CALLS),
        ..DiskFaults::NONE
    };
    site.fault(faults).map(drop)
}

#[test]
fn nothing_accepted_is_lost_when_the_process_is_killed() {
    let seed = seed();
    let mut site = Site::new(seed);
    for cycle in 1..=cycles(12) {
        if let Err(violation) = kill(&mut site) {
            panic!("RAILBUS_CRASH_SEED={seed}, cycle {cycle}: {violation}");
        }
    }
    let tally = site.tally();
    println!("{tally:?}");
    assert!(tally.ended * 2 > tally.cycles, "most kills come: {tally:?}");
    assert!(
        tally.accepted > tally.cycles,
        "something is sent: {tally:?}"
    );
    let steps = site.steps();
    println!("{steps:?}");
    assert!(steps.iter().all(|(_, taken)| *taken > 0), "{steps:?}");
}

#[test]
fn a_broker_that_works_for_long_keeps_its_memory_and_its_messages() {
    let seed = seed();
    let mut site = Site::new(seed);
    let messages = number("RAILBUS_SOAK_MESSAGES", 8_000);
    for cycle in 1..=2 {
        let memory = site.soak(messages);
        let memory = memory.unwrap_or_else(|violation| {
            panic!("RAILBUS_CRASH_SEED={seed}, cycle {cycle}: {violation}")
        });
        println!("after {messages} messages {memory} KiB");
        assert!(
            memory < MOST,
            "it has {memory} KiB after {messages} messages"
        );
    }
    println!("{:?}", site.tally());
}
