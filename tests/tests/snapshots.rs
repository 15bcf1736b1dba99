//! Snapshots of a namespace: taken, restored and forked while clients are connected, over restarts,
//! and how long that takes with many messages.

use std::time::Instant;

use amqp::{DeliveryState, Role};
use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value, json};

const NAMESPACE: &str = "/$railbus/namespaces/default";

/// What a command says, which succeeds.
fn said(broker: &Broker, arguments: &[&str]) -> String {
    let said = railbus(broker, arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out
}

fn ask(broker: &Broker, method: &str, path: &str, body: &Value, expected: u16) -> Value {
    let path = format!("{NAMESPACE}{path}");
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let (status, answer) = http::request(broker.address(), method, &path, &[], &body);
    assert_eq!(status, expected, "{method} {path}: {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

/// How many messages of a queue are available.
fn active(broker: &Broker, host: &str) -> u64 {
    let request = format!(
        "GET /$railbus/entities/orders HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    );
    let answer = http::exchange(broker.address(), &request);
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let entity: Value = serde_json::from_str(body).expect("JSON");
    entity["state"]["active"].as_u64().expect("a number")
}

/// Takes all messages of the queue, and completes them.
fn drain(broker: &Broker) -> Vec<Vec<u8>> {
    let count = u32::try_from(active(broker, "localhost")).expect("few");
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", count);
    let mut payloads = Vec::new();
    for _ in 0..count {
        let received = peer.receive(receiver);
        payloads.push(received.body());
        _ = peer.settle(&received, DeliveryState::Accepted);
    }
    payloads
}

#[test]
fn a_namespace_goes_back_to_its_snapshot_as_often_as_is_wanted() {
    let setup = Setup::new();
    let mut broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in [b"one", b"two"] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    said(&broker, &["namespace", "snapshot", "default", "two-orders"]);
    assert_eq!(peer.send(sender, b"three"), DeliveryState::Accepted);
    drop(peer);
    for restart in [true, false] {
        drain(&broker);
        assert_eq!(active(&broker, "localhost"), 0);
        if restart {
            assert!(broker.stop().success());
            broker = setup.start();
        }
        said(&broker, &["namespace", "restore", "default", "two-orders"]);
        assert_eq!(drain(&broker), [b"one".to_vec(), b"two".to_vec()]);
    }
    let listed = said(&broker, &["namespace", "snapshots", "default"]);
    assert!(listed.contains("two-orders"), "{listed}");
    let forked = said(
        &broker,
        &[
            "namespace",
            "fork",
            "default",
            "second",
            "--snapshot",
            "two-orders",
        ],
    );
    assert!(forked.contains("SharedAccessKeyName=second"), "{forked}");
    assert_eq!(active(&broker, "second.localhost"), 2);
    assert_eq!(active(&broker, "localhost"), 0);
    said(
        &broker,
        &["namespace", "remove-snapshot", "default", "two-orders"],
    );
    let refused = railbus(&broker, &["namespace", "restore", "default", "two-orders"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.err.contains("no snapshot 'two-orders'"),
        "{}",
        refused.err
    );
    assert_eq!(
        active(&broker, "second.localhost"),
        2,
        "it needs it no more"
    );
}

#[test]
fn a_receiver_is_told_of_a_restore() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"one"), DeliveryState::Accepted);
    let name = json!({ "name": "base" });
    let taken = ask(&broker, "POST", "/snapshots", &name, 201);
    assert_eq!(taken["messages"], 1);
    let receiver = peer.receiver("orders", 1);
    drop(peer.receive(receiver));
    ask(
        &broker,
        "POST",
        "/restore",
        &json!({ "snapshot": "base" }),
        200,
    );
    let error = peer.detached(receiver).expect("it is told why");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
}

#[test]
fn every_link_is_told_of_a_restore_and_of_the_next_one() {
    let broker = Setup::new().start();
    ask(
        &broker,
        "POST",
        "/snapshots",
        &json!({ "name": "base" }),
        201,
    );
    let mut peer = Peer::connect(broker.address());
    for _ in 0..2 {
        let sender = peer.sender("orders");
        let management = peer.try_attach(Role::Sender, "orders/$management");
        let management = management.expect("it is attached");
        for _ in 0..2 {
            let restore = json!({ "snapshot": "base" });
            ask(&broker, "POST", "/restore", &restore, 200);
        }
        for link in [sender, management] {
            let error = peer.detached(link).expect("it is told why");
            assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
        }
    }
}

/// Prints what it measures. (docs/measurements.md)
#[test]
fn many_messages_are_kept_and_there_again_at_once() {
    const MESSAGES: usize = 100_000;
    const AT_ONCE: usize = 500;
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for _ in 0..MESSAGES / AT_ONCE {
        let sent: Vec<_> = (0..AT_ONCE)
            .map(|_| peer.send_only(sender, &[7; 1_024]))
            .collect();
        for cookie in sent {
            assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
        }
    }
    let mut times = Vec::new();
    for (what, method, path, body, expected) in [
        (
            "snapshot",
            "POST",
            "/snapshots",
            json!({ "name": "full" }),
            201,
        ),
        ("reset", "POST", "/reset", Value::Null, 200),
        (
            "restore",
            "POST",
            "/restore",
            json!({ "snapshot": "full" }),
            200,
        ),
        (
            "fork",
            "POST",
            "/fork",
            json!({ "name": "f", "snapshot": "full" }),
            201,
        ),
    ] {
        let started = Instant::now();
        ask(&broker, method, path, &body, expected);
        times.push(format!("{what} {:?}", started.elapsed()));
    }
    println!("{MESSAGES} messages of 1 KiB: {}", times.join(", "));
    assert_eq!(active(&broker, "localhost"), MESSAGES as u64);
    assert_eq!(active(&broker, "f.localhost"), MESSAGES as u64);
    let started = Instant::now();
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 1);
    drop(peer.receive(receiver));
    println!("the first message after {:?}", started.elapsed());
}
