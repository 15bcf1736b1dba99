//! `railbus explain`: why a message is not delivered.

use std::time::Instant;

use amqp::{DeliveryState, Value};
use e2e::cli::railbus;
use e2e::{Broker, PATIENCE, Peer, Setup};

/// What a command says, which succeeds.
fn said(broker: &Broker, arguments: &[&str]) -> String {
    let said = railbus(broker, arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out
}

/// The first reason begins with this.
fn check(broker: &Broker, arguments: &[&str], expected: &str) {
    let arguments: Vec<_> = ["explain"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let said = said(broker, &arguments);
    assert!(said.starts_with(expected), "{arguments:?}: {said}");
}

/// The same, once what a client has asked for without an answer has arrived.
fn eventually(broker: &Broker, arguments: &[&str], expected: &str) {
    let all: Vec<_> = ["explain"].iter().chain(arguments).copied().collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = said(broker, &all);
        if found.starts_with(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{arguments:?}: {found}");
    }
}

#[test]
fn a_message_is_explained_from_its_coming_to_its_end() {
    let broker = Setup::new().start();
    check(&broker, &["orders"], "empty: no message is available\n");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"one"), DeliveryState::Accepted);
    check(&broker, &["orders"], "no-receiver: ");
    check(&broker, &["orders", "--sequence", "1"], "no-receiver: ");
    let receiver = peer.receiver("orders", 0);
    check(
        &broker,
        &["orders"],
        "no-credit: the only receiver has no credit",
    );
    peer.credit(receiver, 1);
    let received = peer.receive(receiver);
    check(&broker, &["orders"], "locked: the only message is locked");
    let one = ["orders", "--sequence", "1"];
    check(&broker, &one, "locked: it is locked by connection ");
    _ = peer.settle(&received, DeliveryState::Rejected(None));
    check(
        &broker,
        &one,
        "dead-lettered: it is in the dead-letter queue",
    );
    let dead = ["orders", "--sequence", "1", "--part", "dead-letter"];
    check(&broker, &dead, "no-receiver: ");
    said(&broker, &["purge", "orders", "--part", "dead-letter"]);
    check(&broker, &one, "not-there: ");
    peer.credit(receiver, 2);
    check(&broker, &["orders"], "empty: ");
}

#[test]
fn what_an_entity_does_to_its_messages_is_explained() {
    let broker = Setup::new().start();
    for arguments in [
        &["queue", "create", "target"][..],
        &["queue", "create", "via", "--forward-to", "target"],
        &["queue", "update", "target", "--status", "send-disabled"],
        &["queue", "create", "sessions", "--requires-session"],
        &["send", "via", "a"],
        &["send", "orders", "b"],
        &["send", "sessions", "c", "--session-id", "s"],
        &["send", "others", "d", "--delay", "1h"],
        &["topic", "create", "news"],
        &["send", "news", "e", "--delay", "1h"],
        &["queue", "update", "orders", "--status", "receive-disabled"],
    ] {
        said(&broker, arguments);
    }
    let via = "forwarded: it is forwarded to 'target', which is disabled for sending\n";
    check(&broker, &["via"], via);
    check(&broker, &["orders"], "disabled: ");
    for number in ["1", "7"] {
        check(&broker, &["orders", "--sequence", number], "disabled: ");
    }
    check(&broker, &["sessions"], "session-free: ");
    check(&broker, &["sessions", "--sequence", "1"], "session-free: ");
    check(
        &broker,
        &["others"],
        "empty: no message is available; 1 is scheduled\n",
    );
    let due = "scheduled: it is scheduled for 2";
    for entity in ["others", "news"] {
        check(&broker, &[entity, "--sequence", "1"], due);
    }
    check(&broker, &["news", "--sequence", "2"], "not-there: ");
    said(
        &broker,
        &["queue", "update", "target", "--status", "active"],
    );
    said(&broker, &["queue", "delete", "target"]);
}

#[test]
fn what_a_forwarded_message_waits_for_is_explained() {
    let broker = Setup::new().start();
    for arguments in [
        &["queue", "create", "target", "--max-size-in-megabytes", "1"][..],
        &["queue", "create", "via", "--forward-to", "target"],
    ] {
        said(&broker, arguments);
    }
    // Five fit into the target; the sixth, and what is behind it, waits.
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("via");
    for _ in 0..7 {
        let accepted = peer.send(sender, &[b'x'; 200_000]);
        assert_eq!(accepted, DeliveryState::Accepted);
    }
    let full = "forwarded: it is forwarded to 'target', which is full\n";
    eventually(&broker, &["via"], full);
    check(&broker, &["via", "--sequence", "7"], full);
    said(&broker, &["queue", "update", "via", "--status", "disabled"]);
    check(&broker, &["via"], "disabled: ");
    said(&broker, &["queue", "update", "via", "--status", "active"]);
    said(&broker, &["purge", "target"]);
    eventually(&broker, &["via"], "empty: ");
}

#[test]
fn what_a_dead_letter_that_goes_on_waits_for_is_explained() {
    let broker = Setup::new().start();
    let forward = "--forward-dead-lettered-messages-to";
    for arguments in [
        &["queue", "create", "target"][..],
        &["queue", "create", "via", forward, "target"],
        &["queue", "update", "target", "--status", "send-disabled"],
        &["send", "via", "a"],
    ] {
        said(&broker, arguments);
    }
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("via", 1);
    let received = peer.receive(receiver);
    _ = peer.settle(&received, DeliveryState::Rejected(None));
    let expected = "forwarded: it is forwarded to 'target', which is disabled for sending\n";
    for question in [
        &["via", "--part", "dead-letter"][..],
        &["via", "--part", "dead-letter", "--sequence", "1"],
    ] {
        check(&broker, question, expected);
    }
}

#[test]
fn what_a_receiver_has_done_with_a_message_is_explained() {
    let broker = Setup::new().arguments(&["--virtual-clock"]).start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in [b"a", b"b"] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("orders", 2);
    let modified = |fields: &[(&str, Value)], is_deferred| DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: is_deferred,
        message_annotations: Some(
            fields
                .iter()
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
        ),
    };
    let received = peer.receive(receiver);
    _ = peer.settle(&received, modified(&[], true));
    let received = peer.receive(receiver);
    let delay = [("x-opt-delivery-delay", Value::Ulong(3_600_000))];
    _ = peer.settle(&received, modified(&delay, false));
    let deferred = "deferred: it is deferred: only a receive by its sequence number gets it\n";
    check(&broker, &["orders", "--sequence", "1"], deferred);
    check(
        &broker,
        &["orders"],
        "empty: no message is available; 1 is scheduled; 1 is deferred\n",
    );
    let explained = said(&broker, &["explain", "orders", "--sequence", "2"]);
    let due = explained.strip_prefix("scheduled: it waits until 2");
    let due = due.is_some_and(|due| due.contains(" for its next delivery, after one has failed"));
    assert!(due, "{explained}");

    said(
        &broker,
        &["queue", "create", "sessions", "--requires-session"],
    );
    for id in ["s", "t", "S"] {
        said(&broker, &["send", "sessions", "c", "--session-id", id]);
    }
    let holder = peer.next_session_receiver("sessions", 0);
    let one = ["sessions", "--sequence", "1"];
    eventually(
        &broker,
        &one,
        "session-held: its session 's' is held by connection ",
    );
    let explained = said(&broker, &["explain", "sessions", "--sequence", "1"]);
    assert!(
        explained.contains("has 0 messages of it locked and no credit"),
        "{explained}"
    );
    let other_case = ["sessions", "--sequence", "3"];
    check(
        &broker,
        &other_case,
        "session-held: its session 'S' is held by connection ",
    );
    peer.credit(holder, 3);
    for _ in 0..2 {
        _ = peer.receive(holder);
    }
    let explained = said(&broker, &["explain", "sessions", "--sequence", "1"]);
    assert!(
        explained.contains("has 2 messages of it locked and credit"),
        "{explained}"
    );
    let free = "session-free: its session is held by no receiver; 1 session is held, 0 receivers wait for one\n";
    check(&broker, &["sessions", "--sequence", "2"], free);
}

#[test]
fn a_filter_that_leaves_a_message_out_is_named() {
    let broker = Setup::new().start();
    said(&broker, &["send", "orders", "a", "--subject", "red"]);
    let one = ["orders", "--sequence", "1"];
    let mut peer = Peer::connect(broker.address());
    let blue = peer.selecting_receiver("orders", "JMSType = 'blue'", 1);
    let only = "filtered: the filter of the only receiver that asks for messages does not select it: \
                JMSType = 'blue'\n";
    eventually(&broker, &one, only);
    check(&broker, &["orders"], only);
    _ = peer.selecting_receiver("orders", "JMSType = 'green'", 1);
    let none = "filtered: none of the filters of 2 receivers that ask for messages selects it\n";
    eventually(&broker, &one, none);
    // A receiver that asks for nothing has no part in it.
    peer.credit(blue, 0);
    eventually(&broker, &one, "filtered: the filter of the only receiver");
    let answer = said(&broker, &["explain", "orders", "--json"]);
    assert!(answer.contains("\"filtered\""), "{answer}");
}

#[test]
fn a_message_that_is_kept_beyond_its_time_to_live_is_said_to_be() {
    let setup = Setup::new().configure("expiry = \"cloud\"");
    let broker = setup.arguments(&["--virtual-clock"]).start();
    said(&broker, &["send", "orders", "a", "--time-to-live", "1h"]);
    let one = ["orders", "--sequence", "1"];
    check(&broker, &one, "expires: its time to live ends at ");
    said(&broker, &["clock", "advance", "2h"]);
    for question in [&one[..], &["orders"]] {
        check(&broker, question, "expired: its time to live has ended at ");
    }
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 0);
    eventually(&broker, &["orders"], "empty: ");
    peer.credit(receiver, 1);
}
