//! Scheduled messages: by annotation and by operation, and how they are taken back.

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::QueueSettings;
use bytes::{Bytes, BytesMut};

use crate::world::{
    BROKER_START, LISTEN_KEY, Login, Pair, Received, Request, Response, SEND_KEY, World, message,
};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const SCHEDULE: &str = "com.microsoft:schedule-message";
const CANCEL: &str = "com.microsoft:cancel-scheduled-message";
const TIME: &str = "x-opt-scheduled-enqueue-time";

/// The time `milliseconds` after the start, on the broker's own clock.
fn at(milliseconds: i64) -> Value {
    let start = i64::try_from(BROKER_START).expect("fits");
    Value::Timestamp(start + milliseconds)
}

pub(crate) fn scheduled(text: &str, time: Value) -> Bytes {
    let mut payload = BytesMut::new();
    let annotation = [(Value::Symbol(TIME.into()), time)];
    amqp::message::encode_map_section(&mut payload, 0x72, &annotation);
    payload.extend_from_slice(&message(text));
    payload.freeze()
}

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    world
        .call(pair, &Request::operation(operation, body))
        .expect("an answer")
}

fn entry(payload: Bytes) -> Value {
    Value::Map(vec![
        (Value::from("message"), Value::Binary(payload)),
        (Value::from("message-id"), Value::from("id")),
    ])
}

pub(crate) fn schedule(world: &mut World, pair: &Pair, payloads: Vec<Bytes>) -> Response {
    let messages = payloads.into_iter().map(entry).collect();
    let body = vec![("messages", Value::List(messages))];
    call(world, pair, SCHEDULE, body)
}

fn cancel(world: &mut World, pair: &Pair, numbers: Vec<Value>) -> Response {
    let body = vec![("sequence-numbers", Value::Array(numbers))];
    call(world, pair, CANCEL, body)
}

fn numbers(response: &Response) -> Vec<Value> {
    match response.entry("sequence-numbers") {
        Value::Array(numbers) => numbers,
        other => panic!("numbers are an array, not {other:?}"),
    }
}

fn longs(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Long).collect()
}

fn refusal(response: &Response) -> (i32, String) {
    assert_eq!(response.body(), Value::Map(Vec::new()));
    (response.code(), response.condition())
}

pub(crate) fn peeked(world: &mut World, pair: &Pair) -> Vec<Received> {
    let body = vec![("message-count", Value::Int(100))];
    let response = call(world, pair, "com.microsoft:peek-message", body);
    if response.code() == 204 {
        return Vec::new();
    }
    let Value::List(messages) = response.entry("messages") else {
        panic!("messages are a list");
    };
    let payload = |entry: Value| {
        let map = entry.as_map().expect("each in a map").clone();
        match amqp::value::lookup(&map, "message") {
            Some(Value::Binary(payload)) => payload.clone(),
            other => panic!("a message is a binary, not {other:?}"),
        }
    };
    let received = |payload| Received {
        payload,
        ..response.0.clone()
    };
    messages.into_iter().map(payload).map(received).collect()
}

#[test]
fn a_message_with_a_time_ahead_comes_at_that_time_and_still_says_it() {
    let mut world = World::new();
    world.enqueue("orders", &scheduled("later", at(5_000)));
    world.enqueue("orders", &scheduled("now", at(0)));
    let receiver = world.receiver("orders", UNSETTLED, 5);
    let received = world.received(receiver);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].body(), message("now"));
    assert_eq!(received[0].annotation("x-opt-message-state"), None);
    world.advance(4_999);
    assert!(world.received(receiver).is_empty());
    world.advance(1);
    let received = world.received(receiver);
    assert_eq!(received[0].body(), message("later"));
    let annotations = [
        (TIME, at(5_000)),
        ("x-opt-enqueued-time", at(5_000)),
        ("x-opt-sequence-number", Value::Long(3)),
        ("x-opt-message-state", Value::Int(2)),
    ];
    for (key, value) in annotations {
        assert_eq!(received[0].annotation(key), Some(value), "{key}");
    }
}

#[test]
fn scheduling_answers_with_the_numbers_in_order() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let payloads = vec![scheduled("b", at(9_000)), scheduled("a", at(5_000))];
    let response = schedule(&mut world, &pair, payloads);
    assert_eq!(response.code(), 200);
    assert_eq!(numbers(&response), longs(&[1, 2]));
    let one = schedule(&mut world, &pair, vec![scheduled("c", at(9_000))]);
    assert_eq!(numbers(&one), longs(&[3]), "one number is an array too");
    let receiver = world.receiver("orders", UNSETTLED, 5);
    world.advance(9_000);
    let bodies: Vec<_> = world
        .received(receiver)
        .iter()
        .map(Received::body)
        .collect();
    assert_eq!(bodies, [message("a"), message("b"), message("c")]);
}

#[test]
fn a_peek_shows_scheduled_messages_with_their_state() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    schedule(&mut world, &pair, vec![scheduled("a", at(5_000))]);
    let messages = peeked(&mut world, &pair);
    assert_eq!(messages.len(), 1);
    let state = messages[0].annotation("x-opt-message-state");
    assert_eq!(state, Some(Value::Int(2)));
    assert_eq!(messages[0].annotation(TIME), Some(at(5_000)));
    let body = vec![("sequence-numbers", Value::Array(longs(&[1])))];
    let operation = "com.microsoft:receive-by-sequence-number";
    let response = call(&mut world, &pair, operation, body);
    let not_found = (404, "com.microsoft:message-not-found".to_owned());
    assert_eq!(refusal(&response), not_found, "it is not deferred");
}

#[test]
fn a_message_without_a_time_or_with_one_that_has_come_is_enqueued_at_once() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let payloads = vec![message("plain"), scheduled("late", at(0))];
    let response = schedule(&mut world, &pair, payloads);
    assert_eq!(numbers(&response), longs(&[1, 2]));
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(receiver).len(), 2);
}

#[test]
fn a_batch_may_hold_scheduled_messages_among_others() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let mut batch = BytesMut::new();
    for part in [scheduled("later", at(5_000)), message("now")] {
        amqp::encode::descriptor(&mut batch, 0x75);
        amqp::encode::binary(&mut batch, &part);
    }
    world.send_as(sender, 0x8001_3700, false, &batch);
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(receiver).len(), 1);
    world.advance(5_000);
    assert_eq!(world.received(receiver).len(), 1);
}

#[test]
fn cancelling_takes_messages_back_all_or_none() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let payloads = vec![scheduled("a", at(5_000)), scheduled("b", at(5_000))];
    schedule(&mut world, &pair, payloads);
    let not_found = (404, "com.microsoft:message-not-found".to_owned());
    let response = cancel(&mut world, &pair, longs(&[1, 9]));
    assert_eq!(refusal(&response), not_found);
    assert_eq!(peeked(&mut world, &pair).len(), 2);
    let response = cancel(&mut world, &pair, longs(&[1]));
    assert_eq!(response.code(), 200);
    assert_eq!(response.body(), Value::Map(Vec::new()));
    let response = cancel(&mut world, &pair, longs(&[1]));
    assert_eq!(refusal(&response), not_found);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    world.advance(5_000);
    assert_eq!(world.received(receiver).len(), 1);
    let response = cancel(&mut world, &pair, longs(&[2]));
    assert_eq!(refusal(&response), not_found, "it was activated");
}

#[test]
fn numbers_to_cancel_may_be_a_list_of_any_integral_type() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let payloads = vec![scheduled("a", at(5_000)), scheduled("b", at(5_000))];
    schedule(&mut world, &pair, payloads);
    let numbers = Value::List(vec![Value::Int(1), Value::Ulong(2)]);
    let response = call(
        &mut world,
        &pair,
        CANCEL,
        vec![("sequence-numbers", numbers)],
    );
    assert_eq!(response.code(), 200);
    assert!(peeked(&mut world, &pair).is_empty());
}

#[test]
fn a_schedule_request_that_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let sound = entry(scheduled("a", at(5_000)));
    let bad_time = entry(scheduled("a", Value::from("tomorrow")));
    let map = |key: &str, value| Value::Map(vec![(Value::from(key), value)]);
    let not_binary = map("message", Value::from("text"));
    let no_message = map("what", Value::Null);
    let garbage = entry(Bytes::from_static(b"\x07"));
    let argument = "com.microsoft:argument-error";
    let table = [
        (Value::Null, argument),
        (Value::List(Vec::new()), argument),
        (Value::from("messages"), argument),
        (Value::List(vec![sound.clone(), Value::Int(1)]), argument),
        (Value::List(vec![sound.clone(), not_binary]), argument),
        (Value::List(vec![sound.clone(), no_message]), argument),
        (Value::List(vec![sound.clone(), bad_time]), argument),
        (Value::List(vec![sound, garbage]), "amqp:decode-error"),
    ];
    for (messages, condition) in table {
        let response = call(&mut world, &pair, SCHEDULE, vec![("messages", messages)]);
        assert_eq!(refusal(&response), (400, condition.to_owned()));
    }
    assert!(peeked(&mut world, &pair).is_empty());
}

#[test]
fn a_cancel_request_that_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    schedule(&mut world, &pair, vec![scheduled("a", at(5_000))]);
    let many = longs(&(1..20_000).collect::<Vec<_>>());
    let argument = "com.microsoft:argument-error";
    let table = [
        (Value::Null, argument),
        (Value::List(Vec::new()), argument),
        (Value::Long(1), argument),
        (
            Value::List(vec![Value::Long(1), Value::from("2")]),
            argument,
        ),
        (Value::Array(many), "com.microsoft:argument-out-of-range"),
    ];
    for (numbers, condition) in table {
        let body = vec![("sequence-numbers", numbers)];
        let response = call(&mut world, &pair, CANCEL, body);
        assert_eq!(refusal(&response), (400, condition.to_owned()));
    }
    let body = vec![("sequence-numbers", Value::Array(longs(&[1, -1])))];
    let response = call(&mut world, &pair, CANCEL, body);
    let not_found = "com.microsoft:message-not-found".to_owned();
    assert_eq!(refusal(&response), (404, not_found));
    assert_eq!(peeked(&mut world, &pair).len(), 1);
}

#[test]
fn scheduling_meets_the_limits_of_sending() {
    let mut world = World::new();
    let settings = QueueSettings {
        max_size: 400,
        max_message_size: Some(300),
        ..QueueSettings::default()
    };
    world.create("small", settings);
    let pair = world.pair("small/$management");
    let large = scheduled(&"x".repeat(300), at(5_000));
    let response = schedule(&mut world, &pair, vec![message("a"), large]);
    let too_large = (403, "amqp:link:message-size-exceeded".to_owned());
    assert_eq!(refusal(&response), too_large);
    let half = scheduled(&"x".repeat(200), at(5_000));
    let response = schedule(&mut world, &pair, vec![half.clone(), half]);
    let full = (403, "amqp:resource-limit-exceeded".to_owned());
    assert_eq!(refusal(&response), full);
    assert!(peeked(&mut world, &pair).is_empty());
}

#[test]
fn a_dead_letter_queue_takes_no_scheduled_messages() {
    let mut world = World::new();
    let pair = world.pair("orders/$deadletterqueue/$management");
    let response = schedule(&mut world, &pair, vec![scheduled("a", at(5_000))]);
    assert_eq!(refusal(&response), (400, "amqp:not-allowed".to_owned()));
}

#[test]
fn scheduling_and_cancelling_need_the_right_to_send() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let pair = world.pair("orders/$management");
    let unauthorized = (401, "amqp:unauthorized-access".to_owned());
    let response = schedule(&mut world, &pair, vec![scheduled("a", at(5_000))]);
    assert_eq!(refusal(&response), unauthorized);
    let response = cancel(&mut world, &pair, longs(&[1]));
    assert_eq!(refusal(&response), unauthorized);
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let pair = world.pair("orders/$management");
    let response = schedule(&mut world, &pair, vec![scheduled("a", at(5_000))]);
    assert_eq!(response.code(), 200);
    let response = cancel(&mut world, &pair, longs(&[1]));
    assert_eq!(response.code(), 200);
}

#[test]
fn a_duplicate_is_told_the_number_of_the_first() {
    let mut world = World::new();
    let settings = QueueSettings {
        requires_duplicate_detection: true,
        ..QueueSettings::default()
    };
    world.create("once", settings);
    let pair = world.pair("once/$management");
    let with_id = |id: &str| {
        let properties = amqp::message::Properties {
            message_id: Some(Value::from(id)),
            ..Default::default()
        };
        let mut payload = BytesMut::new();
        let annotation = [(Value::Symbol(TIME.into()), at(5_000))];
        amqp::message::encode_map_section(&mut payload, 0x72, &annotation);
        properties.encode(&mut payload);
        payload.extend_from_slice(&message(id));
        payload.freeze()
    };
    let response = schedule(&mut world, &pair, vec![with_id("a"), with_id("b")]);
    assert_eq!(numbers(&response), longs(&[1, 2]));
    let payloads = vec![with_id("c"), with_id("b"), with_id("d"), with_id("a")];
    let response = schedule(&mut world, &pair, payloads);
    assert_eq!(numbers(&response), longs(&[3, 2, 4, 1]));
    assert_eq!(cancel(&mut world, &pair, longs(&[2])).code(), 200);
    assert_eq!(peeked(&mut world, &pair).len(), 3);
}
