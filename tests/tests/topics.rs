//! Topics of our own shape of files: what a file says is what a publisher and receivers see.

use std::process::Command;

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{DeliveryState, Value};
use bytes::BytesMut;
use e2e::{Broker, Peer, Setup, broker, message};

/// A subscription for each kind of filter.
const TOPIC: &str = r#"
[[topics]]
name = "events"

[[topics.subscriptions]]
name = "all"

[[topics.subscriptions]]
name = "large"
[[topics.subscriptions.rules]]
name = "large"
filter = { sql = "amount > 100" }
action = "SET sys.Label = 'large'"

[[topics.subscriptions]]
name = "north"
[[topics.subscriptions.rules]]
name = "north"
filter = { correlation = { subject = "order", properties = { amount = { type = "int", value = 7 } } } }

[[topics.subscriptions]]
name = "none"
[[topics.subscriptions.rules]]
name = "none"
filter = false
"#;

/// An order with its amount as an int.
fn order(amount: i32) -> BytesMut {
    let mut message = BytesMut::new();
    Properties {
        subject: Some("order".to_owned()),
        ..Properties::default()
    }
    .encode(&mut message);
    let entries = [(Value::from("amount"), Value::Int(amount))];
    encode_map_section(&mut message, descriptor::APPLICATION_PROPERTIES, &entries);
    message.extend_from_slice(&message::encode(&amount.to_be_bytes()));
    message
}

fn publish(peer: &mut Peer) {
    let sender = peer.sender("events");
    for amount in [7, 150] {
        let sent = peer.send_encoded(sender, &order(amount));
        assert_eq!(peer.outcome(sent), DeliveryState::Accepted);
    }
}

/// Takes all that a subscription has, by amount.
fn amounts(peer: &mut Peer, subscription: &str) -> Vec<Vec<u8>> {
    let receiver = peer.receiver(&format!("events/Subscriptions/{subscription}"), 0);
    let received = peer.drain(receiver, 10);
    for message in &received {
        let settled = peer.settle(message, DeliveryState::Accepted);
        assert_eq!(settled, Some(DeliveryState::Accepted));
    }
    received.iter().map(e2e::Received::body).collect()
}

fn check(broker: &Broker) {
    let mut peer = Peer::connect(broker.address());
    publish(&mut peer);
    let (small, large) = (7_i32.to_be_bytes().to_vec(), 150_i32.to_be_bytes().to_vec());
    assert_eq!(amounts(&mut peer, "all"), [small.clone(), large.clone()]);
    assert_eq!(amounts(&mut peer, "large"), [large]);
    assert_eq!(amounts(&mut peer, "north"), [small]);
    assert_eq!(amounts(&mut peer, "none").len(), 0);
}

#[test]
fn a_topic_of_our_own_file_selects_as_it_says_after_a_restart_too() {
    let setup = Setup::new().configure(TOPIC);
    let broker = setup.start();
    check(&broker);
    assert!(broker.stop().success());
    check(&setup.start());
}

#[test]
fn the_example_is_valid() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/entities.toml");
    let output = Command::new(broker::program())
        .args(["config", "check", example])
        .output()
        .expect("the program is there");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        stdout.ends_with("is valid: 2 queues, 1 topics\n"),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}
