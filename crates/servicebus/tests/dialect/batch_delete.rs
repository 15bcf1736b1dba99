//! `batch-delete-messages`, and peeks that leave the bodies out. (docs/spec/amqp.md#7.3)

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use bytes::{Bytes, BytesMut};

use crate::world::{
    BROKER_START, LISTEN_KEY, Login, Pair, Request, Response, SEND_KEY, World, message,
};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const DELETE: &str = "com.microsoft:batch-delete-messages";
const PEEK: &str = "com.microsoft:peek-message";

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    world
        .call(pair, &Request::operation(operation, body))
        .expect("an answer")
}

/// So long after the start, by the broker's clock.
fn at(elapsed: u64) -> Value {
    Value::Timestamp(i64::try_from(BROKER_START + elapsed).expect("a near moment"))
}

fn delete(world: &mut World, pair: &Pair, count: i32) -> Response {
    let body = vec![
        ("message-count", Value::Int(count)),
        ("enqueued-time-utc", at(1_000_000)),
    ];
    call(world, pair, DELETE, body)
}

fn refused(response: &Response) -> (i32, String) {
    (response.code(), response.condition())
}

fn queue_of(count: usize) -> (World, Pair) {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    for _ in 0..count {
        world.send(sender, &message("x"));
    }
    let pair = world.pair("orders/$management");
    (world, pair)
}

#[test]
fn the_answer_tells_as_an_int_how_many_went_and_204_that_there_were_none() {
    let (mut world, pair) = queue_of(5);
    for expected in [3, 2] {
        let response = delete(&mut world, &pair, 3);
        assert_eq!(response.code(), 200);
        assert_eq!(response.entry("message-count"), Value::Int(expected));
    }
    let response = delete(&mut world, &pair, 3);
    assert_eq!(response.code(), 204);
    assert_eq!(response.body(), Value::Map(Vec::new()));
    assert_eq!(delete(&mut world, &pair, 0).code(), 204);
}

#[test]
fn what_was_enqueued_at_the_named_moment_or_later_stays() {
    let (mut world, pair) = queue_of(1);
    world.advance(1_000);
    world.enqueue("orders", &message("later"));
    let request = |before| {
        vec![
            ("message-count", Value::Int(10)),
            ("enqueued-time-utc", before),
        ]
    };
    let response = call(&mut world, &pair, DELETE, request(at(1_000)));
    assert_eq!(response.entry("message-count"), Value::Int(1));
    let long_ago = request(Value::Timestamp(-5));
    assert_eq!(call(&mut world, &pair, DELETE, long_ago).code(), 204);
}

#[test]
fn locked_messages_stay_and_dead_letters_go_by_their_own_node() {
    let (mut world, pair) = queue_of(2);
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    assert_eq!(
        delete(&mut world, &pair, 10).entry("message-count"),
        Value::Int(1)
    );
    world.dispose(&received, DeliveryState::Rejected(None), false);
    assert_eq!(delete(&mut world, &pair, 10).code(), 204);
    let dead = world.pair("orders/$DeadLetterQueue/$management");
    assert_eq!(
        delete(&mut world, &dead, 10).entry("message-count"),
        Value::Int(1)
    );
}

#[test]
fn a_number_out_of_range_is_refused_by_that_name() {
    let (mut world, pair) = queue_of(1);
    let out_of_range = (400, "com.microsoft:argument-out-of-range".to_owned());
    for count in [-1, i32::MIN, 4_001, i32::MAX] {
        assert_eq!(
            refused(&delete(&mut world, &pair, count)),
            out_of_range,
            "{count}"
        );
    }
    assert_eq!(
        delete(&mut world, &pair, 4_000).entry("message-count"),
        Value::Int(1)
    );
    let standard = |settings: &mut servicebus::Settings| settings.batch_delete = 500;
    let mut world = World::with(Login::Plain("root", crate::world::KEY), standard);
    let pair = world.pair("orders/$management");
    assert_eq!(refused(&delete(&mut world, &pair, 501)), out_of_range);
    assert_eq!(delete(&mut world, &pair, 500).code(), 204);
}

#[test]
fn missing_and_mistaken_arguments_are_refused() {
    let (mut world, pair) = queue_of(1);
    let count = ("message-count", Value::Int(1));
    let before = ("enqueued-time-utc", at(1_000_000));
    for body in [
        vec![],
        vec![count.clone()],
        vec![before.clone()],
        vec![("message-count", Value::from("1")), before.clone()],
        vec![count.clone(), ("enqueued-time-utc", Value::Long(1))],
        vec![count.clone(), ("enqueued-time-utc", Value::from("now"))],
        vec![
            count.clone(),
            before.clone(),
            ("session-id", Value::Bool(true)),
        ],
    ] {
        let response = call(&mut world, &pair, DELETE, body.clone());
        let expected = (400, "com.microsoft:argument-error".to_owned());
        assert_eq!(refused(&response), expected, "{body:?}");
    }
    assert_eq!(
        delete(&mut world, &pair, 1).entry("message-count"),
        Value::Int(1)
    );
}

#[test]
fn deleting_needs_listen() {
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let pair = world.pair("orders/$management");
    let expected = (401, "amqp:unauthorized-access".to_owned());
    assert_eq!(refused(&delete(&mut world, &pair, 1)), expected);
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let pair = world.pair("orders/$management");
    assert_eq!(delete(&mut world, &pair, 1).code(), 204);
}

#[test]
fn a_session_can_be_named_where_there_are_sessions() {
    let mut world = World::new();
    for session in ["a", "b", "a"] {
        world.enqueue("sessions", &dressed(session, "x"));
    }
    let pair = world.pair("sessions/$management");
    let of = |session: &str| {
        vec![
            ("message-count", Value::Int(10)),
            ("enqueued-time-utc", at(1_000_000)),
            ("session-id", Value::from(session)),
        ]
    };
    let response = call(&mut world, &pair, DELETE, of("a"));
    assert_eq!(response.entry("message-count"), Value::Int(2));
    assert_eq!(
        delete(&mut world, &pair, 10).entry("message-count"),
        Value::Int(1)
    );
    world.enqueue("orders", &message("x"));
    let plain = world.pair("orders/$management");
    let response = call(&mut world, &plain, DELETE, of("a"));
    assert_eq!(refused(&response), (400, "amqp:not-allowed".to_owned()));
    assert_eq!(
        delete(&mut world, &plain, 10).entry("message-count"),
        Value::Int(1),
        "nothing had gone"
    );
}

/// A message with properties, application properties and a footer.
fn dressed(session: &str, text: &str) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        group_id: Some(session.to_owned()),
        message_id: Some(Value::from("id")),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let colour = [(Value::from("colour"), Value::from("red"))];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &colour);
    out.extend_from_slice(&message(text));
    let sum = [(Value::Symbol("sum".into()), Value::from("7"))];
    encode_map_section(&mut out, descriptor::FOOTER, &sum);
    out.freeze()
}

fn peeked(world: &mut World, pair: &Pair, omit: Value) -> Vec<Bytes> {
    let body = vec![
        ("message-count", Value::Int(10)),
        ("omit-message-body", omit),
    ];
    let Value::List(messages) = call(world, pair, PEEK, body).entry("messages") else {
        panic!("messages are a list");
    };
    let payload = |entry: &Value| {
        let map = entry.as_map().expect("each in a map");
        match amqp::value::lookup(map, "message") {
            Some(Value::Binary(payload)) => payload.clone(),
            other => panic!("a message is a binary and not {other:?}"),
        }
    };
    messages.iter().map(payload).collect()
}

#[test]
fn a_peek_without_bodies_shows_all_but_them() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    world.enqueue("orders", &dressed("s", &"x".repeat(10_000)));
    world.enqueue("orders", &message("bare"));
    let whole = peeked(&mut world, &pair, Value::Bool(false));
    let bare = peeked(&mut world, &pair, Value::Bool(true));
    assert_eq!((whole.len(), bare.len()), (2, 2));
    for (whole, bare) in whole.iter().zip(&bare) {
        let sections = amqp::message::Sections::scan(whole).expect("a message");
        let others = [&whole[..sections.body.start], &whole[sections.footer]];
        assert_eq!(bare, &others.concat());
    }
}

#[test]
fn whether_bodies_are_left_out_is_told_by_a_boolean() {
    let (mut world, pair) = queue_of(1);
    let body = vec![
        ("message-count", Value::Int(1)),
        ("omit-message-body", Value::from("yes")),
    ];
    let expected = (400, "com.microsoft:argument-error".to_owned());
    let response = call(&mut world, &pair, PEEK, body);
    assert_eq!(refused(&response), expected);
    assert_eq!(peeked(&mut world, &pair, Value::Null).len(), 1);
}
