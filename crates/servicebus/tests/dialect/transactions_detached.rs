//! Transactions with deliveries of links that are detached without being closed, or by the broker.
//! (docs/spec/amqp.md#3.8)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error};
use broker::{QueueSettings, Status};
use endpoint::LinkId;

use crate::transactions::{
    answers, condition, coordinator, declare, discharge, locked, seen, within,
};
use crate::world::{KEY, Login, Received, World, message, receiver};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;

/// Detaches a link, completes a delivery of it in a transaction and commits that.
fn commit_after_detach(
    world: &mut World,
    coordinator: LinkId,
    link: LinkId,
    received: &Received,
    between: impl Fn(&mut World),
) -> DeliveryState {
    let id = declare(world, coordinator);
    world.client.detach(link, false, None);
    world.pump();
    between(world);
    world.dispose(received, within(&id, Some(DeliveryState::Accepted)), true);
    discharge(world, coordinator, &id, false)
}

#[test]
fn a_delivery_of_a_detached_link_is_part_of_the_commit() {
    let (mut world, coordinator, link, received) = locked();
    let state = commit_after_detach(&mut world, coordinator, link, &received, |_| {});
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn no_commit_is_accepted_without_a_delivery_that_a_detach_had_no_room_to_keep() {
    let mut world = World::with(Login::Plain("root", KEY), |settings| {
        settings.endpoint.max_unsettled = 4;
    });
    world.enqueue("orders", &message("one"));
    world.enqueue("orders", &message("two"));
    let coordinator = coordinator(&mut world);
    let link = world.receiver("orders", UNSETTLED, 2);
    let received = world.received(link);
    let state = commit_after_detach(&mut world, coordinator, link, &received[0], |_| {});
    assert_eq!(condition(&state), "amqp:transaction:rollback");
    let DeliveryState::Rejected(Some(Error { description, .. })) = &state else {
        panic!("{state:?}");
    };
    let description = description.as_deref().unwrap_or_default();
    assert!(description.contains("have forgotten"), "{description}");
    assert_eq!(seen(&mut world, "orders"), 2);
    // What has nothing to do with them goes on.
    let id = declare(&mut world, coordinator);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
}

#[test]
fn no_commit_is_accepted_without_a_delivery_of_a_receiver_that_is_not_remembered() {
    let (mut world, coordinator, link, received) = locked();
    let state = commit_after_detach(&mut world, coordinator, link, &received, |world| {
        for number in 0..1_024 {
            let attach = Attach {
                name: format!("another {number}"),
                ..receiver("orders", UNSETTLED)
            };
            let link = world.attach(received.session, attach);
            world.client.detach(link, false, None);
            world.pump();
        }
    });
    assert_eq!(condition(&state), "amqp:transaction:rollback");
    assert_eq!(seen(&mut world, "orders"), 1);
}

/// The broker detaches the link of a delivery while a settled disposition for it is under way.
fn commit_across_detach(is_repeated: bool) -> (World, DeliveryState) {
    let (mut world, coordinator, link, received) = locked();
    let id = declare(&mut world, coordinator);
    let state = within(&id, Some(DeliveryState::Accepted));
    if is_repeated {
        world.dispose(&received, state.clone(), false);
        answers(&mut world, link);
    }
    let (session, delivery) = (received.session, received.delivery_id);
    world
        .client
        .dispose_received(session, delivery, state, true);
    let with_status = |status| QueueSettings {
        status,
        ..QueueSettings::default()
    };
    world.create("orders", with_status(Status::Disabled));
    world.pump();
    assert!(world.detach_error(link).is_some());
    let state = discharge(&mut world, coordinator, &id, false);
    world.create("orders", with_status(Status::Active));
    (world, state)
}

#[test]
fn no_commit_is_accepted_without_a_delivery_of_a_link_that_the_broker_has_detached() {
    let (mut world, state) = commit_across_detach(false);
    assert_eq!(condition(&state), "amqp:transaction:rollback");
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_disposition_that_is_repeated_after_the_detach_is_part_of_the_commit() {
    let (mut world, state) = commit_across_detach(true);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "orders"), 0);
}
