//! The decision table of docs/spec/amqp.md#5.1.

use amqp::error::condition;
use broker::RetryTime;

use super::*;

fn modified(undeliverable_here: bool, annotations: Option<Map>) -> DeliveryState {
    DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here,
        message_annotations: annotations,
    }
}

fn check(state: &DeliveryState) -> (Outcome, Settlement) {
    match decide(Some(state), false, None) {
        Ok(Decision::Settle(outcome, settlement)) => (outcome, settlement),
        other => panic!("{other:?}"),
    }
}

fn rejected(info: Map) -> DeliveryState {
    let error = Error {
        condition: condition::DEAD_LETTER,
        description: None,
        info: Some(info),
    };
    DeliveryState::Rejected(Some(error))
}

#[test]
fn every_outcome_means_what_the_contract_says() {
    let none = Vec::new();
    let table = [
        (
            DeliveryState::Accepted,
            Outcome::Complete,
            Settlement::Accepted,
        ),
        (
            DeliveryState::Released,
            Outcome::Release,
            Settlement::Released,
        ),
        (
            modified(false, None),
            Outcome::Abandon {
                changes: none.clone(),
                retry: RetryTime::Backoff,
            },
            Settlement::Modified,
        ),
        (
            modified(
                false,
                Some(vec![("x-opt-delivery-delay".into(), Value::Uint(250))]),
            ),
            Outcome::Abandon {
                changes: none.clone(),
                retry: RetryTime::After(250),
            },
            Settlement::Modified,
        ),
        (
            modified(true, None),
            Outcome::Defer {
                changes: none.clone(),
            },
            Settlement::Modified,
        ),
        (
            DeliveryState::Rejected(None),
            Outcome::DeadLetter { changes: none },
            Settlement::Rejected,
        ),
    ];
    for (state, outcome, settlement) in table {
        assert_eq!(check(&state), (outcome, settlement), "{state:?}");
    }
}

#[test]
fn rule_15_the_answer_repeats_the_outcome_bare() {
    assert_eq!(Settlement::Accepted.state(), DeliveryState::Accepted);
    assert_eq!(Settlement::Released.state(), DeliveryState::Released);
    assert!(matches!(
        Settlement::Modified.state(),
        DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: false,
            message_annotations: None
        }
    ));
}

#[test]
fn rule_16_the_answer_to_a_dead_letter_holds_no_error() {
    assert_eq!(Settlement::Rejected.state(), DeliveryState::Rejected(None));
}

#[test]
fn a_state_that_is_not_terminal_waits_until_the_delivery_is_settled() {
    let received = DeliveryState::Received {
        section_number: 0,
        section_offset: 0,
    };
    for state in [None, Some(&received)] {
        assert_eq!(decide(state, false, None), Ok(Decision::Wait));
        let released = Ok(Decision::Settle(Outcome::Release, Settlement::Released));
        assert_eq!(decide(state, true, None), released);
        let accepted = Ok(Decision::Settle(Outcome::Complete, Settlement::Accepted));
        assert_eq!(
            decide(state, true, Some(&DeliveryState::Accepted)),
            accepted
        );
    }
}

#[test]
fn a_transaction_that_nobody_declared_is_refused() {
    let state = DeliveryState::Transactional {
        txn_id: Bytes::from_static(b"1"),
        outcome: Some(Box::new(DeliveryState::Accepted)),
    };
    let error = decide(Some(&state), false, None).expect_err("there are no transactions");
    assert_eq!(error.condition, "amqp:transaction:unknown-id");
}

#[test]
fn reason_and_description_of_a_dead_letter_are_taken_by_string_or_symbol() {
    for key in [
        Value::from("DeadLetterReason"),
        Value::Symbol("DeadLetterReason".into()),
    ] {
        let info = vec![
            (key, Value::from("bad")),
            (
                Value::from("DeadLetterErrorDescription"),
                Value::from("very bad"),
            ),
            (Value::Symbol("colour".into()), Value::Int(7)),
        ];
        let (outcome, _) = check(&rejected(info));
        let expected = vec![
            ("colour".to_owned(), Bytes::from_static(&[0x54, 7])),
            (
                "DeadLetterReason".to_owned(),
                Bytes::from_static(b"\xa1\x03bad"),
            ),
            (
                "DeadLetterErrorDescription".to_owned(),
                Bytes::from_static(b"\xa1\x08very bad"),
            ),
        ];
        assert_eq!(outcome, Outcome::DeadLetter { changes: expected });
    }
}

#[test]
fn an_empty_or_null_reason_is_none() {
    let info = vec![
        (Value::from("DeadLetterReason"), Value::from("")),
        (Value::from("DeadLetterErrorDescription"), Value::Null),
    ];
    assert_eq!(
        check(&rejected(info)).0,
        Outcome::DeadLetter {
            changes: Vec::new()
        }
    );
}

#[test]
fn a_reason_that_is_no_text_is_a_property_of_its_own_type() {
    let info = vec![
        (Value::from("DeadLetterReason"), Value::Int(7)),
        (Value::from("DeadLetterErrorDescription"), Value::from("x")),
    ];
    let expected = vec![
        (
            "DeadLetterReason".to_owned(),
            Bytes::from_static(&[0x54, 7]),
        ),
        (
            "DeadLetterErrorDescription".to_owned(),
            Bytes::from_static(b"\xa1\x01x"),
        ),
    ];
    assert_eq!(
        check(&rejected(info)).0,
        Outcome::DeadLetter { changes: expected }
    );
}

#[test]
fn a_reason_of_4096_characters_is_taken_and_one_more_is_refused() {
    let reason = |count| {
        vec![(
            Value::from("DeadLetterReason"),
            Value::String("ö".repeat(count)),
        )]
    };
    assert!(decide(Some(&rejected(reason(4_096))), false, None).is_ok());
    let error = decide(Some(&rejected(reason(4_097))), false, None).expect_err("too long");
    assert_eq!(error.condition, "com.microsoft:argument-out-of-range");
}

#[test]
fn of_equal_property_names_the_last_one_counts() {
    let map = vec![
        (Value::from("a"), Value::Int(1)),
        (Value::from("b"), Value::Int(2)),
        (Value::Symbol("a".into()), Value::Int(3)),
    ];
    let changes = changes(&map).expect("sound");
    let names: Vec<&str> = changes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(changes[0].1, Bytes::from_static(&[0x54, 3]));
}

#[test]
fn properties_beyond_the_quota_or_of_compound_types_are_refused() {
    let text = |size| Value::String("x".repeat(size));
    let big = vec![(Value::from("a"), text(40_000))];
    assert_eq!(
        changes(&big).expect_err("one").condition,
        "com.microsoft:argument-out-of-range"
    );
    let many: Map = ["a", "b", "c"]
        .map(|key| (Value::from(key), text(30_000)))
        .to_vec();
    assert_eq!(
        changes(&many).expect_err("all").condition,
        "com.microsoft:argument-out-of-range"
    );
    let list = vec![(Value::from("a"), Value::List(Vec::new()))];
    assert_eq!(
        changes(&list).expect_err("list").condition,
        "com.microsoft:argument-error"
    );
    let number = vec![(Value::Int(1), Value::Int(1))];
    assert_eq!(
        changes(&number).expect_err("key").condition,
        "com.microsoft:argument-error"
    );
}
