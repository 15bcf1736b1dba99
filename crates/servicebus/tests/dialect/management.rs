//! `$management`: operations by request and response.

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::{Command, Output, RequestError};
use bytes::Bytes;
use dialect::Dialect;
use endpoint::Outgoing;

use crate::world::{
    KEY, LISTEN_KEY, Login, Pair, Received, Request, Response, SEND_KEY, START, World, message,
};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const PEEK: &str = "com.microsoft:peek-message";
const RENEW: &str = "com.microsoft:renew-lock";
const UPDATE: &str = "com.microsoft:update-disposition";
const BY_NUMBER: &str = "com.microsoft:receive-by-sequence-number";

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    world
        .call(pair, &Request::operation(operation, body))
        .expect("an answer")
}

fn peek(world: &mut World, pair: &Pair, from: i64, count: i32) -> Response {
    let body = vec![
        ("from-sequence-number", Value::Long(from)),
        ("message-count", Value::Int(count)),
    ];
    call(world, pair, PEEK, body)
}

/// The messages embedded in an answer, each with its map.
pub(crate) fn embedded(response: &Response) -> Vec<(amqp::Map, Received)> {
    let Value::List(messages) = response.entry("messages") else {
        panic!("messages are a list");
    };
    let message = |entry: Value| {
        let map = entry.as_map().expect("each in a map").clone();
        let Some(Value::Binary(payload)) = amqp::value::lookup(&map, "message").cloned() else {
            panic!("a message is a binary");
        };
        (
            map,
            Received {
                payload,
                ..response.0.clone()
            },
        )
    };
    messages.into_iter().map(message).collect()
}

fn token(received: &Received) -> Value {
    received
        .delivery_annotation("x-opt-lock-token")
        .expect("a token")
}

fn locked() -> (World, Pair, Received) {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    let pair = world.pair("orders/$management");
    (world, pair, received)
}

fn deferred() -> (World, Pair) {
    let (mut world, pair, received) = locked();
    let state = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: true,
        message_annotations: None,
    };
    world.dispose(&received, state, false);
    (world, pair)
}

fn by_number(world: &mut World, pair: &Pair, numbers: &[i64], mode: Value) -> Response {
    let numbers = Value::Array(numbers.iter().copied().map(Value::Long).collect());
    call(
        world,
        pair,
        BY_NUMBER,
        vec![
            ("sequence-numbers", numbers),
            ("receiver-settle-mode", mode),
        ],
    )
}

fn update(
    world: &mut World,
    pair: &Pair,
    status: &str,
    tokens: Vec<Value>,
    more: Vec<(&str, Value)>,
) -> Response {
    let mut body = vec![
        ("disposition-status", Value::from(status)),
        ("lock-tokens", Value::Array(tokens)),
    ];
    body.extend(more);
    call(world, pair, UPDATE, body)
}

#[test]
fn rule_10_an_answer_has_int_string_and_symbol_for_its_status() {
    let (mut world, pair, _) = locked();
    let response = peek(&mut world, &pair, 1, 1);
    assert_eq!(response.field("statusCode"), Some(Value::Int(200)));
    assert!(matches!(
        response.field("statusDescription"),
        Some(Value::String(_))
    ));
    assert_eq!(response.field("errorCondition"), None);
    let response = call(&mut world, &pair, "com.microsoft:what", Vec::new());
    assert_eq!(response.field("statusCode"), Some(Value::Int(501)));
    assert_eq!(
        response.field("errorCondition"),
        Some(Value::Symbol("amqp:not-implemented".into()))
    );
    assert_eq!(response.body(), Value::Map(Vec::new()));
}

/// (docs/spec/amqp.md#4.1)
#[test]
fn a_request_with_its_sections_in_another_order_is_answered() {
    let (mut world, pair, _) = locked();
    let mut request = Request::operation(PEEK, vec![("message-count", Value::Int(1))]);
    request.message_id = Some(Value::from("mine"));
    let answer = world.call_encoded(&pair, &request.encode_backwards());
    let answer = answer.expect("an answer");
    assert_eq!((answer.code(), embedded(&answer).len()), (200, 1));
    assert_eq!(answer.correlation(), Some(Value::from("mine")));

    let twice = [&request.encode()[..], &request.encode()].concat();
    assert!(world.call_encoded(&pair, &twice).is_none());
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(pair.request)[1..] else {
        panic!("a section that is there twice is refused");
    };
    assert_eq!(error.condition, "amqp:decode-error");
}

#[test]
fn rule_11_an_answer_correlates_by_the_message_id_in_its_own_type() {
    let (mut world, pair, _) = locked();
    for id in [
        Value::Ulong(7),
        Value::Uuid([9; 16]),
        Value::from("7"),
        Value::Binary(Bytes::from_static(b"7")),
    ] {
        let body = vec![("message-count", Value::Int(1))];
        let request = Request {
            message_id: Some(id.clone()),
            ..Request::operation(PEEK, body)
        };
        let response = world.call(&pair, &request).expect("an answer");
        assert_eq!(response.correlation(), Some(id));
    }
}

#[test]
fn operations_of_later_are_answered_with_501() {
    let (mut world, pair, _) = locked();
    for operation in ["com.microsoft:no-such-operation", ""] {
        let response = call(&mut world, &pair, operation, Vec::new());
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (501, "amqp:not-implemented"),
            "{operation}"
        );
    }
    let namespace = world.pair("$management");
    assert_eq!(call(&mut world, &namespace, PEEK, Vec::new()).code(), 501);
}

#[test]
fn an_operation_may_be_named_by_string_symbol_or_binary() {
    let (mut world, pair, _) = locked();
    for name in [
        Value::Symbol(PEEK.into()),
        Value::Binary(Bytes::from_static(PEEK.as_bytes())),
    ] {
        let mut request = Request::operation(PEEK, Vec::new());
        request.properties[0].1 = name;
        assert_eq!(world.call(&pair, &request).expect("an answer").code(), 200);
    }
}

#[test]
fn requests_that_repeat_a_delivery_id_and_tag_are_each_answered() {
    // (docs/spec/amqp.md#7.1)
    let (mut world, pair, _) = locked();
    let request = Request::operation(PEEK, vec![("message-count", Value::Int(1))]);
    let outgoing = Outgoing {
        tag: b"same",
        ..Outgoing::default()
    };
    let sent = world
        .client
        .send(pair.request, &outgoing, &[&request.encode()]);
    sent.expect("there is credit");
    let frames = world.client.output(world.clock_reading().mono).split();
    for _ in 0..3 {
        world
            .server
            .handle_input(world.clock_reading(), &mut frames.clone());
    }
    world.pump();
    assert_eq!(world.received(pair.response).len(), 3);
    // Nor does it end the session.
    assert_eq!(peek(&mut world, &pair, 0, 1).code(), 200);
}

#[test]
fn peek_shows_messages_in_order_without_taking_them() {
    let mut world = World::new();
    for text in ["a", "b", "c"] {
        world.enqueue("orders", &message(text));
    }
    let pair = world.pair("orders/$management");
    let messages = embedded(&peek(&mut world, &pair, 2, 10));
    let shown: Vec<_> = messages.iter().map(|(_, message)| message.body()).collect();
    assert_eq!(shown, [message("b"), message("c")]);
    for (map, message) in &messages {
        assert_eq!(map.len(), 1, "no token");
        assert!(!message.sections().header.is_empty());
        assert_eq!(
            message.annotation("x-opt-message-state"),
            Some(Value::Int(0))
        );
        assert_eq!(
            message.annotation("x-opt-locked-until"),
            Some(Value::Timestamp(-62_135_596_800_000))
        );
        assert!(message.sections().delivery_annotations.is_empty());
    }
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(receiver).len(), 3);
}

#[test]
fn peek_shows_locked_and_deferred_messages_with_their_state() {
    let (mut world, pair, received) = locked();
    let shown = embedded(&peek(&mut world, &pair, 0, 5));
    assert_eq!(shown.len(), 1);
    let until = shown[0].1.annotation("x-opt-locked-until");
    assert!(until.is_some());
    assert_eq!(until, received.annotation("x-opt-locked-until"));
    let (mut world, pair) = deferred();
    let messages = embedded(&peek(&mut world, &pair, 0, 5));
    assert_eq!(
        messages[0].1.annotation("x-opt-message-state"),
        Some(Value::Int(1))
    );
}

#[test]
fn peek_of_nothing_is_204_with_an_empty_map() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let response = peek(&mut world, &pair, 1, 1);
    assert_eq!(response.code(), 204);
    assert_eq!(response.body(), Value::Map(Vec::new()));
}

#[test]
fn peek_takes_any_integral_type_and_refuses_a_count_of_nothing() {
    let (mut world, pair, _) = locked();
    for (from, count) in [
        (Value::Int(0), Value::Long(1)),
        (Value::Ulong(1), Value::Uint(1)),
        (Value::Long(-5), Value::Ubyte(1)),
    ] {
        let body = vec![("from-sequence-number", from), ("message-count", count)];
        assert_eq!(call(&mut world, &pair, PEEK, body).code(), 200);
    }
    for count in [0, -1] {
        let response = peek(&mut world, &pair, 0, count);
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (400, "com.microsoft:argument-error")
        );
    }
}

#[test]
fn peek_stays_within_250_messages() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    for _ in 0..260 {
        world.send(sender, &message("x"));
    }
    let pair = world.pair("orders/$management");
    assert_eq!(embedded(&peek(&mut world, &pair, 0, i32::MAX)).len(), 250);
}

#[test]
fn a_subqueue_has_a_management_node_of_its_own() {
    let (mut world, pair, received) = locked();
    world.dispose(&received, DeliveryState::Rejected(None), false);
    assert_eq!(peek(&mut world, &pair, 0, 5).code(), 204);
    let dead = world.pair("orders/$DeadLetterQueue/$management");
    assert_eq!(embedded(&peek(&mut world, &dead, 0, 5)).len(), 1);
}

#[test]
fn a_lock_is_renewed_until_an_array_of_times() {
    let (mut world, pair, received) = locked();
    world.advance(20_000);
    let response = call(
        &mut world,
        &pair,
        RENEW,
        vec![("lock-tokens", Value::Array(vec![token(&received)]))],
    );
    assert_eq!(response.code(), 200);
    let until = i64::try_from(START + 50_000).expect("fits");
    assert_eq!(
        response.entry("expirations"),
        Value::Array(vec![Value::Timestamp(until)])
    );
    world.advance(20_000);
    world.dispose(&received, DeliveryState::Accepted, false);
    assert_eq!(
        peek(&mut world, &pair, 0, 1).code(),
        204,
        "completed under the renewed lock"
    );
}

#[test]
fn a_lock_that_is_not_held_is_410() {
    let (mut world, pair, received) = locked();
    let lists = [
        vec![Value::Uuid([5; 16])],
        vec![token(&received), Value::Uuid([5; 16])],
    ];
    for tokens in lists {
        let response = call(
            &mut world,
            &pair,
            RENEW,
            vec![("lock-tokens", Value::Array(tokens.clone()))],
        );
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (410, "com.microsoft:message-lock-lost")
        );
        let response = update(&mut world, &pair, "completed", tokens, Vec::new());
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (410, "com.microsoft:message-lock-lost")
        );
    }
    assert_eq!(
        update(
            &mut world,
            &pair,
            "completed",
            vec![token(&received)],
            Vec::new()
        )
        .code(),
        200
    );
}

#[test]
fn tokens_may_come_as_a_list_and_must_be_uuids() {
    let (mut world, pair, received) = locked();
    let list = Value::List(vec![token(&received)]);
    assert_eq!(
        call(&mut world, &pair, RENEW, vec![("lock-tokens", list)]).code(),
        200
    );
    for wrong in [
        Value::Array(Vec::new()),
        Value::List(vec![Value::from("abc")]),
        Value::Null,
        Value::Uuid([1; 16]),
    ] {
        let response = call(&mut world, &pair, RENEW, vec![("lock-tokens", wrong)]);
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (400, "com.microsoft:argument-error")
        );
    }
}

#[test]
fn a_lock_can_be_ended_in_every_way_by_its_token_alone() {
    let count = |world: &mut World, address: &str| {
        let receiver = world.receiver(address, UNSETTLED, 5);
        let received = world.received(receiver);
        world.client.detach(receiver, true, None);
        world.pump();
        received.into_iter().next()
    };
    let table = [
        ("completed", false, false),
        ("abandoned", true, false),
        ("suspended", false, true),
        ("defered", false, false),
        ("deferred", false, false),
    ];
    for (status, active, dead) in table {
        let (mut world, pair, received) = locked();
        let properties = Value::Map(vec![(Value::from("colour"), Value::from("red"))]);
        let more = vec![
            ("deadletter-reason", Value::from("bad")),
            ("deadletter-description", Value::from("")),
            ("properties-to-modify", properties),
        ];
        let response = update(&mut world, &pair, status, vec![token(&received)], more);
        assert_eq!(response.code(), 200, "{status}");
        assert_eq!(response.body(), Value::Map(Vec::new()));
        let found = count(&mut world, "orders");
        assert_eq!(found.is_some(), active, "{status}");
        if let Some(message) = found {
            assert_eq!(message.header().delivery_count, Some(1));
            assert_eq!(
                message.application_property("colour"),
                Some(Value::from("red"))
            );
        }
        let found = count(&mut world, "orders/$DeadLetterQueue");
        assert_eq!(found.is_some(), dead, "{status}");
        if let Some(message) = found {
            assert_eq!(
                message.application_property("DeadLetterReason"),
                Some(Value::from("bad"))
            );
            assert_eq!(
                message.application_property("DeadLetterErrorDescription"),
                None
            );
            assert_eq!(
                message.application_property("colour"),
                Some(Value::from("red"))
            );
        }
    }
}

/// As .NET sends it, which has no place of its own for a reason that is no text.
/// (docs/spec/entities.md#8.1)
#[test]
fn a_modified_reason_that_is_no_text_keeps_its_type() {
    let (mut world, pair, received) = locked();
    let time = Value::Timestamp(7);
    let properties = Value::Map(vec![(Value::from("DeadLetterReason"), time.clone())]);
    let more = vec![("properties-to-modify", properties)];
    let response = update(&mut world, &pair, "suspended", vec![token(&received)], more);
    assert_eq!(response.code(), 200);
    let dead = world.receiver("orders/$DeadLetterQueue", UNSETTLED, 1);
    let dead = world.received(dead).pop().expect("a dead letter");
    assert_eq!(dead.application_property("DeadLetterReason"), Some(time));
}

#[test]
fn an_abandon_by_request_waits_as_long_as_its_properties_say() {
    let (mut world, pair, received) = locked();
    let delay = (Value::from("x-opt-delivery-delay"), Value::Ulong(60_000));
    let more = vec![("properties-to-modify", Value::Map(vec![delay]))];
    let response = update(&mut world, &pair, "abandoned", vec![token(&received)], more);
    assert_eq!(response.code(), 200);
    let receiver = world.receiver("orders", UNSETTLED, 1);
    world.advance(59_999);
    assert!(world.received(receiver).is_empty());
    world.advance(1);
    let again = world.received(receiver).pop().expect("its time has come");
    assert_eq!(again.header().delivery_count, Some(1));
}

#[test]
fn an_unknown_disposition_or_a_long_reason_is_400() {
    let (mut world, pair, received) = locked();
    let response = update(
        &mut world,
        &pair,
        "lost",
        vec![token(&received)],
        Vec::new(),
    );
    assert_eq!(
        (response.code(), response.condition().as_str()),
        (400, "com.microsoft:argument-error")
    );
    let reason = vec![("deadletter-reason", Value::String("x".repeat(4_097)))];
    let response = update(
        &mut world,
        &pair,
        "suspended",
        vec![token(&received)],
        reason,
    );
    assert_eq!(
        (response.code(), response.condition().as_str()),
        (400, "com.microsoft:argument-out-of-range")
    );
}

#[test]
fn properties_to_modify_that_are_no_map_are_400_and_the_lock_stays() {
    let (mut world, pair, received) = locked();
    for status in ["abandoned", "defered", "suspended"] {
        let list = Value::List(vec![Value::from("stage")]);
        let more = vec![("properties-to-modify", list)];
        let response = update(&mut world, &pair, status, vec![token(&received)], more);
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (400, "com.microsoft:argument-error"),
            "{status}"
        );
    }
    let none = vec![("properties-to-modify", Value::Null)];
    let response = update(&mut world, &pair, "abandoned", vec![token(&received)], none);
    assert_eq!(response.code(), 200);
}

#[test]
fn a_deferred_message_is_received_by_number_with_its_token() {
    for mode in [Value::Uint(1), Value::Ubyte(1), Value::Null] {
        let (mut world, pair) = deferred();
        let response = by_number(&mut world, &pair, &[1], mode);
        assert_eq!(response.code(), 200);
        let (map, received) = embedded(&response).pop().expect("a message");
        let lock_token = amqp::value::lookup(&map, "lock-token").cloned();
        assert_eq!(lock_token, Some(token(&received)));
        let until = i64::try_from(START + 30_000).expect("fits");
        assert_eq!(
            received.annotation("x-opt-locked-until"),
            Some(Value::Timestamp(until))
        );
        assert_eq!(
            received.annotation("x-opt-message-state"),
            Some(Value::Int(1))
        );
        assert_eq!(received.body(), message("hello"));
        let response = update(
            &mut world,
            &pair,
            "completed",
            vec![token(&received)],
            Vec::new(),
        );
        assert_eq!(response.code(), 200);
        assert_eq!(peek(&mut world, &pair, 0, 1).code(), 204);
    }
}

#[test]
fn a_deferred_message_can_be_received_and_deleted() {
    let (mut world, pair) = deferred();
    let response = by_number(&mut world, &pair, &[1], Value::Uint(0));
    let (entry, received) = embedded(&response).pop().expect("a message");
    assert_eq!(received.annotation("x-opt-locked-until"), None);
    assert_eq!(amqp::value::lookup(&entry, "lock-token"), None);
    assert_eq!(peek(&mut world, &pair, 0, 1).code(), 204);
}

#[test]
fn a_number_below_zero_is_not_found() {
    let (mut world, pair) = deferred();
    for numbers in [&[-1][..], &[1, -1], &[i64::MIN]] {
        let response = by_number(&mut world, &pair, numbers, Value::Uint(1));
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (404, "com.microsoft:message-not-found")
        );
    }
    assert_eq!(
        by_number(&mut world, &pair, &[1], Value::Uint(1)).code(),
        200
    );
}

#[test]
fn a_number_that_is_not_deferred_is_404_for_the_whole_request() {
    let (mut world, pair) = deferred();
    world.enqueue("orders", &message("active"));
    for numbers in [&[1, 2][..], &[2], &[99]] {
        let response = by_number(&mut world, &pair, numbers, Value::Uint(1));
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (404, "com.microsoft:message-not-found")
        );
    }
    assert_eq!(
        by_number(&mut world, &pair, &[1], Value::Uint(1)).code(),
        200
    );
    assert_eq!(
        by_number(&mut world, &pair, &[1], Value::Uint(1)).code(),
        404,
        "it is locked now"
    );
}

#[test]
fn wrong_numbers_and_modes_are_400() {
    let (mut world, pair) = deferred();
    assert_eq!(
        by_number(&mut world, &pair, &[1], Value::Uint(2)).code(),
        400
    );
    assert_eq!(
        by_number(&mut world, &pair, &[], Value::Uint(1)).code(),
        400
    );
    let many: Vec<i64> = (0..2_000).collect();
    assert_eq!(
        by_number(&mut world, &pair, &many, Value::Uint(1)).code(),
        400
    );
}

#[test]
fn a_body_that_is_no_map_is_400() {
    let (mut world, pair, _) = locked();
    for body in [Value::Null, Value::from("x"), Value::List(Vec::new())] {
        let request = Request {
            body,
            ..Request::operation(PEEK, Vec::new())
        };
        let response = world.call(&pair, &request).expect("an answer");
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (400, "com.microsoft:argument-error")
        );
    }
}

#[test]
fn reading_operations_need_listen() {
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let pair = world.pair("orders/$management");
    for operation in [PEEK, RENEW, UPDATE, BY_NUMBER] {
        let response = call(&mut world, &pair, operation, Vec::new());
        assert_eq!(
            (response.code(), response.condition().as_str()),
            (401, "amqp:unauthorized-access")
        );
    }
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let pair = world.pair("orders/$management");
    assert_eq!(peek(&mut world, &pair, 0, 1).code(), 204);
}

#[test]
fn an_operation_is_served_while_its_link_outlives_the_token() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let cbs = world.pair("$cbs");
    let audience = "sb://host/orders/$management";
    let both = crate::world::token(audience, "root", KEY, 60);
    world
        .call(&cbs, &Request::put_token(audience, &both))
        .expect("an answer");
    let pair = world.pair("orders/$management");
    assert_eq!(peek(&mut world, &pair, 0, 1).code(), 204);
    world.advance(61_000);
    // A 401 would be fatal to SDKs that renew a little late. (docs/spec/amqp.md#2.7)
    assert_eq!(peek(&mut world, &pair, 0, 1).code(), 204);
}

#[test]
fn requests_that_are_not_settled_are_accepted_and_settled_ones_are_served() {
    let (mut world, pair, _) = locked();
    let request = Request::operation(PEEK, vec![("message-count", Value::Int(1))]).encode();
    world.send(pair.request, &request);
    assert_eq!(world.outcomes(pair.request), [DeliveryState::Accepted]);
    assert_eq!(world.received(pair.response).len(), 1);
    world.send_as(pair.request, 0, true, &request);
    assert_eq!(world.outcomes(pair.request), []);
    let answers = world.received(pair.response);
    assert!(answers[0].settled);
    assert!(answers[0].tag.len() <= 32 && !answers[0].tag.is_empty());
}

#[test]
fn a_request_that_is_no_message_is_rejected() {
    let (mut world, pair, _) = locked();
    world.send(pair.request, b"\x07");
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(pair.request)[..] else {
        panic!("it is rejected");
    };
    assert_eq!(error.condition, "amqp:decode-error");
}

#[test]
fn a_request_inside_a_transaction_is_answered_all_the_same() {
    let (mut world, pair, _) = locked();
    let state = Some(DeliveryState::Transactional {
        txn_id: Bytes::from_static(b"1"),
        outcome: None,
    });
    let outgoing = endpoint::Outgoing {
        tag: b"t",
        state,
        ..Default::default()
    };
    let request = Request::operation(PEEK, Vec::new()).encode();
    world
        .client
        .send(pair.request, &outgoing, &[&request])
        .expect("there is credit");
    world.pump();
    assert_eq!(world.received(pair.response).len(), 1);
}

#[test]
fn several_locks_are_renewed_together_with_a_time_for_each() {
    let mut world = World::new();
    for text in ["a", "b"] {
        world.enqueue("orders", &message(text));
    }
    let receiver = world.receiver("orders", UNSETTLED, 2);
    let tokens = world.received(receiver).iter().map(token).collect();
    let pair = world.pair("orders/$management");
    let response = call(
        &mut world,
        &pair,
        RENEW,
        vec![("lock-tokens", Value::Array(tokens))],
    );
    let until = Value::Timestamp(i64::try_from(START + 30_000).expect("fits"));
    assert_eq!(response.entry("expirations"), Value::Array(vec![until; 2]));
}

/// (docs/spec/amqp.md#7.2)
#[test]
fn what_the_client_did_not_do_wrong_is_no_argument_error() {
    let damage = || RequestError::Unreadable("message 1 cannot be read".to_owned());
    let table = [
        (damage(), 500, "amqp:internal-error"),
        (RequestError::TooManyLocks, 503, "com.microsoft:server-busy"),
        (
            RequestError::Invalid("x".to_owned()),
            400,
            "com.microsoft:argument-error",
        ),
    ];
    for (error, code, condition) in table {
        let mut world = World::new();
        let pair = world.pair("orders/$management");
        world.broker_stalls = true;
        let body = vec![
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(1)),
        ];
        world.send(pair.request, &Request::operation(PEEK, body).encode());
        let request = world.commands.iter().find_map(|command| match command {
            Command::Peek { request, .. } => Some(*request),
            _ => None,
        });
        let request = request.expect("it is asked for");
        let output = Output::Browsed {
            request,
            result: Err(error),
        };
        world.server.handle_output(world.clock_reading(), output);
        world.pump();
        let answer = world.received(pair.response).pop().map(Response);
        let answer = answer.expect("an answer");
        assert_eq!(answer.code(), code);
        assert_eq!(answer.condition(), condition);
    }
}
