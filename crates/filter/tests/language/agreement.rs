//! Agreement: the crate and the naive interpreter on a million pairs of expression and message.

use filter::{
    Environment, EvaluationError, Facts, Message, Parameters, Selector, SqlFilter, TypeMismatch,
};

use crate::generate::{Random, message, selector, sql};
use crate::messages::Parts;
use crate::naive::{Expression, Failure, Language, Naive};

/// Pairs of filters and messages, and of selectors and messages.
const FILTER_PAIRS: usize = 1_000_000;
const SELECTOR_PAIRS: usize = 250_000;
/// Messages that an expression is evaluated on.
const MESSAGES: usize = 10;
/// Longer texts are not allowed.
const MAX_TEXT: usize = 1_024;

fn failure(error: EvaluationError) -> Failure {
    match error {
        EvaluationError::Mismatch(..) | EvaluationError::WrongKind(..) => Failure::Mismatch,
        EvaluationError::DivisionByZero => Failure::DivisionByZero,
        EvaluationError::OutOfRange => Failure::Range,
        EvaluationError::BadEscape | EvaluationError::DanglingEscape => Failure::Escape,
        other => panic!("{other}"),
    }
}

/// Messages to choose from, encoded once.
fn messages(random: &mut Random) -> Vec<(Parts, bytes::Bytes)> {
    let parts = (0..1_000).map(|_| message(random));
    parts.map(|parts| (parts.clone(), parts.encode())).collect()
}

/// How often each result came up: true, false, unknown, error.
#[derive(Default)]
struct Tally([usize; 4]);

impl Tally {
    fn count(&mut self, result: Result<Option<bool>, Failure>) {
        self.0[match result {
            Ok(Some(true)) => 0,
            Ok(Some(false)) => 1,
            Ok(None) => 2,
            Err(_) => 3,
        }] += 1;
    }

    /// A generator that never gets somewhere tests nothing there.
    fn check(&self, results: usize) {
        let least = self.all() / 20;
        let all_came_up = self.0[..results].iter().all(|count| *count > least);
        assert!(all_came_up, "{:?}", self.0);
    }

    fn all(&self) -> usize {
        self.0.iter().sum()
    }
}

#[test]
fn a_million_filters_and_messages_evaluate_as_the_naive_interpreter_says() {
    let mut random = Random(1);
    let messages = messages(&mut random);
    let mut tally = Tally::default();
    let mut number = 0;
    while tally.all() < FILTER_PAIRS {
        number += 1;
        let depth = random.below(5);
        let expression = sql(&mut random, depth);
        let lenient = number % 4 == 0;
        let language = Language::Sql { lenient };
        let text = expression.print(language);
        if text.chars().count() > MAX_TEXT {
            continue;
        }
        let filter =
            SqlFilter::parse(&text, &Parameters::NONE).unwrap_or_else(|e| panic!("{text}: {e}"));
        let type_mismatch = if lenient {
            TypeMismatch::Unknown
        } else {
            TypeMismatch::Error
        };
        let environment = Environment {
            type_mismatch,
            seed: 0,
        };
        for _ in 0..MESSAGES {
            let (parts, bytes) = &messages[random.below(messages.len())];
            let expected = expected(&expression, parts, language);
            let message = Message::read(bytes, Facts::default()).unwrap();
            let found = filter.evaluate(&message, environment).map_err(failure);
            assert_eq!(found, expected, "{text}\n{parts:?}");
            tally.count(found);
        }
    }
    tally.check(4);
}

#[test]
fn selectors_evaluate_as_the_naive_interpreter_says() {
    let mut random = Random(2);
    let messages = messages(&mut random);
    let mut tally = Tally::default();
    while tally.all() < SELECTOR_PAIRS {
        let depth = random.below(5);
        let expression = selector(&mut random, depth);
        let text = expression.print(Language::Jms);
        if text.chars().count() > MAX_TEXT {
            continue;
        }
        let selector = Selector::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        for _ in 0..MESSAGES {
            let (parts, bytes) = &messages[random.below(messages.len())];
            let expected = expected(&expression, parts, Language::Jms);
            let message = Message::read(bytes, Facts::default()).unwrap();
            let found = Ok(selector.evaluate(&message));
            assert_eq!(found, expected, "{text}\n{parts:?}");
            tally.count(found);
        }
    }
    tally.check(3);
}

#[test]
fn an_expression_that_is_explained_means_the_same() {
    let mut random = Random(3);
    let messages = messages(&mut random);
    for _ in 0..20_000 {
        let depth = random.below(5);
        let sql_text = sql(&mut random, depth).print(Language::Sql { lenient: false });
        let jms_text = selector(&mut random, depth).print(Language::Jms);
        let bytes = &messages[random.below(messages.len())].1;
        let message = Message::read(bytes, Facts::default()).unwrap();
        check_explained(&sql_text, &message);
        check_explained_selector(&jms_text, &message);
    }
}

fn check_explained(text: &str, message: &Message<'_>) {
    let explain = |text: &str| SqlFilter::explain(text, &Parameters::NONE);
    // What is explained may be too long to be parsed again.
    let Ok(explained) = explain(text) else { return };
    let Ok(again) = explain(&explained) else {
        assert!(explained.chars().count() > MAX_TEXT, "{explained}");
        return;
    };
    assert_eq!(again, explained);
    let evaluate = |text: &str| {
        let filter = SqlFilter::parse(text, &Parameters::NONE).unwrap();
        filter.evaluate(message, Environment::default())
    };
    assert_eq!(evaluate(&explained), evaluate(text), "{text}");
}

fn check_explained_selector(text: &str, message: &Message<'_>) {
    let Ok(explained) = Selector::explain(text) else {
        return;
    };
    let Ok(again) = Selector::explain(&explained) else {
        assert!(explained.chars().count() > MAX_TEXT, "{explained}");
        return;
    };
    assert_eq!(again, explained);
    let evaluate = |text: &str| Selector::parse(text).unwrap().evaluate(message);
    assert_eq!(evaluate(&explained), evaluate(text), "{text}");
}

fn expected(
    expression: &Expression,
    parts: &Parts,
    language: Language,
) -> Result<Option<bool>, Failure> {
    Naive { parts, language }.truth(expression)
}
