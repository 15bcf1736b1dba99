//! Dead letters that an exchange takes, and annotations of `modified`. (docs/spec/rabbitmq.md#10.3,
//! #12.5)

use amqp::{DeliveryState, Value, value};

use crate::client_frames::message;
use crate::consume::{consume, parts};
use crate::management_client::{entry, open};
use crate::world::World;

#[test]
fn a_dead_letter_tells_its_deaths_and_has_its_annotations() {
    let mut world = World::new();
    let management = open(&mut world);
    let arguments = [
        ("x-queue-type", Value::from("quorum")),
        ("x-dead-letter-exchange", Value::from("")),
        ("x-dead-letter-routing-key", Value::from("orders")),
    ];
    let made = management.declare(&mut world, "work", &arguments);
    assert_eq!(made.0, "201", "{made:?}");
    world.enqueue("/queues/work", &message("a"));
    let link = consume(&mut world, "/queues/work", 5);
    let received = world.received(link).remove(0);
    let annotated = |key: &'static str, text: &str| (Value::Symbol(key.into()), Value::from(text));
    let annotations = vec![annotated("x-note", "why"), annotated("note", "left out")];
    let modified = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: true,
        message_annotations: Some(annotations),
    };
    world.dispose(&received, modified, true);

    let dead = consume(&mut world, "/queues/orders", 5);
    let received = world.received(dead).remove(0);
    assert!(received.payload.ends_with(&message("a")));
    let (header, annotations) = parts(&received);
    assert_eq!(
        (header.first_acquirer, header.delivery_count),
        (Some(false), Some(1))
    );
    for key in ["x-delivery-count", "x-acquired-count"] {
        let count = value::lookup(&annotations, key);
        assert_eq!(count, Some(&Value::Long(1)), "{key}");
    }
    for (key, expected) in [
        ("x-note", Some("why")),
        ("note", None),
        ("x-exchange", Some("")),
        ("x-routing-key", Some("orders")),
        ("x-first-death-queue", Some("work")),
        ("x-last-death-reason", Some("rejected")),
        ("x-opt-dead-letter-reason", None),
    ] {
        let found = value::lookup(&annotations, key).and_then(Value::as_text);
        assert_eq!(found, expected, "{key}");
    }
    let Some(Value::Array(deaths)) = value::lookup(&annotations, "x-opt-deaths") else {
        panic!("no deaths: {annotations:?}");
    };
    let [Value::Map(death)] = &deaths[..] else {
        panic!("one death, not {deaths:?}");
    };
    assert_eq!(value::lookup(death, "count"), Some(&Value::Ulong(1)));
    let keys = Value::Array(vec![Value::from("work")]);
    assert_eq!(value::lookup(death, "routing-keys"), Some(&keys));

    // Sent again as it is, it dies again.
    world.dispose(&received, DeliveryState::Accepted, true);
    world.enqueue("/queues/work", &received.payload);
    let received = world.received(link).remove(0);
    let (_, told) = parts(&received);
    let of_publisher = value::lookup(&told, "x-opt-deaths");
    assert_eq!(of_publisher, value::lookup(&annotations, "x-opt-deaths"));
    world.dispose(&received, DeliveryState::Rejected(None), true);
    let received = world.received(dead).remove(0);
    let (_, annotations) = parts(&received);
    let mut keys: Vec<_> = annotations.iter().map(|(key, _)| key.as_text()).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all, "each key is there once: {annotations:?}");
}

#[test]
fn a_declared_queue_without_an_exchange_drops_what_is_rejected() {
    let mut world = World::new();
    let management = open(&mut world);
    let length = [("x-max-length", Value::Int(1))];
    assert_eq!(management.declare(&mut world, "ring", &length).0, "201");
    for text in ["a", "b", "c"] {
        world.enqueue("/queues/ring", &message(text));
    }
    let link = consume(&mut world, "/queues/ring", 5);
    let received = world.received(link).remove(0);
    assert!(received.payload.ends_with(&message("c")));
    world.dispose(&received, DeliveryState::Rejected(None), true);
    let dead = consume(&mut world, "/queues/ring%2F$DeadLetterQueue", 5);
    assert_eq!(world.received(dead).len(), 0);
    let shown = management.call(&mut world, "GET", "/queues/ring", None);
    assert_eq!(entry(&shown.1, "message_count"), &Value::Ulong(0));
}

/// Declares a queue for no message, whose refused ones go to `orders`.
fn full(world: &mut World, queue_type: &'static str) -> (String, Value) {
    let arguments = [
        ("x-queue-type", Value::from(queue_type)),
        ("x-max-length", Value::Int(0)),
        ("x-overflow", Value::from("reject-publish-dlx")),
        ("x-dead-letter-exchange", Value::from("")),
        ("x-dead-letter-routing-key", Value::from("orders")),
    ];
    let management = open(world);
    let declared = management.declare(world, "full", &arguments);
    assert_eq!(declared.0, "201", "{declared:?}");
    let (_, link) = world.sender("/queues/full");
    world.send(link, &message("a"));
    let outcomes = world.outcomes(link);
    assert!(
        matches!(outcomes[..], [DeliveryState::Rejected(_)]),
        "{outcomes:?}"
    );
    management.call(world, "GET", "/queues/full", None)
}

#[test]
fn what_a_full_classic_queue_refuses_is_a_dead_letter_if_its_overflow_says_so() {
    let mut world = World::new();
    let (_, queue) = full(&mut world, "classic");
    let overflow = value::lookup(as_map(entry(&queue, "arguments")), "x-overflow");
    assert_eq!(overflow, Some(&Value::from("reject-publish-dlx")));
    let dead = consume(&mut world, "/queues/orders", 5);
    let received = world.received(dead).remove(0);
    assert!(received.payload.ends_with(&message("a")));
    let (_, annotations) = parts(&received);
    for (key, expected) in [
        ("x-first-death-queue", "full"),
        ("x-first-death-reason", "maxlen"),
    ] {
        let found = value::lookup(&annotations, key).and_then(Value::as_text);
        assert_eq!(found, Some(expected), "{key}");
    }

    // Quorum queues take the word for `reject-publish`.
    let mut world = World::new();
    full(&mut world, "quorum");
    let dead = consume(&mut world, "/queues/orders", 5);
    assert_eq!(world.received(dead).len(), 0);
}

fn as_map(value: &Value) -> &[(Value, Value)] {
    match value {
        Value::Map(entries) => entries,
        other => panic!("no map: {other:?}"),
    }
}
