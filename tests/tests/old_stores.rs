//! Old stores: a store of each format that was ever released is opened by this program, and the
//! power goes at any call of its upgrade. The next start finds all that an upgrade without
//! interruption finds.
//!
//! `RAILBUS_UPGRADE_STEP` sets how many calls lie between two cuts (1 for all of them),
//! `RAILBUS_CRASH_SEED` repeats a run.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::crash::{Dice, number, seed};
use e2e::disk_faults::{CUT, Lies, calls};
use e2e::{Broker, DiskFaults, Fault, Setup, http};
use serde_json::Value;

/// Parts of a queue or subscription. A message may go from the first to the second meanwhile.
const PARTS: [&str; 4] = ["scheduled", "active", "deferred", "dead-letter"];
/// Entities of each store that have messages. (crates/railbus/tests/formats)
const ENTITIES: [&str; 6] = [
    "orders",
    "sessions",
    "once",
    "events/Subscriptions/all",
    "events/Subscriptions/both",
    "events/Subscriptions/red",
];
/// Messages in all of them.
const MESSAGES: usize = 17;

fn stores() -> Vec<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/railbus/tests/formats/stores");
    let entries = fs::read_dir(folder).expect("there are stores");
    let mut stores: Vec<_> = entries.map(|entry| entry.expect("listed").path()).collect();
    stores.sort();
    stores
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the directory is ours");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("listed").path();
        let target = to.join(path.file_name().expect("a listed file has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("there is room");
        }
    }
}

/// A copy of `store`, as a broker's data directory.
fn setup(store: &Path) -> Setup {
    let setup = Setup::new().environment("RUST_LOG", "info");
    copy(store, setup.data());
    setup
}

fn faulty(setup: &Setup, faults: DiskFaults) -> Setup {
    let environment = faults.environment(setup.data(), &setup.directory().join("calls"));
    environment
        .into_iter()
        .fold(setup.clone(), |setup, (name, value)| {
            setup.environment(&name, &value)
        })
}

/// Everything that can be seen of the messages, sorted: where they are, and what they are. What was
/// scheduled is due by now and may have become available or not.
fn contents(broker: &Broker) -> Vec<String> {
    let mut all = Vec::new();
    for (entity, part) in ENTITIES
        .iter()
        .flat_map(|entity| PARTS.map(|part| (entity, part)))
    {
        let path = format!("/$railbus/entities/{entity}/messages?part={part}&count=1000");
        let (status, answer) = http::get(broker.address(), &path);
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let part = if part == "scheduled" { "active" } else { part };
        for message in answer["messages"].as_array().expect("a list") {
            let [subject, body, bytes, session] =
                ["subject", "body", "body-bytes", "session-id"].map(|name| &message[name]);
            all.push(format!(
                "{entity} {part} {subject} {body} {bytes} {session}"
            ));
        }
    }
    all.sort();
    // One that was seen in both parts; no two messages look the same.
    all.dedup();
    all
}

/// What an upgrade without interruption finds, and how many calls it and its end make.
fn undisturbed(store: &Path) -> (Vec<String>, u64) {
    let setup = setup(store);
    let broker = faulty(&setup, DiskFaults::NONE).start();
    let contents = contents(&broker);
    assert!(broker.stop().success());
    (contents, calls(&setup.directory().join("calls")))
}

/// Cuts the power at a call of the upgrade, and returns what the next start finds.
fn interrupted(store: &Path, faults: DiskFaults) -> Vec<String> {
    let setup = setup(store);
    match faulty(&setup, faults).start_or_end() {
        // The call comes while it stops, or not at all.
        Ok(broker) => {
            let code = broker.stop().code();
            assert!(matches!(code, Some(0 | CUT)), "{faults:?}: {code:?}");
        }
        Err((status, log)) => assert_eq!(status.code(), Some(CUT), "{faults:?}: {log}"),
    }
    let started = setup.start_or_end();
    let broker = started
        .unwrap_or_else(|(status, log)| panic!("{}: {faults:?}: {status}: {log}", store.display()));
    contents(&broker)
}

#[test]
fn an_upgrade_that_is_interrupted_at_any_call_loses_nothing() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let mut cuts = 0;
    for store in stores() {
        let (expected, calls) = undisturbed(&store);
        assert_eq!(expected.len(), MESSAGES, "{expected:#?}");
        let step = number("RAILBUS_UPGRADE_STEP", calls.div_ceil(6));
        let first = 1 + dice.roll(step);
        for at in (first..=calls).step_by(usize::try_from(step).expect("a small step")) {
            let faults = DiskFaults {
                fault: [Fault::CutTail, Fault::CutPages][usize::from(dice.roll(2) == 0)],
                at,
                seed: dice.roll_any(),
                lies: Lies::Never,
            };
            cuts += 1;
            let found = interrupted(&store, faults);
            assert_eq!(
                found,
                expected,
                "RAILBUS_CRASH_SEED={seed}: {}: {faults:?}",
                store.display()
            );
        }
    }
    println!("cuts: {cuts}");
}
