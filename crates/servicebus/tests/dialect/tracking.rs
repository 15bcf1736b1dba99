//! Tracking ids: the end of the text of each refusal. (docs/spec/amqp.md#10)

use std::collections::BTreeSet;

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Error, Value};

use dialect::{Dialect, ForcedClose};
use endpoint::Event;

use crate::sessions::{hold, seek};
use crate::transactions::{answers, coordinator, described};
use crate::world::{KEY, Login, Request, World, message, receiver, sender};

/// A text without the tracking id, system and time at its end, which must be there.
pub(crate) fn untracked(text: &str) -> &str {
    let (before, end) = text.rsplit_once(" TrackingId:").expect("a tracking id");
    let (id, rest) = end.split_at(36);
    let groups: Vec<_> = id.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{text}");
    let time = rest.strip_prefix("_G2, SystemTracker:railbus, Timestamp:");
    assert_eq!(
        time.map(str::len),
        Some("2023-11-14T22:13:20".len()),
        "{text}"
    );
    before
}

/// The text of an error without its tracking id.
pub(crate) fn text(error: &Error) -> &str {
    untracked(error.description.as_deref().expect("a text"))
}

fn rejection(world: &mut World, link: endpoint::LinkId) -> Error {
    match world.outcomes(link).pop() {
        Some(DeliveryState::Rejected(Some(error))) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_refusal_has_an_id_of_its_own() {
    let mut world = World::new();
    let mut texts = Vec::new();
    for _ in 0..2 {
        let error = world.refusal(receiver("nowhere", SenderSettleMode::Unsettled));
        texts.push(error.description.expect("a text").into_owned());
    }
    let (_, link) = world.sender("orders");
    world.send_as(link, 7, false, &message("x"));
    texts.push(
        rejection(&mut world, link)
            .description
            .expect("a text")
            .into_owned(),
    );
    let link = coordinator(&mut world);
    world.send(link, &described(0x99, Vec::new()));
    texts.push(
        rejection(&mut world, link)
            .description
            .expect("a text")
            .into_owned(),
    );
    let pair = world.pair("orders/$management");
    let answer = world.call(&pair, &Request::operation("what", Vec::new()));
    let text = answer.expect("an answer").field("statusDescription");
    texts.push(
        text.and_then(|it| it.as_text().map(str::to_owned))
            .expect("a text"),
    );
    let ids = texts.iter().map(|text| text.strip_prefix(untracked(text)));
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), texts.len(), "{texts:?}");
}

#[test]
fn a_missing_session_id_has_none() {
    let mut world = World::new();
    let (_, link) = world.sender("sessions");
    world.send(link, &message("x"));
    let text = rejection(&mut world, link).description.expect("a text");
    assert!(text.ends_with("set to a valid value."), "{text}");
}

#[test]
fn the_log_has_the_same_id() {
    let mut world = World::new();
    let told = world.refusal(sender("nowhere"));
    let refusals = world.server.take_refusals().expect("a refusal");
    assert_eq!(told.description.as_deref(), Some(&*refusals.first[0].text));
}

#[test]
fn a_refused_settlement_has_one() {
    let mut world = World::new();
    world.enqueue("orders", &message("x"));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(link).pop().expect("a message");
    world.advance(61_000);
    world.dispose(&received, DeliveryState::Accepted, false);
    let refused = answers(&mut world, link).pop();
    let Some((DeliveryState::Rejected(Some(error)), true)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.condition, "com.microsoft:message-lock-lost");
    assert!(text(&error).starts_with("The lock supplied is invalid."));
}

#[test]
fn a_settlement_that_makes_no_sense_has_one() {
    let mut world = World::new();
    world.enqueue("orders", &message("x"));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(link).pop().expect("a message");
    let state = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: false,
        message_annotations: Some(vec![(Value::from("a"), Value::List(Vec::new()))]),
    };
    world.dispose(&received, state, false);
    let refused = answers(&mut world, link).pop();
    let Some((DeliveryState::Rejected(Some(error)), true)) = refused else {
        panic!("{refused:?}");
    };
    assert!(!text(&error).is_empty());
}

#[test]
fn the_rejection_of_a_message_for_its_size_has_one() {
    let mut world = World::with(Login::Plain("root", KEY), |settings| {
        settings.max_message_size = 1_000;
    });
    let (_, link) = world.sender("orders");
    world.send(link, &message(&"x".repeat(2_000)));
    let error = rejection(&mut world, link);
    assert_eq!(error.condition, "amqp:link:message-size-exceeded");
    assert!(text(&error).contains("larger than the 1000 bytes"));
}

#[test]
fn a_session_that_another_receiver_holds_has_one() {
    let mut world = World::new();
    hold(&mut world, "s", 1);
    let link = seek(&mut world, Value::from("s"), None);
    let error = world.detach_error(link).expect("it is held");
    assert_eq!(error.condition, "com.microsoft:session-cannot-be-locked");
    assert!(!text(error).is_empty());
}

#[test]
fn a_connection_that_is_closed_has_one() {
    for why in [ForcedClose::Operator, ForcedClose::ShutDown] {
        let mut world = World::new();
        world.server.force_close(world.clock_reading(), why);
        world.pump();
        let closed = world.events.iter().find_map(|event| match event {
            Event::Closed { error, .. } => error.as_ref(),
            _ => None,
        });
        let error = closed.expect("the broker says why");
        assert_eq!(error.condition, "amqp:connection:forced");
        assert!(!text(error).is_empty());
    }
}
