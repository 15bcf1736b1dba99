//! Settled dispositions within transactions: the client has no more say in the delivery, so the
//! broker decides what becomes of it. (docs/spec/amqp.md#8.1)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Value};
use bytes::Bytes;
use dialect::Dialect;
use endpoint::{LinkId, Mono, Outgoing};

use crate::client_frames::transfer;
use crate::received::Received;
use crate::transactions::{
    DISCHARGE, answers, coordinator, declare, described, discharge, locked, seen, two_minutes,
    within,
};
use crate::world::{World, message, receiver, sender};

const FAILED: DeliveryState = DeliveryState::Modified {
    delivery_failed: true,
    undeliverable_here: false,
    message_annotations: None,
};

/// As JMS clients attach: what they settle without an outcome counts as failed.
fn consumer(world: &mut World, default: Option<DeliveryState>) -> (LinkId, LinkId, Received) {
    world.enqueue("orders", &message("hello"));
    let coordinator = coordinator(world);
    let session = world.session();
    let mut attach = receiver("orders", SenderSettleMode::Unsettled);
    if let Some(source) = attach.source.as_deref_mut() {
        source.default_outcome = default;
    }
    let link = world.attach(
        session,
        Attach {
            name: "consumer".to_owned(),
            ..attach
        },
    );
    world.credit(link, 10, false);
    let received = world.received(link).pop().expect("a message");
    (coordinator, link, received)
}

fn accepted(id: &Bytes) -> DeliveryState {
    within(id, Some(DeliveryState::Accepted))
}

/// An outcome that is refused.
fn unusable() -> DeliveryState {
    DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: Some(vec![("list".into(), Value::List(Vec::new()))]),
    }
}

fn delivery_count(received: &Received) -> u32 {
    received.header().delivery_count.unwrap_or(0)
}

#[test]
fn a_roll_back_gives_it_the_default_outcome_of_its_source() {
    for (default, count) in [
        (None, 0),
        (Some(DeliveryState::Released), 0),
        (Some(FAILED), 1),
    ] {
        let mut world = World::new();
        let (coordinator, link, received) = consumer(&mut world, default);
        let id = declare(&mut world, coordinator);
        world.dispose(&received, accepted(&id), true);
        let state = discharge(&mut world, coordinator, &id, true);
        assert_eq!(state, DeliveryState::Accepted);
        let again = world.received(link).pop().expect("it comes back at once");
        assert_eq!(delivery_count(&again), count);
    }
}

#[test]
fn a_lost_coordinator_gives_it_back() {
    let mut world = World::new();
    let (coordinator, link, received) = consumer(&mut world, Some(FAILED));
    let id = declare(&mut world, coordinator);
    world.dispose(&received, accepted(&id), true);
    world.client.detach(coordinator, true, None);
    world.pump();
    let again = world.received(link).pop().expect("it comes back at once");
    assert_eq!(delivery_count(&again), 1);
}

#[test]
fn a_refused_outcome_gives_it_back_and_fails_the_transaction() {
    let mut world = World::new();
    let (coordinator, link, received) = consumer(&mut world, Some(FAILED));
    let id = declare(&mut world, coordinator);
    world.dispose(&received, within(&id, Some(unusable())), true);
    let again = world.received(link).pop().expect("it comes back at once");
    assert_eq!(delivery_count(&again), 1);
    let state = discharge(&mut world, coordinator, &id, false);
    assert!(
        matches!(state, DeliveryState::Rejected(Some(_))),
        "{state:?}"
    );
}

#[test]
fn an_unknown_transaction_detaches_the_link_and_gives_it_back() {
    for id in ["", "0123456789abcdef"] {
        let id = Bytes::from_static(id.as_bytes());
        let mut world = World::new();
        let (_, link, received) = consumer(&mut world, Some(FAILED));
        world.dispose(&received, accepted(&id), true);
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition, "amqp:transaction:unknown-id");
        let other = world.receiver("orders", SenderSettleMode::Unsettled, 1);
        // The first link had credit left, so it may have been given to that before.
        let again = world.received(link).pop();
        let again = again.or_else(|| world.received(other).pop());
        assert_eq!(delivery_count(&again.expect("it comes back at once")), 1);
    }
}

#[test]
fn an_unknown_transaction_gives_back_all_of_a_range_whose_outcome_is_refused() {
    let mut world = World::new();
    let (_, link, first) = consumer(&mut world, Some(FAILED));
    world.enqueue("orders", &message("hello"));
    let second = world.received(link).pop().expect("a message");
    let state = within(&Bytes::from_static(b"0123456789abcdef"), Some(unusable()));
    for received in [first, second] {
        let (session, id) = (received.session, received.delivery_id);
        world
            .client
            .dispose_received(session, id, state.clone(), true);
    }
    world.pump();
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, "amqp:transaction:unknown-id");
    let other = world.receiver("orders", SenderSettleMode::Unsettled, 5);
    let mut again = world.received(link);
    again.extend(world.received(other));
    let counts: Vec<_> = again.iter().map(delivery_count).collect();
    assert_eq!(counts, [1, 1]);
}

#[test]
fn a_transaction_that_timed_out_detaches_the_link_too() {
    let mut world = World::new();
    let (coordinator, link, received) = consumer(&mut world, None);
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    crate::transactions::send_within(&mut world, sender, &id, &message("x"), false);
    two_minutes(&mut world);
    let received = world.received(link).pop().unwrap_or(received);
    world.dispose(&received, accepted(&id), true);
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, "amqp:transaction:unknown-id");
}

/// A discharge that the broker has not answered when the next frame comes.
fn discharge_later(world: &mut World, coordinator: LinkId, id: &Bytes, fail: bool) {
    let fields = vec![Value::Binary(id.clone()), Value::Bool(fail)];
    let outgoing = Outgoing {
        tag: b"d",
        ..Outgoing::default()
    };
    let payload = described(DISCHARGE, fields);
    world
        .client
        .send(coordinator, &outgoing, &[&payload])
        .expect("there is credit");
}

#[test]
fn a_discharge_does_not_overtake_a_message_behind_an_attach() {
    let mut world = World::new();
    let session = world.session();
    let coordinator = coordinator(&mut world);
    let id = declare(&mut world, coordinator);
    world.client.attach(session, sender("orders"));
    let mut read = world.client.output(Mono(0)).split();
    let state = Some(within(&id, None));
    read.unsplit(transfer(0, 0, state, false, &message("hello")));
    discharge_later(&mut world, coordinator, &id, false);
    read.unsplit(world.client.output(Mono(0)).split());
    world.server.handle_input(world.clock_reading(), &mut read);
    world.pump();
    assert_eq!(world.outcomes(coordinator), [DeliveryState::Accepted]);
    assert_eq!(world.browsed("orders").len(), 1);
}

#[test]
fn an_outcome_that_overtakes_the_answer_to_a_roll_back_applies() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.dispose(&received, accepted(&id), false);
    answers(&mut world, receiver);
    discharge_later(&mut world, coordinator, &id, true);
    world.dispose(&received, DeliveryState::Released, true);
    assert_eq!(world.outcomes(coordinator), [DeliveryState::Accepted]);
    let other = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let again = world.received(other).pop().expect("it is there at once");
    assert_eq!(delivery_count(&again), 0);
}

#[test]
fn an_outcome_that_comes_before_the_discharge_is_kept_for_the_roll_back() {
    for fail in [true, false] {
        let (mut world, coordinator, receiver, received) = locked();
        let id = declare(&mut world, coordinator);
        let defer = DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: true,
            message_annotations: None,
        };
        world.dispose(&received, within(&id, Some(defer)), false);
        answers(&mut world, receiver);
        world.dispose(&received, DeliveryState::Accepted, true);
        assert_eq!(seen(&mut world, "orders"), 1);
        let state = discharge(&mut world, coordinator, &id, fail);
        assert_eq!(state, DeliveryState::Accepted);
        assert_eq!(seen(&mut world, "orders"), usize::from(!fail));
    }
}

#[test]
fn a_repeated_disposition_leaves_the_message_locked_after_a_roll_back() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.dispose(&received, accepted(&id), false);
    world.dispose(&received, accepted(&id), true);
    answers(&mut world, receiver);
    discharge(&mut world, coordinator, &id, true);
    world.credit(receiver, 10, false);
    assert!(world.received(receiver).is_empty());
}

#[test]
fn deliveries_of_a_detached_link_are_settled_within_the_transaction_too() {
    // docs/spec/amqp.md#3.8
    for (fail, left) in [(false, 0), (true, 1)] {
        let (mut world, coordinator, receiver, received) = locked();
        let id = declare(&mut world, coordinator);
        world.client.detach(receiver, false, None);
        world.pump();
        world.dispose(&received, accepted(&id), false);
        assert_eq!(answers(&mut world, receiver), [(accepted(&id), false)]);
        let state = discharge(&mut world, coordinator, &id, fail);
        assert_eq!(state, DeliveryState::Accepted);
        assert_eq!(seen(&mut world, "orders"), left);
    }
}
