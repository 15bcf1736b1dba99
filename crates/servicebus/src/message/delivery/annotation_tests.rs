//! The annotations of a message, by how it is delivered.

use super::*;

fn annotations(message: &Bytes) -> Vec<(String, Value)> {
    let section = section(message, |sections| sections.message_annotations.clone());
    let map = decode_map_section(&section).expect("a map");
    map.into_iter()
        .map(|(key, value)| (key.as_text().expect("a symbol").to_owned(), value))
        .collect()
}

fn named(key: &str, value: Value) -> (String, Value) {
    (key.to_owned(), value)
}

/// A message with annotations of its sender's own and some that it has no say in.
fn annotated() -> Browsed {
    let mut payload = BytesMut::new();
    let sent = [
        ("x-opt-partition-key", Value::from("k")),
        ("x-opt-sequence-number", Value::Long(666)),
        ("x-opt-locked-until", Value::Timestamp(1)),
        ("x-opt-message-state", Value::Int(1)),
        ("x-opt-lock-token", Value::Uuid([1; 16])),
        ("mine", Value::List(vec![Value::Int(1)])),
    ]
    .map(|(key, value)| (Value::Symbol(Symbol::new(key)), value));
    encode_map_section(&mut payload, descriptor::MESSAGE_ANNOTATIONS, &sent);
    payload.extend_from_slice(BODY);
    browsed(payload)
}

/// The annotations that a view of an annotated message has, in order; the sender's own come first.
fn check_annotations(message: &Browsed, view: View, brokers: &[(&str, Value)]) {
    let mut expected = vec![
        named("x-opt-partition-key", Value::from("k")),
        named("mine", Value::List(vec![Value::Int(1)])),
        named("x-opt-enqueued-time", Value::Timestamp(ENQUEUED)),
        named("x-opt-sequence-number", Value::Long(NUMBER)),
    ];
    expected.extend(brokers.iter().map(|(key, value)| named(key, value.clone())));
    assert_eq!(annotations(&encoded(message, view)), expected);
}

#[test]
fn a_locked_delivery_tells_until_when_and_nothing_of_its_state() {
    let until = ("x-opt-locked-until", Value::Timestamp(UNTIL));
    check_annotations(&annotated(), locked(), &[until]);
}

#[test]
fn a_message_received_and_deleted_or_browsed_tells_of_no_lock() {
    check_annotations(&annotated(), UNLOCKED, &[]);
    let message = encoded(&annotated(), UNLOCKED);
    let sections = Sections::scan(&message).expect("sound");
    assert!(!sections.header.is_empty());
    assert!(sections.delivery_annotations.is_empty());
}

#[test]
fn a_delivery_tells_that_a_schedule_made_the_message_available() {
    let scheduled = Browsed {
        was_scheduled: true,
        ..annotated()
    };
    check_annotations(
        &scheduled,
        UNLOCKED,
        &[("x-opt-message-state", Value::Int(2))],
    );
    let peeked = [
        ("x-opt-locked-until", Value::Timestamp(UNTIL)),
        ("x-opt-message-state", Value::Int(0)),
    ];
    check_annotations(&scheduled, View::Peek(LockedUntil(UNTIL)), &peeked);
}

#[test]
fn a_forwarded_message_tells_its_first_number_and_the_dead_letters_source_in_lower_case() {
    let forwarded = Browsed {
        was_forwarded: true,
        enqueued_number: SequenceNumber(7),
        additions: Some(Box::new(Additions {
            dead_letter_source: Some("Orders/Subscriptions/Big".to_owned()),
            ..Additions::default()
        })),
        ..annotated()
    };
    let expected = [
        ("x-opt-enqueue-sequence-number", Value::Long(7)),
        (
            "x-opt-deadletter-source",
            Value::from("orders/subscriptions/big"),
        ),
    ];
    check_annotations(&forwarded, UNLOCKED, &expected);
    let copied = Browsed {
        was_forwarded: false,
        additions: None,
        ..forwarded
    };
    check_annotations(&copied, UNLOCKED, &[]);
}

#[test]
fn a_peek_always_tells_state_and_lock() {
    let deferred = Browsed {
        state: MessageState::Deferred,
        ..annotated()
    };
    let expected = [
        ("x-opt-locked-until", Value::Timestamp(-62_135_596_800_000)),
        ("x-opt-message-state", Value::Int(1)),
    ];
    check_annotations(&deferred, View::Peek(LockedUntil::UNLOCKED), &expected);
    let message = encoded(&deferred, View::Peek(LockedUntil::UNLOCKED));
    assert!(
        Sections::scan(&message)
            .expect("sound")
            .delivery_annotations
            .is_empty()
    );
}

#[test]
fn a_message_received_by_its_number_tells_its_state_and_its_lock_if_it_has_one() {
    let deferred = Browsed {
        state: MessageState::Deferred,
        ..annotated()
    };
    let state = ("x-opt-message-state", Value::Int(1));
    check_annotations(
        &deferred,
        View::Deferred(None),
        std::slice::from_ref(&state),
    );
    let until = ("x-opt-locked-until", Value::Timestamp(UNTIL));
    check_annotations(&deferred, View::Deferred(Some(lock())), &[until, state]);
}

#[test]
fn the_end_of_a_lock_is_told_by_the_real_clock_and_of_a_session_as_the_end_of_time() {
    let of = |lock| LockedUntil::of(lock, 1_000).0;
    assert_eq!(of(Some(LockTime::Own(500))), 1_500);
    assert_eq!(of(Some(LockTime::Own(u64::MAX))), i64::MAX);
    assert_eq!(of(Some(LockTime::WithSession(500))), 253_402_300_799_999);
    for without_deadline in [None, Some(LockTime::WithReceiver)] {
        assert_eq!(of(without_deadline), -62_135_596_800_000);
    }
}

#[test]
fn delivery_annotations_of_the_sender_are_passed_on_but_for_a_token() {
    let own = (
        Value::Symbol(Symbol::new("hop")),
        Value::List(vec![Value::Int(1)]),
    );
    let token = |bytes| {
        (
            Value::Symbol(Symbol::new("x-opt-lock-token")),
            Value::Uuid(bytes),
        )
    };
    let mut payload = BytesMut::new();
    let sent = [token([1; 16]), own.clone()];
    encode_map_section(&mut payload, descriptor::DELIVERY_ANNOTATIONS, &sent);
    payload.extend_from_slice(BODY);
    let message = browsed(payload);
    let check = |view, expected: &[(Value, Value)]| {
        let section = section(&encoded(&message, view), |sections| {
            sections.delivery_annotations.clone()
        });
        assert_eq!(decode_map_section(&section).expect("a map"), expected);
    };
    check(locked(), &[own.clone(), token(TOKEN.0.to_be_bytes())]);
    check(UNLOCKED, std::slice::from_ref(&own));
    check(
        View::Peek(LockedUntil::UNLOCKED),
        std::slice::from_ref(&own),
    );
}
