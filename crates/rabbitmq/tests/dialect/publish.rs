//! What publishers are answered. (docs/spec/rabbitmq.md#9)

use amqp::error::condition;
use amqp::message::Properties;
use amqp::{Attach, DeliveryState, Value};
use broker::QueueSettings;
use bytes::{Bytes, BytesMut};

use crate::client_frames::{message, sender, target};
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
    assert_eq!(
        answer(to(Some("/queues/none"), None)),
        DeliveryState::Released
    );
    for (address, expected) in [
        (None, condition::PRECONDITION_FAILED),
        (Some("orders"), condition::PRECONDITION_FAILED),
        (Some("/queues/"), condition::PRECONDITION_FAILED),
        (Some("/exchanges/none/k"), condition::NOT_FOUND),
    ] {
        let state = answer(to(address, None));
        assert_eq!(rejection(&state).condition, expected, "{address:?}");
    }
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
    world.send(link, &message("a"));
    world.send(link, &message("b"));
    let outcomes = world.outcomes(link);
    let error = rejection(outcomes.last().expect("two outcomes"));
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!(
        error.description.as_deref(),
        Some("queue 'small' exceeded maximum length")
    );
    let info = error.info.as_ref().expect("info");
    assert_eq!(
        amqp::value::lookup(info, "queue"),
        Some(&Value::from("small"))
    );
}

#[test]
fn a_message_that_cannot_be_taken_detaches_its_link() {
    for (payload, expected) in [
        (Bytes::new(), condition::DECODE_ERROR),
        (Bytes::from_static(b"\xff"), condition::DECODE_ERROR),
        (to(None, Some(b"other")), condition::UNAUTHORIZED_ACCESS),
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
