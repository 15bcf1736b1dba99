//! Attaching publishers and consumers. (docs/spec/rabbitmq.md#3, #4, #10.1)

use amqp::error::condition;
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Value};
use broker::QueueSettings;

use crate::client_frames::{message, receiver, sender, target};
use crate::consume::consumer;
use crate::management::ended;
use crate::world::{Login, SEND_KEY, World};

#[test]
fn rule_12_the_reply_repeats_what_was_asked_for() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(session, sender("/queues/orders"));
    let reply = world.reply(link).clone();
    assert_eq!(reply.target, sender("/queues/orders").target);
    assert_eq!(reply.max_message_size, Some(262_144));
    assert_eq!(world.client.send_credit(link), 170);
    let asked = Attach {
        snd_settle_mode: Some(SenderSettleMode::Settled),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        ..consumer("/queues/orders")
    };
    let link = world.attach(session, asked);
    let reply = world.reply(link);
    let source = reply.source.as_deref().expect("a source");
    assert_eq!(source.address, Some(Value::from("/queues/orders")));
    assert_eq!(source.default_outcome, Some(DeliveryState::Released));
    assert_eq!(source.outcomes.len(), 4);
    assert_eq!(reply.snd_settle_mode, Some(SenderSettleMode::Settled));
    assert_eq!(reply.rcv_settle_mode, Some(ReceiverSettleMode::Second));
}

#[test]
fn rules_10_and_11_a_refused_link_leaves_its_session() {
    let mut world = World::new();
    let session = world.session();
    for attach in [sender("/queues/none"), consumer("/queues/none")] {
        let link = world.attach(session, attach);
        let error = world.detach_error(link).expect("it is refused");
        assert_eq!(error.condition, condition::NOT_FOUND);
        assert_eq!(
            error.description.as_deref(),
            Some("no queue 'none' in vhost '/'")
        );
    }
    let link = world.attach(session, sender("/queues/orders"));
    assert!(world.client.is_attached(link));
}

#[test]
fn addresses_of_other_forms_and_queues_that_cannot_serve_are_refused() {
    let mut world = World::new();
    world.create(
        "source",
        QueueSettings {
            forward_to: Some("orders".to_owned()),
            ..QueueSettings::default()
        },
    );
    for (attach, expected) in [
        (sender("/queues/"), condition::INVALID_FIELD),
        (sender("/queues/a/b"), condition::INVALID_FIELD),
        (sender("/exchanges/"), condition::INVALID_FIELD),
        (sender("/exchanges/none/key"), condition::NOT_FOUND),
        (sender("/queues/ORDERS"), condition::NOT_FOUND),
        (
            sender("/queues/orders%2F$DeadLetterQueue"),
            condition::NOT_ALLOWED,
        ),
        (consumer("/exchanges/amq.direct"), condition::INVALID_FIELD),
        (consumer("/queues/a%"), condition::INVALID_FIELD),
        (consumer("/queues/sessions"), condition::PRECONDITION_FAILED),
        (consumer("/queues/source"), condition::PRECONDITION_FAILED),
        (
            receiver("/queues/orders", SenderSettleMode::Unsettled),
            condition::NOT_IMPLEMENTED,
        ),
    ] {
        let shown = format!("{attach:?}");
        assert_eq!(world.refusal(attach).condition, expected, "{shown}");
    }
}

#[test]
fn rule_18_a_filter_is_left_out_of_the_reply_and_selects_nothing() {
    let mut world = World::new();
    let mut attach = consumer("/queues/orders");
    let source = attach.source.as_deref_mut().expect("a source");
    let filter = Value::Described(Box::new((
        Value::Symbol("rabbitmq:stream-offset-spec".into()),
        Value::from("first"),
    )));
    source.filter = Some(vec![(
        Value::Symbol("rabbitmq:stream-offset-spec".into()),
        filter,
    )]);
    let session = world.session();
    let link = world.attach(session, attach);
    let source = world.reply(link).source.as_deref().expect("a source");
    assert_eq!(source.filter, None);
    world.credit(link, 1, false);
    world.enqueue("/queues/orders", &message("a"));
    assert_eq!(world.received(link).len(), 1);
}

#[test]
fn links_to_one_address_may_have_one_name() {
    let mut world = World::new();
    let mut settings = servicebus::Settings::default();
    settings.endpoint.shares_name = rabbitmq::may_share_name;
    let mut shared = World::with(Login::Plain("root", crate::world::KEY), |it| *it = settings);
    for (world, first_stays) in [(&mut shared, true), (&mut world, false)] {
        let session = world.session();
        let first = world.client.attach(session, sender("/queues/orders"));
        world.pump();
        // The client's own endpoint keeps names apart, so the other one comes by another session.
        let other = world.session();
        let second = world.client.attach(other, sender("/queues/orders"));
        world.pump();
        assert!(world.client.is_attached(second));
        assert_eq!(world.client.is_attached(first), first_stays);
    }
}

#[test]
fn a_client_without_the_right_loses_its_session() {
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let session = world.session();
    world.attach(session, consumer("/queues/orders"));
    assert_eq!(ended(&world), [condition::UNAUTHORIZED_ACCESS]);
}

#[test]
fn rule_17_a_deleted_queue_detaches_publishers_and_consumers() {
    let mut world = World::new();
    let session = world.session();
    let publisher = world.attach(session, sender("/queues/orders2"));
    let reader = world.attach(session, consumer("/queues/orders2"));
    world.remove("orders2");
    for link in [publisher, reader] {
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition, condition::RESOURCE_DELETED);
    }
}

#[test]
fn the_anonymous_terminus_is_attached_without_a_target() {
    let mut world = World::new();
    let session = world.session();
    let attach = Attach {
        name: "anonymous".to_owned(),
        target: Some(Box::new(target(None))),
        ..sender("")
    };
    let link = world.attach(session, attach);
    assert!(world.client.is_attached(link));
}

#[test]
fn replies_name_the_modes_that_are_in_force() {
    let mut world = World::new();
    let session = world.session();
    let publisher = Attach {
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        ..sender("/queues/orders")
    };
    let link = world.attach(session, publisher);
    let first = Some(ReceiverSettleMode::First);
    assert_eq!(world.reply(link).rcv_settle_mode, first);
    let mut browser = consumer("/queues/orders");
    if let Some(source) = browser.source.as_deref_mut() {
        source.distribution_mode = Some("copy".into());
    }
    let link = world.attach(session, browser);
    let source = world.reply(link).source.clone().expect("a source");
    assert_eq!(source.distribution_mode, Some("move".into()));
}

#[test]
fn a_link_that_goes_on_where_another_ended_and_a_source_of_two_names_are_refused() {
    let mut world = World::new();
    let recovered = Attach {
        unsettled: Some(vec![(Value::from("tag"), Value::Null)]),
        ..sender("/queues/orders")
    };
    let refusal = world.refusal(recovered);
    assert_eq!(refusal.condition, condition::NOT_IMPLEMENTED);
    let refusal = world.refusal(consumer("/queues/a/b"));
    assert_eq!(refusal.condition, condition::INVALID_FIELD);
    let text = "Attach rejected: {bad_address,{utf8,<<\"/queues/a/b\">>}}";
    assert_eq!(refusal.description.as_deref(), Some(text));
}
