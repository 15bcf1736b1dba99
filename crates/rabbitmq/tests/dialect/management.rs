//! Queues, exchanges and bindings over the management pair. (docs/spec/rabbitmq.md#5, #6)

use amqp::error::condition;
use amqp::{Attach, DeliveryState, Value};
use broker::{
    FaultEffect, FaultMatch, FaultOperation, FaultRule, InjectedError, NamespaceOrder, Order,
};
use dialect::{Dialect, Subject};
use endpoint::Event;

use crate::client_frames::message;
use crate::management_client::{entry, map, open, request, requests};
use crate::world::{LISTEN_KEY, Login, World};

#[test]
fn rules_05_to_09_a_queue_is_declared_shown_and_deleted() {
    let mut world = World::new();
    let management = open(&mut world);
    let ttl = [("x-message-ttl", Value::Int(60_000))];
    let (status, queue) = management.declare(&mut world, "a%2Fb", &ttl);
    assert_eq!(status, "201", "{queue:?}");
    let expected = map(&[
        ("message_count", Value::Ulong(0)),
        ("consumer_count", Value::Uint(0)),
        ("name", Value::from("a/b")),
        ("vhost", Value::from("/")),
        ("durable", Value::Bool(true)),
        ("auto_delete", Value::Bool(false)),
        ("exclusive", Value::Bool(false)),
        ("type", Value::from("classic")),
        (
            "arguments",
            map(&[
                ("x-message-ttl", Value::Int(60_000)),
                ("x-queue-type", Value::from("classic")),
            ]),
        ),
        ("leader", Value::from("node")),
        ("replicas", Value::Array(vec![Value::from("node")])),
    ]);
    assert_eq!(queue, expected);
    let again = management.declare(&mut world, "a%2Fb", &ttl);
    assert_eq!(again, ("200".to_owned(), expected.clone()));
    let equal = [ttl[0].clone(), ("x-queue-type", Value::from("classic"))];
    let again = management.declare(&mut world, "a%2Fb", &equal);
    assert_eq!(again, ("200".to_owned(), expected.clone()));
    let inequivalent = "inequivalent arg 'x-message-ttl' for queue 'a/b' in vhost '/': received";
    for (given, difference) in [
        (
            vec![],
            "none but current is the value '60000' of type 'long'",
        ),
        (
            vec![("x-message-ttl", Value::Ulong(6))],
            "'6' but current is '60000'",
        ),
    ] {
        let other = management.declare(&mut world, "a%2Fb", &given);
        let text = format!("{inequivalent} {difference}");
        assert_eq!(other, ("409".to_owned(), Value::from(text.as_str())));
    }
    let shown = management.call(&mut world, "GET", "/queues/a%2Fb", None);
    assert_eq!(shown, ("200".to_owned(), expected));
    world.enqueue("/queues/a%2Fb", &message("a"));
    let count = |count| map(&[("message_count", Value::Ulong(count))]);
    let purged = management.call(&mut world, "DELETE", "/queues/a%2Fb/messages", None);
    assert_eq!(purged, ("200".to_owned(), count(1)));
    world.enqueue("/queues/a%2Fb", &message("a"));
    let deleted = management.call(&mut world, "DELETE", "/queues/a%2Fb", None);
    assert_eq!(deleted, ("200".to_owned(), count(1)));
    let again = management.call(&mut world, "DELETE", "/queues/a%2Fb", None);
    assert_eq!(again, ("200".to_owned(), count(0)));
    let missing = management.call(&mut world, "GET", "/queues/a%2Fb", None);
    let text = "queue 'a/b' in vhost '/' not found";
    assert_eq!(missing, ("404".to_owned(), Value::from(text)));
}

#[test]
fn a_queue_of_service_bus_is_shown_as_a_quorum_queue() {
    let mut world = World::new();
    let management = open(&mut world);
    let (status, queue) = management.call(&mut world, "GET", "/queues/orders", None);
    assert_eq!(status, "200");
    assert_eq!(entry(&queue, "type"), &Value::from("quorum"));
    let quorum = ("x-queue-type", Value::from("quorum"));
    let equal = [quorum.clone(), ("x-delivery-limit", Value::Int(2))];
    assert_eq!(management.declare(&mut world, "orders", &equal).0, "200");
    assert_eq!(management.declare(&mut world, "orders", &[]).0, "200");
    let classic = [("x-queue-type", Value::from("classic"))];
    assert_eq!(management.declare(&mut world, "orders", &classic).0, "409");
    let unequal = [quorum, ("x-delivery-limit", Value::Int(3))];
    assert_eq!(management.declare(&mut world, "orders", &unequal).0, "409");
}

#[test]
fn a_queue_expires_when_it_has_had_no_consumer_for_its_time() {
    let mut world = World::new();
    let management = open(&mut world);
    let expires = [("x-expires", Value::Int(1_000))];
    assert_eq!(management.declare(&mut world, "q", &expires).0, "201");
    let status = |world: &mut World| management.call(world, "GET", "/queues/q", None).0;
    world.advance(999);
    assert_eq!(status(&mut world), "200");
    world.advance(1);
    assert_eq!(status(&mut world), "404");
}

#[test]
fn rule_08_bad_requests_are_answered_with_a_text() {
    let mut world = World::new();
    let management = open(&mut world);
    let body = map(&[]);
    for (method, to, body, status) in [
        ("PATCH", "/queues/q", None, "400"),
        ("GET", "/foo", None, "404"),
        ("GET", "/queues", None, "404"),
        ("PUT", "/queues/q", None, "400"),
        ("PUT", "/queues/", Some(&body), "400"),
        ("PUT", "/queues/%zz", Some(&body), "400"),
        ("PUT", "/queues/a%0Ab", Some(&body), "400"),
        ("PUT", "/queues/amq.q", Some(&body), "403"),
        ("PUT", "/queues/Orders", Some(&body), "409"),
        ("DELETE", "/queues/q/messages", None, "404"),
        ("GET", "/bindings", None, "400"),
        ("POST", "/bindings", Some(&body), "400"),
        ("DELETE", "/bindings/src=a", None, "400"),
    ] {
        let (answered, text) = management.call(&mut world, method, to, body);
        assert_eq!(answered, status, "{method} {to}: {text:?}");
        assert!(matches!(text, Value::String(_)), "{text:?}");
    }
    for (key, value) in [
        ("exclusive", Value::Int(1)),
        ("durable", Value::Int(1)),
        ("nosuch", Value::Bool(true)),
    ] {
        let body = map(&[(key, value)]);
        let (status, text) = management.call(&mut world, "PUT", "/queues/q", Some(&body));
        assert_eq!(status, "400", "{key}: {text:?}");
    }
}

#[test]
fn a_request_that_is_no_message_is_answered() {
    let mut world = World::new();
    let management = open(&mut world);
    world.send_as(management.requests, 0, true, b"\x00\x53\x73\xff");
    assert_eq!(world.received(management.responses).len(), 1);
}

#[test]
fn a_response_waits_for_credit() {
    let mut world = World::new();
    let session = world.session();
    let asks = world.attach(session, requests());
    let answers = world.attach(session, crate::management_client::responses());
    for _ in 0..3 {
        world.send_as(asks, 0, true, &request("GET", "/queues/orders", None, true));
    }
    assert_eq!(world.received(answers).len(), 0);
    world.credit(answers, 2, false);
    assert_eq!(world.received(answers).len(), 2);
    world.credit(answers, 1, false);
    assert_eq!(world.received(answers).len(), 1);
}

#[test]
fn a_pair_that_is_not_whole_or_not_marked_is_refused() {
    let mut world = World::new();
    let unmarked = Attach {
        properties: None,
        ..requests()
    };
    assert_eq!(world.refusal(unmarked).condition, condition::INVALID_FIELD);
    let unsettled = Attach {
        snd_settle_mode: None,
        ..requests()
    };
    assert_eq!(world.refusal(unsettled).condition, condition::INVALID_FIELD);
    let session = world.session();
    let asks = world.attach(session, requests());
    world.send_as(asks, 0, true, &request("GET", "/queues/orders", None, true));
    assert_eq!(ended(&world), [condition::PRECONDITION_FAILED]);
}

#[test]
fn a_client_without_the_right_to_configure_loses_its_session() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let management = open(&mut world);
    let (status, _) = management.call(&mut world, "GET", "/queues/orders", None);
    assert_eq!(status, "200", "to look takes no right");
    let body = map(&[]);
    let put = request("PUT", "/queues/q", Some(&body), false);
    world.send_as(management.requests, 0, true, &put);
    assert_eq!(ended(&world), [condition::UNAUTHORIZED_ACCESS]);
}

#[test]
fn a_client_without_a_credential_has_no_management() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let session = world.session();
    world.attach(session, requests());
    assert_eq!(ended(&world), [condition::UNAUTHORIZED_ACCESS]);
}

#[test]
fn a_connection_has_a_bounded_number_of_pairs() {
    let mut world = World::new();
    let session = world.session();
    for number in 0..8 {
        let name = format!("pair {number}");
        let link = world.attach(session, Attach { name, ..requests() });
        assert!(world.client.is_attached(link));
    }
    let error = world.refusal(requests());
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
}

/// The conditions of the sessions that the server has ended.
pub fn ended(world: &World) -> Vec<amqp::Symbol> {
    let events = world.events.iter();
    let ended = events.filter_map(|event| match event {
        Event::Ended {
            error: Some(error), ..
        } => Some(error.condition.clone()),
        _ => None,
    });
    ended.collect()
}

#[test]
fn messages_that_are_locked_are_not_counted() {
    let mut world = World::new();
    let management = open(&mut world);
    world.enqueue("/queues/orders2", &message("a"));
    world.enqueue("/queues/orders2", &message("b"));
    let session = world.session();
    let consumer = world.attach(session, crate::consume::consumer("/queues/orders2"));
    world.credit(consumer, 1, false);
    let counts = |world: &mut World| {
        let (_, queue) = management.call(world, "GET", "/queues/orders2", None);
        let count = |key| entry(&queue, key).clone();
        (count("message_count"), count("consumer_count"))
    };
    assert_eq!(counts(&mut world), (Value::Ulong(1), Value::Uint(1)));
    let received = world.received(consumer);
    world.dispose(&received[0], DeliveryState::Released, true);
    assert_eq!(counts(&mut world), (Value::Ulong(2), Value::Uint(1)));
}

/// One fault rule, for the first operation of that kind.
fn inject(world: &mut World, operation: FaultOperation, effect: FaultEffect) {
    let rule = FaultRule {
        name: "a rule".to_owned(),
        matches: FaultMatch {
            operations: vec![operation],
            times: Some(1),
            ..FaultMatch::default()
        },
        effect,
    };
    world.administer(Order::Namespaces(NamespaceOrder::ReplaceFaults {
        name: "default".to_owned(),
        rules: vec![rule],
    }));
}

#[test]
fn a_deletion_that_a_fault_rule_refuses_is_not_answered_as_done() {
    let mut world = World::new();
    let management = open(&mut world);
    management.declare(&mut world, "q", &[]);
    let refused = FaultEffect::Refuse(InjectedError::ServerBusy);
    inject(&mut world, FaultOperation::DeleteEntity, refused);
    let (status, _) = management.call(&mut world, "DELETE", "/queues/q", None);
    assert_eq!(status, "400");
    let (status, _) = management.call(&mut world, "GET", "/queues/q", None);
    assert_eq!(status, "200");
}

#[test]
fn a_pair_whose_requests_a_fault_rule_has_detached_goes_on_with_another_half() {
    let mut world = World::new();
    let mut management = open(&mut world);
    let session = world.client.session_of(management.responses);
    let session = session.expect("it is attached");
    let detached = FaultEffect::Detach(InjectedError::ServerBusy);
    inject(&mut world, FaultOperation::CreateEntity, detached);
    let body = map(&[("arguments", map(&[]))]);
    let asked = request("PUT", "/queues/q", Some(&body), false);
    world.send(management.requests, &asked);
    assert!(world.detach_error(management.requests).is_some());
    management.requests = world.attach(session, requests());
    let (status, _) = management.declare(&mut world, "q", &[]);
    assert_eq!(status, "201");
}

#[test]
fn a_request_that_is_refused_is_told_with_its_path() {
    let mut world = World::new();
    let management = open(&mut world);
    let (status, _) = management.call(&mut world, "GET", "/queues/none", None);
    assert_eq!(status, "404");
    let refusals = world.server.take_refusals().expect("there is one");
    let [refused] = &refusals.first[..] else {
        panic!("{refusals:?}");
    };
    assert_eq!(refused.subject, Subject::Request);
    assert_eq!(refused.entity.as_deref(), Some("/queues/none"));
}

#[test]
fn a_stream_is_refused() {
    let mut world = World::new();
    let management = open(&mut world);
    let stream = [("x-queue-type", Value::from("stream"))];
    let (status, text) = management.declare(&mut world, "q", &stream);
    assert_eq!(status, "409", "{text:?}");
    assert_eq!(
        management.call(&mut world, "GET", "/queues/q", None).0,
        "404"
    );
}

#[test]
fn arguments_of_another_queue_type_are_conflicts() {
    let mut world = World::new();
    let management = open(&mut world);
    for (queue_type, name, value) in [
        ("classic", "x-delivery-limit", Value::Int(1)),
        ("classic", "x-quorum-initial-group-size", Value::Int(1)),
        ("classic", "x-consumer-disconnected-timeout", Value::Int(1)),
        ("quorum", "x-queue-version", Value::Int(2)),
        ("quorum", "x-max-age", Value::from("1h")),
        ("classic", "x-stream-filter-size-bytes", Value::Int(16)),
    ] {
        let arguments = [("x-queue-type", Value::from(queue_type)), (name, value)];
        let refused = management.declare(&mut world, "typed", &arguments);
        let text = format!(
            "invalid arg '{name}' for queue 'typed' in vhost '/' of queue type \
             rabbit_{queue_type}_queue"
        );
        assert_eq!(refused, ("409".to_owned(), Value::from(text.as_str())));
    }
    let group = [
        ("x-queue-type", Value::from("quorum")),
        ("x-quorum-initial-group-size", Value::Ubyte(1)),
    ];
    let (status, queue) = management.declare(&mut world, "typed", &group);
    assert_eq!(status, "201");
    let arguments = entry(&queue, "arguments");
    assert_eq!(
        entry(arguments, "x-quorum-initial-group-size"),
        &Value::Ubyte(1)
    );
    // Integers are compared by value.
    let wider = [group[0].clone(), (group[1].0, Value::Long(1))];
    assert_eq!(management.declare(&mut world, "typed", &wider).0, "200");
}

#[test]
fn a_declaration_is_a_use_of_a_classic_queue_and_a_look_at_it_is_none() {
    let mut world = World::new();
    let management = open(&mut world);
    let expires = [("x-expires", Value::Int(1_000))];
    for queue in ["declared", "shown"] {
        assert_eq!(management.declare(&mut world, queue, &expires).0, "201");
    }
    world.advance(800);
    assert_eq!(
        management.declare(&mut world, "declared", &expires).0,
        "200"
    );
    let shown = management.call(&mut world, "GET", "/queues/shown", None);
    assert_eq!(shown.0, "200");
    world.advance(700);
    let mut status = |queue| {
        let path = format!("/queues/{queue}");
        management.call(&mut world, "GET", &path, None).0
    };
    assert_eq!(status("declared"), "200");
    assert_eq!(status("shown"), "404");
}
