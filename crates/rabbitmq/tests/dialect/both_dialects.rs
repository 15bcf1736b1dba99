//! One connection with links of both dialects. (docs/spec/rabbitmq.md#1, #16)

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::{
    Binding, BindingDestination, Ensured, FilterDescription, GIVEN_ID, Order, QueueSettings,
    RouterOrder, RuleDescription, SubscriptionSettings,
};

use dialect::{Dialect, ForcedClose};

use crate::client_frames::message;
use crate::consume::{consume, consumer};
use crate::received::Received;
use crate::world::{Request, World};

#[test]
fn each_link_settles_by_its_own_dialect() {
    let mut world = World::new();
    world.enqueue("orders", &message("a"));
    world.enqueue("/queues/orders", &message("b"));
    let azure = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let session = world.session();
    let rabbit = world.attach(session, consumer("/queues/orders"));
    world.credit(rabbit, 1, false);
    let (first, second) = (
        world.received(azure).remove(0),
        world.received(rabbit).remove(0),
    );
    assert!(first.payload.ends_with(&message("a")));
    assert!(second.payload.ends_with(&message("b")));
    let undeliverable = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: None,
    };
    // Service Bus defers the message, RabbitMQ dead-letters it.
    world.dispose(&first, undeliverable.clone(), true);
    world.dispose(&second, undeliverable, true);
    let dead = world.receiver("orders/$DeadLetterQueue", SenderSettleMode::Unsettled, 5);
    let dead = world.received(dead);
    assert_eq!(dead.len(), 1);
    assert!(dead[0].payload.ends_with(&message("b")));
}

/// The delivery count of a consumer's message once its connection has ended, and how often the
/// broker was told that the connection is over.
fn count_after(end: impl FnOnce(&mut World)) -> (u32, usize) {
    let mut world = World::new();
    world.enqueue("/queues/orders2", &message("a"));
    let link = consume(&mut world, "/queues/orders2", 1);
    assert_eq!(world.received(link).len(), 1);
    end(&mut world);
    world.pump();
    let disconnects = world.commands.iter();
    let disconnects = disconnects.filter(|it| matches!(it, broker::Command::Disconnect { .. }));
    let disconnects = disconnects.count();
    let last = world.commands.last();
    assert!(matches!(last, Some(broker::Command::Disconnect { .. })));
    let count = world.browsed("orders2")[0].delivery_count;
    (count, disconnects)
}

/// (docs/spec/rabbitmq.md#10.3)
#[test]
fn a_connection_that_closes_in_order_raises_no_count_and_a_lost_one_does() {
    let closed = count_after(|world| world.client.close(None));
    assert_eq!(closed, (0, 1));
    for why in [ForcedClose::ShutDown, ForcedClose::Operator] {
        let closed = count_after(|world| world.server.force_close(world.clock_reading(), why));
        assert_eq!(closed, (0, 1), "{why:?}");
        // The client may never answer.
        let silent = count_after(|world| {
            world.client_stalls = true;
            world.server.force_close(world.clock_reading(), why);
            world.pump();
            world.server.handle_eof(world.clock_reading());
        });
        assert_eq!(silent, (0, 1), "{why:?}");
    }
    let lost = count_after(|world| world.server.handle_eof(world.clock_reading()));
    assert_eq!(lost, (1, 1));
}

#[test]
fn a_message_that_publishers_of_both_dialects_send_is_there_once() {
    let mut world = World::new();
    let settings = QueueSettings {
        requires_duplicate_detection: true,
        ..QueueSettings::default()
    };
    world.create("once", settings);
    world.administer(Order::Router(RouterOrder::Bind(Box::new(Binding {
        source: "amq.fanout".to_owned(),
        destination: BindingDestination::Entity("once".to_owned()),
        key: String::new(),
        arguments: Vec::new(),
    }))));
    let mut payload = bytes::BytesMut::new();
    let properties = amqp::message::Properties {
        message_id: Some(Value::from("7")),
        ..Default::default()
    };
    properties.encode(&mut payload);
    payload.extend_from_slice(&message("a"));
    // Each is accepted.
    for address in [
        "/queues/once",
        "once",
        "/exchanges/amq.fanout",
        "/queues/once",
    ] {
        world.enqueue(address, &payload);
    }
    assert_eq!(world.browsed("once").len(), 1);
    world.enqueue("/queues/once", &message("without an id"));
    assert_eq!(world.browsed("once").len(), 2);
}

/// What a broker gives: text of 32 hexadecimal digits.
fn given_id(message: &Received) -> String {
    let Value::String(id) = message.message_id() else {
        panic!("{message:?}");
    };
    let is_given = id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_given, "{id}");
    id
}

#[test]
fn a_publishers_message_without_an_id_has_one_on_service_buss_links_alone() {
    let mut world = World::new();
    for text in ["a", "b"] {
        world.enqueue("/queues/orders", &message(text));
    }
    let rabbit = consume(&mut world, "/queues/orders", 1);
    let shown = world.received(rabbit).remove(0);
    let bare = shown.sections().bare();
    assert_eq!(shown.payload.slice(bare), message("a"));
    assert_eq!(shown.annotation(GIVEN_ID), None);
    let released = DeliveryState::Released;
    world.dispose(&shown, released, true);

    let azure = world.receiver("orders", SenderSettleMode::Unsettled, 2);
    let [first, second] = world.received(azure).try_into().expect("both messages");
    let id = given_id(&first);
    assert_ne!(id, given_id(&second));
    assert_eq!(first.annotation(GIVEN_ID), None);
    assert!(first.payload.ends_with(&message("a")));
    // It is the same at the next delivery and in the dead-letter queue.
    let failed = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: None,
    };
    world.dispose(&first, failed, true);
    world.credit(azure, 1, false);
    let again = world.received(azure).remove(0);
    assert_eq!(given_id(&again), id);
    world.dispose(&again, DeliveryState::Rejected(None), true);
    let dead = world.receiver("orders/$DeadLetterQueue", SenderSettleMode::Unsettled, 1);
    assert_eq!(given_id(&world.received(dead)[0]), id);
}

#[test]
fn a_publisher_cannot_say_which_id_the_broker_gives() {
    let mut world = World::new();
    let mut claimed = bytes::BytesMut::new();
    let key = Value::Symbol(GIVEN_ID.into());
    let annotations = [(key, Value::String("mine".to_owned()))];
    let section = amqp::message::descriptor::MESSAGE_ANNOTATIONS;
    amqp::message::encode_map_section(&mut claimed, section, &annotations);
    claimed.extend_from_slice(&message("a"));
    world.enqueue("/queues/orders", &claimed);
    let azure = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    given_id(&world.received(azure)[0]);
}

#[test]
fn rules_see_the_id_that_a_publishers_message_was_given() {
    let mut world = World::new();
    world.ensure(Ensured::Topic {
        path: "news".to_owned(),
        settings: QueueSettings::default(),
    });
    world.ensure(Ensured::Subscription {
        topic: "news".to_owned(),
        name: "all".to_owned(),
        settings: Box::new(SubscriptionSettings::default()),
        rules: Some(vec![RuleDescription {
            name: "given".to_owned(),
            filter: FilterDescription::Sql(format!("sys.MessageId LIKE '{}'", "_".repeat(32))),
            action: Some("SET id = sys.MessageId".to_owned()),
            ..RuleDescription::default()
        }]),
    });
    world.enqueue("/exchanges/news/key", &message("hello"));
    let azure = world.receiver("news/Subscriptions/all", SenderSettleMode::Unsettled, 1);
    let copy = world.received(azure).remove(0);
    let seen = copy.application_property("id");
    assert_eq!(seen, Some(Value::String(given_id(&copy))));
}

#[test]
fn the_lock_of_a_consumers_link_is_not_settled_or_renewed_by_its_token() {
    let mut world = World::new();
    world.enqueue("orders", &message("a"));
    let session = world.session();
    let rabbit = world.attach(session, consumer("/queues/orders"));
    world.credit(rabbit, 1, false);
    let received = world.received(rabbit).remove(0);
    let token = received.tag[..].try_into().expect("the tag is the token");
    let tokens = || Value::Array(vec![Value::Uuid(token)]);
    let pair = world.pair("orders/$management");
    let settle = vec![
        ("lock-tokens", tokens()),
        ("disposition-status", Value::from("completed")),
    ];
    for (operation, body) in [
        ("update-disposition", settle),
        ("renew-lock", vec![("lock-tokens", tokens())]),
    ] {
        let operation = format!("com.microsoft:{operation}");
        let request = Request::operation(&operation, body);
        let response = world.call(&pair, &request).expect("an answer");
        let lost = "com.microsoft:message-lock-lost";
        assert_eq!(response.condition(), lost, "{operation}");
    }
    world.dispose(&received, DeliveryState::Accepted, true);
    assert_eq!(world.received(rabbit).len(), 0);
}

#[test]
fn a_rule_selects_by_the_key_that_a_client_of_rabbitmq_has_published_with() {
    let mut world = World::new();
    world.ensure(Ensured::Topic {
        path: "news".to_owned(),
        settings: QueueSettings::default(),
    });
    let filter = FilterDescription::Sql("sys.[x-routing-key] LIKE 'sport.%'".to_owned());
    world.ensure(Ensured::Subscription {
        topic: "news".to_owned(),
        name: "s".to_owned(),
        settings: Box::new(SubscriptionSettings::default()),
        rules: Some(vec![RuleDescription {
            name: "sport".to_owned(),
            filter,
            ..RuleDescription::default()
        }]),
    });
    world.enqueue("/exchanges/news/sport.ski", &message("a"));
    world.enqueue("/exchanges/news/weather", &message("b"));
    let link = world.receiver("news/Subscriptions/s", SenderSettleMode::Unsettled, 5);
    let received = world.received(link);
    assert_eq!(received.len(), 1);
    assert!(received[0].payload.ends_with(&message("a")));
}
