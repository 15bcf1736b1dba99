//! Priorities of messages: what is not there, and says so. (docs/spec/rabbitmq.md#10.7)

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

#[test]
fn a_queue_with_levels_of_priority_is_refused() {
    let mut world = World::new();
    let management = open(&mut world);
    let levels = [
        ("x-queue-type", Value::from("classic")),
        ("x-max-priority", Value::Uint(10)),
    ];
    let (status, text) = management.declare(&mut world, "levels", &levels);
    assert_eq!(status, "409");
    let text = text.as_text().expect("a text");
    assert!(
        text.contains("'x-max-priority'") && text.contains("does not support it yet"),
        "{text}"
    );
}

#[test]
fn a_priority_is_carried_and_changes_no_order() {
    let mut world = World::new();
    for (text, priority) in [("low", 0), ("high", 9)] {
        world.enqueue("/queues/orders", &with_priority(text, priority));
    }
    let link = consume(&mut world, "/queues/orders", 5);
    let received = world.received(link);
    let priorities = received.iter().map(|it| parts(it).0.priority);
    assert_eq!(priorities.collect::<Vec<_>>(), [Some(0), Some(9)]);
}
