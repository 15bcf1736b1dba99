//! Correlation filters alone and through their index. (docs/spec/entities.md#17.4)

use amqp::message::Properties;
use amqp::{Symbol, Value};
use filter::{
    Correlation, CorrelationError, CorrelationFilter, Environment, Facts, Filter, Message, Rule,
    TopicRules,
};
use proptest::prelude::*;

use crate::messages::{Parts, sample};

fn matches(fields: Correlation, parts: &Parts) -> bool {
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    CorrelationFilter::new(fields).unwrap().matches(&message)
}

fn property(name: &str, value: Value) -> Correlation {
    Correlation {
        properties: vec![(name.to_owned(), value)],
        ..Correlation::default()
    }
}

#[test]
fn all_set_fields_are_equal() {
    let fields = Correlation {
        content_type: Some("text/plain".into()),
        correlation_id: Some("7".into()),
        label: Some("label".into()),
        message_id: Some("id".into()),
        to: Some("there".into()),
        ..property("s", Value::from("abc"))
    };
    assert!(matches(fields.clone(), &sample()));
    let other = Correlation {
        label: Some("Label".into()),
        ..fields.clone()
    };
    assert!(!matches(other, &sample()));
    let missing = Correlation {
        session_id: Some("x".into()),
        ..fields
    };
    assert!(!matches(missing, &sample()));
}

#[test]
fn names_have_no_case_and_missing_is_never_equal() {
    assert!(matches(property("S", Value::from("abc")), &sample()));
    assert!(!matches(property("S", Value::from("ABC")), &sample()));
    assert!(!matches(property("missing", Value::from("abc")), &sample()));
    assert!(!matches(property("nothing", Value::from("abc")), &sample()));
    assert!(!matches(property("blob", Value::from("x")), &sample()));
}

#[test]
fn of_names_that_differ_in_case_the_exact_one_counts_and_then_the_first() {
    let both = Parts::default()
        .with("key", Value::from("lower"))
        .with("KEY", Value::from("upper"));
    assert!(matches(property("KEY", Value::from("upper")), &both));
    assert!(!matches(property("KEY", Value::from("lower")), &both));
    assert!(matches(property("key", Value::from("lower")), &both));
    // Capital letters sort in front.
    assert!(matches(property("Key", Value::from("upper")), &both));
    assert!(!matches(property("Key", Value::from("lower")), &both));
}

#[test]
fn the_index_finds_names_of_any_length_and_letters_without_case() {
    let long = "Long".repeat(30);
    for (name, sent) in [
        ("Kind", "kIND"),
        (&*long, &*long.to_lowercase()),
        ("Größe", "GRÖSSE".replace("SS", "ß").as_str()),
        // The sign of Kelvin is a k without case.
        ("kelvin", "\u{212a}elvin"),
    ] {
        let filter = CorrelationFilter::new(property(name, Value::Int(1))).unwrap();
        let filter = Filter::Correlation(filter.into());
        let name = "r".into();
        let mut rules = TopicRules::new();
        let action = None;
        rules
            .add(
                0,
                Rule {
                    name,
                    filter,
                    action,
                },
            )
            .unwrap();
        let bytes = Parts::default().with(sent, Value::Int(1)).encode();
        let message = Message::read(&bytes, Facts::default()).unwrap();
        let found = rules.evaluate(&message, Environment::default());
        assert_eq!(found.len(), 1, "{sent}");
    }
}

#[test]
fn numbers_are_equal_across_types_and_to_nothing_else() {
    for (value, expected) in [
        (Value::Long(5), true),
        (Value::Ubyte(5), true),
        (Value::Double(5.0), true),
        (Value::Float(5.0), true),
        (Value::Double(5.5), false),
        (Value::from("5"), false),
        (Value::Timestamp(5), false),
        (Value::Bool(true), false),
    ] {
        assert_eq!(
            matches(property("n", value.clone()), &sample()),
            expected,
            "{value:?}"
        );
    }
    // Equal as doubles, not as numbers.
    let near = Parts::default().with("n", Value::Long(9_007_199_254_740_993));
    assert!(!matches(
        property("n", Value::Double(9_007_199_254_740_992.0)),
        &near
    ));
    assert!(matches(property("at", Value::Timestamp(1_000)), &sample()));
    assert!(matches(
        property("id", Value::from("abababab-abab-abab-abab-abababababab")),
        &sample()
    ));
    assert!(matches(property("big", Value::Ulong(u64::MAX)), &sample()));
}

#[test]
fn ids_of_other_types_are_compared_by_their_text() {
    for (id, text) in [
        (Value::Uuid([1; 16]), "01010101-0101-0101-0101-010101010101"),
        (Value::Ulong(u64::MAX), "18446744073709551615"),
        (Value::Binary(vec![0xab, 0x01].into()), "ab01"),
        (Value::Symbol(Symbol::new("s")), "s"),
    ] {
        let parts = Parts {
            properties: Properties {
                message_id: Some(id),
                ..Properties::default()
            },
            ..Parts::default()
        };
        let fields = Correlation {
            message_id: Some(text.into()),
            ..Correlation::default()
        };
        assert!(matches(fields, &parts), "{text}");
    }
}

#[test]
fn a_filter_that_can_match_nothing_is_refused() {
    assert_eq!(
        CorrelationFilter::new(Correlation::default()),
        Err(CorrelationError::Empty)
    );
    for value in [
        Value::Null,
        Value::List(vec![]),
        Value::Binary(vec![].into()),
        Value::Double(f64::NAN),
    ] {
        assert!(CorrelationFilter::new(property("a", value)).is_err());
    }
}

/// A filter over few fields with few values, so that many match.
fn fields() -> impl Strategy<Value = Correlation> {
    let text = || proptest::option::weighted(0.3, "[ab]");
    let value = prop_oneof![
        "[ab]".prop_map(Value::String),
        (0..2).prop_map(Value::Int),
        (0..2).prop_map(|n: i32| Value::Double(n.into())),
    ];
    let properties = proptest::collection::vec(("[pqP]|[aA][bB]", value), 0..4);
    (text(), text(), text(), properties).prop_map(|(label, to, session_id, properties)| {
        Correlation {
            label,
            to,
            session_id,
            properties,
            ..Correlation::default()
        }
    })
}

fn message() -> impl Strategy<Value = Parts> {
    fields().prop_map(|fields| Parts {
        properties: Properties {
            subject: fields.label,
            to: fields.to.map(Value::String),
            group_id: fields.session_id,
            ..Properties::default()
        },
        user: fields.properties,
        ..Parts::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_index_finds_what_each_filter_says(
        all in proptest::collection::vec(fields(), 1..40),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        messages in proptest::collection::vec(message(), 1..10),
    ) {
        let filters: Vec<_> = all.into_iter().map(CorrelationFilter::new).collect();
        let mut live: Vec<Option<CorrelationFilter>> = filters.into_iter().map(Result::ok).collect();
        let mut rules = TopicRules::new();
        for (number, filter) in live.iter().enumerate() {
            if let Some(filter) = filter {
                let filter = Filter::Correlation(filter.clone().into());
                rules.add(number, Rule { name: "r".into(), filter, action: None }).unwrap();
            }
        }
        for index in removed {
            let number = index.index(live.len());
            prop_assert_eq!(rules.remove(number, "R").is_some(), live[number].take().is_some());
        }
        for parts in messages {
            let bytes = parts.encode();
            let message = Message::read(&bytes, Facts::default()).unwrap();
            let expected: Vec<usize> = live.iter().enumerate()
                .filter(|(_, filter)| filter.as_ref().is_some_and(|filter| filter.matches(&message)))
                .map(|(number, _)| number)
                .collect();
            let outcomes = rules.evaluate(&message, Environment::default());
            let found: Vec<usize> = outcomes.iter().map(|(number, _)| *number).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn an_index_forgets_shapes_that_are_gone() {
    let mut rules = TopicRules::new();
    for number in 0..1_000 {
        let filter =
            CorrelationFilter::new(property(&format!("p{number}"), Value::Int(1))).unwrap();
        let filter = Filter::Correlation(filter.into());
        rules
            .add(
                number,
                Rule {
                    name: "r".into(),
                    filter,
                    action: None,
                },
            )
            .unwrap();
        if number >= 3 {
            rules.remove(number - 3, "r").unwrap();
        }
    }
    let bytes = Parts::default()
        .with("p998", Value::Long(1))
        .with("p5", Value::Long(1))
        .encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let found = rules.evaluate(&message, Environment::default());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, 998);
}
