//! The page for operators, carried out: every command of `docs/operations.md` runs here, in the
//! situation that its section is about. `systemctl` and `railbus serve` are played by the test.

mod operator;

use std::fs;
use std::path::{Path, PathBuf};

use operator::{Operator, Page};

/// Sections with commands, and how many blocks of them each has.
const SECTIONS: [(&str, usize); 9] = [
    ("Back up", 2),
    ("Restore", 1),
    ("Verify", 3),
    ("Repair", 3),
    ("The disk is full", 2),
    ("Another machine", 2),
    ("A forgotten key", 1),
    ("An expired certificate", 1),
    ("An upgrade", 1),
];

/// The files below `folder` whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is there");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}

/// Flips a bit of the first place in the journal that holds `text`.
fn damage(data: &Path, text: &str) {
    for path in files(&data.join("journal"), ".journal") {
        let mut content = fs::read(&path).expect("it is there");
        let found = content
            .windows(text.len())
            .position(|bytes| bytes == text.as_bytes());
        if let Some(at) = found {
            content[at] ^= 1;
            return fs::write(&path, content).expect("the directory is ours");
        }
    }
    panic!("{text} is not in the journal");
}

#[test]
fn every_command_of_the_page_is_run_by_a_test() {
    assert_eq!(Page::read().sections(), SECTIONS);
}

#[test]
fn a_backup_is_made_while_the_broker_works_and_tried() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["one", "two"]);
    operator.run("Back up", 0);
    assert!(operator.data().join("backups/monday/db").is_dir());
    operator.run("Back up", 1);
    let kept = operator.directory().join("elsewhere");
    assert!(kept.join("monday/db").is_dir() && kept.join("tls/ca.pem").is_file());
    assert!(!operator.directory().join("trial").exists());
    assert_eq!(operator.receive(), ["one", "two"]);
}

#[test]
fn a_backup_takes_the_place_of_a_store_that_is_lost() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["one", "two"]);
    operator.run("Back up", 0);
    operator.run("Back up", 1);
    operator.send(&["too late"]);
    let authority = fs::read(operator.data().join("tls/ca.pem")).expect("it has one");
    let said = operator.run("Restore", 0);
    assert!(said.contains("orders"), "{said}");
    assert_eq!(operator.receive(), ["one", "two"]);
    let restored = fs::read(operator.data().join("tls/ca.pem")).expect("it has one");
    assert_eq!(restored, authority);
}

#[test]
fn damage_at_rest_is_found_and_given_up() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["a message that stays", "a message that is damaged"]);
    operator.run("Verify", 0);
    operator.stop();
    operator.run("Verify", 0);
    damage(&operator.data(), "that is damaged");
    let (code, said) = operator.try_run("Verify", 0);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("damage: "), "{said}");
    operator.start();
    let (code, said) = operator.try_run("Verify", 0);
    assert_eq!(code, 1, "{said}");
    let said = operator.run("Verify", 1);
    assert!(said.contains("damaged=0"), "{said}");
    assert_eq!(operator.receive(), [""; 0]);
    operator.run("Verify", 2);
}

#[test]
fn a_journal_that_lost_its_middle_is_repaired_by_order() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["a message that stays"]);
    operator.send(&["a message whose record is damaged"]);
    operator.send(&["a message behind it"]);
    operator.kill();
    operator.damage_record_of("whose record is damaged");
    let (code, said) = operator.try_run("Repair", 0);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains(".journal"), "{said}");
    operator.run("Repair", 1);
    assert!(operator.log().contains("gone"), "{}", operator.log());
    let said = operator.run("Repair", 2);
    assert!(said.contains("damaged=0"), "{said}");
    assert!(operator.directory().join("railbus-data.damaged").is_dir());
    assert_eq!(operator.receive(), ["a message that stays"]);
}

/// `full_disk.rs` fills a disk; here the commands are carried out.
#[test]
fn what_makes_room_loses_nothing() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["one"]);
    let backup = operator.data().join("backups/monday");
    fs::create_dir_all(&backup).expect("the directory is ours");
    operator.run("The disk is full", 0);
    operator.run("The disk is full", 1);
    assert!(!backup.exists());
    operator.send(&["two"]);
    assert_eq!(operator.receive(), ["one", "two"]);
}

#[test]
fn a_store_moves_to_another_machine() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["one"]);
    operator.run("Another machine", 0);
    let mut other = Operator::new();
    let archive = operator.directory().join("railbus.tar");
    fs::copy(archive, other.directory().join("railbus.tar")).expect("there is room");
    let said = other.run("Another machine", 1);
    assert!(said.contains("Railbus local authority"), "{said}");
    assert_eq!(other.receive(), ["one"]);
}

#[test]
fn a_key_that_was_forgotten_is_not_needed() {
    let mut operator = Operator::new();
    operator.configure(
        "[[auth.rules]]\nname = 'owner'\nprimary-key = 'key-of-owner'\nrights = ['manage']\n",
    );
    operator.start();
    operator.run("A forgotten key", 0);
    operator.wait_for_key("recovery");
    operator.send(&["one"]);
    assert_eq!(operator.receive(), ["one"]);
}

#[test]
fn an_authority_that_has_ended_is_replaced() {
    let mut operator = Operator::new();
    operator.start();
    let before = fs::read(operator.data().join("tls/ca.pem")).expect("it has one");
    operator.run("An expired certificate", 0);
    let after = fs::read(operator.directory().join("railbus-ca.pem")).expect("exported");
    assert_ne!(before, after);
    operator.send(&["one"]);
    assert_eq!(operator.receive(), ["one"]);
}

#[test]
fn an_upgrade_keeps_what_there_is() {
    let mut operator = Operator::new();
    operator.start();
    operator.send(&["one"]);
    operator.run("An upgrade", 0);
    assert!(operator.data().join("backups/before-upgrade").is_dir());
    assert_eq!(operator.receive(), ["one"]);
}
