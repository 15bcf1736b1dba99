//! The times that an expiring message shows: when it was created, and when it expires.
//! (docs/spec/entities.md#7.1)

use amqp::Value;
use amqp::message::{Header, Properties};
use amqp::performative::SenderSettleMode;
use broker::{QueueSettings, Status};
use bytes::BytesMut;

use crate::schedule::scheduled;
use crate::world::{BROKER_START, Received, World, message};

/// A queue whose messages live as long as this at most.
fn queue(time_to_live: u64) -> QueueSettings {
    QueueSettings {
        default_message_time_to_live: time_to_live,
        ..QueueSettings::default()
    }
}

fn receive(world: &mut World, queue: &str) -> Received {
    let receiver = world.receiver(queue, SenderSettleMode::Settled, 1);
    world.received(receiver).pop().expect("a message")
}

fn properties(received: &Received) -> Properties {
    let section = received.payload.slice(received.sections().properties);
    Properties::decode(&section).expect("properties")
}

/// Checks the creation time, which the broker has set, and the time to live from there.
fn check_times(received: &Received, created: u64, time_to_live: i64) {
    let properties = properties(received);
    let created = i64::try_from(created).expect("fits");
    assert_eq!(properties.creation_time, Some(created));
    let enqueued = received.annotation("x-opt-enqueued-time");
    assert_eq!(enqueued, Some(Value::Timestamp(created)));
    let expires = properties.absolute_expiry_time.expect("it expires");
    assert_eq!(expires - created, time_to_live);
    assert_eq!(
        received.header().ttl.map(i64::from),
        Some(time_to_live),
        "in both places"
    );
}

#[test]
fn a_scheduled_message_is_created_when_it_is_activated() {
    let mut world = World::new();
    world.create("mortal", queue(60_000));
    let due = BROKER_START + 5_000;
    let time = Value::Timestamp(i64::try_from(due).expect("fits"));
    world.enqueue("mortal", &scheduled("later", time));
    world.advance(5_000);
    check_times(&receive(&mut world, "mortal"), due, 60_000);
}

#[test]
fn a_forwarded_message_has_the_times_of_its_destination() {
    let mut world = World::new();
    let disabled = QueueSettings {
        status: Status::Disabled,
        ..queue(30_000)
    };
    world.create("end", disabled);
    let source = QueueSettings {
        forward_to: Some("end".to_owned()),
        ..queue(60_000)
    };
    world.create("start", source);
    world.enqueue("start", &message("x"));
    // It waits until its destination takes it.
    world.advance(4_000);
    world.create("end", queue(30_000));
    world.advance(1_000);
    let received = receive(&mut world, "end");
    let Some(Value::Timestamp(enqueued)) = received.annotation("x-opt-enqueued-time") else {
        panic!("it has an enqueued time");
    };
    let enqueued = u64::try_from(enqueued).expect("fits");
    assert!(enqueued >= BROKER_START + 4_000, "it arrived later");
    check_times(&received, enqueued, 30_000);
}

/// Some clients send the time to live of the header, others the difference of the two times.
#[test]
fn a_received_message_that_is_sent_again_keeps_its_time_to_live() {
    let mut world = World::new();
    let mut payload = BytesMut::new();
    let header = Header {
        ttl: Some(50_000),
        ..Header::default()
    };
    header.encode(&mut payload);
    payload.extend_from_slice(&message("x"));
    let mut payload = payload.freeze();
    for _ in 0..4 {
        world.enqueue("orders", &payload);
        world.advance(3_000);
        let received = receive(&mut world, "orders");
        let properties = properties(&received);
        let created = properties.creation_time.expect("a creation time");
        assert_eq!(properties.absolute_expiry_time, Some(created + 50_000));
        assert_eq!(received.header().ttl, Some(50_000));
        payload = received.payload;
    }
}
