//! Selectors: JMS's grammar and rules. (JMS 2.0, 3.8.1)

use amqp::Value;
use amqp::message::{Header, Properties};
use filter::{Facts, Message, Selector};

use crate::messages::{Parts, sample};

fn check(parts: &Parts, table: &str) {
    let bytes = parts.encode();
    let facts = Facts {
        delivery_count: Some(2),
        ..Facts::default()
    };
    let message = Message::read(&bytes, facts).unwrap();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (expected, text) = line.split_once(' ').unwrap();
        let selector = Selector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let found = match selector.evaluate(&message) {
            Some(true) => "T",
            Some(false) => "F",
            None => "U",
        };
        assert_eq!(found, expected, "{text}");
        assert_eq!(selector.selects(&message), expected == "T");
    }
}

#[test]
fn a_blank_selector_selects_everything() {
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    for text in ["", "  \n"] {
        assert!(Selector::parse(text).unwrap().selects(&message));
    }
}

#[test]
fn headers_have_their_own_names() {
    let parts = Parts {
        header: Header {
            durable: Some(true),
            ..Header::default()
        },
        properties: Properties {
            message_id: Some(Value::from("ID:1")),
            correlation_id: Some(Value::from("c")),
            subject: Some("kind".into()),
            creation_time: Some(1_234),
            group_id: Some("g".into()),
            group_sequence: Some(3),
            ..Properties::default()
        },
        ..Parts::default()
    };
    check(
        &parts,
        "
        T JMSMessageID = 'ID:1'
        T JMSCorrelationID = 'c'
        T JMSType = 'kind'
        T JMSTimestamp = 1234
        T JMSPriority = 4
        T JMSDeliveryMode = 'PERSISTENT'
        T JMSXGroupID = 'g'
        T JMSXGroupSeq = 3
        T JMSXDeliveryCount = 3
        U jmstype = 'kind'
        U JMS_vendor = 'x'
        ",
    );
    check(
        &Parts::default(),
        "
        T JMSDeliveryMode = 'NON_PERSISTENT'
        T JMSType IS NULL
        U JMSType = 'kind'
        T JMSPriority BETWEEN 4 AND 4
        ",
    );
}

#[test]
fn names_have_their_case() {
    let parts = Parts::default()
        .with("Name", Value::Int(1))
        .with("_under", Value::Int(2))
        .with("$dollar", Value::Int(3));
    check(
        &parts,
        "
        T Name = 1
        U name = 1
        T _under = 2
        T $dollar = 3
        ",
    );
}

#[test]
fn unlike_values_compare_as_false() {
    check(
        &sample(),
        "
        F s = 5
        F s <> 5
        F n = 's'
        F yes = 1
        F s < 5
        F yes <> 's'
        F at = 1000
        F s > s
        F s <= s
        T s <> 'b'
        T yes = TRUE
        T yes <> FALSE
        T n = 5.0
        F n LIKE '5'
        T n NOT LIKE '5'
        F n IN ('5')
        U missing = 5
        U missing <> 5
        U missing LIKE 'x'
        U missing IN ('x')
        U missing BETWEEN 1 AND 2
        U nothing = 1
        U n
        T yes
        F no
        ",
    );
}

#[test]
fn between_is_two_comparisons() {
    check(
        &sample(),
        "
        T n BETWEEN 5 AND 6
        T n BETWEEN 4 AND 5
        F n BETWEEN 6 AND 4
        T n NOT BETWEEN 6 AND 7
        T n + 1 BETWEEN 2 * 3 AND 10 - 4
        T n BETWEEN 1 AND 9 AND s = 'abc'
        F n BETWEEN missing AND 1
        U n BETWEEN missing AND 9
        F s BETWEEN 1 AND 2
        ",
    );
}

#[test]
fn numbers_are_written_as_in_java() {
    check(
        &sample(),
        "
        T n = 5L
        T n = 0x5
        T n = 05
        T n = 5.
        T n = 5f
        T n = 0.5E1d
        T d = 2.5F
        T n = +5
        T -n = -5
        T 010 = 8
        ",
    );
}

#[test]
fn calculation_never_fails() {
    check(
        &sample(),
        "
        U n / 0 = 1
        T n / 0.0 > 1
        T 9223372036854775807 + 1 < 0
        T -9223372036854775808 / -1 < 0
        U s + 1 = 2
        U -s = 2
        T 7 / 2 = 3
        U missing + 1 = 2
        ",
    );
}

#[test]
fn like_and_in_test_properties_against_texts() {
    check(
        &sample(),
        "
        T s LIKE 'a%'
        T s LIKE 'a_c'
        T s NOT LIKE '%x%'
        F s LIKE 'a!%c' ESCAPE '!'
        T s IN ('x', 'abc')
        F s NOT IN ('abc')
        T s is not null and missing IS NULL
        T not (s = 'x') or no
        ",
    );
}
