//! One partition key in a transaction of a partitioned entity. (docs/spec/amqp.md#8.3)

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Symbol, Value};
use broker::{EntityDescription, EntityPath, Order, QueueSettings, StoreOnlyProperties};
use bytes::{Bytes, BytesMut};

use crate::send_via;
use crate::sessions::of_session;
use crate::transactions::{
    answers, condition, coordinator, declare, discharge, request_within, seen, send_within, update,
    within,
};
use crate::world::{Received, Request, World, message};

const REFUSED: &str = "amqp:not-allowed";

fn keyed(annotation: &'static str, key: &str) -> Bytes {
    let mut payload = BytesMut::new();
    let entry = (Value::Symbol(Symbol::new(annotation)), Value::from(key));
    let annotations = Value::described(0x72, Value::Map(vec![entry]));
    amqp::encode::value(&mut payload, &annotations);
    payload.extend_from_slice(&message("x"));
    payload.freeze()
}

fn with_key(key: &str) -> Bytes {
    keyed("x-opt-partition-key", key)
}

/// A queue `parts` that is partitioned.
fn world() -> World {
    let mut world = World::new();
    world.administer(Order::Create {
        path: EntityPath::Queue("parts".to_owned()),
        rules: None,
        description: Box::new(EntityDescription {
            settings: QueueSettings::default(),
            store_only: StoreOnlyProperties {
                enable_partitioning: true,
                ..StoreOnlyProperties::default()
            },
            ..EntityDescription::default()
        }),
    });
    world.pump();
    world
}

fn received(world: &mut World, count: u32) -> (endpoint::LinkId, Vec<Received>) {
    let link = world.receiver("parts", SenderSettleMode::Unsettled, count);
    let received = world.received(link);
    (link, received)
}

fn accepted(id: &Bytes) -> DeliveryState {
    within(id, Some(DeliveryState::Accepted))
}

#[test]
fn a_send_with_another_key_is_refused_and_the_transaction_goes_on() {
    let mut world = world();
    let coordinator = coordinator(&mut world);
    let (_, link) = world.sender("parts");
    let id = declare(&mut world, coordinator);
    for (payload, taken) in [
        (message("without a key"), true),
        (with_key("one"), true),
        (with_key("two"), false),
        (with_key("ONE"), true),
    ] {
        send_within(&mut world, link, &id, &payload, false);
        let state = world.outcomes(link).pop().expect("an answer");
        if taken {
            assert_eq!(state, accepted(&id));
        } else {
            assert!(matches!(state, DeliveryState::Transactional { .. }));
            assert_eq!(condition(&state), REFUSED);
        }
    }
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "parts"), 3);
}

#[test]
fn a_settlement_with_another_key_is_refused_and_keeps_the_lock() {
    let mut world = world();
    world.enqueue("parts", &with_key("one"));
    world.enqueue("parts", &with_key("two"));
    let coordinator = coordinator(&mut world);
    let pair = world.pair("parts/$management");
    let (link, messages) = received(&mut world, 2);
    let id = declare(&mut world, coordinator);
    world.dispose(&messages[0], accepted(&id), false);
    assert_eq!(answers(&mut world, link), [(accepted(&id), false)]);
    world.dispose(&messages[1], accepted(&id), false);
    let [(state, false)] = &answers(&mut world, link)[..] else {
        panic!("it is refused and stays unsettled");
    };
    assert_eq!(condition(state), REFUSED);
    let update = update(&messages[1], "completed");
    assert_eq!(request_within(&mut world, &pair, &id, &update).code(), 400);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    world.dispose(&messages[1], DeliveryState::Accepted, false);
    let last = (DeliveryState::Accepted, true);
    assert_eq!(answers(&mut world, link).pop(), Some(last));
    assert_eq!(seen(&mut world, "parts"), 0);
}

#[test]
fn a_message_that_is_sent_via_the_entity_has_a_key_of_its_own_there() {
    let mut world = world();
    let coordinator = coordinator(&mut world);
    let link = send_via::attach(&mut world, send_via::via("parts", "orders2"));
    let id = declare(&mut world, coordinator);
    let via = |key| keyed("x-opt-via-partition-key", key);
    for (payload, taken) in [
        (via("one"), true),
        (with_key("two"), true),
        (via("two"), false),
    ] {
        send_within(&mut world, link, &id, &payload, false);
        let state = world.outcomes(link).pop().expect("an answer");
        assert_eq!(state == accepted(&id), taken, "{state:?}");
    }
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "orders2"), 2);
}

#[test]
fn a_cancellation_has_no_key() {
    let mut world = world();
    let never = (
        Value::Symbol(Symbol::new("x-opt-scheduled-enqueue-time")),
        Value::Timestamp(i64::MAX),
    );
    let key = Value::Symbol(Symbol::new("x-opt-partition-key"));
    let annotations = vec![never, (key, Value::from("two"))];
    let mut later = BytesMut::new();
    amqp::message::encode_map_section(&mut later, 0x72, &annotations);
    later.extend_from_slice(&message("x"));
    world.enqueue("parts", &later);
    let coordinator = coordinator(&mut world);
    let pair = world.pair("parts/$management");
    let (_, link) = world.sender("parts");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, link, &id, &with_key("one"), false);
    assert_eq!(world.outcomes(link), [accepted(&id)]);
    let numbers = Value::Array(vec![Value::Long(1)]);
    let body = vec![("sequence-numbers", numbers)];
    let cancel = Request::operation("com.microsoft:cancel-scheduled-message", body);
    let answer = request_within(&mut world, &pair, &id, &cancel);
    assert_eq!(answer.code(), 200);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
}

#[test]
fn an_entity_without_partitions_knows_no_keys() {
    let mut world = world();
    let coordinator = coordinator(&mut world);
    let (_, link) = world.sender("orders");
    let id = declare(&mut world, coordinator);
    for key in ["one", "two"] {
        send_within(&mut world, link, &id, &with_key(key), false);
        assert_eq!(world.outcomes(link), [accepted(&id)]);
    }
}

#[test]
fn an_empty_session_id_needs_no_equal_key() {
    // (docs/spec/amqp.md#5.5)
    let mut world = world();
    let key = Value::Symbol(Symbol::new("x-opt-partition-key"));
    let annotations = Value::Map(vec![(key, Value::from("one"))]);
    let annotations = Value::described(0x72, annotations);
    let mut send = |session: &str| {
        let mut payload = BytesMut::new();
        amqp::encode::value(&mut payload, &annotations);
        payload.extend_from_slice(&of_session(session, "x"));
        let (_, link) = world.sender("parts");
        world.send(link, &payload);
        world.outcomes(link).pop().expect("an outcome")
    };
    assert_eq!(send("one"), DeliveryState::Accepted);
    assert_eq!(condition(&send("two")), REFUSED);
    assert_eq!(send(""), DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "parts"), 2);
}
