//! Generated sources and targets.

use amqp::{DeliveryState, Source, Symbol, Target, TargetTerminus, Value};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{fields, symbol, text};

pub fn symbols() -> impl Strategy<Value = Vec<Symbol>> {
    vec(symbol(), 0..4)
}

/// Without `session-end`: it is the default, and the other implementation leaves it out.
fn expiry_policy() -> impl Strategy<Value = Symbol> {
    prop::sample::select(vec!["link-detach", "connection-close", "never"]).prop_map(Symbol::new)
}

pub fn source(state: BoxedStrategy<DeliveryState>) -> impl Strategy<Value = Source> {
    (
        (
            option::of(text()),
            0..3u32,
            option::of(expiry_policy()),
            any::<u32>(),
            any::<bool>(),
        ),
        (
            option::of(fields()),
            option::of(Just(Symbol::new("move"))),
            option::of(fields()),
        ),
        (option::of(state), symbols(), symbols()),
    )
        .prop_map(|(one, two, three)| Source {
            address: one.0.map(Value::String),
            durable: one.1,
            expiry_policy: one.2,
            timeout: one.3,
            dynamic: one.4,
            dynamic_node_properties: two.0.map(Value::Map),
            distribution_mode: two.1,
            filter: two.2,
            default_outcome: three.0,
            outcomes: three.1,
            capabilities: three.2,
        })
}

pub fn target() -> impl Strategy<Value = TargetTerminus> {
    (
        (
            option::of(text()),
            0..3u32,
            option::of(expiry_policy()),
            any::<u32>(),
            any::<bool>(),
        ),
        (option::of(fields()), symbols()),
    )
        .prop_map(|(one, other)| {
            TargetTerminus::Node(Target {
                address: one.0.map(Value::String),
                durable: one.1,
                expiry_policy: one.2,
                timeout: one.3,
                dynamic: one.4,
                dynamic_node_properties: other.0.map(Value::Map),
                capabilities: other.1,
            })
        })
}
