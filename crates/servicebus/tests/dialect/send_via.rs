//! Send-via: messages go on to another entity from the one that their link is on.
//! (docs/spec/amqp.md#8.2)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Value};
use broker::{Ensured, QueueSettings, Tier};
use endpoint::LinkId;

use crate::rotation::{CBS, put};
use crate::tracking::text;
use crate::transactions::{coordinator, declare, discharge, seen, send_within, within};
use crate::world::{KEY, Login, World, message, rules, sender, token};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const PROPERTY: &str = "com.microsoft:transfer-destination-address";

pub(crate) fn via(address: &str, destination: impl Into<Value>) -> Attach {
    let key = Value::Symbol(amqp::Symbol::new(PROPERTY));
    Attach {
        properties: Some(vec![(key, destination.into())]),
        ..sender(address)
    }
}

pub(crate) fn attach(world: &mut World, attach: Attach) -> LinkId {
    let session = world.session();
    let link = world.attach(session, attach);
    assert!(
        world.client.is_attached(link),
        "{:?}",
        world.detach_error(link)
    );
    link
}

fn send(world: &mut World, link: LinkId) {
    world.send(link, &message("x"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn a_message_is_the_destinations_in_whatever_form_that_is_named() {
    let mut world = World::new();
    for destination in ["orders2", "/Orders2", "amqps://localhost/orders2"] {
        let link = attach(&mut world, via("orders", destination));
        let echoed = world.reply(link).properties.clone().expect("properties");
        let named = amqp::value::lookup(&echoed, PROPERTY);
        assert_eq!(named, Some(&Value::from(destination)));
        send(&mut world, link);
    }
    assert_eq!(seen(&mut world, "orders"), 0);
    let receiver = world.receiver("orders2", UNSETTLED, 10);
    let received = world.received(receiver);
    assert_eq!(received.len(), 3);
    for message in received {
        assert_eq!(message.annotation("x-opt-enqueue-sequence-number"), None);
    }
}

#[test]
fn in_the_basic_tier_nothing_goes_on() {
    let mut world = World::with(Login::Plain("root", KEY), |it| it.tier = Tier::Basic);
    let refusal = world.refusal(via("orders", "orders2"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let why = "Transfer destinations are not supported in the Basic tier.";
    assert_eq!(text(&refusal), why);
    attach(&mut world, via("orders", Value::Null));
}

#[test]
fn a_transaction_of_the_via_entity_sends_to_the_destination_at_its_commit() {
    let mut world = World::new();
    let link = attach(&mut world, via("orders", "orders2"));
    let coordinator = coordinator(&mut world);
    for (fail, expected) in [(true, 0), (false, 1)] {
        let id = declare(&mut world, coordinator);
        send_within(&mut world, link, &id, &message("x"), false);
        let accepted = within(&id, Some(DeliveryState::Accepted));
        assert_eq!(world.outcomes(link), [accepted]);
        assert_eq!(seen(&mut world, "orders2"), 0);
        let state = discharge(&mut world, coordinator, &id, fail);
        assert_eq!(state, DeliveryState::Accepted);
        assert_eq!(seen(&mut world, "orders2"), expected);
    }
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn what_cannot_go_on_is_a_dead_letter_of_the_via_entity_also_of_a_topic() {
    let mut world = World::new();
    world.ensure(Ensured::Topic {
        path: "events".to_owned(),
        settings: QueueSettings::default(),
    });
    for entity in ["orders", "events"] {
        let link = attach(&mut world, via(entity, "nowhere"));
        send(&mut world, link);
        let dead = format!("{entity}/$Transfer/$DeadLetterQueue");
        let receiver = world.receiver(&dead, UNSETTLED, 1);
        let letter = world.received(receiver).pop().expect("a dead letter");
        let property = |key| letter.application_property(key);
        assert_eq!(
            property("DeadLetterReason"),
            Some(Value::from("amqp:not-found"))
        );
        let text = "The transfer destination entity does not exist.";
        assert_eq!(
            property("DeadLetterErrorDescription"),
            Some(Value::from(text))
        );
        world.dispose(&letter, DeliveryState::Accepted, false);
    }
}

#[test]
fn sending_is_needed_on_both_and_the_text_names_the_one_that_lacks_it() {
    let mut world = World::under(rules(), CBS);
    let pair = world.pair("$cbs");
    let orders = "sb://localhost/orders";
    assert_eq!(
        put(&mut world, &pair, &token(orders, "root", KEY, 600)),
        202
    );
    let error = world.refusal(via("orders", "orders2"));
    assert_eq!(error.condition, "amqp:unauthorized-access");
    let text = error.description.expect("a text");
    assert!(
        text.contains("'Send' claim(s)") && text.contains("orders2"),
        "{text}"
    );
}

#[test]
fn an_address_that_is_no_queue_or_topic_is_refused() {
    let mut world = World::new();
    let long = "x".repeat(261);
    let addresses = [
        "orders2/$DeadLetterQueue",
        "orders2/$management",
        "$cbs",
        &long,
    ];
    let values = addresses.map(Value::from).into_iter();
    for value in values.chain([Value::Uint(1)]) {
        let error = world.refusal(via("orders", value));
        assert_eq!(error.condition, "com.microsoft:argument-error");
    }
}
