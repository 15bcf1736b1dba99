//! Faults on purpose: the parts of a connection that a rule ends. (docs/faults.md)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error, Value};
use broker::{
    Command, DisconnectTime, FaultEffect, FaultMatch, FaultOperation, FaultRule, InjectedError,
    NamespaceOrder, Order, Output,
};
use endpoint::{Event, LinkId};

use crate::cbs;
use crate::sessions::seek;
use crate::tracking::text;
use crate::transactions;
use crate::world::{KEY, World, message, sender, token};

/// One rule, for the first operation of that kind.
fn inject(world: &mut World, operation: FaultOperation, effect: FaultEffect) {
    inject_after(world, 0, operation, effect);
}

/// One rule, for the operation of that kind that comes after `skip` others.
fn inject_after(world: &mut World, skip: u64, operation: FaultOperation, effect: FaultEffect) {
    let matches = FaultMatch {
        operations: vec![operation],
        skip,
        times: Some(1),
        ..FaultMatch::default()
    };
    let rule = FaultRule {
        name: "a rule".to_owned(),
        matches,
        effect,
    };
    world.administer(Order::Namespaces(NamespaceOrder::ReplaceFaults {
        name: "default".to_owned(),
        rules: vec![rule],
    }));
}

/// A link whose send has that effect, and one in another session.
fn after_send(effect: FaultEffect) -> (World, LinkId, LinkId) {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    let (_, other) = world.sender("orders2");
    inject(&mut world, FaultOperation::Send, effect);
    world.send(link, &message("lost"));
    assert_eq!(world.outcomes(link), []);
    (world, link, other)
}

fn is_empty(world: &World, path: &str) -> bool {
    let queue = world
        .shard
        .broker
        .queue(world.id(path))
        .expect("it is there");
    queue.active == 0
}

fn ended(world: &World) -> Option<&Error> {
    world.events.iter().find_map(|event| match event {
        Event::Ended { error, .. } => error.as_ref(),
        _ => None,
    })
}

#[test]
fn a_detach_ends_the_link_of_the_operation_alone() {
    let (mut world, link, other) = after_send(FaultEffect::Detach(InjectedError::ServerBusy));
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition.as_str(), "com.microsoft:server-busy");
    assert!(text(error).contains("sb://host/orders"), "{error:?}");
    assert!(is_empty(&world, "orders"));
    world.send(other, &message("kept"));
    assert_eq!(world.outcomes(other), [DeliveryState::Accepted]);
    world.enqueue("orders", &message("once more"));
}

#[test]
fn an_end_ends_the_session_of_the_link() {
    let (mut world, link, other) = after_send(FaultEffect::End(InjectedError::InternalError));
    assert!(!world.client.is_attached(link));
    let error = ended(&world).expect("the session ends");
    assert_eq!(error.condition.as_str(), "amqp:internal-error");
    world.send(other, &message("kept"));
    assert_eq!(world.outcomes(other), [DeliveryState::Accepted]);
}

#[test]
fn a_close_closes_the_connection() {
    let (world, ..) = after_send(FaultEffect::Close(InjectedError::ConnectionForced));
    let closed = world.events.iter().find_map(|event| match event {
        Event::Closed { error, .. } => error.as_ref(),
        _ => None,
    });
    let error = closed.expect("the connection is closed");
    assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    assert!(is_empty(&world, "orders"));
}

#[test]
fn a_receiver_is_detached_for_what_it_settles_and_attaches() {
    let mut world = World::new();
    world.enqueue("orders", &message("a"));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(link).remove(0);
    let effect = FaultEffect::Detach(InjectedError::DetachForced);
    inject(&mut world, FaultOperation::Complete, effect);
    world.dispose(&received, DeliveryState::Accepted, false);
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    assert!(!is_empty(&world, "orders"));

    inject(&mut world, FaultOperation::AcceptSession, effect);
    let link = seek(&mut world, Value::from("a"), None);
    let error = world.detach_error(link).expect("it is refused");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
}

#[test]
fn an_expired_token_ends_its_links_until_there_is_another() {
    let (mut world, pair) = cbs::anonymous();
    let queue = "sb://host/orders";
    let other = "sb://host/orders2";
    cbs::put(&mut world, &pair, queue, &token(queue, "root", KEY, 1_000));
    cbs::put(&mut world, &pair, other, &token(other, "root", KEY, 1_000));
    let (_, link) = world.sender("orders");
    let receiving = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let (_, kept) = world.sender("orders2");
    inject(&mut world, FaultOperation::Send, FaultEffect::ExpireToken);
    world.send(link, &message("lost"));
    for (link, right) in [(link, "'Send'"), (receiving, "'Listen'")] {
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
        let text = text(error);
        assert!(
            text.contains("Code: RenewToken") && text.contains(right),
            "{text}"
        );
    }
    assert_eq!(world.outcomes(link), []);
    let refusal = world.refusal(sender("orders"));
    assert_eq!(refusal.condition.as_str(), "amqp:unauthorized-access");
    world.send(kept, &message("kept"));
    assert_eq!(world.outcomes(kept), [DeliveryState::Accepted]);
    cbs::put(&mut world, &pair, queue, &token(queue, "root", KEY, 1_000));
    world.enqueue("orders", &message("once more"));
}

#[test]
fn a_key_does_not_expire_but_its_link_ends() {
    let (mut world, link, _) = after_send(FaultEffect::ExpireToken);
    let error = world.detach_error(link).expect("it is detached");
    assert!(text(error).contains("Code: RenewToken"), "{error:?}");
    world.enqueue("orders", &message("once more"));
}

#[test]
fn withheld_credit_is_that_of_all_senders_of_the_connection() {
    let mut world = World::new();
    let (_, first) = world.sender("orders");
    let (_, second) = world.sender("orders2");
    let full = world.client.send_credit(first);
    inject(
        &mut world,
        FaultOperation::Send,
        FaultEffect::WithholdCreditMs(500),
    );
    world.send(first, &message("a"));
    assert_eq!(world.outcomes(first), [DeliveryState::Accepted]);
    let (_, third) = world.sender("orders");
    let credit = |world: &World| [first, second, third].map(|link| world.client.send_credit(link));
    assert_eq!(credit(&world), [0; 3]);
    world.advance(499);
    assert_eq!(credit(&world), [0; 3]);
    world.advance(1);
    assert_eq!(credit(&world), [full; 3]);
    world.send(second, &message("b"));
    assert_eq!(world.outcomes(second), [DeliveryState::Accepted]);
}

#[test]
fn a_commit_that_is_refused_or_detached_leaves_the_lock_to_its_holder() {
    for effect in [
        FaultEffect::Refuse(InjectedError::ServerBusy),
        FaultEffect::Detach(InjectedError::DetachForced),
    ] {
        let (mut world, coordinator, receiver, received) = transactions::locked();
        let id = transactions::declare(&mut world, coordinator);
        let state = transactions::within(&id, Some(DeliveryState::Accepted));
        world.dispose(&received, state, false);
        transactions::answers(&mut world, receiver);
        inject(&mut world, FaultOperation::Commit, effect);
        let fields = vec![Value::Binary(id), Value::Bool(false)];
        let discharge = transactions::described(transactions::DISCHARGE, fields);
        world.send(coordinator, &discharge);
        let condition = match world.detach_error(coordinator) {
            Some(error) => error.condition.as_str().to_owned(),
            None => transactions::condition(&world.outcomes(coordinator)[0]).to_owned(),
        };
        let expected = match effect {
            FaultEffect::Detach(_) => "amqp:link:detach-forced",
            _ => "com.microsoft:server-busy",
        };
        assert_eq!(condition, expected);
        // The transaction is over on both sides: the message can be settled outside of one.
        assert!(!is_empty(&world, "orders"));
        world.dispose(&received, DeliveryState::Accepted, false);
        let answers = transactions::answers(&mut world, receiver);
        assert_eq!(answers, [(DeliveryState::Accepted, true)], "{effect:?}");
        assert!(is_empty(&world, "orders"));
    }
}

#[test]
fn a_declare_and_an_operation_of_a_transaction_are_refused_as_others_are() {
    let (mut world, coordinator, ..) = transactions::locked();
    let busy = FaultEffect::Refuse(InjectedError::ServerBusy);
    inject(&mut world, FaultOperation::Declare, busy);
    let declare = transactions::described(transactions::DECLARE, vec![Value::Null]);
    world.send(coordinator, &declare);
    let outcomes = world.outcomes(coordinator);
    assert_eq!(
        transactions::condition(&outcomes[0]),
        "com.microsoft:server-busy"
    );
    let id = transactions::declare(&mut world, coordinator);
    let (_, sender) = world.sender("orders2");
    inject(&mut world, FaultOperation::Send, busy);
    transactions::send_within(&mut world, sender, &id, &message("lost"), false);
    let outcomes = world.outcomes(sender);
    assert_eq!(
        transactions::condition(&outcomes[0]),
        "com.microsoft:server-busy"
    );
}

#[test]
fn a_second_discharge_that_is_ended_leaves_the_first_to_settle_its_deliveries() {
    let (mut world, coordinator, receiver, received) = transactions::locked();
    let pair = world.pair("orders/$management");
    world.call(&pair, &transactions::schedule("later"));
    let id = transactions::declare(&mut world, coordinator);
    let state = transactions::within(&id, Some(DeliveryState::Accepted));
    world.dispose(&received, state, false);
    transactions::answers(&mut world, receiver);
    // The commit has to look the message up that it cancels.
    transactions::request_within(&mut world, &pair, &id, &transactions::cancel(2));
    let effect = FaultEffect::Detach(InjectedError::DetachForced);
    inject_after(&mut world, 1, FaultOperation::Commit, effect);
    let fields = vec![Value::Binary(id), Value::Bool(false)];
    let discharge = transactions::described(transactions::DISCHARGE, fields);
    world.broker_stalls = true;
    world.send(coordinator, &discharge);
    world.send(coordinator, &discharge);
    world.broker_stalls = false;
    world.pump();
    let error = world.detach_error(coordinator).expect("it is detached");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    let answers = transactions::answers(&mut world, receiver);
    assert_eq!(answers, [(DeliveryState::Accepted, true)]);
    assert!(is_empty(&world, "orders"));
}

/// A sender to `orders` in a session of its own, whether it is let in or not.
fn ask_for_sender(world: &mut World) -> LinkId {
    let session = world.session();
    world.attach(session, sender("orders"))
}

/// How often the broker was asked whether a sender may be attached.
fn asked_for_senders(world: &World) -> usize {
    let asked = |command: &&Command| matches!(command, Command::AttachSender { .. });
    world.commands.iter().filter(asked).count()
}

#[test]
fn a_sender_is_refused_with_the_named_condition_and_may_come_again() {
    for operation in [FaultOperation::Attach, FaultOperation::AttachSender] {
        for effect in [
            FaultEffect::Refuse(InjectedError::ServerBusy),
            FaultEffect::Detach(InjectedError::ServerBusy),
        ] {
            let mut world = World::new();
            inject(&mut world, operation, effect);
            let error = world.refusal(sender("orders"));
            assert_eq!(error.condition.as_str(), "com.microsoft:server-busy");
            assert!(text(&error).contains("sb://host/orders"), "{error:?}");
            world.enqueue("orders", &message("once more"));
            assert!(!is_empty(&world, "orders"));
        }
    }
}

#[test]
fn the_broker_hears_nothing_of_senders_without_a_rule_for_them() {
    let mut world = World::new();
    world.sender("orders");
    let busy = FaultEffect::Refuse(InjectedError::ServerBusy);
    for other in [FaultOperation::Send, FaultOperation::AttachReceiver] {
        inject(&mut world, other, busy);
        world.sender("orders");
    }
    assert_eq!(asked_for_senders(&world), 0);
    inject(&mut world, FaultOperation::AttachSender, busy);
    world.refusal(sender("orders"));
    assert_eq!(asked_for_senders(&world), 1);
    // A receiver is another operation.
    world.receiver("orders", SenderSettleMode::Unsettled, 1);
}

#[test]
fn a_sender_that_is_delayed_is_let_in_later() {
    let mut world = World::new();
    inject(
        &mut world,
        FaultOperation::AttachSender,
        FaultEffect::DelayMs(500),
    );
    let link = ask_for_sender(&mut world);
    world.advance(499);
    assert!(!world.client.is_attached(link));
    assert_eq!(world.detach_error(link), None);
    world.advance(1);
    assert!(world.client.is_attached(link));
    world.send(link, &message("late"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn a_sender_that_waits_goes_with_its_entity_or_its_client() {
    for by_client in [true, false] {
        let mut world = World::new();
        inject(
            &mut world,
            FaultOperation::AttachSender,
            FaultEffect::DelayMs(500),
        );
        let link = ask_for_sender(&mut world);
        if by_client {
            world.client.detach(link, true, None);
            world.pump();
        } else {
            world.remove("orders");
            let error = world.detach_error(link).expect("it is refused");
            assert_eq!(error.condition.as_str(), "amqp:not-found");
        }
        world.advance(500);
        assert!(!world.client.is_attached(link));
        world.sender("orders2");
    }
}

#[test]
fn a_session_and_a_connection_end_for_a_sender() {
    let mut world = World::new();
    let (_, other) = world.sender("orders2");
    let internal = InjectedError::InternalError;
    inject(
        &mut world,
        FaultOperation::AttachSender,
        FaultEffect::End(internal),
    );
    let link = ask_for_sender(&mut world);
    assert!(!world.client.is_attached(link));
    let error = ended(&world).expect("the session ends");
    assert_eq!(error.condition.as_str(), "amqp:internal-error");
    world.send(other, &message("kept"));
    assert_eq!(world.outcomes(other), [DeliveryState::Accepted]);

    let forced = FaultEffect::Close(InjectedError::ConnectionForced);
    inject(&mut world, FaultOperation::AttachSender, forced);
    ask_for_sender(&mut world);
    let closed = world.events.iter().any(|event| {
        matches!(event, Event::Closed { error: Some(error), .. }
            if error.condition.as_str() == "amqp:connection:forced")
    });
    assert!(closed, "the connection is closed");
}

#[test]
fn a_connection_is_dropped_for_a_sender_before_and_after_it_is_let_in() {
    for time in [DisconnectTime::Before, DisconnectTime::After] {
        let mut world = World::new();
        inject(
            &mut world,
            FaultOperation::AttachSender,
            FaultEffect::Disconnect(time),
        );
        world.broker_stalls = true;
        let link = ask_for_sender(&mut world);
        let said = world.deliveries_for_credit();
        assert!(matches!(said[..], [Output::Dropped { .. }]), "{said:?}");
        assert!(!world.client.is_attached(link));
    }
}

#[test]
fn credit_that_is_withheld_for_a_sender_comes_with_the_end_of_its_time() {
    let mut world = World::new();
    let withhold = FaultEffect::WithholdCreditMs(500);
    inject(&mut world, FaultOperation::AttachSender, withhold);
    let (_, link) = world.sender("orders");
    assert_eq!(world.client.send_credit(link), 0);
    world.advance(500);
    assert!(world.client.send_credit(link) > 0);
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn an_expired_token_refuses_the_sender_that_it_was_for() {
    let (mut world, pair) = cbs::anonymous();
    let queue = "sb://host/orders";
    cbs::put(&mut world, &pair, queue, &token(queue, "root", KEY, 1_000));
    inject(
        &mut world,
        FaultOperation::AttachSender,
        FaultEffect::ExpireToken,
    );
    let error = world.refusal(sender("orders"));
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    let error = world.refusal(Attach {
        name: "again".to_owned(),
        ..sender("orders")
    });
    assert_eq!(error.condition.as_str(), "amqp:unauthorized-access");
    cbs::put(&mut world, &pair, queue, &token(queue, "root", KEY, 1_000));
    world.sender("orders");
}
