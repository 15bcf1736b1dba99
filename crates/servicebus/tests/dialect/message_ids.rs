//! Ids of messages that were sent without one: given at intake, for good. (docs/spec/amqp.md#4.2)

use std::collections::BTreeSet;

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};

use crate::schedule::{peeked, schedule, scheduled};
use crate::send::{BATCH, batch};
use crate::topics;
use crate::world::{BROKER_START, Received, World, message};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;

fn ids(received: &[Received]) -> Vec<Value> {
    received.iter().map(Received::message_id).collect()
}

/// As many ids as are expected, each of 32 hexadecimal digits and none equal to another.
fn check_given(ids: &[Value], count: usize) {
    let texts: BTreeSet<_> = ids.iter().map(|id| id.as_text().expect("a text")).collect();
    assert_eq!((ids.len(), texts.len()), (count, count), "{ids:?}");
    for text in texts {
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        assert!(text.len() == 32 && text.bytes().all(is_digit), "{text}");
    }
}

#[test]
fn each_way_in_gives_an_id_to_a_message_that_has_none() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send(sender, &message("sent"));
    world.send_as(
        sender,
        BATCH,
        false,
        &batch(&[message("first"), message("second")]),
    );
    let due = i64::try_from(BROKER_START + 5_000).expect("fits");
    let later = scheduled("sent for later", Value::Timestamp(due));
    world.send(sender, &later);
    let pair = world.pair("orders/$management");
    schedule(&mut world, &pair, vec![later]);
    let shown = ids(&peeked(&mut world, &pair));
    check_given(&shown, 5);
    world.advance(5_000);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(ids(&world.received(receiver)), shown);
}

#[test]
fn a_given_id_is_the_same_at_every_delivery_and_in_the_dead_letter_queue() {
    let mut world = World::new();
    world.enqueue("orders", &message("one"));
    world.enqueue("orders", &message("two"));
    let receiver = world.receiver("orders", UNSETTLED, 2);
    let received = world.received(receiver);
    let first = ids(&received);
    check_given(&first, 2);
    let abandoned = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: None,
    };
    for received in &received {
        world.dispose(received, abandoned.clone(), false);
    }
    world.credit(receiver, 2, false);
    let received = world.received(receiver);
    assert_eq!(ids(&received), first);
    for received in &received {
        world.dispose(received, DeliveryState::Rejected(None), false);
    }
    let dead = world.receiver("orders/$deadletterqueue", UNSETTLED, 2);
    assert_eq!(ids(&world.received(dead)), first);
}

#[test]
fn rules_see_a_given_id_and_copies_and_forwarded_messages_have_it() {
    let mut world = topics::world();
    let audit = "events/Subscriptions/audit";
    let pair = world.pair(&format!("{audit}/$management"));
    let rule = vec![
        (
            "sql-filter",
            topics::sql("sys.MessageId LIKE '________________________________'"),
        ),
        ("sql-rule-action", topics::sql("SET id = sys.MessageId")),
    ];
    assert_eq!(topics::add(&mut world, &pair, "given", rule).code(), 200);
    world.create("last", broker::QueueSettings::default());
    world.ensure(broker::Ensured::Subscription {
        topic: "events".to_owned(),
        name: "onward".to_owned(),
        settings: Box::new(broker::SubscriptionSettings {
            queue: broker::QueueSettings {
                forward_to: Some("last".to_owned()),
                ..broker::QueueSettings::default()
            },
            ..broker::SubscriptionSettings::default()
        }),
        rules: None,
    });
    world.enqueue("events", &message("hello"));
    let mut copies = Vec::new();
    for address in [audit, "events/Subscriptions/others", "last"] {
        let receiver = world.receiver(address, UNSETTLED, 5);
        copies.extend(world.received(receiver));
    }
    // The default rule and the new one each select a copy for the first subscription.
    assert_eq!(copies.len(), 4);
    let id = copies[0].message_id();
    check_given(std::slice::from_ref(&id), 1);
    assert!(ids(&copies).iter().all(|it| *it == id), "{copies:?}");
    let told = copies.iter().find_map(|it| it.application_property("id"));
    assert_eq!(told, Some(id));
}

#[test]
fn a_copy_whose_id_an_action_removes_is_shown_with_one_of_its_own() {
    let mut world = topics::world();
    let audit = "events/Subscriptions/audit";
    let pair = world.pair(&format!("{audit}/$management"));
    for (name, action) in [
        ("removed", "REMOVE sys.MessageId"),
        ("null", "SET sys.MessageId = NULL"),
    ] {
        let rule = vec![
            ("sql-filter", topics::sql("1 = 1")),
            ("sql-rule-action", topics::sql(action)),
        ];
        assert_eq!(topics::add(&mut world, &pair, name, rule).code(), 200);
    }
    world.enqueue("events", &message("hello"));
    let shown = ids(&peeked(&mut world, &pair));
    // The default rule makes a copy too, with the id that was given at intake.
    check_given(&shown, 3);
    let receiver = world.receiver(audit, UNSETTLED, 3);
    let received = world.received(receiver);
    assert_eq!(ids(&received), shown);
    for received in &received {
        world.dispose(received, DeliveryState::Rejected(None), false);
    }
    let dead = world.receiver(&format!("{audit}/$deadletterqueue"), UNSETTLED, 3);
    assert_eq!(ids(&world.received(dead)), shown);
}
