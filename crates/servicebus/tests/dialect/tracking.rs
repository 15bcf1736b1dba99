//! Tracking ids: the end of the text of each refusal. (docs/spec/amqp.md#10)

use std::collections::BTreeSet;

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Error};

use dialect::Dialect;

use crate::transactions::{coordinator, described};
use crate::world::{Request, World, message, receiver, sender};

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
