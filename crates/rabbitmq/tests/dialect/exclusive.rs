//! Exclusive queues over the management pair and on links. (docs/spec/rabbitmq.md#6.1, #7)

use amqp::error::condition;
use amqp::{DeliveryState, Value};
use broker::{EntityDescription, EntityPath, Order, QueueSettings};

use crate::client_frames::{message, sender};
use crate::consume::{consume, consumer};
use crate::management_client::{Management, entry, map, open};
use crate::world::World;

const EXCLUSIVE: (&str, Value) = ("exclusive", Value::Bool(true));
const LOCKED: &str = "cannot obtain exclusive access to locked queue 'theirs' in vhost '/'";

fn declare(world: &mut World, management: &Management, name: &str) -> (String, Value) {
    let path = format!("/queues/{name}");
    management.call(world, "PUT", &path, Some(&map(&[EXCLUSIVE])))
}

/// A world where another connection has declared `theirs` for itself.
fn locked() -> (World, Management) {
    let mut world = World::new();
    world.administer(Order::Create {
        path: EntityPath::Queue("theirs".to_owned()),
        description: Box::new(EntityDescription {
            settings: QueueSettings {
                exclusive: true,
                ..QueueSettings::default()
            },
            ..EntityDescription::default()
        }),
        rules: None,
    });
    let management = open(&mut world);
    (world, management)
}

fn assert_locked((status, text): (String, Value)) {
    assert_eq!(status, "400", "{text:?}");
    let text = text.as_text().expect("a text");
    assert!(text.starts_with(LOCKED), "{text}");
}

#[test]
fn a_connection_declares_uses_and_deletes_a_queue_of_its_own() {
    let mut world = World::new();
    let management = open(&mut world);
    let (status, queue) = declare(&mut world, &management, "mine");
    assert_eq!(status, "201", "{queue:?}");
    assert_eq!(entry(&queue, "exclusive"), &Value::Bool(true));
    assert_eq!(declare(&mut world, &management, "mine").0, "200");
    let (status, text) = management.declare(&mut world, "mine", &[]);
    assert_eq!(status, "400", "the exclusive property differs: {text:?}");
    world.enqueue("/queues/mine", &message("a"));
    let link = consume(&mut world, "/queues/mine", 5);
    assert_eq!(world.received(link).len(), 1);
    let (status, _) = management.call(&mut world, "DELETE", "/queues/mine", None);
    assert_eq!(status, "200");
    let (status, _) = management.call(&mut world, "GET", "/queues/mine", None);
    assert_eq!(status, "404");
    assert_eq!(management.declare(&mut world, "mine", &[]).0, "201");
    assert_eq!(declare(&mut world, &management, "mine").0, "400");
}

#[test]
fn it_goes_with_its_connection() {
    let mut world = World::new();
    let management = open(&mut world);
    declare(&mut world, &management, "mine");
    let is_there = |world: &World| world.shard.broker.queues().any(|it| it.path == "mine");
    assert!(is_there(&world));
    world.client.close(None);
    world.pump();
    assert!(!is_there(&world));
}

#[test]
fn the_queue_of_another_connection_is_refused_and_can_be_published_to() {
    let (mut world, management) = locked();
    let error = world.refusal(consumer("/queues/theirs"));
    assert_eq!(error.condition, condition::RESOURCE_LOCKED);
    let text = error.description.expect("a text");
    assert!(text.starts_with(LOCKED), "{text}");
    assert_locked(declare(&mut world, &management, "theirs"));
    assert_locked(management.declare(&mut world, "theirs", &[]));
    for path in ["/queues/theirs", "/queues/theirs/messages"] {
        assert_locked(management.call(&mut world, "DELETE", path, None));
    }
    let binding = map(&[
        ("source", Value::from("amq.fanout")),
        ("destination_queue", Value::from("theirs")),
        ("binding_key", Value::from("")),
        ("arguments", map(&[])),
    ]);
    assert_locked(management.call(&mut world, "POST", "/bindings", Some(&binding)));
    let path = "/bindings/src=amq.fanout;dstq=theirs;key=;args=";
    assert_locked(management.call(&mut world, "DELETE", path, None));
    let (status, queue) = management.call(&mut world, "GET", "/queues/theirs", None);
    assert_eq!(status, "200");
    assert_eq!(entry(&queue, "exclusive"), &Value::Bool(true));
    let session = world.session();
    let link = world.attach(session, sender("/queues/theirs"));
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn a_receiver_of_service_bus_is_refused_too() {
    let (mut world, _) = locked();
    let session = world.session();
    let link = world.attach(session, consumer("theirs"));
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, condition::RESOURCE_LOCKED);
}

#[test]
fn a_quorum_queue_is_not_exclusive() {
    let mut world = World::new();
    let management = open(&mut world);
    let arguments = map(&[("x-queue-type", Value::from("quorum"))]);
    let body = map(&[EXCLUSIVE, ("arguments", arguments)]);
    let (status, text) = management.call(&mut world, "PUT", "/queues/q", Some(&body));
    let expected = "invalid property 'exclusive-owner' for queue 'q' in vhost '/'";
    assert_eq!((status.as_str(), text), ("400", Value::from(expected)));
}
