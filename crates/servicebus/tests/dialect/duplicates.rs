//! Duplicate detection over the wire: the second send is accepted, whatever its id is made of.

use amqp::message::Properties;
use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::QueueSettings;
use bytes::{Bytes, BytesMut};

use crate::world::{World, message};

fn check(first: Option<&Value>, second: Option<&Value>, expected: usize) {
    let mut world = World::new();
    world.create(
        "once",
        QueueSettings {
            requires_duplicate_detection: true,
            ..QueueSettings::default()
        },
    );
    let (_, sender) = world.sender("once");
    for id in [first, second] {
        world.send(sender, &with_id(id.cloned()));
        assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    }
    let receiver = world.receiver("once", SenderSettleMode::Unsettled, 5);
    let received = world.received(receiver);
    assert_eq!(received.len(), expected, "{first:?}, then {second:?}");
}

fn with_id(message_id: Option<Value>) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id,
        ..Properties::default()
    };
    properties.encode(&mut out);
    out.extend_from_slice(&message("x"));
    out.freeze()
}

fn text(id: &str) -> Value {
    Value::String(id.into())
}

#[test]
fn equal_ids_are_duplicates_whatever_they_are_made_of() {
    check(Some(&text("one")), Some(&text("one")), 1);
    check(Some(&Value::Ulong(7)), Some(&Value::Ulong(7)), 1);
    let binary = Value::Binary(Bytes::from_static(b"id"));
    check(Some(&binary), Some(&binary), 1);
}

#[test]
fn ids_that_differ_in_case_or_kind_are_not() {
    check(Some(&text("one")), Some(&text("One")), 2);
    check(Some(&text("7")), Some(&Value::Ulong(7)), 2);
}

#[test]
fn messages_without_an_id_are_never_duplicates() {
    check(None, None, 2);
}
