//! Filters, actions and selectors: any text parses or says where it does not, and whatever parses
//! is evaluated on any message in bounded time.

#![no_main]

use std::sync::LazyLock;

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{Map, Symbol, Value};
use bytes::BytesMut;
use filter::{Action, Environment, Facts, Message, Parameters, ParseError, Selector, SqlFilter};
use libfuzzer_sys::fuzz_target;

/// A message with a property of each kind under a short name.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(sample);

// The text comes first, then a byte that no text has, then a message.
fuzz_target!(|input: &[u8]| {
    let (text, message) = match input.iter().position(|byte| *byte == 0xff) {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    for bytes in [SAMPLE.as_slice(), message] {
        if let Ok(message) = Message::read(bytes, Facts::default()) {
            evaluate(&text, &message);
        }
    }
});

fn evaluate(text: &str, message: &Message<'_>) {
    let environment = Environment::default();
    match SqlFilter::parse(text, &Parameters::NONE) {
        Ok(filter) => {
            let _ = filter.evaluate(message, environment);
            check_explained(text);
        }
        Err(error) => check_position(text, &error),
    }
    match Selector::parse(text) {
        Ok(selector) => drop(selector.evaluate(message)),
        Err(error) => check_position(text, &error),
    }
    match Action::parse(text, &Parameters::NONE) {
        Ok(action) => act(&action, message),
        Err(error) => check_position(text, &error),
    }
}

fn act(action: &Action, message: &Message<'_>) {
    let Ok(changes) = action.evaluate(message, Environment::default()) else {
        return;
    };
    if let Ok(changed) = changes.apply(message) {
        assert!(Message::read(&changed, Facts::default()).is_ok());
    }
}

/// What is explained is understood as it says, unless it is too long to be parsed.
fn check_explained(text: &str) {
    let explain = |text: &str| SqlFilter::explain(text, &Parameters::NONE);
    let explained = explain(text).expect("it was parsed");
    if explained.len() <= filter::MAX_TEXT {
        match explain(&explained) {
            Ok(again) => assert_eq!(again, explained),
            // Parentheses that were not needed before count as nesting.
            Err(error) => assert!(error.to_string().contains("deeper"), "{explained}: {error}"),
        }
    }
}

fn check_position(text: &str, error: &ParseError) {
    assert!((1..=text.chars().count() + 1).contains(&error.position));
}

fn sample() -> Vec<u8> {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::from("id")),
        subject: Some("label".to_owned()),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let span = Value::Described(Box::new((
        Symbol::new("com.microsoft:timespan").into(),
        Value::Long(10_000),
    )));
    let user: Map = [
        ("i", Value::Int(5)),
        ("d", Value::Double(2.5)),
        ("s", Value::from("abc%")),
        ("b", Value::Bool(true)),
        ("u", Value::Ulong(u64::MAX)),
        ("t", Value::Timestamp(1_000)),
        ("p", span),
        ("n", Value::Null),
        ("l", Value::String("ab".repeat(16 << 10))),
    ]
    .into_iter()
    .map(|(name, value)| (Value::from(name), value))
    .collect();
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &user);
    out.to_vec()
}
