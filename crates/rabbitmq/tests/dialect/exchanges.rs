//! Exchanges and bindings: declared, bound, published to. (docs/spec/rabbitmq.md#6, #8, #9)

use amqp::error::condition;
use amqp::message::decode_map_section;
use amqp::{DeliveryState, Value};
use broker::{Ensured, EntityError, EntityPath, Order, QueueSettings};

use crate::client_frames::{message, sender};
use crate::consume::consumer;
use crate::management_client::{Management, entry, map, open};
use crate::world::World;

fn bind(
    management: &Management,
    world: &mut World,
    destination: (&str, &str),
    key: &str,
    arguments: &[(&str, Value)],
) -> (String, Value) {
    let body = map(&[
        ("source", Value::from("events")),
        (destination.0, Value::from(destination.1)),
        ("binding_key", Value::from(key)),
        ("arguments", map(arguments)),
    ]);
    management.call(world, "POST", "/bindings", Some(&body))
}

/// An exchange `events` of a type.
fn declare(management: &Management, world: &mut World, kind: &str) -> (String, Value) {
    let body = map(&[("type", Value::from(kind))]);
    management.call(world, "PUT", "/exchanges/events", Some(&body))
}

#[test]
fn a_message_reaches_the_queues_of_matching_bindings_with_its_route() {
    let mut world = World::new();
    let management = open(&mut world);
    assert_eq!(declare(&management, &mut world, "topic").0, "204");
    for key in ["orders.#", "#.new"] {
        let bound = bind(
            &management,
            &mut world,
            ("destination_queue", "orders2"),
            key,
            &[],
        );
        assert_eq!(bound.0, "204", "{bound:?}");
    }
    let session = world.session();
    let link = world.attach(session, sender("/exchanges/events/orders.new"));
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
    let link = world.attach(session, sender("/exchanges/events/other"));
    world.send(link, &message("b"));
    assert_eq!(world.outcomes(link), [DeliveryState::Released]);
    let reader = world.attach(session, consumer("/queues/orders2"));
    world.credit(reader, 5, false);
    let received = world.received(reader);
    assert_eq!(received.len(), 1, "once, by however many bindings");
    let sections = received[0].sections();
    let annotations = received[0].payload.slice(sections.message_annotations);
    let annotations = decode_map_section(&annotations).expect("annotations");
    let expected = [("x-exchange", "events"), ("x-routing-key", "orders.new")];
    let expected = expected.map(|(key, value)| (Value::Symbol(key.into()), Value::from(value)));
    assert_eq!(annotations, expected);
    assert!(received[0].payload.ends_with(&message("a")));
}

#[test]
fn a_binding_is_listed_and_removed_by_its_place() {
    let mut world = World::new();
    let management = open(&mut world);
    declare(&management, &mut world, "headers");
    let queue = ("destination_queue", "orders");
    let arguments = [("n", Value::Int(1)), ("x-match", Value::from("any"))];
    for arguments in [&arguments[..], &[]] {
        assert_eq!(
            bind(&management, &mut world, queue, "a/b", arguments).0,
            "204"
        );
    }
    let query = "/bindings?src=events&dstq=orders&key=a%2Fb";
    let list = |world: &mut World| match management.call(world, "GET", query, None) {
        (status, Value::List(list)) if status == "200" => list,
        other => panic!("{other:?}"),
    };
    let listed = list(&mut world);
    assert_eq!(listed.len(), 2);
    assert_eq!(entry(&listed[0], "arguments"), &map(&arguments));
    for binding in listed {
        let location = entry(&binding, "location").as_text().expect("a location");
        assert!(location.starts_with("/bindings/src=events;dstq=orders;key=a%2Fb;args="));
        for _ in 0..2 {
            let removed = management.call(&mut world, "DELETE", location, None);
            assert_eq!(removed, ("204".to_owned(), Value::Null));
        }
    }
    assert_eq!(list(&mut world), []);
}

#[test]
fn refusals_have_rabbitmqs_status_and_text() {
    let mut world = World::new();
    let management = open(&mut world);
    let call = |world: &mut World, method: &str, to: &str, body: &[(&str, Value)]| {
        let (status, text) = management.call(world, method, to, Some(&map(body)));
        (status, text.as_text().unwrap_or_default().to_owned())
    };
    let kind = |kind: &'static str| [("type", Value::from(kind))];
    let mut check = |method: &str, to: &str, body: &[(&str, Value)], status: &str, text: &str| {
        let expected = (status.to_owned(), text.to_owned());
        assert_eq!(
            call(&mut world, method, to, body),
            expected,
            "{method} {to}"
        );
    };
    check("PUT", "/exchanges/x", &kind("direct"), "204", "");
    check("PUT", "/exchanges/x", &kind("direct"), "204", "");
    check("PUT", "/exchanges/amq.topic", &kind("topic"), "204", "");
    check(
        "PUT",
        "/exchanges/x",
        &kind("t"),
        "400",
        "invalid exchange type 't'",
    );
    let text = "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but \
                current is 'direct'";
    check("PUT", "/exchanges/x", &kind("fanout"), "409", text);
    let text = "exchange 'amq.x' in vhost '/' starts with reserved prefix 'amq.'";
    check("PUT", "/exchanges/amq.x", &kind("topic"), "403", text);
    let text = "operation not permitted on the default exchange";
    check("PUT", "/exchanges/", &kind("direct"), "403", text);
    check("DELETE", "/exchanges/none", &[], "204", "");
    let binding = |source: &'static str, queue: &'static str| {
        [
            ("source", Value::from(source)),
            ("destination_queue", Value::from(queue)),
            ("binding_key", Value::from("k")),
            ("arguments", map(&[])),
        ]
    };
    let text = "no exchange 'none' in vhost '/'";
    check("POST", "/bindings", &binding("none", "orders"), "400", text);
    let text = "no queue 'none' in vhost '/'";
    check("POST", "/bindings", &binding("x", "none"), "400", text);
}

#[test]
fn an_exchange_that_goes_releases_and_detaches() {
    let mut world = World::new();
    let management = open(&mut world);
    declare(&management, &mut world, "fanout");
    let session = world.session();
    let link = world.attach(session, sender("/exchanges/events"));
    management.call(&mut world, "DELETE", "/exchanges/events", None);
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Released]);
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, condition::NOT_FOUND);
}

#[test]
fn a_name_is_that_of_an_exchange_or_of_a_topic() {
    let mut world = World::new();
    let management = open(&mut world);
    let make = |path: &str| Order::Create {
        path: EntityPath::Topic(path.to_owned()),
        description: Box::default(),
        rules: None,
    };
    world.administer(make("News"));
    let body = map(&[]);
    let (status, text) = management.call(&mut world, "PUT", "/exchanges/news", Some(&body));
    assert_eq!(status, "409", "{text:?}");
    let text = text.as_text().expect("a text");
    assert!(text.contains("exchange 'news'"), "{text}");
    assert_eq!(declare(&management, &mut world, "topic").0, "204");
    for name in ["events", "Events", "amq.topic"] {
        let error = world.administered(make(name)).unwrap_err();
        let expected = EntityError::ExchangeExists(name.to_owned());
        assert_eq!(error, expected);
        let topic = Ensured::Topic {
            path: name.to_owned(),
            settings: QueueSettings::default(),
        };
        let error = world.administered(Order::ensure(vec![topic])).unwrap_err();
        assert_eq!(*error.cause(), expected);
    }
    // A queue may have the name of an exchange.
    let (status, _) = management.declare(&mut world, "events", &[]);
    assert_eq!(status, "201");
}
