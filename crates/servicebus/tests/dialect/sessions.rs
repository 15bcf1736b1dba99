//! Sessions: the links that get a session, and the operations of its holder.
//! (docs/spec/amqp.md#3.4)

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error, Map, Source, Symbol, Value};
use broker::{Command, Ensured, QueueSettings, SubscriptionSettings};
use bytes::{Bytes, BytesMut};
use dialect::Dialect;
use endpoint::LinkId;

use crate::world::{Login, Pair, Received, Request, Response, START, World, message, receiver};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const FILTER: &str = "com.microsoft:session-filter";
const CODE: u64 = 0x0000_0013_7000_000C;

/// A message of a session.
pub fn of_session(session: &str, text: &str) -> Bytes {
    let mut out = BytesMut::new();
    let properties = amqp::message::Properties {
        group_id: Some(session.to_owned()),
        ..Default::default()
    };
    properties.encode(&mut out);
    out.extend_from_slice(&message(text));
    out.freeze()
}

pub(crate) fn wish(value: Value, timeout: Option<Value>) -> Attach {
    let source = Source {
        address: Some(Value::from("sessions")),
        filter: Some(vec![(Value::Symbol(Symbol::new(FILTER)), value)]),
        ..Source::default()
    };
    let timeout = timeout.map(|ms| (Value::Symbol("com.microsoft:timeout".into()), ms));
    Attach {
        source: Some(Box::new(source)),
        properties: timeout.map(|timeout| vec![timeout]),
        ..receiver("sessions", UNSETTLED)
    }
}

/// A receiver that comes for a session, in an AMQP session of its own.
pub fn seek(world: &mut World, value: Value, timeout: Option<Value>) -> LinkId {
    let session = world.session();
    let attach = wish(value, timeout);
    let name = format!("seeker {session:?}");
    world.attach(session, Attach { name, ..attach })
}

pub(crate) fn hold(world: &mut World, id: &str, credit: u32) -> LinkId {
    let link = seek(world, Value::from(id), None);
    assert!(
        world.client.is_attached(link),
        "{:?}",
        world.detach_error(link)
    );
    world.credit(link, credit, false);
    link
}

fn granted(world: &World, link: LinkId) -> (Value, Value) {
    let reply = world.reply(link);
    let filter = reply.source.as_ref().unwrap().filter.clone().unwrap();
    let value = amqp::value::lookup(&filter, FILTER).cloned().unwrap();
    let properties = reply.properties.clone().unwrap();
    let until = amqp::value::lookup(&properties, "com.microsoft:locked-until-utc");
    (value, until.cloned().unwrap())
}

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    let operation = format!("com.microsoft:{operation}");
    let request = Request::operation(&operation, body);
    world.call(pair, &request).expect("an answer")
}

fn refused(response: &Response) -> (i32, String) {
    (response.code(), response.condition())
}

fn condition(world: &World, link: LinkId) -> String {
    let error = world.detach_error(link).expect("an error");
    error.condition.to_string()
}

fn bodies(received: &[Received]) -> Vec<Bytes> {
    let texts = received.iter().map(|message| message.body().slice(5..));
    texts.collect()
}

#[test]
fn a_session_is_granted_in_the_form_in_which_it_was_asked_for() {
    let mut world = World::new();
    let ticks = 621_355_968_000_000_000 + i64::try_from(START + 60_000).unwrap() * 10_000;
    let link = hold(&mut world, "a", 0);
    assert_eq!(
        granted(&world, link),
        (Value::from("a"), Value::Long(ticks))
    );
    let link = seek(&mut world, Value::described(CODE, Value::from("b")), None);
    let described = Value::described(CODE, Value::from("b"));
    assert_eq!(granted(&world, link), (described, Value::Long(ticks)));
    let by_symbol = |value| Value::Described(Box::new((Value::Symbol(FILTER.into()), value)));
    world.enqueue("sessions", &of_session("c", "1"));
    let link = seek(&mut world, by_symbol(Value::Null), None);
    assert_eq!(granted(&world, link).0, by_symbol(Value::from("c")));
    world.enqueue("sessions", &of_session("d", "1"));
    let link = seek(&mut world, Value::Null, None);
    assert_eq!(granted(&world, link).0, Value::from("d"));
}

/// (docs/spec/entities.md#18)
#[test]
fn letter_case_makes_no_other_session_and_clients_are_answered_with_their_own() {
    let mut world = World::new();
    for id in ["Order", "ORDER"] {
        world.enqueue("sessions", &of_session(id, "x"));
    }
    let holder = hold(&mut world, "oRDER", 2);
    assert_eq!(granted(&world, holder).0, Value::from("oRDER"));
    let shown = world.received(holder).into_iter().map(|received| {
        let section = received.payload.slice(received.sections().properties);
        amqp::message::Properties::decode(&section)
            .unwrap()
            .group_id
    });
    let shown: Vec<_> = shown.map(Option::unwrap).collect();
    assert_eq!(shown, ["Order", "ORDER"], "as they were sent");
    let refused = seek(&mut world, Value::from("order"), None);
    assert_eq!(
        condition(&world, refused),
        "com.microsoft:session-cannot-be-locked"
    );
    let pair = world.pair("sessions/$management");
    let id = || ("session-id", Value::from("ordeR"));
    let peek = vec![("message-count", Value::Int(9)), id()];
    let peeked = call(&mut world, &pair, "peek-message", peek);
    assert_eq!(crate::management::embedded(&peeked).len(), 2);
    let state = ("session-state", Value::Binary(Bytes::from_static(b"s")));
    for (operation, body) in [
        ("set-session-state", vec![id(), state]),
        ("get-session-state", vec![id()]),
        ("renew-session-lock", vec![id()]),
    ] {
        let response = call(&mut world, &pair, operation, body);
        assert_eq!(response.code(), 200, "{operation}");
    }
    world.client.detach(holder, true, None);
    world.pump();
    let next = seek(&mut world, Value::Null, None);
    assert_eq!(granted(&world, next).0, Value::from("Order"), "as listed");
}

#[test]
fn the_empty_id_is_one_like_any_other() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("", "1"));
    let holder = hold(&mut world, "", 1);
    assert_eq!(granted(&world, holder).0, Value::from(""));
    assert_eq!(bodies(&world.received(holder)), ["1"]);
    let refused = seek(&mut world, Value::from(""), None);
    assert_eq!(
        condition(&world, refused),
        "com.microsoft:session-cannot-be-locked"
    );
    world.client.detach(holder, true, None);
    world.pump();
    let next = seek(&mut world, Value::Null, None);
    assert_eq!(granted(&world, next).0, Value::from(""));
}

#[test]
fn rule_4_the_source_address_of_a_session_receiver_is_echoed_as_it_was_sent() {
    let mut world = World::new();
    let session = world.session();
    let address = Value::from("amqps://host:5671/sessions");
    let mut attach = wish(Value::from("a"), None);
    attach.source.as_mut().unwrap().address = Some(address.clone());
    let link = world.attach(session, attach);
    let reply = world.reply(link);
    assert_eq!(reply.source.as_ref().unwrap().address, Some(address));
    assert_eq!(reply.initial_delivery_count, Some(0));
}

#[test]
fn a_session_comes_in_order_to_its_holder_alone() {
    let mut world = World::new();
    for (session, text) in [("a", "1"), ("b", "2"), ("a", "3")] {
        world.enqueue("sessions", &of_session(session, text));
    }
    let holder = hold(&mut world, "a", 10);
    let other = seek(&mut world, Value::from("a"), None);
    assert_eq!(
        condition(&world, other),
        "com.microsoft:session-cannot-be-locked"
    );
    let text = world
        .detach_error(other)
        .unwrap()
        .description
        .clone()
        .unwrap();
    assert!(text.starts_with("The requested session 'a' cannot be accepted."));
    let received = world.received(holder);
    assert_eq!(bodies(&received), ["1", "3"]);
    assert!(received[0].annotation("x-opt-locked-until").is_some());
    let state = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: None,
    };
    world.dispose(&received[0], state, false);
    let again = world.received(holder);
    assert_eq!(bodies(&again), ["1"]);
    assert_eq!(again[0].header().delivery_count, Some(1));
}

#[test]
fn credit_that_came_with_the_attach_counts_once_the_session_is_granted() {
    let mut world = World::new();
    let session = world.session();
    let link = world.client.attach(session, wish(Value::Null, None));
    world.client.set_credit(link, 5, false);
    world.pump();
    assert!(!world.client.is_attached(link), "nobody has answered");
    world.enqueue("sessions", &of_session("a", "1"));
    assert!(world.client.is_attached(link));
    assert_eq!(bodies(&world.received(link)), ["1"]);
}

#[test]
fn who_waits_for_a_session_is_told_when_the_time_is_up() {
    let mut world = World::new();
    for timeout in [Value::Uint(5_000), Value::Ulong(5_000), Value::Int(5_000)] {
        let link = seek(&mut world, Value::Null, Some(timeout));
        world.advance(4_999);
        assert_eq!(world.detach_error(link), None);
        world.advance(1);
        assert_eq!(condition(&world, link), "com.microsoft:timeout");
    }
    let link = seek(&mut world, Value::Null, None);
    world.advance(64_999);
    assert_eq!(world.detach_error(link), None);
    world.advance(1);
    assert_eq!(condition(&world, link), "com.microsoft:timeout");
    let reply = world.reply(link);
    assert_eq!((reply.source.clone(), reply.target.clone()), (None, None));
}

#[test]
fn a_client_that_gives_up_is_never_lent_a_session() {
    let mut world = World::new();
    let first = seek(&mut world, Value::Null, None);
    world.client.detach(first, true, None);
    world.pump();
    let session = world.session();
    let second = world.attach(session, wish(Value::Null, None));
    world.client.end(session, None);
    world.pump();
    world.enqueue("sessions", &of_session("a", "1"));
    for link in [first, second] {
        assert!(!world.client.is_attached(link));
    }
    let third = seek(&mut world, Value::Null, None);
    assert!(world.client.is_attached(third));
}

#[test]
fn a_session_that_is_granted_while_its_client_gives_up_is_free_again() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    world.broker_stalls = true;
    let first = seek(&mut world, Value::Null, None);
    world.client.detach(first, true, None);
    world.pump();
    world.broker_stalls = false;
    world.pump();
    let second = seek(&mut world, Value::from("a"), None);
    assert!(world.client.is_attached(second));
}

#[test]
fn a_connection_on_which_a_receiver_waits_is_not_idle() {
    let mut world = World::with(Login::Plain("root", crate::world::KEY), |settings| {
        settings.idle_connection = Some(10_000);
    });
    let link = seek(&mut world, Value::Null, Some(Value::Uint(60_000)));
    world.advance(59_000);
    world.enqueue("sessions", &of_session("a", "1"));
    assert!(world.client.is_attached(link));
}

#[test]
fn closing_the_link_frees_the_session_and_leaves_the_delivery_count() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let first = hold(&mut world, "a", 1);
    assert_eq!(world.received(first).len(), 1);
    world.client.detach(first, true, None);
    world.pump();
    let second = hold(&mut world, "a", 1);
    let received = world.received(second);
    assert_eq!(received[0].header().delivery_count, Some(0));
}

#[test]
fn a_session_that_was_not_renewed_is_lost_with_its_link() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let first = hold(&mut world, "a", 1);
    assert_eq!(world.received(first).len(), 1);
    world.advance(60_000);
    assert_eq!(condition(&world, first), "com.microsoft:session-lock-lost");
    let second = hold(&mut world, "a", 1);
    let received = world.received(second);
    assert_eq!(received[0].header().delivery_count, Some(1));
}

#[test]
fn bad_filters_are_refused() {
    let mut world = World::new();
    let long = "x".repeat(129);
    for (value, expected) in [
        (
            Value::from(long.as_str()),
            "com.microsoft:argument-out-of-range",
        ),
        (Value::Int(1), "com.microsoft:argument-error"),
        (
            Value::described(CODE, Value::List(Vec::new())),
            "com.microsoft:argument-error",
        ),
    ] {
        let link = seek(&mut world, value, None);
        assert_eq!(condition(&world, link), expected);
    }
    for timeout in [Value::Int(-1), Value::from("soon")] {
        let link = seek(&mut world, Value::Null, Some(timeout));
        assert_eq!(condition(&world, link), "com.microsoft:argument-error");
    }
    let long = "ö".repeat(128);
    let link = seek(&mut world, Value::from(long.as_str()), None);
    assert!(world.client.is_attached(link), "characters are counted");
}

#[test]
fn a_message_without_a_session_is_refused_and_so_is_its_batch() {
    let mut world = World::new();
    let (_, link) = world.sender("sessions");
    world.send(link, &message("1"));
    let outcomes = world.outcomes(link);
    let [DeliveryState::Rejected(Some(error))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.condition, "amqp:not-allowed");
}

#[test]
fn a_dead_letter_of_a_session_is_received_without_one() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder);
    world.dispose(&received[0], DeliveryState::Rejected(None), false);
    let dead = world.receiver("sessions/$DeadLetterQueue", UNSETTLED, 1);
    assert_eq!(bodies(&world.received(dead)), ["1"]);
}

#[test]
fn a_session_is_renewed_by_its_holder() {
    let mut world = World::new();
    let link = hold(&mut world, "a", 1);
    let pair = world.pair("sessions/$management");
    world.advance(30_000);
    let body = || vec![("session-id", Value::from("a"))];
    let response = call(&mut world, &pair, "renew-session-lock", body());
    assert_eq!(response.code(), 200);
    let until = i64::try_from(START + 90_000).unwrap();
    assert_eq!(response.entry("expiration"), Value::Timestamp(until));
    world.advance(59_999);
    assert_eq!(world.detach_error(link), None);
    world.advance(1);
    let response = call(&mut world, &pair, "renew-session-lock", body());
    let lost = (410, "com.microsoft:session-lock-lost".to_owned());
    assert_eq!(refused(&response), lost);
}

#[test]
fn a_state_is_kept_as_it_was_set() {
    let mut world = World::new();
    hold(&mut world, "a", 0);
    let pair = world.pair("sessions/$management");
    let get = |world: &mut World| {
        let body = vec![("session-id", Value::from("a"))];
        let response = call(world, &pair, "get-session-state", body);
        assert_eq!(response.code(), 200);
        response.entry("session-state")
    };
    let set = |world: &mut World, state: Value| {
        let body = vec![("session-id", Value::from("a")), ("session-state", state)];
        call(world, &pair, "set-session-state", body)
    };
    assert_eq!(get(&mut world), Value::Null);
    for state in [vec![0, 255, 1], Vec::new(), vec![7; 262_144]] {
        let state = Value::Binary(Bytes::from(state));
        let response = set(&mut world, state.clone());
        assert_eq!(
            (response.code(), response.body()),
            (200, Value::Map(Map::new()))
        );
        // The empty state is none.
        let expected = match &state {
            Value::Binary(state) if state.is_empty() => Value::Null,
            state => state.clone(),
        };
        assert_eq!(get(&mut world), expected);
    }
    let large = set(&mut world, Value::Binary(Bytes::from(vec![7; 262_145])));
    let out_of_range = (400, "com.microsoft:argument-out-of-range".to_owned());
    assert_eq!(refused(&large), out_of_range);
    let wrong = set(&mut world, Value::Int(3));
    assert_eq!(
        refused(&wrong),
        (400, "com.microsoft:argument-error".to_owned())
    );
    assert_eq!(set(&mut world, Value::Null).code(), 200);
    assert_eq!(get(&mut world), Value::Null);
}

#[test]
fn a_state_at_a_subscription_is_as_large_as_a_message_of_its_topic() {
    let mut world = World::new();
    world.ensure(Ensured::Topic {
        path: "small".to_owned(),
        settings: QueueSettings {
            max_message_size: Some(1_000),
            ..QueueSettings::default()
        },
    });
    let with_sessions = QueueSettings {
        requires_session: true,
        ..QueueSettings::default()
    };
    world.ensure(Ensured::Subscription {
        topic: "small".to_owned(),
        name: "a".to_owned(),
        settings: Box::new(SubscriptionSettings {
            queue: with_sessions,
            ..SubscriptionSettings::default()
        }),
        rules: None,
    });
    let path = "small/Subscriptions/a";
    let mut attach = wish(Value::from("s"), None);
    if let Some(source) = &mut attach.source {
        source.address = Some(Value::from(path));
    }
    let session = world.session();
    let holder = world.attach(session, attach);
    assert!(world.client.is_attached(holder));
    let pair = world.pair("small/Subscriptions/a/$management");
    for (size, code) in [(1_000, 200), (1_001, 400)] {
        let state = Value::Binary(Bytes::from(vec![7; size]));
        let body = vec![("session-id", Value::from("s")), ("session-state", state)];
        let response = call(&mut world, &pair, "set-session-state", body);
        assert_eq!(response.code(), code, "{size}");
    }
}

#[test]
fn what_only_a_holder_may_do_is_refused_to_others() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().unwrap();
    let token = received.delivery_annotation("x-opt-lock-token").unwrap();
    let pair = world.pair("sessions/$management");
    let lost = (410, "com.microsoft:session-lock-lost".to_owned());
    let settle = |session: &str| {
        vec![
            ("session-id", Value::from(session)),
            ("disposition-status", Value::from("completed")),
            ("lock-tokens", Value::Array(vec![token.clone()])),
        ]
    };
    let of_b = || ("session-id", Value::from("b"));
    let numbers = ("sequence-numbers", Value::Array(vec![Value::Long(1)]));
    let bad: Vec<(&str, Vec<(&str, Value)>)> = vec![
        ("renew-session-lock", vec![of_b()]),
        ("get-session-state", vec![of_b()]),
        ("set-session-state", vec![of_b()]),
        ("update-disposition", settle("b")),
        ("receive-by-sequence-number", vec![of_b(), numbers]),
    ];
    for (operation, body) in bad {
        let response = call(&mut world, &pair, operation, body);
        assert_eq!(refused(&response), lost, "{operation}");
    }
    assert_eq!(
        call(&mut world, &pair, "update-disposition", settle("a")).code(),
        200
    );
    let again = call(&mut world, &pair, "update-disposition", settle("a"));
    // It is the message that is lost: its session is held.
    let gone = (410, "com.microsoft:message-lock-lost".to_owned());
    assert_eq!(refused(&again), gone);
}

#[test]
fn a_session_that_is_not_to_be_exclusive_is_declined_in_the_words_that_dotnet_knows() {
    let mut world = World::new();
    let session = world.session();
    let key = Value::Symbol(Symbol::new("com.microsoft:non-exclusive-session-filter"));
    let value = Value::List(vec![Value::from("a"), Value::Uuid([1; 16])]);
    let source = Source {
        address: Some(Value::from("sessions")),
        filter: Some(vec![(key, value)]),
        ..Source::default()
    };
    let attach = Attach {
        source: Some(Box::new(source)),
        ..receiver("sessions", UNSETTLED)
    };
    let link = world.attach(session, attach);
    let refusal = world.detach_error(link).expect("it is declined");
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let text = refusal.description.as_deref().expect("a description");
    let (_, tail) = text.rsplit_once('\'').expect("a quoted name");
    assert!(tail.contains("invalid filter type"), "{text}");
}

#[test]
fn messages_of_a_session_are_locked_with_it() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    world.enqueue("sessions", &of_session("a", "2"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().unwrap();
    let end_of_time = Some(Value::Timestamp(253_402_300_799_999));
    assert_eq!(received.annotation("x-opt-locked-until"), end_of_time);
    let pair = world.pair("sessions/$management");
    let peek = vec![
        ("from-sequence-number", Value::Long(0)),
        ("message-count", Value::Int(5)),
    ];
    let response = call(&mut world, &pair, "peek-message", peek);
    let shown = crate::management::embedded(&response);
    let until = |at: usize| shown[at].1.annotation("x-opt-locked-until");
    assert_eq!(until(0), end_of_time);
    assert_eq!(until(1), Some(Value::Timestamp(-62_135_596_800_000)));
}

#[test]
fn an_idle_holder_is_detached_half_a_second_after_its_lock_has_ended() {
    let mut world = World::new();
    let idle = hold(&mut world, "a", 1);
    world.advance(60_499);
    assert!(world.client.is_attached(idle));
    let seeker = seek(&mut world, Value::from("a"), None);
    let refusal = world.detach_error(seeker).expect("it is held still");
    assert_eq!(refusal.condition, "com.microsoft:session-cannot-be-locked");
    world.advance(1);
    let lost = world.detach_error(idle).expect("its time is over");
    assert_eq!(lost.condition, "com.microsoft:session-lock-lost");
    hold(&mut world, "a", 1);
}

#[test]
fn a_holder_with_an_unsettled_message_is_detached_when_its_lock_ends() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    assert_eq!(world.received(holder).len(), 1);
    world.advance(59_999);
    assert!(world.client.is_attached(holder));
    world.advance(1);
    let lost = world.detach_error(holder).expect("its time is up");
    assert_eq!(lost.condition, "com.microsoft:session-lock-lost");
    hold(&mut world, "a", 1);
}

#[test]
fn operations_on_sessions_check_their_arguments() {
    let mut world = World::new();
    let sessions = world.pair("sessions/$management");
    let orders = world.pair("orders/$management");
    let session = |id: &str| ("session-id", Value::from(id));
    let argument = (400, "com.microsoft:argument-error".to_owned());
    let range = (400, "com.microsoft:argument-out-of-range".to_owned());
    let not_allowed = (400, "amqp:not-allowed".to_owned());
    let long = "x".repeat(129);
    for operation in [
        "renew-session-lock",
        "get-session-state",
        "set-session-state",
    ] {
        let response = call(&mut world, &sessions, operation, Vec::new());
        assert_eq!(refused(&response), argument);
        let number = vec![("session-id", Value::Int(1))];
        let response = call(&mut world, &sessions, operation, number);
        assert_eq!(refused(&response), argument);
        let response = call(&mut world, &sessions, operation, vec![session(&long)]);
        assert_eq!(refused(&response), range);
        let response = call(&mut world, &orders, operation, vec![session("a")]);
        assert_eq!(refused(&response), not_allowed);
    }
    for (key, value) in [
        ("skip", Value::Int(-1)),
        ("top", Value::Int(-1)),
        ("last-updated-time", Value::from("yesterday")),
    ] {
        let response = call(
            &mut world,
            &sessions,
            "get-message-sessions",
            vec![(key, value)],
        );
        assert_eq!(refused(&response), argument, "{key}");
    }
    let response = call(&mut world, &orders, "get-message-sessions", Vec::new());
    assert_eq!(refused(&response), not_allowed);
}

#[test]
fn sessions_are_listed_a_page_at_a_time() {
    let mut world = World::new();
    let pair = world.pair("sessions/$management");
    let page = |world: &mut World, since: i64, skip: i32| {
        let body = vec![
            ("last-updated-time", Value::Timestamp(since)),
            ("skip", Value::Int(skip)),
            ("top", Value::Int(2)),
        ];
        call(world, &pair, "get-message-sessions", body)
    };
    let ids = |response: &Response| match response.entry("sessions-ids") {
        Value::Array(ids) => ids,
        other => panic!("{other:?}"),
    };
    let all = 253_402_300_800_000;
    assert_eq!(page(&mut world, all, 0).code(), 204);
    for session in ["a", "b"] {
        world.enqueue("sessions", &of_session(session, "1"));
    }
    hold(&mut world, "c", 0);
    let state = vec![
        ("session-id", Value::from("c")),
        ("session-state", Value::Binary(Bytes::from_static(b"x"))),
    ];
    call(&mut world, &pair, "set-session-state", state);
    let first = page(&mut world, all, 0);
    assert_eq!((first.code(), first.entry("skip")), (200, Value::Int(2)));
    let second = page(&mut world, all, 2);
    assert_eq!(second.entry("skip"), Value::Int(3));
    let mut found = [ids(&first), ids(&second)].concat();
    found.sort_by_key(|id| format!("{id:?}"));
    assert_eq!(found, ["a", "b", "c"].map(Value::from));
    assert_eq!(page(&mut world, all, 3).code(), 204);
    assert_eq!(ids(&page(&mut world, 0, 0)), [Value::from("c")]);
    assert_eq!(page(&mut world, all - 1_001, 0).code(), 204);
}

#[test]
fn a_session_is_browsed_by_its_id() {
    let mut world = World::new();
    for (session, text) in [("a", "1"), ("b", "2"), ("a", "3")] {
        world.enqueue("sessions", &of_session(session, text));
    }
    let pair = world.pair("sessions/$management");
    let mut count = |session: Option<&str>| {
        let mut body = vec![
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(10)),
        ];
        body.extend(session.map(|session| ("session-id", Value::from(session))));
        let response = call(&mut world, &pair, "peek-message", body);
        match response.code() {
            204 => 0,
            _ => match response.entry("messages") {
                Value::List(messages) => messages.len(),
                other => panic!("{other:?}"),
            },
        }
    };
    assert_eq!(count(Some("a")), 2);
    assert_eq!(count(Some("b")), 1);
    assert_eq!(count(Some("c")), 0);
    assert_eq!(count(None), 3);
}

#[test]
fn deferred_messages_come_to_the_holder_of_their_session() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().unwrap();
    let defer = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: None,
    };
    world.dispose(&received, defer, false);
    let pair = world.pair("sessions/$management");
    let body = vec![
        ("session-id", Value::from("a")),
        ("sequence-numbers", Value::Array(vec![Value::Long(1)])),
        ("receiver-settle-mode", Value::Uint(1)),
    ];
    let response = call(
        &mut world,
        &pair,
        "receive-by-sequence-number",
        body.clone(),
    );
    assert_eq!(response.code(), 200);
    world.client.detach(holder, true, None);
    world.pump();
    let response = call(&mut world, &pair, "receive-by-sequence-number", body);
    let lost = (410, "com.microsoft:session-lock-lost".to_owned());
    assert_eq!(refused(&response), lost);
}

#[test]
fn a_message_of_a_session_is_not_renewed_alone() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().unwrap();
    let token = received.delivery_annotation("x-opt-lock-token").unwrap();
    let pair = world.pair("sessions/$management");
    let body = vec![("lock-tokens", Value::Array(vec![token]))];
    let response = call(&mut world, &pair, "renew-lock", body);
    assert_eq!(refused(&response), (400, "amqp:not-allowed".to_owned()));
}

/// What the broker learns of a connection's end while it holds a session.
fn last_words(end: impl FnOnce(&mut World)) -> Vec<&'static str> {
    let mut world = World::new();
    hold(&mut world, "A", 1);
    world.commands.clear();
    end(&mut world);
    world.pump();
    let commands = world.commands.iter();
    let words = commands.map(|command| match command {
        Command::Detach { .. } => "detach",
        Command::Disconnect { .. } => "disconnect",
        other => panic!("{other:?}"),
    });
    words.collect()
}

/// (docs/spec/entities.md#10)
#[test]
fn a_connection_that_closes_in_order_closes_its_links_and_a_lost_one_does_not() {
    let closed = last_words(|world| world.client.close(None));
    assert_eq!(closed, ["detach", "disconnect"]);
    let closed = last_words(|world| {
        let error = Error::new(
            amqp::error::condition::CONNECTION_FORCED,
            "The program ends.",
        );
        world.client.close(Some(error));
    });
    assert_eq!(closed, ["detach", "disconnect"]);
    let lost = last_words(|world| world.server.handle_eof(world.clock_reading()));
    assert_eq!(lost, ["disconnect"]);
    let silent = last_words(|world| {
        world.client_stalls = true;
        let far = dialect::ClockReading {
            mono: endpoint::Mono(10_000_000),
            ..world.clock_reading()
        };
        world.server.handle_timeout(far);
    });
    assert_eq!(silent, ["disconnect"]);
}
