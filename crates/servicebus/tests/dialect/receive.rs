//! Receiving and settling.

use amqp::message::Header;
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error, Symbol, Value};
use broker::Command;
use bytes::BytesMut;
use dialect::Dialect;
use endpoint::{Event, LinkId};

use crate::sessions::{hold, of_session};
use crate::world::{BROKER_START, Received, START, World, message, receiver};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const SETTLED: SenderSettleMode = SenderSettleMode::Settled;

fn modified(undeliverable_here: bool, properties: Vec<(Value, Value)>) -> DeliveryState {
    DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here,
        message_annotations: (!properties.is_empty()).then_some(properties),
    }
}

fn bare_modified() -> DeliveryState {
    DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: false,
        message_annotations: None,
    }
}

fn dead_letter(reason: &str, description: &str) -> DeliveryState {
    let info = vec![
        (
            Value::Symbol("DeadLetterReason".into()),
            Value::from(reason),
        ),
        (
            Value::Symbol("DeadLetterErrorDescription".into()),
            Value::from(description),
        ),
    ];
    let condition = Symbol::new("com.microsoft:dead-letter");
    DeliveryState::Rejected(Some(Error {
        condition,
        description: None,
        info: Some(info),
    }))
}

/// A world with one message in `orders`, locked by a receiver with more credit.
fn locked() -> (World, LinkId, Received) {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let receiver = world.receiver("orders", UNSETTLED, 5);
    let received = world.received(receiver).pop().expect("a message");
    (world, receiver, received)
}

#[test]
fn rule_13_and_14_tag_and_annotation_are_one_token_in_two_orders() {
    let (_, _, received) = locked();
    let Some(Value::Uuid(uuid)) = received.delivery_annotation("x-opt-lock-token") else {
        panic!("the token is a uuid");
    };
    let mut swapped = uuid;
    swapped[..4].reverse();
    swapped[4..6].reverse();
    swapped[6..8].reverse();
    assert_eq!(received.tag, swapped[..]);
}

#[test]
fn a_locked_message_says_what_the_broker_knows() {
    let (_, _, received) = locked();
    assert!(!received.settled);
    assert_eq!(received.header().delivery_count, Some(0));
    assert_eq!(received.header().ttl, None);
    let enqueued = i64::try_from(BROKER_START).expect("fits");
    assert_eq!(
        received.annotation("x-opt-enqueued-time"),
        Some(Value::Timestamp(enqueued))
    );
    assert_eq!(
        received.annotation("x-opt-sequence-number"),
        Some(Value::Long(1))
    );
    assert_eq!(received.annotation("x-opt-message-state"), None);
    assert_eq!(received.annotation("x-opt-enqueue-sequence-number"), None);
    // The lock ends on the real clock, which clients compare it with.
    let until = i64::try_from(START + 30_000).expect("fits");
    assert_eq!(
        received.annotation("x-opt-locked-until"),
        Some(Value::Timestamp(until))
    );
}

#[test]
fn receive_and_delete_sends_settled_and_removes() {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let receiver = world.receiver("orders", SETTLED, 5);
    let received = world.received(receiver).pop().expect("a message");
    assert!(received.settled);
    assert!(received.tag.is_empty());
    assert_eq!(received.annotation("x-opt-locked-until"), None);
    assert!(received.sections().delivery_annotations.is_empty());
    world.dispose(&received, DeliveryState::Accepted, false);
    let other = world.receiver("orders", UNSETTLED, 5);
    assert!(world.received(other).is_empty());
}

#[test]
fn rule_15_each_outcome_is_answered_settled_with_the_same_outcome() {
    let table = [
        (DeliveryState::Accepted, DeliveryState::Accepted),
        (DeliveryState::Released, DeliveryState::Released),
        (modified(false, Vec::new()), bare_modified()),
        (modified(true, Vec::new()), bare_modified()),
        (DeliveryState::Rejected(None), DeliveryState::Rejected(None)),
    ];
    for (sent, expected) in table {
        let (mut world, receiver, received) = locked();
        world.dispose(&received, sent, false);
        assert_eq!(world.outcomes(receiver), [expected]);
    }
}

#[test]
fn rule_16_a_dead_letter_is_answered_without_an_error_and_tells_why_in_its_queue() {
    let (mut world, receiver, received) = locked();
    world.dispose(&received, dead_letter("bad", "very bad"), false);
    assert_eq!(world.outcomes(receiver), [DeliveryState::Rejected(None)]);
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 5);
    let dead = world.received(dead).pop().expect("a dead letter");
    assert_eq!(
        dead.application_property("DeadLetterReason"),
        Some(Value::from("bad"))
    );
    assert_eq!(
        dead.application_property("DeadLetterErrorDescription"),
        Some(Value::from("very bad"))
    );
    assert_eq!(
        dead.annotation("x-opt-sequence-number"),
        Some(Value::Long(1))
    );
    assert_eq!(dead.body(), message("hello"));
}

#[test]
fn a_completed_message_is_gone() {
    let (mut world, _, received) = locked();
    world.dispose(&received, DeliveryState::Accepted, false);
    world.advance(31_000);
    let other = world.receiver("orders", UNSETTLED, 5);
    assert!(world.received(other).is_empty());
}

#[test]
fn an_abandoned_message_comes_back_with_its_count_and_its_changed_properties() {
    let (mut world, receiver, received) = locked();
    let properties = vec![(Value::Symbol("colour".into()), Value::from("red"))];
    world.dispose(&received, modified(false, properties), false);
    let again = world.received(receiver).pop().expect("the message again");
    assert_eq!(again.header().delivery_count, Some(1));
    assert_eq!(
        again.application_property("colour"),
        Some(Value::from("red"))
    );
    assert_ne!(
        again.tag, received.tag,
        "every delivery has a token of its own"
    );
}

#[test]
fn a_released_message_comes_back_with_its_count_unchanged() {
    let (mut world, receiver, received) = locked();
    world.dispose(&received, DeliveryState::Released, false);
    let again = world.received(receiver).pop().expect("the message again");
    assert_eq!(again.header().delivery_count, Some(0));
}

#[test]
fn a_deferred_message_is_not_delivered_again() {
    let (mut world, receiver, received) = locked();
    world.dispose(&received, modified(true, Vec::new()), false);
    world.advance(60_000);
    assert!(world.received(receiver).is_empty());
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 5);
    assert!(
        world.received(dead).is_empty(),
        "deferring is not dead-lettering"
    );
}

#[test]
fn a_settled_disposition_is_not_answered() {
    let (mut world, receiver, received) = locked();
    world.dispose(&received, DeliveryState::Accepted, true);
    assert_eq!(world.outcomes(receiver), []);
    let settle = world.commands.iter().find_map(|command| match command {
        Command::Settle { request, .. } => Some(request.is_some()),
        _ => None,
    });
    assert_eq!(settle, Some(false));
}

#[test]
fn a_range_of_deliveries_is_settled_and_answered_one_by_one() {
    let mut world = World::new();
    for text in ["a", "b", "c"] {
        world.enqueue("orders", &message(text));
    }
    let receiver = world.receiver("orders", UNSETTLED, 5);
    for received in world.received(receiver) {
        world.client.dispose_received(
            received.session,
            received.delivery_id,
            DeliveryState::Accepted,
            false,
        );
    }
    world.pump();
    assert_eq!(world.outcomes(receiver), vec![DeliveryState::Accepted; 3]);
}

#[test]
fn a_lock_that_is_over_is_answered_with_lock_lost() {
    let (mut world, receiver, received) = locked();
    world.credit(receiver, 0, false);
    world.advance(30_001);
    world.dispose(&received, DeliveryState::Accepted, false);
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(receiver)[..] else {
        panic!("the lock is lost");
    };
    assert_eq!(error.condition, "com.microsoft:message-lock-lost");
    let text = error.description.as_deref().unwrap_or_default();
    assert!(text.starts_with("The lock supplied is invalid."), "{text}");
}

#[test]
fn a_dead_letter_can_not_be_dead_lettered_again() {
    let (mut world, _, received) = locked();
    world.dispose(&received, DeliveryState::Rejected(None), false);
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 5);
    let received = world.received(dead).pop().expect("a dead letter");
    world.dispose(&received, DeliveryState::Rejected(None), false);
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(dead)[..] else {
        panic!("it is refused");
    };
    assert_eq!(error.condition, "amqp:not-allowed");
}

#[test]
fn a_reason_that_is_too_long_is_refused_and_the_lock_kept() {
    let (mut world, receiver, received) = locked();
    world.dispose(&received, dead_letter(&"x".repeat(4_097), ""), false);
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(receiver)[..] else {
        panic!("it is refused");
    };
    assert_eq!(error.condition, "com.microsoft:argument-out-of-range");
    assert!(
        !world
            .commands
            .iter()
            .any(|command| matches!(command, Command::Settle { .. }))
    );
}

#[test]
fn a_settled_disposition_that_is_refused_gives_the_message_back_at_once() {
    let of_a_list = modified(false, vec![(Value::from("a"), Value::List(Vec::new()))]);
    let of_a_map = modified(false, vec![(Value::from("a"), Value::Map(Vec::new()))]);
    for state in [of_a_list, of_a_map, dead_letter(&"x".repeat(4_097), "")] {
        let (mut world, receiver, received) = locked();
        world.dispose(&received, state, true);
        assert_eq!(world.outcomes(receiver), []);
        let again = world.received(receiver).pop().expect("it is available");
        assert_eq!(again.body(), received.body());
        assert_eq!(again.header(), received.header(), "released");
    }
}

#[test]
fn a_settled_disposition_that_is_refused_has_the_default_outcome_of_its_source() {
    let failed = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: None,
    };
    for (default, count) in [(DeliveryState::Released, 0), (failed, 1)] {
        let mut world = World::new();
        world.enqueue("orders", &message("hello"));
        let session = world.session();
        let mut attach = receiver("orders", UNSETTLED);
        attach
            .source
            .as_deref_mut()
            .expect("a source")
            .default_outcome = Some(default);
        let link = world.attach(session, attach);
        world.credit(link, 5, false);
        let received = world.received(link).pop().expect("a message");
        let of_a_map = modified(false, vec![(Value::from("a"), Value::Map(Vec::new()))]);
        world.dispose(&received, of_a_map, true);
        let again = world.received(link).pop().expect("it is available");
        assert_eq!(again.body(), received.body());
        assert_eq!(again.header().delivery_count.unwrap_or(0), count);
    }
}

/// The broker refuses these, and there is no answer that would say so.
#[test]
fn a_settled_disposition_that_its_place_does_not_allow_gives_the_message_back_at_once() {
    let later = || {
        let delay = Value::from("x-opt-delivery-delay");
        modified(false, vec![(delay, Value::Long(60_000))])
    };
    let dead = "orders/$DeadLetterQueue";
    for (address, state) in [
        (dead, dead_letter("why", "")),
        (dead, later()),
        ("sessions", later()),
    ] {
        let mut world = World::new();
        let link = if address == dead {
            world.enqueue("orders", &message("hello"));
            let first = world.receiver("orders", UNSETTLED, 1);
            let received = world.received(first).pop().expect("a message");
            world.dispose(&received, dead_letter("", ""), false);
            world.receiver(address, UNSETTLED, 5)
        } else {
            world.enqueue("sessions", &of_session("a", "hello"));
            hold(&mut world, "a", 5)
        };
        let received = world.received(link).pop().expect("a message");
        world.dispose(&received, state, true);
        assert_eq!(world.outcomes(link), [], "{address}");
        let again = world.received(link).pop().expect("it is available");
        assert_eq!(again.body(), received.body());
        assert_eq!(again.header(), received.header(), "released");
        let refused = world.server.take_refusals().expect("one");
        assert_eq!(refused.first.len(), 1, "{address}");
    }
}

#[test]
fn an_expiring_message_says_when_on_the_wire() {
    let mut world = World::new();
    let mut payload = BytesMut::new();
    Header {
        ttl: Some(5_000),
        ..Header::default()
    }
    .encode(&mut payload);
    payload.extend_from_slice(&message("x"));
    world.enqueue("orders", &payload);
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    assert_eq!(received.header().ttl, Some(5_000));
    let properties = received.payload.slice(received.sections().properties);
    let properties = amqp::message::Properties::decode(&properties).expect("properties");
    assert_eq!(
        properties.absolute_expiry_time,
        i64::try_from(BROKER_START + 5_000).ok()
    );
}

#[test]
fn a_message_of_many_frames_comes_through() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.max_message_size = 4 << 20;
        },
    );
    let text = "x".repeat(900 * 1_024);
    world.enqueue("orders", &message(&text));
    let receiver = world.receiver("orders", UNSETTLED, 1);
    assert_eq!(
        world.received(receiver).pop().expect("a message").body(),
        message(&text)
    );
}

#[test]
fn the_broker_learns_what_was_written() {
    let mut world = World::new();
    for _ in 0..3 {
        world.enqueue("orders", &message("hello"));
    }
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(receiver).len(), 3);
    let written: usize = world
        .commands
        .iter()
        .map(|command| match command {
            Command::Written { bytes, .. } => *bytes,
            _ => 0,
        })
        .sum();
    // Each came without an id and was given one, in 52 bytes.
    assert_eq!(written, 3 * (message("hello").len() + 52 + 256));
}

#[test]
fn competing_receivers_each_get_what_they_have_credit_for() {
    let mut world = World::new();
    let one = world.receiver("orders", UNSETTLED, 2);
    let two = world.receiver("orders", UNSETTLED, 2);
    let (_, sender) = world.sender("orders");
    for _ in 0..6 {
        world.send(sender, &message("x"));
    }
    assert_eq!(world.received(one).len(), 2);
    assert_eq!(world.received(two).len(), 2);
}

/// (docs/spec/amqp.md#3.8)
#[test]
fn deliveries_of_a_link_that_is_detached_and_not_closed_are_settled_until_it_is() {
    for (closed, answered) in [(false, true), (true, false)] {
        let mut world = World::new();
        world.enqueue("orders", &message("hello"));
        let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
        let received = world.received(link).pop().expect("a message");
        world.client.detach(link, closed, None);
        world.pump();
        world.dispose(&received, DeliveryState::Accepted, false);
        let settle = |command: &Command| matches!(command, Command::Settle { .. });
        assert_eq!(world.commands.iter().any(settle), answered);
        let state = world.events.iter().find_map(|event| match event {
            Event::Updated { state, settled, .. } => Some((state.clone(), *settled)),
            _ => None,
        });
        let accepted = Some((Some(DeliveryState::Accepted), true));
        assert_eq!(state, accepted.filter(|_| answered));
    }
}

#[test]
fn deliveries_of_a_detached_link_go_with_their_session() {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(link).pop().expect("a message");
    world.client.detach(link, false, None);
    world.pump();
    world.client.end(received.session, None);
    world.pump();
    world.dispose(&received, DeliveryState::Accepted, false);
    let settle = |command: &Command| matches!(command, Command::Settle { .. });
    assert!(!world.commands.iter().any(settle));
}

/// The ids of links do not tell when they were detached.
#[test]
fn the_receivers_that_were_detached_last_are_remembered() {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let first = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(first).pop().expect("a message");
    let session = world.session();
    let detach_another = |world: &mut World, number: usize| {
        let attach = Attach {
            name: format!("another {number}"),
            ..receiver("orders", SenderSettleMode::Unsettled)
        };
        let link = world.attach(session, attach);
        world.client.detach(link, false, None);
        world.pump();
    };
    (0..1_024).for_each(|number| detach_another(&mut world, number));
    world.client.detach(first, false, None);
    world.pump();
    detach_another(&mut world, 1_024);
    world.dispose(&received, DeliveryState::Accepted, false);
    let settle = |command: &Command| matches!(command, Command::Settle { .. });
    assert!(world.commands.iter().any(settle));
}
