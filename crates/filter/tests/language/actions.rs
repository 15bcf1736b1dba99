//! Actions: their changes, and the parts that stay as received. (docs/spec/entities.md#17.10)

use amqp::message::{Header, Properties, Sections, decode_map_section};
use amqp::{Map, Symbol, Value};
use bytes::Bytes;
use expect_test::{Expect, expect};
use filter::{
    Action, ActionError, Changes, Environment, Facts, HeaderSizeExceeded, Message, Parameters,
};

use crate::messages::{BODY, Parts, sample, timespan};

fn changes(text: &str, parts: &Parts) -> Result<Changes, ActionError> {
    let action = Action::parse(text, &Parameters::NONE).unwrap_or_else(|e| panic!("{text}: {e}"));
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    action.evaluate(&message, Environment::default())
}

fn check(text: &str, expected: Expect) {
    let found = match changes(text, &sample()) {
        Ok(changes) => changes.to_string(),
        Err(error) => format!("\n{error}"),
    };
    expected.assert_eq(found.strip_prefix('\n').unwrap_or(&found));
}

fn apply(text: &str, parts: &Parts) -> Bytes {
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    changes(text, parts).unwrap().apply(&message).unwrap()
}

fn user(bytes: &Bytes) -> Map {
    let sections = Sections::scan(bytes).unwrap();
    decode_map_section(&bytes.slice(sections.application_properties)).unwrap()
}

#[test]
fn values_get_the_type_of_their_kind() {
    check("SET x = 1", expect!["set x = Long(1)"]);
    check("SET x = 1.5", expect!["set x = Double(1.5)"]);
    check("SET x = 'y'", expect![[r#"set x = String("y")"#]]);
    check("SET x = TRUE", expect!["set x = Bool(true)"]);
    check(
        "SET x = id",
        expect![
            "set x = Uuid([171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171, 171])"
        ],
    );
    check("SET x = at + span", expect!["set x = Timestamp(1002)"]);
    check(
        "SET x = span",
        expect![[r#"set x = Described((Symbol(Symbol("com.microsoft:timespan")), Long(20000)))"#]],
    );
    check(
        "SET x = big",
        expect!["set x = Ulong(18446744073709551615)"],
    );
    check("SET x = n", expect!["set x = Long(5)"]);
}

#[test]
fn an_existing_property_keeps_its_type_and_name_where_it_can() {
    check("SET N = n + 1", expect!["set n = Int(6)"]);
    check("SET n = 5000000000", expect!["set n = Long(5000000000)"]);
    check("SET n = 1.5", expect!["set n = Double(1.5)"]);
    check("SET d = 3", expect!["set d = Double(3.0)"]);
    check("SET s = 3", expect!["set s = Long(3)"]);
    check("SET yes = 'no'", expect![[r#"set yes = String("no")"#]]);
    check(
        "SET d = 3; SET x = d / 2",
        expect![[r#"
        set d = Double(3.0)
        set x = Double(1.5)"#]],
    );
    check("SET d = 's'; SET d = 3", expect!["set d = Long(3)"]);
    check("REMOVE d; SET d = 3", expect!["set d = Long(3)"]);
    let symbol = Parts::default().with("s", Value::Symbol(Symbol::new("a")));
    let set = changes("SET s = 'b'", &symbol).unwrap();
    assert_eq!(
        set.user(),
        [("s".to_owned(), Some(Value::Symbol(Symbol::new("b"))))]
    );
}

#[test]
fn later_statements_see_what_earlier_ones_did() {
    check(
        "SET x = 1; SET x = x + 1; SET y = X",
        expect![[r#"
        set x = Long(2)
        set y = Long(2)"#]],
    );
    check("REMOVE n SET x = n", expect!["remove n"]);
    check(
        "SET n = 7, REMOVE n; SET n = 'new'",
        expect![[r#"set n = String("new")"#]],
    );
    check(
        "SET sys.Label = 'a'; SET x = sys.Label + 'b'",
        expect![[r#"
            set sys.Label = "a"
            set x = String("ab")"#]],
    );
    check(
        "REMOVE sys.Label; SET x = sys.Label",
        expect!["remove sys.Label"],
    );
    check("SET x = 1; REMOVE x; REMOVE missing", expect![[""]]);
    check("REMOVE n; SET n = 1; REMOVE n", expect!["remove n"]);
}

#[test]
fn what_is_unknown_removes() {
    check("SET n = missing", expect!["remove n"]);
    check(
        "SET n = NULL; SET sys.To = NULL",
        expect![[r#"
        remove sys.To
        remove n"#]],
    );
    check(
        "SET sys.TimeToLive = NULL",
        expect!["remove sys.TimeToLive"],
    );
}

#[test]
fn system_properties_take_their_own_kind() {
    check(
        "SET sys.TimeToLive = span",
        expect!["set sys.TimeToLive = 2 ms"],
    );
    check(
        "SET sys.TimeToLive = span - span",
        expect!["the system property TimeToLive is out of range"],
    );
    check(
        "SET sys.TimeToLive = '01:02:03.5'; SET x = sys.TimeToLive",
        expect![[r#"
            set sys.TimeToLive = 3723500 ms
            set x = Described((Symbol(Symbol("com.microsoft:timespan")), Long(37235000000)))"#]],
    );
    check(
        "SET sys.TimeToLive = '00:00:00.0001'",
        expect!["the system property TimeToLive is out of range"],
    );
    check(
        "SET sys.TimeToLive = 'ten minutes'",
        expect!["the system property TimeToLive takes a duration or a text hh:mm:ss"],
    );
    check(
        "SET sys.TimeToLive = id",
        expect!["the system property TimeToLive cannot be set to a text"],
    );
    check(
        "SET sys.TimeToLive = 5",
        expect!["the system property TimeToLive cannot be set to a number"],
    );
    check(
        "SET sys.Label = 5",
        expect!["the system property Label cannot be set to a number"],
    );
    check(
        "SET sys.MessageId = id",
        expect![[r#"set sys.MessageId = "abababab-abab-abab-abab-abababababab""#]],
    );
    check(
        "SET sys.Subject = s + s",
        expect![[r#"set sys.Label = "abcabc""#]],
    );
    check("SET sys.ScheduledEnqueueTimeUtc = at", expect![[""]]);
    check(
        &format!("SET sys.SessionId = '{}'", "x".repeat(129)),
        expect!["the system property SessionId is longer than 128 characters"],
    );
    check(
        "SET sys.ContentType = 'ä'",
        expect!["the system property ContentType is out of range"],
    );
    check(
        "SET sys.Label = s + 1",
        expect!["a text cannot be used with a number here"],
    );
}

#[test]
fn a_partition_key_is_the_session_id_if_both_are_there() {
    check(
        "SET sys.SessionId = 'other'",
        expect!["the partition key differs from the session id"],
    );
    check(
        "SET sys.SessionId = 'key'",
        expect![[r#"set sys.SessionId = "key""#]],
    );
    check(
        "SET sys.SessionId = 'a'; SET sys.PartitionKey = sys.SessionId",
        expect![[r#"
            set sys.SessionId = "a"
            set sys.PartitionKey = "a""#]],
    );
    check(
        "SET sys.SessionId = 'a'; REMOVE sys.PartitionKey",
        expect![[r#"
            set sys.SessionId = "a"
            remove sys.PartitionKey"#]],
    );
    check(
        "SET sys.SessionId = 'KEY'",
        expect![[r#"set sys.SessionId = "KEY""#]],
    );
    check(
        "SET sys.SessionId = ''",
        expect![[r#"set sys.SessionId = """#]],
    );
}

#[test]
fn a_changed_message_differs_where_it_was_changed() {
    let parts = sample();
    let before = parts.encode();
    let old = Sections::scan(&before).unwrap();
    let after = apply("SET n = 6; REMOVE s; SET fresh = 'x'", &parts);
    let new = Sections::scan(&after).unwrap();
    assert_eq!(after[..new.properties.end], before[..old.properties.end]);
    assert_eq!(&after[new.body], BODY);
    let mut expected: Map = parts
        .user
        .iter()
        .filter(|(name, _)| name != "s")
        .map(|(name, value)| (Value::from(name.as_str()), value.clone()))
        .collect();
    expected[0].1 = Value::Int(6);
    expected.push((Value::from("fresh"), Value::from("x")));
    assert_eq!(user(&after), expected);
}

#[test]
fn every_section_can_be_changed_and_made() {
    let text =
        "SET sys.Label = 'l'; SET sys.TimeToLive = span; SET sys.PartitionKey = 'p'; SET x = 1";
    let bare = Parts::default().with("span", timespan(20_000));
    let after = apply(text, &bare);
    let sections = Sections::scan(&after).unwrap();
    let header = Header::decode(&after[sections.header.clone()]).unwrap();
    assert_eq!(header.ttl, Some(2));
    let properties = Properties::decode(&after.slice(sections.properties.clone())).unwrap();
    assert_eq!(properties.subject.as_deref(), Some("l"));
    let annotations = decode_map_section(&after.slice(sections.message_annotations.clone()));
    assert_eq!(
        annotations.unwrap(),
        [(Symbol::new("x-opt-partition-key").into(), Value::from("p"))]
    );
    let after = apply("REMOVE span; SET sys.To = 'x'; REMOVE sys.To", &bare);
    assert_eq!(after, BODY);
}

#[test]
fn nothing_changed_is_the_same_message() {
    let parts = sample();
    assert_eq!(
        apply("REMOVE missing; SET sys.Label = 'label'", &parts),
        parts.encode()
    );
    assert!(changes("REMOVE missing", &parts).unwrap().is_empty());
}

#[test]
fn properties_do_not_outgrow_their_quota() {
    let parts = Parts::default().with("a", Value::String("x".repeat(30_000)));
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let grown = changes("SET b = a; SET c = a", &parts).unwrap();
    assert_eq!(grown.apply(&message), Err(HeaderSizeExceeded));
    assert!(
        changes("SET b = a", &parts)
            .unwrap()
            .apply(&message)
            .is_ok()
    );
    assert!(matches!(
        changes("SET b = a + a", &parts),
        Err(ActionError::TooLarge(..))
    ));
}
