//! `railbus trace` and the histories of the broker's own interface: what has happened to messages.

use amqp::DeliveryState;
use e2e::cli::{railbus, railbus_at};
use e2e::{Broker, Peer, Setup, http};
use serde_json::Value;

/// What a command says, which succeeds.
fn said(broker: &Broker, arguments: &[&str]) -> String {
    let said = railbus(broker, arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out
}

/// The codes of the events of a history, with their entities.
fn codes(broker: &Broker, path: &str) -> Vec<(String, String)> {
    let (status, body) = http::get(broker.address(), &format!("/$railbus/namespaces/{path}"));
    assert_eq!(status, 200, "{path}: {body}");
    let history: Value = serde_json::from_str(&body).expect("JSON");
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let events = history["events"].as_array().expect("a list").iter();
    events
        .map(|event| (text(event, "entity"), text(event, "code")))
        .collect()
}

fn check(broker: &Broker, path: &str, expected: &[(&str, &str)]) {
    let codes = codes(broker, path);
    let codes: Vec<_> = codes
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(codes, expected, "{path}");
}

#[test]
fn a_message_is_traced_from_its_topic_to_its_end() {
    let broker = Setup::new().configure("lineage = true").start();
    for arguments in [
        &["topic", "create", "events"][..],
        &["subscription", "create", "events", "all"],
        &["send", "events", "a", "--message-id", "a/b 1"],
    ] {
        said(&broker, arguments);
    }
    let all = "events/Subscriptions/all";
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver(all, 1);
    let received = peer.receive(receiver);
    _ = peer.settle(&received, DeliveryState::Rejected(None));
    said(&broker, &["redrive", all]);
    let expected = [
        ("events", "accepted"),
        ("events", "distributed"),
        (all, "copied"),
        (all, "locked"),
        (all, "rejected"),
        (all, "dead-lettered"),
        (all, "locked"),
        (all, "redriven"),
    ];
    check(&broker, "default/messages/a%2Fb%201/history", &expected);
    let by_number = format!("default/history?entity={all}&sequence=1");
    check(&broker, &by_number, &expected);
    let in_topic = "default/history?entity=EVENTS&top=1";
    check(&broker, in_topic, &expected[1..2]);
    let trace = said(&broker, &["trace", "a/b 1"]);
    let lines: Vec<_> = trace.lines().collect();
    assert_eq!(lines.len(), 2 + expected.len(), "{trace}");
    assert!(
        lines[3].ends_with("it is a copy of message #1 of 'events', by the rule '$Default'"),
        "{trace}"
    );
    assert!(lines[4].contains("events/Subscriptions/all #1  it was locked by connection "));
    assert!(lines[9].starts_with("recorded since 20"), "{trace}");
    let json = said(
        &broker,
        &["trace", "--entity", all, "--sequence", "2", "--json"],
    );
    let history: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(history["complete"], true, "{history}");
    assert_eq!(history["events"][7]["from"]["sequence-number"], 1);
    let nothing = said(&broker, &["trace", "other"]);
    assert!(
        nothing.starts_with("nothing is known of it; recorded since "),
        "{nothing}"
    );
}

#[test]
fn a_namespace_has_a_record_of_its_own_if_it_says_so() {
    let broker = Setup::new().start();
    let off = said(&broker, &["trace", "1"]);
    assert!(
        off.starts_with("nothing is recorded in the namespace default"),
        "{off}"
    );
    let arguments = ["namespace", "create", "shop", "--lineage", "true", "--json"];
    let made: Value = serde_json::from_str(&said(&broker, &arguments)).expect("JSON");
    let shop = made["connection-string"].as_str().expect("a text");
    said(&broker, &["namespace", "create", "other"]);
    for arguments in [
        &["queue", "create", "orders"][..],
        &[
            "send",
            "orders",
            "a",
            "--message-id",
            "1",
            "--session-id",
            "s",
        ],
    ] {
        let said = railbus_at(shop, arguments, "");
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    }
    let accepted = [("orders", "accepted")];
    check(&broker, "shop/messages/1/history", &accepted);
    check(&broker, "shop/history?session=s", &accepted);
    check(&broker, "default/messages/1/history", &[]);
    let own = railbus_at(shop, &["trace", "1", "--namespace", "shop"], "");
    assert_eq!((own.code, own.out.lines().count()), (0, 3), "{}", own.out);
    for name in ["default", "other"] {
        let others = railbus_at(shop, &["trace", "1", "--namespace", name], "");
        assert_eq!(others.code, 1, "{}", others.out);
        assert!(
            others.err.contains("use a key of the default namespace"),
            "{}",
            others.err
        );
    }
    let missing = railbus(&broker, &["trace", "1", "--namespace", "none"]);
    assert_eq!(missing.code, 1, "{}", missing.out);
    said(&broker, &["namespace", "delete", "shop"]);
    let gone = railbus(&broker, &["trace", "1", "--namespace", "shop"]);
    assert_eq!(gone.code, 1, "{}", gone.out);
}

#[test]
fn an_ephemeral_broker_records_without_being_told() {
    let broker = Setup::new().arguments(&["--ephemeral"]).start();
    said(&broker, &["send", "orders", "a", "--message-id", "1"]);
    check(
        &broker,
        "default/messages/1/history",
        &[("orders", "accepted")],
    );
}
