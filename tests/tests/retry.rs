//! Delayed retry on a real store: a message waits after a failed delivery, also over a kill.

use amqp::{DeliveryState, Value};
use e2e::cli::{Said, railbus};
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value as Json, json};

/// Far longer than a test.
const DELAY_MS: u64 = 7_200_000;

fn run(broker: &Broker, arguments: &[&str]) -> String {
    let said = railbus(broker, arguments);
    assert_eq!(said.code, 0, "{said:?}");
    said.out
}

fn show(broker: &Broker) -> Json {
    let shown = run(broker, &["queue", "show", "orders", "--json"]);
    serde_json::from_str(&shown).expect("JSON")
}

fn counts(broker: &Broker) -> (u64, u64) {
    let state = &show(broker)["state"];
    let count = |name: &str| state[name].as_u64().expect("a count");
    (count("active"), count("scheduled"))
}

fn advance(broker: &Broker, by: &str) {
    let body = json!({ "advance": by }).to_string();
    let (status, text) = http::request(broker.address(), "POST", "/$railbus/clock", &[], &body);
    assert_eq!(status, 200, "{text}");
}

#[test]
fn messages_wait_over_a_kill_and_come_again_at_their_time() {
    let setup = Setup::new().arguments(&["--virtual-clock"]);
    let broker = setup.start();
    let backoff = ["--retry-backoff", "min=1h,max=1d,factor=2"];
    run(
        &broker,
        &[&["queue", "update", "orders"], &backoff[..]].concat(),
    );
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in [b"first", b"other"] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("orders", 2);
    for delay in [None, Some(DELAY_MS)] {
        let received = peer.receive(receiver);
        let delay = delay.map(|delay| vec![("x-opt-delivery-delay".into(), Value::Ulong(delay))]);
        let abandoned = DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: delay,
        };
        assert!(matches!(
            peer.settle(&received, abandoned),
            Some(DeliveryState::Modified { .. })
        ));
    }
    assert_eq!(counts(&broker), (0, 2));
    broker.kill();

    let broker = setup.start();
    assert_eq!(counts(&broker), (0, 2));
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 2);
    for body in [b"first", b"other"] {
        advance(&broker, "PT1H");
        let received = peer.receive(receiver);
        assert_eq!(received.body(), body);
        assert_eq!(
            peer.settle(&received, DeliveryState::Accepted),
            Some(DeliveryState::Accepted)
        );
    }
    assert_eq!(counts(&broker), (0, 0));
}

/// What a start replays has the message leave its place and come back to it.
#[test]
fn messages_that_have_come_back_are_there_after_a_kill_and_a_stop() {
    let setup = Setup::new().arguments(&["--virtual-clock"]);
    let mut broker = setup.start();
    for round in 0..3 {
        let mut peer = Peer::connect(broker.address());
        if round == 0 {
            let sender = peer.sender("orders");
            assert_eq!(peer.send(sender, b"first"), DeliveryState::Accepted);
        }
        let receiver = peer.receiver("orders", 1);
        let received = peer.receive(receiver);
        let delay = vec![("x-opt-delivery-delay".into(), Value::Ulong(DELAY_MS))];
        let abandoned = DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: Some(delay),
        };
        assert!(matches!(
            peer.settle(&received, abandoned),
            Some(DeliveryState::Modified { .. })
        ));
        assert_eq!(counts(&broker), (0, 1));
        advance(&broker, "PT2H");
        assert_eq!(counts(&broker), (1, 0));
        if round == 1 {
            assert_eq!(broker.stop().code(), Some(0));
        } else {
            broker.kill();
        }
        broker = setup.start();
        assert_eq!(counts(&broker), (1, 0));
    }
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert_eq!(received.body(), b"first");
    assert_eq!(
        peer.settle(&received, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
    assert_eq!(counts(&broker), (0, 0));
}

#[test]
fn a_backoff_is_set_shown_refused_and_taken_away() {
    let broker = Setup::new().start();
    let update = |value: &str| {
        railbus(
            &broker,
            &["queue", "update", "orders", "--retry-backoff", value],
        )
    };
    assert_eq!(update("min=1s,max=1m,factor=2").code, 0);
    let expected = json!({"min": "PT1S", "max": "PT1M", "factor": 2});
    assert_eq!(show(&broker)["retry-backoff"], expected);
    for (value, code, part) in [
        ("min=1m,max=1s,factor=2", 1, "min is longer than its max"),
        ("min=0s,max=1s,factor=2", 1, "PT0.001S"),
        ("min=1s,max=1m,factor=0", 1, "is below the minimum of 1"),
        ("min=1s,max=1m", 1, "factor"),
        ("min=1s,max=1m,factor=2,jitter=1s", 1, "jitter"),
        ("1s", 2, "is not KEY=VALUE"),
    ] {
        let Said {
            code: found, err, ..
        } = update(value);
        assert_eq!(found, code, "{value}: {err}");
        assert!(err.contains(part), "{value}: {err}");
    }
    assert_eq!(show(&broker)["retry-backoff"], expected);
    assert_eq!(update("").code, 0);
    assert!(show(&broker).get("retry-backoff").is_none());
}
