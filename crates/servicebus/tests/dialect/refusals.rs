//! Refusals: each is collected for the log once, with the known names and without any secret.

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::QueueSettings;
use dialect::{ClientRefusal, Dialect, ForcedClose, Severity, Subject};

use crate::sessions;
use crate::transactions::answers;
use crate::world::{KEY, LISTEN_KEY, Login, Request, World, message, receiver, sender, token};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const ORDERS: &str = "amqps://host/Orders";

/// What was refused since the last call.
fn taken(world: &mut World) -> Vec<ClientRefusal> {
    let Some(refusals) = world.server.take_refusals() else {
        return Vec::new();
    };
    assert!(!refusals.first.is_empty());
    assert_eq!(refusals.left_out, 0);
    refusals.first
}

/// The same, which must be one.
fn one(world: &mut World) -> ClientRefusal {
    let mut refusals = taken(world);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals.remove(0)
}

/// Compares what a refusal says besides its text.
fn check(
    refused: &ClientRefusal,
    subject: Subject,
    link: Option<&str>,
    entity: Option<&str>,
    condition: &str,
) {
    let found = (
        refused.subject,
        refused.link.as_deref(),
        refused.entity.as_deref(),
        refused.condition.as_str(),
    );
    assert_eq!(found, (subject, link, entity, condition), "{refused:?}");
}

fn anonymous() -> World {
    World::with(Login::Mechanism("ANONYMOUS"), |_| {})
}

#[test]
fn an_attach_that_is_refused_names_its_link_and_what_it_was_for() {
    let mut world = World::new();
    for (attach, entity, condition) in [
        (sender("Nowhere"), "Nowhere", "amqp:not-found"),
        (
            sender("amqps://host/nowhere?a=b"),
            "nowhere?a=b",
            "amqp:not-found",
        ),
        (
            receiver("a/b/$DeadLetterQueue", UNSETTLED),
            "a/b/$DeadLetterQueue",
            "amqp:not-found",
        ),
        (
            sender("Nowhere/$management"),
            "Nowhere/$management",
            "amqp:not-found",
        ),
        (
            sender("orders/$deadletterqueue"),
            "orders/$DeadLetterQueue",
            "amqp:not-allowed",
        ),
        (
            receiver("sessions", UNSETTLED),
            "sessions",
            "amqp:not-allowed",
        ),
    ] {
        let name = attach.name.clone();
        let told = world.refusal(attach);
        let refused = one(&mut world);
        let (link, entity) = (Some(name.as_str()), Some(entity));
        check(&refused, Subject::Attach, link, entity, condition);
        assert_eq!(told.condition, refused.condition);
        assert_eq!(told.description.as_deref(), Some(refused.text.as_str()));
        assert_eq!(refused.severity(), Severity::Warning);
    }
}

#[test]
fn an_attach_without_an_address_names_its_link_alone() {
    let mut world = World::new();
    let mut attach = sender("orders");
    attach.target = None;
    world.refusal(attach);
    let refused = one(&mut world);
    let (subject, link) = (Subject::Attach, Some("sender of orders"));
    check(&refused, subject, link, None, "amqp:invalid-field");
}

#[test]
fn an_attach_without_the_right_is_reported() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    world.refusal(sender("orders"));
    let refused = one(&mut world);
    let condition = "amqp:unauthorized-access";
    let (link, entity) = (Some("sender of orders"), Some("orders"));
    check(&refused, Subject::Attach, link, entity, condition);
    assert!(refused.text.contains("'Send' claim"), "{refused:?}");
}

#[test]
fn links_and_sends_that_are_accepted_are_not_reported() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    world.send(link, &message("fine"));
    assert!(matches!(
        world.outcomes(link)[..],
        [DeliveryState::Accepted]
    ));
    world.client.detach(link, true, None);
    world.pump();
    assert_eq!(taken(&mut world), []);
}

/// The text of the rejection that the client was told last.
fn told(outcome: Option<DeliveryState>) -> String {
    match outcome {
        Some(DeliveryState::Rejected(Some(error))) => {
            error.description.expect("a text").into_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_that_is_rejected_is_reported_as_its_sender_is_told() {
    let mut world = World::with(Login::Plain("root", KEY), |settings| {
        settings.max_message_size = 1_000;
    });
    let large = message(&"x".repeat(2_000));
    let cases: [(&str, &[u8], &str); 3] = [
        ("orders", b"no message", "amqp:decode-error"),
        ("orders", &large, "amqp:link:message-size-exceeded"),
        ("sessions", &message("x"), "amqp:not-allowed"),
    ];
    for (entity, payload, condition) in cases {
        let (_, link) = world.sender(entity);
        world.send(link, payload);
        let told = told(world.outcomes(link).pop());
        let refused = one(&mut world);
        let name = refused.link.clone();
        assert!(name.is_some(), "{refused:?}");
        check(
            &refused,
            Subject::Message,
            name.as_deref(),
            Some(entity),
            condition,
        );
        assert_eq!(refused.text, told);
        assert_eq!(refused.severity(), Severity::Warning);
    }
    // The client hears nothing of this one.
    let (_, link) = world.sender("orders");
    world.send_as(link, 0, true, b"no message");
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Message);
    assert_eq!(refused.condition.as_str(), "amqp:decode-error");
    // It hears of this one by its link, which is in one line.
    world.send_as(link, 0, true, &large);
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Link);
}

#[test]
fn a_message_for_a_full_queue_is_reported() {
    let settings = QueueSettings {
        max_size: 1,
        ..QueueSettings::default()
    };
    let mut world = World::new();
    world.create("full", settings);
    let (_, link) = world.sender("full");
    world.send(link, &message("x"));
    let told = told(world.outcomes(link).pop());
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Message);
    assert_eq!(refused.entity.as_deref(), Some("full"));
    assert_eq!(refused.condition.as_str(), "amqp:resource-limit-exceeded");
    assert_eq!(refused.text, told);
}

#[test]
fn a_settlement_that_is_refused_is_reported_and_a_lost_lock_is_a_notice() {
    let mut world = World::new();
    world.enqueue("orders", &message("x"));
    let link = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(link).pop().expect("a message");
    world.advance(61_000);
    world.dispose(&received, DeliveryState::Accepted, false);
    let told = told(answers(&mut world, link).pop().map(|(state, _)| state));
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Settlement);
    assert_eq!(refused.entity.as_deref(), Some("orders"));
    assert_eq!(
        refused.condition.as_str(),
        "com.microsoft:message-lock-lost"
    );
    assert_eq!(refused.severity(), Severity::Notice);
    assert_eq!(refused.text, told);
}

#[test]
fn a_settled_settlement_that_makes_no_sense_is_reported_though_its_client_hears_nothing() {
    let mut world = World::new();
    world.enqueue("orders", &message("x"));
    let link = world.receiver("orders", UNSETTLED, 1);
    for settled in [false, true] {
        let received = world.received(link).pop().expect("a message");
        let state = DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: false,
            message_annotations: Some(vec![(Value::from("a"), Value::List(Vec::new()))]),
        };
        world.dispose(&received, state, settled);
        let refused = one(&mut world);
        assert_eq!(refused.subject, Subject::Settlement);
        assert_eq!(refused.entity.as_deref(), Some("orders"));
        assert_eq!(refused.severity(), Severity::Warning);
        if !settled {
            world.enqueue("orders", &message("x"));
            world.client.set_credit(link, 1, false);
            world.pump();
        }
    }
}

#[test]
fn a_wrong_key_is_reported_as_a_login_without_name_and_key() {
    for (name, key) in [
        ("root", "not-the-key"),
        ("not-the-key", KEY),
        ("root", LISTEN_KEY),
    ] {
        let mut world = World::with(Login::Plain(name, key), |_| {});
        let refused = one(&mut world);
        let condition = "amqp:unauthorized-access";
        check(&refused, Subject::Login, None, None, condition);
        let shown = format!("{refused:?}");
        for secret in ["not-the-key", KEY, LISTEN_KEY] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[test]
fn a_token_that_is_refused_names_its_audience_and_shows_nothing_of_itself() {
    let mut world = anonymous();
    let pair = world.pair("$cbs");
    let good = token(ORDERS, "root", KEY, 60);
    let signature = good.split("sig=").nth(1).expect("signed")[..20].to_owned();
    let nowhere = "amqps://host/nowhere";
    for (audience, token, condition, text) in [
        (
            ORDERS,
            token(ORDERS, "root", "not-the-key", 60),
            "amqp:unauthorized-access",
            "InvalidSignature",
        ),
        (
            ORDERS,
            token(ORDERS, "not-the-key", KEY, 60),
            "amqp:unauthorized-access",
            "InvalidSignature",
        ),
        (
            ORDERS,
            format!("{good}&sig=again"),
            "com.microsoft:argument-error",
            "MalformedToken",
        ),
        (
            ORDERS,
            "not-the-key".to_owned(),
            "com.microsoft:argument-error",
            "MalformedToken",
        ),
        (
            nowhere,
            token(nowhere, "root", KEY, 60),
            "amqp:not-found",
            "could not be found",
        ),
    ] {
        let request = Request::put_token(audience, &token);
        world.call(&pair, &request).expect("an answer");
        let refused = one(&mut world);
        let entity = audience.rsplit('/').next().map(str::to_lowercase);
        let link = Some("link 2");
        check(&refused, Subject::Token, link, entity.as_deref(), condition);
        assert!(refused.text.contains(text), "{refused:?}");
        let shown = format!("{refused:?}");
        for secret in ["not-the-key", KEY, &signature] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
    world
        .call(&pair, &Request::put_token(ORDERS, &good))
        .expect("an answer");
    assert_eq!(taken(&mut world), []);
}

#[test]
fn a_connection_with_too_many_bad_tokens_is_reported_besides_the_last_of_them() {
    let mut world = anonymous();
    let pair = world.pair("$cbs");
    let bad = Request::put_token(ORDERS, &token(ORDERS, "root", "wrong", 60));
    for _ in 0..31 {
        world.call(&pair, &bad);
        assert_eq!(one(&mut world).subject, Subject::Token);
    }
    world.call(&pair, &bad);
    let [token, connection] = &taken(&mut world)[..] else {
        panic!("the token and the connection");
    };
    assert_eq!(token.subject, Subject::Token);
    let condition = "amqp:unauthorized-access";
    check(connection, Subject::Connection, None, None, condition);
    assert_eq!(connection.severity(), Severity::Warning);
}

#[test]
fn a_request_that_is_not_done_names_its_operation_and_its_entity() {
    let mut world = World::new();
    let pair = world.pair("Orders/$management");
    let renew = "com.microsoft:renew-lock";
    let peek = "com.microsoft:peek-message";
    let lost = vec![("lock-tokens", Value::Array(vec![Value::Uuid([7; 16])]))];
    for (operation, body, known, condition) in [
        (
            "com.microsoft:no-such",
            vec![],
            None,
            "amqp:not-implemented",
        ),
        (
            peek,
            vec![("message-count", Value::from("many"))],
            Some(peek),
            "com.microsoft:argument-error",
        ),
        // The broker's own answer.
        (renew, lost, Some(renew), "com.microsoft:message-lock-lost"),
    ] {
        let request = Request::operation(operation, body);
        let told = world.call(&pair, &request).expect("an answer");
        let refused = one(&mut world);
        let (link, entity) = (Some("link 2"), Some("Orders"));
        check(&refused, Subject::Request, link, entity, condition);
        assert_eq!(refused.operation, known);
        assert_eq!(told.condition(), condition);
        assert_eq!(refused.severity(), Severity::Warning);
    }
}

#[test]
fn a_request_without_a_way_back_is_reported() {
    let mut world = World::new();
    let (_, link) = world.sender("orders/$management");
    let request = Request::operation("com.microsoft:peek-message", vec![]);
    world.send(link, &request.encode());
    let refused = one(&mut world);
    let (link, entity) = (Some("link 1"), Some("orders"));
    check(&refused, Subject::Request, link, entity, "amqp:not-found");
}

#[test]
fn a_number_that_is_not_there_is_a_quiet_refusal_and_an_empty_peek_none() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let request = Request::operation(
        "com.microsoft:receive-by-sequence-number",
        vec![
            ("sequence-numbers", Value::Array(vec![Value::Long(7)])),
            ("receiver-settle-mode", Value::Uint(1)),
        ],
    );
    world.call(&pair, &request).expect("an answer");
    let refused = one(&mut world);
    let (link, entity) = (Some("link 2"), Some("orders"));
    let condition = "com.microsoft:message-not-found";
    check(&refused, Subject::Request, link, entity, condition);
    assert_eq!(refused.severity(), Severity::Notice);
    let nothing = Request::operation(
        "com.microsoft:peek-message",
        vec![
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(1)),
        ],
    );
    assert_eq!(world.call(&pair, &nothing).expect("an answer").code(), 204);
    assert_eq!(taken(&mut world), []);
}

#[test]
fn a_session_that_does_not_come_in_time_is_ordinary_and_one_that_is_held_is_not() {
    let mut world = World::new();
    sessions::seek(&mut world, Value::Null, Some(Value::Uint(1_000)));
    world.advance(1_000);
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Attach);
    assert_eq!(refused.entity.as_deref(), Some("sessions"));
    assert_eq!(refused.condition, "com.microsoft:timeout");
    assert_eq!(refused.severity(), Severity::Expected);
    sessions::hold(&mut world, "held", 1);
    sessions::seek(&mut world, Value::from("held"), None);
    let refused = one(&mut world);
    let condition = "com.microsoft:session-cannot-be-locked";
    assert_eq!(refused.condition, condition);
    assert_eq!(refused.entity.as_deref(), Some("sessions"));
    assert!(refused.link.is_some_and(|link| link.starts_with("seeker")));
}

#[test]
fn a_lock_of_a_session_that_runs_out_is_a_notice() {
    let mut world = World::new();
    sessions::hold(&mut world, "held", 1);
    world.advance(60_500);
    let refused = one(&mut world);
    assert_eq!(refused.subject, Subject::Link);
    assert_eq!(refused.condition, "com.microsoft:session-lock-lost");
    assert_eq!(refused.severity(), Severity::Notice);
}

#[test]
fn links_of_an_entity_that_goes_are_reported_one_by_one() {
    let mut world = World::new();
    world.create("Gone", QueueSettings::default());
    world.sender("Gone");
    world.receiver("Gone", UNSETTLED, 1);
    world.remove("Gone");
    let refusals = taken(&mut world);
    assert_eq!(refusals.len(), 2);
    for (refused, link) in refusals.iter().zip(["link 1", "link 2"]) {
        let (link, entity) = (Some(link), Some("Gone"));
        check(refused, Subject::Link, link, entity, "amqp:not-found");
    }
}

#[test]
fn links_that_outlive_their_token_are_a_notice() {
    let mut world = anonymous();
    let pair = world.pair("$cbs");
    let short = Request::put_token(ORDERS, &token(ORDERS, "root", KEY, 60));
    world.call(&pair, &short).expect("an answer");
    world.sender("orders");
    for _ in 0..10 {
        world.advance(60_000);
    }
    let refused = one(&mut world);
    let (link, entity) = (Some("link 3"), Some("orders"));
    let condition = "amqp:link:detach-forced";
    check(&refused, Subject::Link, link, entity, condition);
    assert_eq!(refused.severity(), Severity::Notice);
}

#[test]
fn what_the_endpoint_refuses_by_itself_is_reported_with_its_entity() {
    let mut world = World::with(Login::Plain("root", KEY), |settings| {
        settings.max_message_size = 1_000;
        settings.endpoint.max_links_per_session = 1;
    });
    let (session, link) = world.sender("orders");
    world.attach(session, sender("orders2"));
    let refused = one(&mut world);
    let condition = "amqp:resource-limit-exceeded";
    let name = Some("sender of orders2");
    check(&refused, Subject::Attach, name, None, condition);
    let outgoing = endpoint::Outgoing {
        tag: b"t",
        settled: true,
        ..endpoint::Outgoing::default()
    };
    let sent = world.client.send(link, &outgoing, &[&[0; 2_000]]);
    sent.expect("there is credit");
    world.pump();
    let refused = one(&mut world);
    let (link, entity) = (Some("link 1"), Some("orders"));
    let condition = "amqp:link:message-size-exceeded";
    check(&refused, Subject::Link, link, entity, condition);
}

#[test]
fn a_connection_that_breaks_the_protocol_is_reported() {
    let mut world = World::new();
    let mut garbage = bytes::BytesMut::from(&b"\x00\x00\x00\x01garbage"[..]);
    world
        .server
        .handle_input(world.clock_reading(), &mut garbage);
    let refused = one(&mut world);
    let condition = "amqp:connection:framing-error";
    check(&refused, Subject::Connection, None, None, condition);
    assert_eq!(refused.severity(), Severity::Warning);
}

#[test]
fn a_mechanism_that_is_not_offered_is_reported() {
    let mut world = World::offline(Login::Plain("root", KEY), |settings| {
        settings.endpoint.sasl_mechanisms = vec!["ANONYMOUS".into()];
    });
    let mut bytes = bytes::BytesMut::from(&amqp::frame::ProtocolHeader::Sasl.bytes()[..]);
    let start = amqp::frame::begin(&mut bytes, amqp::frame::FrameType::Sasl, 0);
    let init = amqp::sasl::SaslFrame::Init {
        mechanism: "PLAIN".into(),
        initial_response: Some(bytes::Bytes::from_static(b"\0root\0not-the-key")),
        hostname: None,
    };
    init.encode(&mut bytes);
    amqp::frame::finish(&mut bytes, start);
    world.server.handle_input(world.clock_reading(), &mut bytes);
    let refused = one(&mut world);
    let condition = "amqp:unauthorized-access";
    check(&refused, Subject::Connection, None, None, condition);
    assert_eq!(refused.text, "the SASL mechanism 'PLAIN' is not offered");
}

#[test]
fn an_idle_connection_is_a_notice_and_the_end_of_the_broker_is_none() {
    let idle = |settings: &mut servicebus::Settings| settings.idle_connection = Some(60_000);
    let mut world = World::with(Login::Plain("root", KEY), idle);
    world.advance(60_000);
    let refused = one(&mut world);
    let condition = "amqp:connection:forced";
    check(&refused, Subject::Connection, None, None, condition);
    assert_eq!(refused.severity(), Severity::Notice);
    let mut world = World::new();
    world.sender("orders");
    world
        .server
        .force_close(world.clock_reading(), ForcedClose::ShutDown);
    world.pump();
    assert_eq!(taken(&mut world), []);
}

#[test]
fn a_connection_that_shows_no_right_in_time_is_reported() {
    let mut world = anonymous();
    for _ in 0..10 {
        world.advance(60_000);
    }
    let refused = one(&mut world);
    let condition = "amqp:unauthorized-access";
    check(&refused, Subject::Connection, None, None, condition);
    assert_eq!(refused.severity(), Severity::Warning);
}

#[test]
fn refusals_that_nobody_takes_are_counted_beyond_a_bound() {
    let mut world = World::new();
    let session = world.session();
    for number in 0..100 {
        let mut attach = sender("nowhere");
        attach.name = number.to_string();
        world.client.attach(session, attach);
    }
    world.pump();
    let refusals = world.server.take_refusals().expect("there are some");
    assert_eq!(refusals.first.len(), 64);
    assert_eq!(refusals.left_out, 36);
    assert!(world.server.take_refusals().is_none());
}
