//! Attribute: a key and a value as OTLP has them.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// An attribute whose value is a string.
pub fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

/// An attribute whose value is an integer.
pub fn integer(key: &str, value: impl Into<i64>) -> KeyValue {
    attribute(key, Value::IntValue(value.into()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
