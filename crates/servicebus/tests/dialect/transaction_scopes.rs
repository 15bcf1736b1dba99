//! Which entities a transaction may touch. (docs/spec/amqp.md#8.3)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Value};
use broker::{Ensured, QueueSettings, SubscriptionSettings};
use bytes::Bytes;
use endpoint::{LinkId, SessionId};
use servicebus::CrossEntity;

use crate::sessions::{of_session, wish};
use crate::tracking::text;
use crate::transactions::{
    answers, condition, coordinator, coordinator_in, declare, discharge, request_within, seen,
    send_within, update, within,
};
use crate::world::{KEY, Login, Request, World, message, receiver, sender, token};

const ANOTHER: &str = "amqp:not-allowed";
const TEXT: &str =
    "Local transactions cannot span multiple top-level entities such as queue or topic.";

fn world(cross_entity: CrossEntity) -> World {
    World::with(Login::Plain("root", KEY), |settings| {
        settings.cross_entity = cross_entity;
    })
}

fn attach(world: &mut World, session: SessionId, name: &str, attach: Attach) -> LinkId {
    let name = name.to_owned();
    world.attach(session, Attach { name, ..attach })
}

fn attach_sender(world: &mut World, session: SessionId, address: &str) -> LinkId {
    attach(world, session, &format!("to {address}"), sender(address))
}

fn attach_receiver(world: &mut World, session: SessionId, address: &str) -> LinkId {
    let from = receiver(address, SenderSettleMode::Unsettled);
    attach(world, session, &format!("from {address}"), from)
}

fn accepted(id: &Bytes) -> DeliveryState {
    within(id, Some(DeliveryState::Accepted))
}

fn refusal(state: &DeliveryState) -> &str {
    assert!(matches!(state, DeliveryState::Transactional { .. }));
    condition(state)
}

/// A session that began with a coordinator.
fn coordinated(world: &mut World) -> (SessionId, LinkId) {
    let session = world.session();
    let coordinator = coordinator_in(world, session);
    (session, coordinator)
}

#[test]
fn receivers_of_a_coordinated_session_are_on_its_first_entity() {
    let mut world = world(CrossEntity::AsCloud);
    let (session, _) = coordinated(&mut world);
    let first = attach_sender(&mut world, session, "orders");
    assert!(world.client.is_attached(first));
    for allowed in ["orders", "orders/$DeadLetterQueue"] {
        let link = attach_receiver(&mut world, session, allowed);
        assert!(world.client.is_attached(link), "{allowed}");
    }
    let other = attach_sender(&mut world, session, "orders2");
    assert!(world.client.is_attached(other), "senders are free");
    let refused = attach_receiver(&mut world, session, "orders2");
    let error = world.detach_error(refused).expect("it is refused");
    assert_eq!(error.condition, ANOTHER);
    assert_eq!(text(error), TEXT);
    let other_session = world.session();
    let elsewhere = attach_receiver(&mut world, other_session, "orders2");
    assert!(world.client.is_attached(elsewhere));
}

#[test]
fn a_receiver_of_a_session_is_bound_too_and_a_management_node_fixes_nothing() {
    let mut world = world(CrossEntity::AsCloud);
    let (session, _) = coordinated(&mut world);
    let node = attach_sender(&mut world, session, "orders2/$management");
    assert!(world.client.is_attached(node));
    let first = attach_receiver(&mut world, session, "orders");
    assert!(world.client.is_attached(first));
    // By name, and the next one, which would wait.
    for (name, id) in [("named", Value::from("a")), ("next", Value::Null)] {
        let refused = attach(&mut world, session, name, wish(id, None));
        let error = world.detach_error(refused).expect("it is refused");
        assert_eq!((error.condition.as_str(), text(error)), (ANOTHER, TEXT));
    }
}

#[test]
fn a_receiver_that_waits_for_its_session_is_the_first_link_too() {
    let mut world = world(CrossEntity::AsCloud);
    let (session, _) = coordinated(&mut world);
    let timeout = || Some(Value::Uint(1_000));
    let waits = attach(&mut world, session, "next", wish(Value::Null, timeout()));
    assert!(!world.client.is_attached(waits), "there is no session");
    let refused = attach_receiver(&mut world, session, "orders");
    let error = world.detach_error(refused).expect("it is refused");
    assert_eq!((error.condition.as_str(), text(error)), (ANOTHER, TEXT));
    let out = attach_sender(&mut world, session, "orders");
    assert!(world.client.is_attached(out), "senders are free");

    // Its time is up, and the program asks again.
    world.advance(1_000);
    let error = world.detach_error(waits).expect("it is refused");
    assert_eq!(error.condition, "com.microsoft:timeout");
    world.enqueue("sessions", &of_session("a", "x"));
    let again = attach(&mut world, session, "again", wish(Value::Null, timeout()));
    assert!(world.client.is_attached(again));
}

#[test]
fn a_coordinator_behind_a_receiver_that_waits_is_not_the_beginning() {
    let mut world = world(CrossEntity::AsCloud);
    let session = world.session();
    attach(&mut world, session, "next", wish(Value::Null, None));
    coordinator_in(&mut world, session);
    for address in ["orders", "orders2"] {
        let link = attach_receiver(&mut world, session, address);
        assert!(world.client.is_attached(link), "{address}");
    }
}

#[test]
fn subscriptions_of_one_topic_are_one_entity() {
    let mut world = world(CrossEntity::AsCloud);
    world.ensure(Ensured::Topic {
        path: "Events".to_owned(),
        settings: QueueSettings::default(),
    });
    for name in ["a", "b"] {
        world.ensure(Ensured::Subscription {
            topic: "Events".to_owned(),
            name: name.to_owned(),
            settings: Box::new(SubscriptionSettings::default()),
            rules: None,
        });
    }
    world.pump();
    let (session, _) = coordinated(&mut world);
    for address in ["events/subscriptions/a", "events/subscriptions/B"] {
        let link = attach_receiver(&mut world, session, address);
        assert!(world.client.is_attached(link), "{address}");
    }
    let refused = attach_receiver(&mut world, session, "orders");
    assert_eq!(world.detach_error(refused).unwrap().condition, ANOTHER);
}

#[test]
fn all_links_of_a_coordinated_session_may_join_one_transaction() {
    let mut world = world(CrossEntity::AsCloud);
    world.enqueue("orders", &message("hello"));
    let (session, coordinator) = coordinated(&mut world);
    let link = attach_receiver(&mut world, session, "orders");
    world.credit(link, 1, false);
    let received = world.received(link).pop().expect("a message");
    let out = attach_sender(&mut world, session, "orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, out, &id, &message("x"), false);
    assert_eq!(world.outcomes(out), [accepted(&id)]);
    world.dispose(&received, accepted(&id), false);
    assert_eq!(answers(&mut world, link), [(accepted(&id), false)]);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(seen(&mut world, "orders2"), 1);
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn links_of_other_sessions_join_it_on_the_via_entity_alone() {
    let mut world = world(CrossEntity::AsCloud);
    let (session, coordinator) = coordinated(&mut world);
    attach_receiver(&mut world, session, "orders");
    let free = attach_sender(&mut world, session, "orders2");
    let (_, at_via) = world.sender("orders");
    let (_, elsewhere) = world.sender("orders2");
    // Whichever of the two kinds is first.
    for order in [[free, at_via], [at_via, free]] {
        let id = declare(&mut world, coordinator);
        for link in order {
            send_within(&mut world, link, &id, &message("x"), false);
            assert_eq!(world.outcomes(link), [accepted(&id)]);
        }
        send_within(&mut world, elsewhere, &id, &message("y"), false);
        assert_eq!(refusal(&world.outcomes(elsewhere)[0]), ANOTHER);
        let state = discharge(&mut world, coordinator, &id, false);
        assert_eq!(state, DeliveryState::Accepted, "the transaction goes on");
    }
    assert_eq!(seen(&mut world, "orders"), 2);
    assert_eq!(seen(&mut world, "orders2"), 2);
}

#[test]
fn after_another_entity_the_links_of_a_coordinated_session_are_refused() {
    let mut world = world(CrossEntity::AsCloud);
    let (session, coordinator) = coordinated(&mut world);
    attach_receiver(&mut world, session, "orders");
    let free = attach_sender(&mut world, session, "orders2");
    let (_, elsewhere) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, elsewhere, &id, &message("x"), false);
    assert_eq!(world.outcomes(elsewhere), [accepted(&id)]);
    // It counts for the via entity, although it sends to the other one.
    send_within(&mut world, free, &id, &message("y"), false);
    assert_eq!(refusal(&world.outcomes(free)[0]), ANOTHER);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted, "the transaction goes on");
    assert_eq!(seen(&mut world, "orders2"), 1);
}

#[test]
fn other_sessions_have_one_entity_in_a_transaction() {
    let mut world = world(CrossEntity::AsCloud);
    world.enqueue("orders", &message("hello"));
    let coordinator = coordinator(&mut world);
    let receiver = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(receiver).pop().expect("a message");
    let (_, out) = world.sender("orders2");
    let pair = world.pair("orders/$management");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, out, &id, &message("x"), false);
    assert_eq!(world.outcomes(out), [accepted(&id)]);

    world.dispose(&received, accepted(&id), false);
    let [(state @ DeliveryState::Rejected(_), false)] = &answers(&mut world, receiver)[..] else {
        panic!("it is refused and stays unsettled");
    };
    assert_eq!(condition(state), ANOTHER);
    let (_, back) = world.sender("orders");
    send_within(&mut world, back, &id, &message("y"), false);
    let [state] = &world.outcomes(back)[..] else {
        panic!("it is answered");
    };
    assert_eq!(refusal(state), ANOTHER);
    let update = update(&received, "completed");
    assert_eq!(request_within(&mut world, &pair, &id, &update).code(), 400);

    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted, "the transaction goes on");
    assert_eq!(seen(&mut world, "orders2"), 1);
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_settled_send_to_another_entity_fails_the_transaction() {
    let mut world = world(CrossEntity::AsCloud);
    let coordinator = coordinator(&mut world);
    let (_, one) = world.sender("orders");
    let (_, two) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, one, &id, &message("x"), false);
    send_within(&mut world, two, &id, &message("y"), true);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:rollback");
}

#[test]
fn tokens_decide_unless_the_setting_does() {
    for (setting, puts_token, free) in [
        (CrossEntity::Auto, false, true),
        (CrossEntity::Auto, true, false),
        (CrossEntity::AsCloud, false, false),
        (CrossEntity::Any, true, true),
    ] {
        let mut world = world(setting);
        if puts_token {
            let pair = world.pair("$cbs");
            let request =
                Request::put_token("sb://host/", &token("sb://host/", "root", KEY, 3_600));
            assert_eq!(world.call(&pair, &request).expect("an answer").code(), 202);
        }
        let (session, coordinator) = coordinated(&mut world);
        attach_receiver(&mut world, session, "orders");
        let other = attach_receiver(&mut world, session, "orders2");
        assert_eq!(world.client.is_attached(other), free, "{setting:?}");
        let (_, one) = world.sender("orders");
        let (_, two) = world.sender("orders2");
        let id = declare(&mut world, coordinator);
        for link in [one, two] {
            send_within(&mut world, link, &id, &message("x"), false);
        }
        let last = world.outcomes(two).pop().expect("it is answered");
        assert_eq!(last == accepted(&id), free, "{setting:?}");
    }
}
