//! What publishers are answered. (docs/spec/rabbitmq.md#9)

use amqp::error::condition;
use amqp::message::{Header, Properties, descriptor, encode_map_section};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Value, value};
use broker::{Binding, BindingDestination, Order, QueueSettings, RouterOrder};
use bytes::{Bytes, BytesMut};
use dialect::Dialect;
use endpoint::LinkId;

use crate::client_frames::{message, sender, target, transfer};
use crate::consume::{consumer, parts};
use crate::management_client::{entry, map, open};
use crate::world::World;

fn to(address: Option<&str>, user: Option<&'static [u8]>) -> Bytes {
    let mut out = BytesMut::new();
    Properties {
        to: address.map(Value::from),
        user_id: user.map(Bytes::from_static),
        ..Properties::default()
    }
    .encode(&mut out);
    out.extend_from_slice(&message("a"));
    out.freeze()
}

fn rejection(state: &DeliveryState) -> &amqp::Error {
    match state {
        DeliveryState::Rejected(Some(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rule_16_an_anonymous_message_is_told_by_its_address() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(
        session,
        Attach {
            target: Some(Box::new(target(None))),
            ..sender("")
        },
    );
    let mut answer = |payload: Bytes| {
        world.send(link, &payload);
        world.outcomes(link).remove(0)
    };
    assert_eq!(
        answer(to(Some("/queues/orders"), None)),
        DeliveryState::Accepted
    );
    // An entity's path, as clients of any kind write it.
    for path in ["orders", "/Orders"] {
        assert_eq!(answer(to(Some(path), None)), DeliveryState::Accepted);
    }
    assert_eq!(
        answer(to(Some("/queues/none"), None)),
        DeliveryState::Released
    );
    for (address, expected) in [
        (None, condition::PRECONDITION_FAILED),
        (Some("none"), condition::PRECONDITION_FAILED),
        (Some("/queues/"), condition::PRECONDITION_FAILED),
        (Some("/exchanges/none/k"), condition::NOT_FOUND),
    ] {
        let state = answer(to(address, None));
        assert_eq!(rejection(&state).condition, expected, "{address:?}");
    }
}

#[test]
fn transfers_that_come_before_the_answer_of_an_exchange_wait_for_it() {
    let mut world = World::new();
    let session = world.session();
    world.administer(Order::Router(RouterOrder::Bind(Box::new(Binding {
        source: "amq.fanout".to_owned(),
        destination: BindingDestination::Entity("orders".to_owned()),
        key: String::new(),
        arguments: Vec::new(),
    }))));
    world.broker_stalls = true;
    let link = world.attach(session, sender("/exchanges/amq.fanout"));
    let mut bytes = transfer(0, 0, None, false, &message("a"));
    world.server.handle_input(world.clock_reading(), &mut bytes);
    world.pump();
    assert!(!world.client.is_attached(link));
    world.broker_stalls = false;
    world.pump();
    // The client may end its session afterwards: its endpoint has sent no transfer.
    world.reply(link);
    assert_eq!(world.browsed("orders").len(), 1);
}

#[test]
fn a_full_queue_rejects_with_its_name() {
    let mut world = World::new();
    world.create(
        "small",
        QueueSettings {
            max_size: 1,
            ..QueueSettings::default()
        },
    );
    let (_, link) = world.sender("/queues/small");
    check_full(&mut world, link);
}

/// Sends two messages to the queue `small`, which refuses the second; returns the first outcome.
fn check_full(world: &mut World, link: LinkId) -> DeliveryState {
    world.send(link, &message("a"));
    world.send(link, &message("b"));
    let mut outcomes = world.outcomes(link);
    let error = rejection(&outcomes[1]);
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!(
        error.description.as_deref(),
        Some("queue 'small' exceeded maximum length")
    );
    let info = error.info.as_ref().expect("info");
    let entry = |key| amqp::value::lookup(info, key);
    assert_eq!(entry("queue"), Some(&Value::from("small")));
    assert_eq!(entry("reason"), Some(&Value::Symbol("maxlen".into())));
    outcomes.remove(0)
}

#[test]
fn a_queue_at_its_maximum_length_rejects_if_it_was_declared_so() {
    let limit = ("x-max-length", Value::Int(1));
    let rejects = ("x-overflow", Value::from("reject-publish"));
    for address in ["/queues/small", "/exchanges/amq.direct/k"] {
        let mut world = World::new();
        let management = open(&mut world);
        let arguments = [limit.clone(), rejects.clone()];
        let declared = management.declare(&mut world, "small", &arguments);
        assert_eq!(declared.0, "201");
        let binding = map(&[
            ("source", Value::from("amq.direct")),
            ("destination_queue", Value::from("small")),
            ("binding_key", Value::from("k")),
            ("arguments", map(&[])),
        ]);
        let bound = management.call(&mut world, "POST", "/bindings", Some(&binding));
        assert_eq!(bound.0, "204");
        let (_, link) = world.sender(address);
        assert_eq!(check_full(&mut world, link), DeliveryState::Accepted);
    }
    let mut world = World::new();
    let management = open(&mut world);
    assert_eq!(management.declare(&mut world, "small", &[limit]).0, "201");
    let (_, link) = world.sender("/queues/small");
    for text in ["a", "b"] {
        world.send(link, &message(text));
    }
    let accepted = [DeliveryState::Accepted, DeliveryState::Accepted];
    assert_eq!(world.outcomes(link), accepted);
    let (_, queue) = management.call(&mut world, "GET", "/queues/small", None);
    assert_eq!(entry(&queue, "message_count"), &Value::Ulong(1));
}

#[test]
fn a_message_that_came_settled_detaches_an_anonymous_link_that_has_no_place_for_it() {
    for (address, expected) in [
        ("none", condition::PRECONDITION_FAILED),
        ("/exchanges/none/k", condition::NOT_FOUND),
    ] {
        let mut world = World::new();
        let session = world.session();
        let anonymous = Attach {
            target: Some(Box::new(target(None))),
            ..sender("")
        };
        let link = world.attach(session, anonymous);
        world.send_as(link, 0, true, &to(Some("/queues/none"), None));
        assert_eq!(world.detach_error(link), None, "no queue took it");
        world.send_as(link, 0, true, &to(Some(address), None));
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition, expected, "{address}");
        let info = error.info.as_deref().unwrap_or_default();
        let tag = value::lookup(info, "delivery-tag");
        assert!(matches!(tag, Some(Value::Binary(_))), "{info:?}");
    }
}

#[test]
fn further_keys_of_a_message_to_a_queue_name_more_queues() {
    let keys = ["orders2", "none"].map(Value::from).to_vec();
    let keys = [(Value::Symbol("x-cc".into()), Value::List(keys))];
    let annotated = |rest: &[u8]| {
        let mut out = BytesMut::new();
        encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &keys);
        out.extend_from_slice(rest);
        out.freeze()
    };
    let mut world = World::new();
    let session = world.session();
    let fixed = world.attach(session, sender("/queues/orders"));
    let anonymous = world.attach(
        session,
        Attach {
            target: Some(Box::new(target(None))),
            ..sender("")
        },
    );
    world.send(fixed, &annotated(&message("a")));
    world.send(anonymous, &annotated(&to(Some("/queues/orders"), None)));
    for link in [fixed, anonymous] {
        assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
    }
    for queue in ["/queues/orders", "/queues/orders2"] {
        let reader = world.attach(session, consumer(queue));
        world.credit(reader, 5, false);
        let received = world.received(reader);
        assert_eq!(received.len(), 2, "{queue}");
        for received in received {
            let (_, annotations) = parts(&received);
            let key = value::lookup(&annotations, "x-routing-key");
            assert_eq!(key, Some(&Value::from("orders")), "{queue}");
        }
    }
}

#[test]
fn a_message_without_time_to_live_is_for_a_consumer_that_waits() {
    let mut payload = BytesMut::new();
    Header {
        ttl: Some(0),
        ..Header::default()
    }
    .encode(&mut payload);
    payload.extend_from_slice(&message("a"));
    let mut world = World::new();
    let management = open(&mut world);
    let ttl = [("x-message-ttl", Value::Int(0))];
    assert_eq!(management.declare(&mut world, "never", &ttl).0, "201");
    for (queue, payload) in [("orders2", payload.freeze()), ("never", message("a"))] {
        let address = format!("/queues/{queue}");
        world.enqueue(&address, &payload);
        let (_, shown) = management.call(&mut world, "GET", &address, None);
        assert_eq!(entry(&shown, "message_count"), &Value::Ulong(0), "{queue}");
        let session = world.session();
        let name = format!("consumer of {queue}");
        let attach = Attach {
            name,
            ..consumer(&address)
        };
        let consumer = world.attach(session, attach);
        world.credit(consumer, 5, false);
        assert_eq!(world.received(consumer).len(), 0, "{queue}");
        world.enqueue(&address, &payload);
        assert_eq!(world.received(consumer).len(), 1, "{queue}");
    }
}

#[test]
fn a_message_that_cannot_be_taken_detaches_its_link() {
    for (payload, expected) in [
        (Bytes::new(), condition::DECODE_ERROR),
        (Bytes::from_static(b"\xff"), condition::DECODE_ERROR),
        (to(None, Some(b"other")), condition::UNAUTHORIZED_ACCESS),
        // Application properties with a key that is a number, and no properties.
        (
            Bytes::from_static(b"\x00\x53\x74\xc1\x05\x02\x54\x01\x54\x01\x00\x53\x75\xa0\x01a"),
            condition::DECODE_ERROR,
        ),
    ] {
        let mut world = World::new();
        let (_, link) = world.sender("/queues/orders");
        world.send(link, &payload);
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition, expected);
    }
    let mut world = World::new();
    let (_, link) = world.sender("/queues/orders");
    world.send(link, &to(None, Some(b"root")));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn a_message_without_a_group_id_is_rejected_where_one_is_required() {
    let mut world = World::new();
    let (_, link) = world.sender("/queues/sessions");
    world.send(link, &message("a"));
    let outcomes = world.outcomes(link);
    assert_eq!(rejection(&outcomes[0]).condition, condition::INVALID_FIELD);
}

#[test]
fn a_delivery_is_settled_as_its_link_was_attached_to_send() {
    for (mode, settled) in [
        (SenderSettleMode::Settled, false),
        (SenderSettleMode::Unsettled, true),
    ] {
        let mut world = World::new();
        let session = world.session();
        let publisher = Attach {
            snd_settle_mode: Some(mode),
            ..sender("/queues/orders")
        };
        let link = world.attach(session, publisher);
        world.send_as(link, 0, !settled, &message("a"));
        assert!(world.client.is_attached(link), "{mode:?}");
        world.send_as(link, 0, settled, &message("b"));
        let error = world.detach_error(link).expect("detached");
        assert_eq!(error.condition, "amqp:invalid-field");
    }
}
