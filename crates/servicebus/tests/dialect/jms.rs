//! JMS clients: subscriptions and entities made by attaching, unsubscribe, delayed delivery.
//! (docs/spec/amqp.md#13)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error, Map, Source, Symbol, Target, TargetTerminus, Value};
use broker::{Ensured, Order, QueueSettings};
use bytes::{Bytes, BytesMut};
use endpoint::{Event, LinkId};

use crate::world::{BROKER_START, KEY, LISTEN_KEY, Login, World, message, receiver, sender};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const CAPABILITIES: [&str; 4] = [
    "sole-connection-for-container",
    "DELAYED_DELIVERY",
    "ANONYMOUS-RELAY",
    "SHARED-SUBS",
];

fn symbols(names: &[&'static str]) -> Vec<Symbol> {
    names.iter().map(|name| Symbol::new(name)).collect()
}

/// A connection of `client1`, with these properties of its open.
fn world_with(login: Login, has_jms: bool, properties: Map) -> World {
    let mut world = World::offline(login, |settings| {
        settings.jms = has_jms;
        settings.anonymous_relay = true;
    });
    world.open_with(login, |config| {
        config.container_id = "client1".to_owned();
        config.properties = Some(properties);
        config.desired_capabilities = symbols(&CAPABILITIES);
    });
    world.pump();
    world.ensure(Ensured::Topic {
        path: "prices".to_owned(),
        settings: QueueSettings::default(),
    });
    world.pump();
    world
}

fn world() -> World {
    world_with(Login::Plain("root", KEY), true, Map::new())
}

/// A client that makes entities.
fn provider(login: Login) -> World {
    let key = |name: &'static str| Value::Symbol(Symbol::new(name));
    let idle = "com.microsoft:queue-auto-delete-on-idle-duration-in-seconds";
    world_with(
        login,
        true,
        vec![
            (key("com.microsoft:is-client-provider"), Value::Bool(true)),
            (key(idle), Value::Long(600)),
        ],
    )
}

/// A consumer of a topic as Qpid JMS attaches it.
fn consumer(name: &str, durable: u32, capabilities: &[&'static str]) -> Attach {
    let is_durable = durable > 0;
    let policy = if is_durable { "never" } else { "link-detach" };
    let source = Source {
        address: Some(Value::from("prices")),
        durable,
        expiry_policy: Some(Symbol::new(policy)),
        distribution_mode: is_durable.then(|| Symbol::new("copy")),
        capabilities: symbols(capabilities),
        ..Source::default()
    };
    Attach {
        name: name.to_owned(),
        source: Some(Box::new(source)),
        desired_capabilities: match capabilities.contains(&"shared") {
            true => symbols(&["SHARED-SUBS"]),
            false => Vec::new(),
        },
        ..receiver("prices", UNSETTLED)
    }
}

fn join(world: &mut World, attach: Attach) -> LinkId {
    let session = world.session();
    let link = world.attach(session, attach);
    assert!(
        world.client.is_attached(link),
        "{:?}",
        world.detach_error(link)
    );
    world.credit(link, 10, false);
    link
}

fn subscriptions(world: &World) -> Vec<String> {
    let queues = world.shard.broker.queues();
    let paths = queues.map(|queue| queue.path);
    let below =
        paths.filter_map(|path| Some(path.strip_prefix("prices/Subscriptions/")?.to_owned()));
    below.collect()
}

fn publish(world: &mut World, payload: &[u8]) {
    world.enqueue("prices", payload);
}

fn bodies(world: &mut World, link: LinkId) -> usize {
    world.received(link).len()
}

fn close(world: &mut World, link: LinkId) -> Option<Error> {
    world.client.detach(link, true, None);
    world.pump();
    let detached = world.events.iter().find_map(|event| match event {
        Event::Detached {
            link: of, error, ..
        } if *of == link => Some(error.clone()),
        _ => None,
    });
    detached.expect("the close is answered")
}

/// The link by which a client unsubscribes.
fn unsubscriber(name: &str, desired: &[&'static str]) -> Attach {
    Attach {
        name: name.to_owned(),
        source: None,
        desired_capabilities: symbols(desired),
        ..receiver("prices", UNSETTLED)
    }
}

#[test]
fn an_open_is_offered_what_jms_needs() {
    let offered = |world: &World| {
        let opened = world.events.iter().find_map(|event| match event {
            Event::Opened(open) => Some(open.offered_capabilities.clone()),
            _ => None,
        });
        opened.expect("the connection is open")
    };
    let with = offered(&world());
    let relay = "ANONYMOUS-RELAY";
    assert_eq!(with, symbols(&[relay, "DELAYED_DELIVERY", "SHARED-SUBS"]));
    let provider = offered(&provider(Login::Plain("root", KEY)));
    assert_eq!(provider, symbols(&["DELAYED_DELIVERY", "SHARED-SUBS"]));
    let without = world_with(Login::Plain("root", KEY), false, Map::new());
    assert_eq!(offered(&without), symbols(&[relay]));
}

#[test]
fn without_jms_a_consumer_of_a_topic_is_refused() {
    let mut world = world_with(Login::Plain("root", KEY), false, Map::new());
    let error = world.refusal(consumer("s", 2, &["topic"]));
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
    let error = world.refusal(unsubscriber("s", &[]));
    assert_eq!(error.condition.as_str(), "amqp:invalid-field");
}

#[test]
fn each_kind_of_subscription_has_its_name() {
    let mut world = world();
    join(&mut world, consumer("durable", 2, &["topic"]));
    join(&mut world, consumer("sd", 2, &["topic", "shared"]));
    join(&mut world, consumer("sd|2", 2, &["topic", "shared"]));
    join(
        &mut world,
        consumer("g|global", 2, &["topic", "shared", "global"]),
    );
    join(&mut world, consumer("n|volatile1", 0, &["topic", "shared"]));
    let global = &["topic", "shared", "global"];
    join(&mut world, consumer("n|global-volatile1", 0, global));
    join(
        &mut world,
        consumer("qpid-jms:receiver:ID:1:prices", 0, &["topic"]),
    );
    let mut names = subscriptions(&world);
    let own = names.pop().expect("there are some");
    assert_eq!(
        names,
        [
            "durable$client1$D",
            "sd$client1$D",
            "g$$D",
            "n$client1$ND",
            "n$$ND"
        ]
    );
    let (digits, rest) = own.split_at(32);
    assert!(digits.bytes().all(|it| it.is_ascii_hexdigit()), "{own}");
    assert_eq!(rest, "$client1$ND");
}

#[test]
fn the_reply_offers_shared_subscriptions_and_repeats_the_source() {
    let mut world = world();
    let attach = consumer("s", 2, &["topic", "shared"]);
    let link = join(&mut world, attach.clone());
    let reply = world.reply(link);
    assert_eq!(reply.offered_capabilities, symbols(&["SHARED-SUBS"]));
    assert_eq!(reply.source, attach.source);
}

#[test]
fn consumers_of_a_subscription_share_its_messages_and_each_subscription_has_all() {
    let mut world = world();
    let durable = join(&mut world, consumer("d", 2, &["topic"]));
    let first = join(&mut world, consumer("s", 2, &["topic", "shared"]));
    let second = join(&mut world, consumer("s|2", 2, &["topic", "shared"]));
    for text in ["one", "two", "three"] {
        publish(&mut world, &message(text));
    }
    assert_eq!(bodies(&mut world, durable), 3);
    let shared = bodies(&mut world, first) + bodies(&mut world, second);
    assert_eq!(shared, 3);
}

#[test]
fn a_selector_decides_at_fan_out_and_is_shown_as_the_default_rule() {
    let mut world = world();
    let filter = vec![(
        Value::Symbol(Symbol::new("jms-selector")),
        Value::described(0x0000_468C_0000_0004, Value::from("JMSType = 'gold'")),
    )];
    let no_local = vec![(
        Value::Symbol(Symbol::new("no-local")),
        Value::described(0x0000_468C_0000_0003, Value::List(Vec::new())),
    )];
    let mut attach = consumer("s", 2, &["topic"]);
    let source = attach.source.as_mut().expect("it has one");
    source.filter = Some([filter.clone(), no_local].concat());
    let link = join(&mut world, attach);
    let source = world.reply(link).source.as_ref().expect("it is accepted");
    assert_eq!(
        source.filter.as_ref(),
        Some(&filter),
        "no-local has no effect"
    );
    publish(&mut world, &typed("gold"));
    publish(&mut world, &typed("silver"));
    assert_eq!(bodies(&mut world, link), 1);
    let mut attach = consumer("bad", 2, &["topic"]);
    let source = attach.source.as_mut().expect("it has one");
    source.filter = Some(vec![(
        Value::Symbol(Symbol::new("jms-selector")),
        Value::described(0x0000_468C_0000_0004, Value::from("JMSType =")),
    )]);
    let error = world.refusal(attach);
    assert_eq!(error.condition.as_str(), "amqp:invalid-field");
}

fn typed(subject: &str) -> Bytes {
    let mut out = BytesMut::new();
    let properties = amqp::message::Properties {
        subject: Some(subject.to_owned()),
        ..amqp::message::Properties::default()
    };
    properties.encode(&mut out);
    out.extend_from_slice(&message("body"));
    out.freeze()
}

#[test]
fn a_detach_keeps_a_durable_subscription_and_a_close_deletes_it() {
    let mut world = world();
    let link = join(&mut world, consumer("s", 2, &["topic"]));
    world.client.detach(link, false, None);
    world.pump();
    assert_eq!(subscriptions(&world), ["s$client1$D"]);
    publish(&mut world, &message("kept"));
    let link = join(&mut world, consumer("s", 2, &["topic"]));
    assert_eq!(bodies(&mut world, link), 1);
    assert_eq!(close(&mut world, link), None);
    assert!(subscriptions(&world).is_empty());
}

#[test]
fn a_subscription_that_is_not_durable_goes_with_its_last_consumer() {
    let mut world = world();
    let first = join(&mut world, consumer("n|volatile1", 0, &["topic", "shared"]));
    let second = join(&mut world, consumer("n|volatile2", 0, &["topic", "shared"]));
    close(&mut world, first);
    assert_eq!(subscriptions(&world), ["n$client1$ND"]);
    world.client.detach(second, false, None);
    world.pump();
    assert!(subscriptions(&world).is_empty());
}

#[test]
fn a_session_or_connection_that_ends_does_not_unsubscribe() {
    let mut world = world();
    let session = world.session();
    world.attach(session, consumer("s", 2, &["topic"]));
    world.client.end(session, None);
    world.pump();
    assert_eq!(subscriptions(&world), ["s$client1$D"]);
    join(&mut world, consumer("s", 2, &["topic"]));
    world.client.close(None);
    world.pump();
    assert_eq!(subscriptions(&world), ["s$client1$D"]);
}

#[test]
fn a_link_without_a_source_finds_the_subscription_and_its_close_deletes_it() {
    let mut world = world();
    let link = join(&mut world, consumer("s", 2, &["topic"]));
    world.client.detach(link, false, None);
    world.pump();
    let link = join(&mut world, unsubscriber("s", &[]));
    let source = world.reply(link).source.clone().expect("it is found");
    assert_eq!(source.address, Some(Value::from("prices")));
    assert_eq!(source.durable, 2);
    assert_eq!(source.expiry_policy, Some(Symbol::new("never")));
    assert_eq!(source.capabilities, symbols(&["topic"]));
    assert_eq!(close(&mut world, link), None);
    assert!(subscriptions(&world).is_empty());
    for missing in ["s", "no/name", &"long".repeat(20)] {
        let error = world.refusal(unsubscriber(missing, &[]));
        assert_eq!(error.condition.as_str(), "amqp:not-found", "{missing}");
    }
}

#[test]
fn a_shared_subscription_of_no_client_is_found_too() {
    let mut world = world();
    let attach = consumer("g|global", 2, &["topic", "shared", "global"]);
    let link = join(&mut world, attach);
    world.client.detach(link, false, None);
    world.pump();
    let link = join(&mut world, unsubscriber("g|global", &["shared", "global"]));
    let source = world.reply(link).source.clone().expect("it is found");
    assert_eq!(source.capabilities, symbols(&["topic", "shared", "global"]));
    assert_eq!(close(&mut world, link), None);
    assert!(subscriptions(&world).is_empty());
}

#[test]
fn a_close_is_answered_with_an_error_while_there_are_other_consumers() {
    let mut world = world();
    let first = join(&mut world, consumer("s", 2, &["topic", "shared"]));
    let second = join(&mut world, consumer("s|2", 2, &["topic", "shared"]));
    let error = close(&mut world, first).expect("it is not done");
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
    publish(&mut world, &message("still"));
    assert_eq!(bodies(&mut world, second), 1);
    assert_eq!(close(&mut world, second), None);
    assert!(subscriptions(&world).is_empty());
}

#[test]
fn the_same_unshared_subscription_is_refused_while_it_has_a_consumer() {
    let mut world = world();
    join(&mut world, consumer("s", 2, &["topic"]));
    let error = world.refusal(consumer("s|2", 2, &["topic"]));
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
    let text = error.description.expect("it has a text");
    assert!(
        text.starts_with("Cannot create a new consumer on subscriber s$client1$D because"),
        "{text}"
    );
}

#[test]
fn capabilities_must_fit_the_entity() {
    let mut world = world();
    let with = |address: &str, capability: &'static str| {
        let mut attach = receiver(address, UNSETTLED);
        attach.source.as_mut().expect("it has one").capabilities = symbols(&[capability]);
        attach
    };
    for (address, capability) in [("prices", "queue"), ("orders", "topic")] {
        let error = world.refusal(with(address, capability));
        assert_eq!(error.condition.as_str(), "amqp:not-allowed", "{address}");
    }
    join(&mut world, with("orders", "queue"));
    join(&mut world, consumer("s", 2, &["topic"]));
    let held = world.refusal(with("prices/Subscriptions/other", "queue"));
    assert_eq!(held.condition.as_str(), "amqp:not-found");
    join(
        &mut world,
        with("prices/Subscriptions/s$client1$D", "queue"),
    );
}

/// A sender with a capability of its target.
fn to(address: &str, capability: &'static str) -> Attach {
    let target = Target {
        address: Some(Value::from(address)),
        capabilities: symbols(&[capability]),
        ..Target::default()
    };
    Attach {
        name: format!("to {address}"),
        target: Some(Box::new(TargetTerminus::Node(target))),
        desired_capabilities: symbols(&["DELAYED_DELIVERY"]),
        ..sender(address)
    }
}

#[test]
fn a_client_provider_makes_entities_by_attaching() {
    let mut world = provider(Login::Plain("root", KEY));
    let link = {
        let session = world.session();
        world.attach(session, to("made", "queue"))
    };
    assert!(world.client.is_attached(link));
    let offered = &world.reply(link).offered_capabilities;
    assert_eq!(*offered, symbols(&["DELAYED_DELIVERY"]));
    let mut consumer = consumer("s", 2, &["topic"]);
    let source = consumer.source.as_mut().expect("it has one");
    source.address = Some(Value::from("made-topic"));
    join(&mut world, consumer);
    let made = world
        .shard
        .broker
        .queue(world.id("made"))
        .expect("it is there");
    assert_eq!(made.settings.auto_delete_on_idle, 600_000);
    let topic = world.shard.broker.queue(world.id("made-topic"));
    let topic = topic.expect("it is there");
    assert_eq!(topic.settings.auto_delete_on_idle, u64::MAX);
    let error = world.refusal(to("not legal", "queue"));
    assert_eq!(error.condition.as_str(), "amqp:not-found");
}

#[test]
fn no_other_client_makes_entities() {
    let mut world = world();
    let error = world.refusal(to("made", "queue"));
    assert_eq!(error.condition.as_str(), "amqp:not-found");
    let mut world = provider(Login::Plain("listener", LISTEN_KEY));
    let mut attach = receiver("made", UNSETTLED);
    attach.source.as_mut().expect("it has one").capabilities = symbols(&["queue"]);
    let error = world.refusal(attach);
    assert_eq!(error.condition.as_str(), "amqp:not-found");
    let error = world.refusal(to("made", "queue"));
    assert_eq!(error.condition.as_str(), "amqp:unauthorized-access");
}

#[test]
fn a_delivery_time_delays_a_message() {
    let mut world = world();
    let link = world.receiver("orders", UNSETTLED, 10);
    let (_, sender) = world.sender("orders");
    let due = i64::try_from(BROKER_START).expect("fits") + 5_000;
    let mut payload = BytesMut::new();
    let annotation = [(
        Value::Symbol(Symbol::new("x-opt-delivery-time")),
        Value::Long(due),
    )];
    amqp::message::encode_map_section(&mut payload, 0x72, &annotation);
    payload.extend_from_slice(&message("later"));
    world.send(sender, &payload);
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    world.advance(4_000);
    assert_eq!(world.received(link).len(), 0);
    world.advance(1_500);
    let received = world.received(link);
    assert_eq!(received.len(), 1);
    assert_eq!(
        received[0].annotation("x-opt-delivery-time"),
        Some(Value::Long(due))
    );
}

#[test]
fn an_administrator_deletes_a_subscription_under_its_consumer() {
    let mut world = world();
    let link = join(&mut world, consumer("s", 2, &["topic"]));
    let path = "prices/Subscriptions/s$client1$D".to_owned();
    world.administer(Order::Remove { path });
    let error = world.detach_error(link).expect("it has no subscription");
    assert_eq!(error.condition.as_str(), "amqp:not-found");
}
