//! Disabled and deleted entities: refused links, detached links, and requests that are still
//! answered. (docs/spec/amqp.md#3.6, docs/spec/entities.md#3 and #15)

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::{QueueSettings, Status};
use dialect::Dialect;
use endpoint::LinkId;

use crate::sessions::{of_session, seek};
use crate::tracking::text;
use crate::world::{Pair, Request, Response, World, message, receiver, sender};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const CONDITION: &str = "com.microsoft:entity-disabled";
const DISABLED: &str = "Messaging entity 'sb://host/orders' is currently disabled.";
const NO_SENDS: &str =
    "Messaging entity 'sb://host/orders' is currently disabled for Send operations.";

fn set(world: &mut World, status: Status) {
    let settings = QueueSettings {
        lock_duration: 30_000,
        max_delivery_count: 3,
        status,
        ..QueueSettings::default()
    };
    world.create("orders", settings);
    world.pump();
}

fn told(world: &World, link: LinkId) -> (String, String) {
    let error = world.detach_error(link).expect("detached with an error");
    (error.condition.to_string(), text(error).to_owned())
}

/// Checks that an open link is detached in the words that SDKs attach again for.
fn check_forced(world: &World, link: LinkId, code: &str, details: &str) {
    let (condition, text) = told(world, link);
    assert_eq!(condition, "amqp:link:detach-forced");
    let begin = format!("' is force detached. Code: {code}(link");
    assert!(
        text.starts_with("The link '") && text.contains(&begin),
        "{text}"
    );
    assert!(text.ends_with(&format!("). Details: {details}")), "{text}");
}

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    world
        .call(pair, &Request::operation(operation, body))
        .expect("an answer")
}

#[test]
fn links_to_a_disabled_entity_are_refused_by_what_they_are_for() {
    for (status, sends, receives) in [
        (Status::Disabled, false, false),
        (Status::SendDisabled, false, true),
        (Status::ReceiveDisabled, true, false),
        (Status::Active, true, true),
    ] {
        let mut world = World::new();
        set(&mut world, status);
        if sends {
            world.sender("orders");
        } else {
            let error = world.refusal(sender("orders"));
            assert_eq!(error.condition, CONDITION, "{status:?}");
            assert_eq!(text(&error), NO_SENDS, "{status:?}");
        }
        if receives {
            world.receiver("orders", UNSETTLED, 1);
            world.receiver("orders/$DeadLetterQueue", UNSETTLED, 1);
        } else {
            let error = world.refusal(receiver("orders", UNSETTLED));
            assert_eq!(error.condition, CONDITION, "{status:?}");
            assert_eq!(text(&error), DISABLED, "{status:?}");
            let error = world.refusal(receiver("orders/$DeadLetterQueue", UNSETTLED));
            assert_eq!(error.condition, CONDITION, "{status:?}");
        }
        world.pair("orders/$management");
    }
}

#[test]
fn open_links_are_detached_when_the_status_changes_and_others_stay() {
    let mut world = World::new();
    let (_, sending) = world.sender("orders");
    let receiving = world.receiver("orders", UNSETTLED, 1);
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 1);
    let pair = world.pair("orders/$management");
    let (_, other) = world.sender("orders2");
    set(&mut world, Status::SendDisabled);
    check_forced(&world, sending, "publisher", NO_SENDS);
    assert_eq!(world.refusal(sender("orders")).condition, CONDITION);
    assert!(world.client.is_attached(receiving));
    set(&mut world, Status::Disabled);
    check_forced(&world, receiving, "consumer", DISABLED);
    assert_eq!(told(&world, dead).0, "amqp:link:detach-forced");
    for link in [pair.request, pair.response, other] {
        assert!(world.client.is_attached(link));
    }
    set(&mut world, Status::Active);
    world.enqueue("orders", &message("again"));
}

#[test]
fn a_send_that_was_on_its_way_is_refused_and_then_its_link() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    world.broker_stalls = true;
    world.send(link, &message("late"));
    set(&mut world, Status::SendDisabled);
    let answered = world.deliveries_for_credit();
    let refused = answered.iter().any(|output| {
        let refused = Err(broker::SendError::Disabled);
        matches!(output, broker::Output::Sent { result, .. } if *result == refused)
    });
    assert!(refused, "{answered:?}");
    check_forced(&world, link, "publisher", NO_SENDS);
}

#[test]
fn a_send_that_is_refused_names_the_entity() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    world.broker_stalls = true;
    world.send(link, &message("late"));
    let output = world.deliveries_for_credit().pop().expect("an answer");
    let broker::Output::Sent { request, .. } = output else {
        panic!("a send is answered, not {output:?}");
    };
    let refused = broker::Output::Sent {
        request,
        result: Err(broker::SendError::Disabled),
        duplicates: Vec::new(),
    };
    world.server.handle_output(world.clock_reading(), refused);
    world.pump();
    let outcomes = world.outcomes(link);
    let [DeliveryState::Rejected(Some(error))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.condition, CONDITION);
    assert_eq!(text(error), NO_SENDS);
}

#[test]
fn a_message_that_is_held_can_be_settled_by_its_token_in_every_status() {
    let mut world = World::new();
    world.enqueue("orders", &message("held"));
    let link = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(link).pop().expect("a message");
    let pair = world.pair("orders/$management");
    set(&mut world, Status::Disabled);
    let token = received.delivery_annotation("x-opt-lock-token");
    let token = token.expect("a token");
    let body = vec![
        ("disposition-status", Value::from("completed")),
        ("lock-tokens", Value::Array(vec![token])),
    ];
    let response = call(&mut world, &pair, "com.microsoft:update-disposition", body);
    assert_eq!(response.code(), 200);
}

#[test]
fn operations_that_receive_or_send_are_refused_with_400() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    set(&mut world, Status::Disabled);
    let entry = Value::Map(vec![
        (Value::from("message"), Value::Binary(message("m"))),
        (Value::from("message-id"), Value::from("id")),
    ]);
    let numbers = Value::Array(vec![Value::Long(1)]);
    for (operation, body) in [
        ("peek-message", vec![("message-count", Value::Int(1))]),
        (
            "receive-by-sequence-number",
            vec![
                ("sequence-numbers", numbers),
                ("receiver-settle-mode", Value::Uint(1)),
            ],
        ),
        (
            "schedule-message",
            vec![("messages", Value::List(vec![entry]))],
        ),
    ] {
        let name = format!("com.microsoft:{operation}");
        let response = call(&mut world, &pair, &name, body);
        assert_eq!(response.code(), 400, "{operation}");
        assert_eq!(response.condition(), CONDITION, "{operation}");
    }
}

#[test]
fn who_holds_a_session_or_waits_for_one_is_told_too() {
    let sessions = |status| QueueSettings {
        requires_session: true,
        status,
        ..QueueSettings::default()
    };
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "m"));
    let holding = seek(&mut world, Value::from("a"), None);
    assert!(world.client.is_attached(holding));
    let waiting = seek(&mut world, Value::Null, None);
    world.create("sessions", sessions(Status::ReceiveDisabled));
    world.pump();
    assert_eq!(told(&world, holding).0, "amqp:link:detach-forced");
    assert_eq!(told(&world, waiting).0, CONDITION);
    let refused = seek(&mut world, Value::from("a"), None);
    assert_eq!(told(&world, refused).0, CONDITION);
    world.create("sessions", sessions(Status::Active));
    let held_again = seek(&mut world, Value::from("a"), None);
    assert!(world.client.is_attached(held_again));
}

#[test]
fn a_broker_that_knows_first_ends_a_wait_for_a_session() {
    let mut world = World::new();
    world.broker_stalls = true;
    let waiting = seek(&mut world, Value::Null, None);
    let receiver = world.commands.iter().find_map(|command| match command {
        broker::Command::AcceptSession { receiver, .. } => Some(*receiver),
        _ => None,
    });
    let evicted = broker::Output::Evicted {
        receiver: receiver.expect("it was asked"),
        reason: broker::Eviction::Disabled,
    };
    world.server.handle_output(world.clock_reading(), evicted);
    world.pump();
    assert_eq!(told(&world, waiting).0, CONDITION);
}

#[test]
fn receivers_are_detached_where_messages_begin_to_be_forwarded() {
    let mut world = World::new();
    let main = world.receiver("orders", UNSETTLED, 1);
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 1);
    let settings = QueueSettings {
        forward_to: Some("orders2".to_owned()),
        ..QueueSettings::default()
    };
    world.create("orders", settings);
    world.pump();
    assert_eq!(told(&world, main).0, "amqp:not-allowed");
    assert!(world.client.is_attached(dead));
}

#[test]
fn an_entity_that_was_idle_for_too_long_takes_its_links_with_it() {
    let mut world = World::new();
    let settings = QueueSettings {
        auto_delete_on_idle: 300_000,
        ..QueueSettings::default()
    };
    world.create("fleeting", settings);
    let (_, link) = world.sender("fleeting");
    let pair = world.pair("fleeting/$management");
    world.send(link, &message("m"));
    // In steps, since a connection that is silent for too long would be closed.
    for _ in 0..29 {
        world.advance(10_000);
    }
    world.advance(9_999);
    assert!(world.client.is_attached(link));
    world.advance(1);
    for link in [link, pair.request, pair.response] {
        assert_eq!(told(&world, link).0, "amqp:not-found");
    }
    let error = world.refusal(sender("fleeting"));
    assert_eq!(error.condition, "amqp:not-found");
}

#[test]
fn a_link_to_a_queue_that_was_made_again_sees_nothing_of_the_old_one() {
    let mut world = World::new();
    world.enqueue("orders", &message("old"));
    let link = world.receiver("orders", UNSETTLED, 1);
    let old = world.received(link).pop().expect("a message");
    world.remove("orders");
    world.create("orders", QueueSettings::default());
    world.enqueue("orders", &message("new"));
    world.dispose(&old, DeliveryState::Accepted, false);
    let link = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(link).pop().expect("the new message");
    assert_eq!(received.body(), message("new"));
    let number = received.annotation("x-opt-sequence-number");
    assert_eq!(number, Some(Value::Long(1)));
}
