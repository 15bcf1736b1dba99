//! Hostile input: texts and messages made to take long or to break something.

use amqp::Value;
use filter::{
    Action, ActionError, Environment, EvaluationError, Facts, Message, Parameters, Selector,
    SqlFilter,
};
use proptest::prelude::*;

use crate::messages::{Parts, evaluate, sample};

/// The largest property there may be.
fn large(character: &str) -> Parts {
    Parts::default().with(
        "a",
        Value::String(character.repeat((32 << 10) / character.len())),
    )
}

#[test]
fn a_pattern_of_500_wildcards_is_matched_against_the_largest_property() {
    let text = format!("a LIKE '{}'", "%x".repeat(500));
    assert_eq!(evaluate(&text, &large("x")), Ok(Some(true)));
    assert_eq!(evaluate(&text, &large("y")), Ok(Some(false)));
    let only_wildcards = format!("a LIKE '{}'", "%".repeat(1_000));
    assert_eq!(evaluate(&only_wildcards, &large("x")), Ok(Some(true)));
}

#[test]
fn a_pattern_that_would_take_too_long_is_an_error() {
    let text = format!("a LIKE '%{}b%'", "_x".repeat(490));
    assert_eq!(
        evaluate(&text, &large("x")),
        Err(EvaluationError::OutOfFuel)
    );
    let by_property = large("x").with("p", Value::String(format!("%{}b%", "_x".repeat(15_000))));
    let found = evaluate("a LIKE p", &by_property);
    assert_eq!(found, Err(EvaluationError::OutOfFuel));
}

#[test]
fn texts_do_not_grow_without_end() {
    let filter = format!("a{} = 'x'", " + a".repeat(250));
    assert!(matches!(
        evaluate(&filter, &large("x")),
        Err(EvaluationError::TooLong(_))
    ));
    let doubling = "SET a = a + a;".repeat(32);
    let action = Action::parse(&doubling, &Parameters::NONE).unwrap();
    let bytes = Parts::default().with("a", Value::from("x")).encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let error = action
        .evaluate(&message, Environment::default())
        .unwrap_err();
    assert!(
        matches!(
            error,
            ActionError::TooLarge(..) | ActionError::Evaluation(_)
        ),
        "{error}"
    );
}

#[test]
fn many_properties_and_many_names_end() {
    let mut parts = Parts::default();
    for number in 0..5_000 {
        parts = parts.with(&format!("p{number}"), Value::Int(1));
    }
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let names: Vec<String> = (0..140).map(|number| format!("P{number}")).collect();
    let filter =
        SqlFilter::parse(&format!("{} = 140", names.join("+")), &Parameters::NONE).unwrap();
    assert_eq!(
        filter.evaluate(&message, Environment::default()),
        Ok(Some(true))
    );
    let statements: Vec<String> = (0..32)
        .map(|number| format!("SET P{number}=q{number}"))
        .collect();
    let action = Action::parse(&statements.join(";"), &Parameters::NONE).unwrap();
    let changes = action.evaluate(&message, Environment::default()).unwrap();
    assert_eq!(changes.user().len(), 32);
}

#[test]
fn long_chains_of_conditions_are_no_nesting() {
    let ors = vec!["a=1"; 140].join(" OR ");
    assert_eq!(evaluate(&ors, &sample()), Ok(None));
    let sum = format!("n{} = 1", "-1".repeat(480));
    assert_eq!(evaluate(&sum, &sample()), Ok(Some(false)));
    let list = format!("n IN ({}5)", "1,".repeat(490));
    assert_eq!(evaluate(&list, &sample()), Ok(Some(true)));
    let texts = format!("s LIKE '{}' OR TRUE", "_".repeat(900));
    assert_eq!(evaluate(&texts, &sample()), Ok(Some(true)));
}

#[test]
fn what_is_no_message_is_refused_and_a_broken_section_is_empty() {
    assert!(Message::read(b"nonsense", Facts::default()).is_err());
    let filter = SqlFilter::parse("a IS NULL AND sys.Label IS NULL", &Parameters::NONE).unwrap();
    // Application properties whose map ends before its count says.
    let broken = [0x00, 0x53, 0x74, 0xc1, 0x01, 0x04];
    let message = Message::read(&broken, Facts::default()).unwrap();
    assert_eq!(
        filter.evaluate(&message, Environment::default()),
        Ok(Some(true))
    );
}

/// Pieces that texts are made of.
const WORDS: &[&str] = &[
    "a",
    "n",
    "'",
    "'x'",
    "[",
    "]",
    "(",
    ")",
    "=",
    "<>",
    "<",
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "ESCAPE",
    "IS",
    "NULL",
    "EXISTS",
    "sys.",
    "user.",
    "Label",
    "@p",
    "1",
    "-",
    "+",
    "*",
    "/",
    "%",
    ".",
    "5E3",
    ",",
    ";",
    "SET",
    "REMOVE",
    "newid()",
    "property(",
    "TRUE",
    " ",
    "ä",
    "BETWEEN",
    "\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_words_parse_or_say_where_they_do_not(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..24),
        spaced in any::<bool>(),
    ) {
        let text = words.join(if spaced { " " } else { "" });
        let bytes = sample().encode();
        let message = Message::read(&bytes, Facts::default()).unwrap();
        let within = 1..=text.chars().count() + 1;
        match SqlFilter::parse(&text, &Parameters::NONE) {
            Ok(filter) => drop(filter.evaluate(&message, Environment::default())),
            Err(error) => prop_assert!(within.contains(&error.position), "{text}: {error}"),
        }
        match Action::parse(&text, &Parameters::NONE) {
            Ok(action) => drop(action.evaluate(&message, Environment::default())),
            Err(error) => prop_assert!(within.contains(&error.position), "{text}: {error}"),
        }
        match Selector::parse(&text) {
            Ok(selector) => { let _ = selector.selects(&message); },
            Err(error) => prop_assert!(within.contains(&error.position), "{text}: {error}"),
        }
    }

    #[test]
    fn any_bytes_are_evaluated_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let filter = SqlFilter::parse("sys.Label = 'x' OR a = 1 OR sys.TimeToLive IS NULL", &Parameters::NONE).unwrap();
        let action = Action::parse("SET a = b + 1; SET sys.Label = 'x'; REMOVE c", &Parameters::NONE).unwrap();
        for prefix in [&[][..], &[0x00, 0x53, 0x74, 0xc1], &[0x00, 0x53, 0x73, 0xc0]] {
            let bytes = [prefix, &bytes].concat();
            if let Ok(message) = Message::read(&bytes, Facts::default()) {
                let _ = filter.evaluate(&message, Environment::default());
                if let Ok(changes) = action.evaluate(&message, Environment::default()) {
                    let changed = changes.apply(&message).unwrap();
                    prop_assert!(Message::read(&changed, Facts::default()).is_ok());
                }
            }
        }
    }
}
