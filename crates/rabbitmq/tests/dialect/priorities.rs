//! Priorities of messages: which queues have levels, and what comes first.
//! (docs/spec/rabbitmq.md#10.7)

use amqp::Value;
use amqp::message::Header;
use bytes::{Bytes, BytesMut};

use crate::client_frames::message;
use crate::consume::{consume, parts};
use crate::management_client::open;
use crate::world::World;

fn with_priority(text: &str, priority: u8) -> Bytes {
    let mut payload = BytesMut::new();
    let header = Header {
        priority: Some(priority),
        ..Header::default()
    };
    header.encode(&mut payload);
    payload.extend_from_slice(&message(text));
    payload.freeze()
}

/// What a consumer gets of messages with these priorities, in this order, from a queue that is
/// declared with these arguments.
fn order(arguments: &[(&str, Value)], sent: &[Option<u8>]) -> Vec<Option<u8>> {
    let mut world = World::new();
    let management = open(&mut world);
    let (status, text) = management.declare(&mut world, "levels", arguments);
    assert_eq!(status, "201", "{text:?}");
    for priority in sent {
        let message = match priority {
            Some(priority) => with_priority("m", *priority),
            None => message("m"),
        };
        world.enqueue("/queues/levels", &message);
    }
    let link = consume(&mut world, "/queues/levels", 20);
    let received = world.received(link);
    received.iter().map(|it| parts(it).0.priority).collect()
}

const SENT: [Option<u8>; 6] = [None, Some(3), Some(5), Some(40), Some(31), Some(4)];

#[test]
fn a_quorum_queue_has_32_levels() {
    assert_eq!(
        order(&[("x-queue-type", Value::from("quorum"))], &SENT),
        [Some(40), Some(31), Some(5), None, Some(4), Some(3)]
    );
}

#[test]
fn a_classic_queue_has_the_levels_that_it_is_declared_with() {
    let levels = [
        ("x-queue-type", Value::from("classic")),
        ("x-max-priority", Value::Uint(4)),
    ];
    assert_eq!(
        order(&levels, &SENT),
        [Some(5), Some(40), Some(31), Some(4), Some(3), None]
    );
}

#[test]
fn a_classic_queue_without_levels_has_the_order_of_arrival() {
    assert_eq!(
        order(&[("x-queue-type", Value::from("classic"))], &SENT),
        SENT
    );
}

#[test]
fn a_queue_of_service_bus_has_the_order_of_arrival() {
    let mut world = World::new();
    for (text, priority) in [("low", 0), ("high", 9)] {
        world.enqueue("/queues/orders", &with_priority(text, priority));
    }
    let link = consume(&mut world, "/queues/orders", 5);
    let received = world.received(link);
    let priorities = received.iter().map(|it| parts(it).0.priority);
    assert_eq!(priorities.collect::<Vec<_>>(), [Some(0), Some(9)]);
}

#[test]
fn levels_that_no_queue_has_are_refused() {
    let refused = [
        ("classic", Value::Int(-1), "{value_negative,-1}"),
        ("classic", Value::Uint(256), "{max_value_exceeded,256}"),
        ("classic", Value::from("9"), "expected integer, got longstr"),
        (
            "quorum",
            Value::Uint(9),
            "of queue type rabbit_quorum_queue",
        ),
    ];
    let mut world = World::new();
    let management = open(&mut world);
    for (kind, highest, why) in refused {
        let levels = [
            ("x-queue-type", Value::from(kind)),
            ("x-max-priority", highest),
        ];
        let (status, text) = management.declare(&mut world, "levels", &levels);
        let text = text.as_text().expect("a text");
        assert_eq!(status, "409", "{text}");
        assert!(
            text.contains("'x-max-priority'") && text.contains(why),
            "{text}"
        );
    }
}
