//! The cost of rules per message: a typical SQL filter, and correlation filters by the index.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{Map, Value};
use bytes::{Bytes, BytesMut};
use criterion::{Criterion, criterion_group, criterion_main};
use filter::{
    Action, Correlation, CorrelationFilter, Environment, Facts, Filter, Message, Parameters, Rule,
    SqlFilter, TopicRules,
};

const TYPICAL: &str = "sys.Label = 'order' AND total > 100 AND region IN ('eu', 'us')";

/// A message with some properties, as an application sends it.
fn message() -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::from("5b1a9e6c-2f6e-4e0c-9d3b-3f1f0f8d7a10")),
        subject: Some("order".to_owned()),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let user: Map = [
        ("tenant", Value::from("tenant 7")),
        ("total", Value::Int(250)),
        ("region", Value::from("us")),
        ("priority", Value::Bool(false)),
        ("customer", Value::from("customer 5")),
    ]
    .into_iter()
    .map(|(name, value)| (Value::from(name), value))
    .collect();
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &user);
    out.extend_from_slice(&[0x00, 0x53, 0x75, 0xa0, 0x00]);
    out.freeze()
}

fn sql(c: &mut Criterion) {
    let bytes = message();
    let filter = SqlFilter::parse(TYPICAL, &Parameters::NONE).unwrap();
    c.bench_function("parse a filter", |b| {
        b.iter(|| SqlFilter::parse(black_box(TYPICAL), &Parameters::NONE));
    });
    c.bench_function("read a message, evaluate a filter", |b| {
        b.iter(|| {
            let message = Message::read(black_box(&bytes), Facts::default()).unwrap();
            filter.evaluate(&message, Environment::default())
        });
    });
    let message = Message::read(&bytes, Facts::default()).unwrap();
    c.bench_function("evaluate a filter more", |b| {
        b.iter(|| filter.evaluate(black_box(&message), Environment::default()));
    });
    let action = Action::parse("SET total = total + 1; REMOVE region", &Parameters::NONE).unwrap();
    c.bench_function("evaluate and apply an action", |b| {
        b.iter(|| {
            action
                .evaluate(black_box(&message), Environment::default())
                .unwrap()
                .apply(&message)
        });
    });
}

/// Filters by two fields, one of which is their own.
fn correlations(count: usize) -> TopicRules<usize> {
    let mut rules = TopicRules::new();
    for number in 0..count {
        let fields = Correlation {
            label: Some("order".to_owned()),
            properties: vec![(
                "customer".to_owned(),
                Value::String(format!("customer {number}")),
            )],
            ..Correlation::default()
        };
        let filter = Filter::Correlation(CorrelationFilter::new(fields).unwrap().into());
        let name = format!("rule {number}");
        rules
            .add(
                number % 2_000,
                Rule {
                    name,
                    filter,
                    action: None,
                },
            )
            .unwrap();
    }
    rules
}

fn index(c: &mut Criterion) {
    let bytes = message();
    for count in [10, 100_000] {
        let rules = correlations(count);
        c.bench_function(&format!("{count} correlation filters"), |b| {
            b.iter(|| {
                let message = Message::read(black_box(&bytes), Facts::default()).unwrap();
                rules.evaluate(&message, Environment::default())
            });
        });
    }
    c.bench_function("build 100,000 correlation filters", |b| {
        b.iter(|| correlations(100_000));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = sql, index
}
criterion_main!(benches);
