//! Generated values for the property tests, and their encodings.

mod message;
mod performative;
mod state;
mod terminus;

use amqp::{Map, Symbol, Value};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

pub use message::{header, properties, sasl};
pub use performative::{performative, plain_performative};

pub fn binary() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..300).prop_map(Bytes::from)
}

pub fn text() -> impl Strategy<Value = String> {
    let ascii = || proptest::char::range(' ', '~');
    prop_oneof![5 => vec(any::<char>(), 0..12), 4 => vec(ascii(), 0..12), 1 => vec(ascii(), 250..260)]
        .prop_map(String::from_iter)
}

pub fn symbol() -> impl Strategy<Value = Symbol> {
    prop_oneof![9 => vec(0..128u8, 0..12), 1 => vec(0..128u8, 250..260)]
        .prop_map(|name| Symbol::from(name.into_iter().map(char::from).collect::<String>()))
}

fn float() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("NaN equals nothing", |float| !float.is_nan())
}

fn double() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("NaN equals nothing", |double| !double.is_nan())
}

/// One strategy per type without items.
pub fn scalars() -> Vec<BoxedStrategy<Value>> {
    vec![
        Just(Value::Null).boxed(),
        any::<bool>().prop_map(Value::Bool).boxed(),
        any::<u8>().prop_map(Value::Ubyte).boxed(),
        any::<u16>().prop_map(Value::Ushort).boxed(),
        prop_oneof![0..300u32, any::<u32>()]
            .prop_map(Value::Uint)
            .boxed(),
        prop_oneof![0..300u64, any::<u64>()]
            .prop_map(Value::Ulong)
            .boxed(),
        any::<i8>().prop_map(Value::Byte).boxed(),
        any::<i16>().prop_map(Value::Short).boxed(),
        prop_oneof![-130..130i32, any::<i32>()]
            .prop_map(Value::Int)
            .boxed(),
        prop_oneof![-130..130i64, any::<i64>()]
            .prop_map(Value::Long)
            .boxed(),
        float().prop_map(Value::Float).boxed(),
        double().prop_map(Value::Double).boxed(),
        any::<[u8; 4]>().prop_map(Value::Decimal32).boxed(),
        any::<[u8; 8]>().prop_map(Value::Decimal64).boxed(),
        any::<[u8; 16]>().prop_map(Value::Decimal128).boxed(),
        any::<char>().prop_map(Value::Char).boxed(),
        any::<i64>().prop_map(Value::Timestamp).boxed(),
        any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        binary().prop_map(Value::Binary).boxed(),
        text().prop_map(Value::String).boxed(),
        symbol().prop_map(Value::Symbol).boxed(),
    ]
}

pub fn scalar() -> BoxedStrategy<Value> {
    proptest::strategy::Union::new(scalars()).boxed()
}

fn descriptor() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..256u64).prop_map(Value::Ulong),
        any::<u64>().prop_map(Value::Ulong),
        symbol().prop_map(Value::Symbol),
    ]
}

fn described(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (descriptor(), inner).prop_map(|pair| Value::Described(Box::new(pair)))
}

/// Elements of one variant each, so that they make an array.
fn array_of_scalars() -> impl Strategy<Value = Value> {
    proptest::strategy::Union::new(scalars().into_iter().map(|element| vec(element, 0..6)))
        .prop_map(Value::Array)
}

fn compound(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let list = vec(inner.clone(), 0..5).prop_map(Value::List).boxed();
    let map = vec((inner.clone(), inner.clone()), 0..4)
        .prop_map(Value::Map)
        .boxed();
    let described_array = (descriptor(), array_of_scalars()).prop_map(|(descriptor, array)| {
        let Value::Array(elements) = array else {
            unreachable!("it generates arrays")
        };
        let describe = |element| Value::Described(Box::new((descriptor.clone(), element)));
        Value::Array(elements.into_iter().map(describe).collect())
    });
    prop_oneof![
        list.clone(),
        map.clone(),
        described(inner),
        array_of_scalars(),
        described_array,
        vec(list, 1..4).prop_map(Value::Array),
        vec(map, 1..4).prop_map(Value::Array),
        vec(array_of_scalars(), 1..4).prop_map(Value::Array),
    ]
}

/// Any value at all.
pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 5, |inner| compound(inner).boxed())
}

/// Any map with distinct symbols for keys, which every implementation can hold.
pub fn fields() -> impl Strategy<Value = Map> {
    vec((symbol(), scalar()), 0..4).prop_map(|mut entries| {
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        entries.dedup_by(|one, other| one.0 == other.0);
        entries
            .into_iter()
            .map(|(key, value)| (Value::Symbol(key), value))
            .collect()
    })
}
