//! Backups of one namespace: made while the broker works, given to a namespace of this or another
//! broker, and refused if they are not whole.

use std::fs;
use std::path::PathBuf;

use amqp::DeliveryState;
use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value, json};

/// What a command says, which succeeds.
fn said(broker: &Broker, arguments: &[&str]) -> String {
    let said = railbus(broker, arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out
}

fn ask(broker: &Broker, method: &str, path: &str, body: &Value, expected: u16) -> Value {
    let path = format!("/$railbus/{path}");
    let (status, answer) = http::request(broker.address(), method, &path, &[], &body.to_string());
    assert_eq!(status, expected, "{method} {path}: {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

/// What a queue of a namespace has, as its administrators see it.
fn state(broker: &Broker, namespace: &str) -> Value {
    let path = format!("/$railbus/namespaces/{namespace}/entities/orders");
    let (status, answer) = http::get(broker.address(), &path);
    assert_eq!(status, 200, "{answer}");
    let shown: Value = serde_json::from_str(&answer).expect("JSON");
    let state = &shown["state"];
    json!({
        "active": state["active"],
        "dead-letter": state["dead-letter"],
        "deferred": state["deferred"],
        "scheduled": state["scheduled"],
    })
}

/// Sends messages to a queue and dead-letters the first.
fn fill(broker: &Broker, bodies: &[&[u8]]) {
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in bodies {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    _ = peer.settle(&received, DeliveryState::Rejected(None));
}

/// The bodies of the next messages of a queue of the default namespace, which go.
fn drain(broker: &Broker, count: u32) -> Vec<Vec<u8>> {
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", count);
    let received = (0..count).map(|_| {
        let received = peer.receive(receiver);
        let body = received.body();
        _ = peer.settle(&received, DeliveryState::Accepted);
        body
    });
    received.collect()
}

fn backup_file(setup: &Setup, name: &str) -> PathBuf {
    setup.data().join("backups").join(name)
}

/// A body that is larger than most, and that a link takes.
const LARGE: usize = 200 << 10;

#[test]
fn a_namespace_is_there_again_under_its_own_and_another_name_over_restarts() {
    let setup = Setup::new();
    let mut broker = setup.start();
    let large = vec![7; LARGE];
    fill(&broker, &[b"one", b"two", &large, b"four"]);
    let before = state(&broker, "default");
    assert_eq!(before["active"], 3);
    assert_eq!(before["dead-letter"], 1);
    let made = said(&broker, &["backup", "monday", "--namespace", "default"]);
    assert!(made.contains("messages=4"), "{made}");
    assert_eq!(drain(&broker, 1), [b"two".to_vec()]);
    // The other namespaces are not touched, and this one is made.
    let restored = said(&broker, &["restore", "monday", "--namespace", "second"]);
    assert!(
        restored.contains("SharedAccessKeyName=second"),
        "{restored}"
    );
    assert_eq!(state(&broker, "second"), before);
    assert_eq!(state(&broker, "default")["active"], 2);
    for restart in [true, false] {
        said(&broker, &["restore", "monday", "--namespace", "default"]);
        assert_eq!(state(&broker, "default"), before);
        if restart {
            assert!(broker.stop().success());
            broker = setup.start();
            assert_eq!(state(&broker, "second"), before);
        }
        let expected = [b"two".to_vec(), large.clone(), b"four".to_vec()];
        assert_eq!(drain(&broker, 3), expected);
    }
    assert!(broker.stop().success());
    // A store that all of it was done to is whole.
    let data = setup.data().to_str().expect("text").to_owned();
    let verified = std::process::Command::new(e2e::broker::program())
        .args(["verify", "--data-dir", &data])
        .output()
        .expect("the program is there");
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_backup_of_one_broker_is_restored_in_another() {
    let (one, two) = (Setup::new(), Setup::new());
    let broker = one.start();
    fill(&broker, &[b"one", b"two"]);
    let body = json!({ "directory": "monday", "namespace": "default" });
    let made = ask(&broker, "POST", "backups", &body, 201);
    assert_eq!(made["messages"], 2);
    let other = two.start();
    fs::create_dir_all(two.data().join("backups")).expect("it is made");
    let to = backup_file(&two, "monday");
    fs::copy(backup_file(&one, "monday"), to).expect("it is copied");
    let path = "namespaces/default/restore";
    ask(&other, "POST", path, &json!({ "backup": "monday" }), 200);
    assert_eq!(state(&other, "default"), state(&broker, "default"));
    assert_eq!(drain(&other, 1), [b"two".to_vec()]);
}

#[test]
fn a_backup_that_is_not_whole_is_refused_and_changes_nothing() {
    let setup = Setup::new();
    let broker = setup.start();
    fill(&broker, &[b"one", b"two"]);
    said(&broker, &["backup", "monday", "--namespace", "default"]);
    let before = state(&broker, "default");
    let whole = fs::read(backup_file(&setup, "monday")).expect("it is there");
    let mut damaged = whole.clone();
    let last = damaged.len() - 40;
    damaged[last] ^= 1;
    let place = "namespaces/default/restore";
    for (content, why) in [
        (&whole[..whole.len() - 1], "not complete"),
        (&whole[..whole.len() / 2], "not complete"),
        (&damaged[..], "damaged"),
        (b"something else that is no backup", "not a backup"),
    ] {
        fs::write(backup_file(&setup, "tuesday"), content).expect("it is written");
        let body = json!({ "backup": "tuesday" });
        let answer = ask(&broker, "POST", place, &body, 400).to_string();
        assert!(answer.contains(why), "{answer}");
        let new = "namespaces/new/restore";
        ask(&broker, "POST", new, &body, 400);
        assert_eq!(
            http::get(broker.address(), "/$railbus/namespaces/new").0,
            404
        );
    }
    assert_eq!(state(&broker, "default"), before);
    ask(&broker, "POST", place, &json!({ "backup": "sunday" }), 404);
    ask(&broker, "POST", place, &json!({ "backup": "../x" }), 400);
    ask(&broker, "POST", place, &json!({}), 400);
    let both = json!({ "backup": "monday", "snapshot": "base" });
    ask(&broker, "POST", place, &both, 400);
    ask(
        &broker,
        "POST",
        "namespaces/No/restore",
        &json!({ "backup": "monday" }),
        400,
    );
    let again = json!({ "directory": "monday", "namespace": "default" });
    ask(&broker, "POST", "backups", &again, 409);
    let none = json!({ "directory": "sunday", "namespace": "none" });
    ask(&broker, "POST", "backups", &none, 404);
    let left = fs::read_dir(setup.data().join("backups")).expect("listed");
    assert_eq!(left.count(), 2, "nothing of what was refused");
}

/// What a client of a host is answered.
fn asked(broker: &Broker, host: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let request = format!(
        "POST /$railbus/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    http::exchange(broker.address(), &request)
}

#[test]
fn only_clients_of_the_default_namespace_back_up_and_restore_and_the_log_says_what() {
    let setup = Setup::new();
    let broker = setup.start();
    fill(&broker, &[b"one", b"two"]);
    let path = "namespaces/second/restore";
    let wanted = json!({ "directory": "monday", "namespace": "default" });
    let restored = json!({ "backup": "monday" });
    ask(&broker, "POST", "backups", &wanted, 201);
    ask(&broker, "POST", path, &restored, 201);
    ask(&broker, "POST", path, &restored, 200);
    let own = json!({ "directory": "tuesday", "namespace": "second" });
    for (path, body) in [("backups", &own), ("backups", &wanted), (path, &restored)] {
        let answer = asked(&broker, "second.localhost", path, body);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
    }
    let left = fs::read_dir(setup.data().join("backups")).expect("listed");
    assert_eq!(left.count(), 1, "nothing of what was refused");
    let log = broker.log();
    let lines = log.lines().filter_map(|line| line.split_once("audit: "));
    let lines: Vec<_> = lines.map(|(_, line)| line).collect();
    let expected = [
        "back up namespace default to monday ",
        "restore namespace second from backup monday ",
        "restore namespace second from backup monday ",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}, not {expected}");
    }
}

#[test]
fn a_nearly_full_disk_is_not_filled_by_the_backup_of_a_namespace() {
    let setup = Setup::new();
    let broker = setup.start();
    fill(&broker, &[b"one", b"two"]);
    said(&broker, &["backup", "monday", "--namespace", "default"]);
    let before = state(&broker, "default");
    assert!(broker.stop().success());
    let setup = setup.configure("[limits]\nreserve-bytes = '1EiB'");
    let broker = setup.start();
    let wanted = json!({ "directory": "tuesday", "namespace": "default" });
    ask(&broker, "POST", "backups", &wanted, 507);
    let restored = json!({ "backup": "monday" });
    for namespace in ["default", "second"] {
        let path = format!("namespaces/{namespace}/restore");
        ask(&broker, "POST", &path, &restored, 507);
    }
    assert_eq!(state(&broker, "default"), before);
    let left = fs::read_dir(setup.data().join("backups")).expect("listed");
    assert_eq!(left.count(), 1, "nothing of what was refused");
}
