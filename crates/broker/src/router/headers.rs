//! Headers: the application properties and annotations of a message, and what a binding of a
//! headers router demands of them. (docs/spec/rabbitmq.md#8)
//!
//! Integers are compared by value whatever their width, floats likewise, texts whether string or
//! symbol. Of a header that is both, the application property counts.

use std::collections::BTreeMap;

use amqp::Value;
use amqp::message::{Sections, decode_map_section};
use bytes::Bytes;

use super::steps::Steps;
use crate::api::publication::PublishError;
use crate::api::router::RouterError;

/// The argument that says how the others are compared.
const X_MATCH: &str = "x-match";

/// The headers of a message, read when they are first asked for.
pub(super) struct Headers<'a> {
    payload: &'a Bytes,
    read: Option<BTreeMap<String, Value>>,
}

impl<'a> Headers<'a> {
    pub(super) fn new(payload: &'a Bytes) -> Self {
        let read = None;
        Self { payload, read }
    }

    fn get(&mut self) -> &BTreeMap<String, Value> {
        let payload = self.payload;
        self.read.get_or_insert_with(|| read(payload))
    }
}

/// A message was checked when it came in; what cannot be read has no headers.
fn read(payload: &Bytes) -> BTreeMap<String, Value> {
    let mut headers = BTreeMap::new();
    let Ok(sections) = Sections::scan(payload) else {
        return headers;
    };
    for section in [
        sections.application_properties,
        sections.message_annotations,
    ] {
        if section.is_empty() {
            continue;
        }
        for (key, value) in decode_map_section(&payload.slice(section)).unwrap_or_default() {
            if let Some(key) = key.as_text() {
                headers.entry(key.to_owned()).or_insert(value);
            }
        }
    }
    headers
}

/// What a binding demands.
#[derive(Debug)]
pub(super) struct HeaderMatch {
    /// All fields match, or one of them.
    all: bool,
    /// A null is any value.
    fields: Vec<(String, Value)>,
}

impl HeaderMatch {
    /// Of the arguments of a binding.
    pub(super) fn compile(arguments: &[(String, Value)]) -> Result<Self, RouterError> {
        let kind = arguments.iter().find(|(name, _)| name == X_MATCH);
        let kind = kind.map_or(Some("all"), |(_, value)| value.as_text());
        let (all, with_x) = match kind {
            Some("all") => (true, false),
            Some("any") => (false, false),
            Some("all-with-x") => (true, true),
            Some("any-with-x") => (false, true),
            Some(other) => return Err(RouterError::Match(other.to_owned())),
            None => return Err(RouterError::Match("something else than text".to_owned())),
        };
        let fields = arguments.iter().filter(|(name, _)| {
            let is_left_out = !with_x && name.starts_with("x-");
            name != X_MATCH && !is_left_out
        });
        let fields = fields.cloned().collect();
        Ok(Self { all, fields })
    }

    pub(super) fn matches(
        &self,
        headers: &mut Headers<'_>,
        steps: &mut Steps,
    ) -> Result<bool, PublishError> {
        steps.take(1 + self.fields.len())?;
        let headers = headers.get();
        let mut fields = self.fields.iter().map(|(name, wanted)| {
            let found = headers.get(name);
            found.is_some_and(|found| *wanted == Value::Null || is_same(wanted, found))
        });
        Ok(if self.all {
            fields.all(|it| it)
        } else {
            fields.any(|it| it)
        })
    }
}

#[allow(
    clippy::float_cmp,
    reason = "a header matches the very number that the binding names"
)]
fn is_same(one: &Value, two: &Value) -> bool {
    if let (Some(one), Some(two)) = (integer(one), integer(two)) {
        return one == two;
    }
    if let (Some(one), Some(two)) = (float(one), float(two)) {
        return one == two;
    }
    if let (Some(one), Some(two)) = (one.as_text(), two.as_text()) {
        return one == two;
    }
    one == two
}

fn integer(value: &Value) -> Option<i128> {
    match *value {
        Value::Timestamp(_) => None,
        Value::Ulong(n) => Some(n.into()),
        ref other => other.as_integer().map(i128::from),
    }
}

fn float(value: &Value) -> Option<f64> {
    match *value {
        Value::Float(n) => Some(n.into()),
        Value::Double(n) => Some(n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use amqp::message::encode_map_section;
    use amqp::{Symbol, descriptor};
    use bytes::BytesMut;

    use super::*;

    fn message() -> Bytes {
        let mut out = BytesMut::new();
        let annotations = [
            (symbol("x-kind"), Value::from("annotated")),
            (symbol("both"), Value::from("annotation")),
        ];
        encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
        let properties = [
            (Value::from("n"), Value::Int(5)),
            (Value::from("f"), Value::Float(0.5)),
            (Value::from("t"), Value::from("text")),
            (Value::from("b"), Value::Bool(true)),
            (Value::from("at"), Value::Timestamp(5)),
            (Value::from("both"), Value::from("property")),
        ];
        encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
        out.extend_from_slice(b"\x00\x53\x75\xa0\x02hi");
        out.freeze()
    }

    fn symbol(text: &'static str) -> Value {
        Value::Symbol(Symbol::from(text))
    }

    fn matches(kind: &str, fields: &[(&str, Value)]) -> bool {
        let fields = fields.iter().map(|(name, value)| (*name, value.clone()));
        let fields = fields.chain((!kind.is_empty()).then(|| (X_MATCH, Value::from(kind))));
        let fields: Vec<_> = fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let payload = message();
        let compiled = HeaderMatch::compile(&fields).expect("it is a good binding");
        let result = compiled.matches(&mut Headers::new(&payload), &mut Steps::new());
        result.expect("it takes few steps")
    }

    #[test]
    fn values_are_compared_within_their_family() {
        for value in [
            Value::Long(5),
            Value::Ubyte(5),
            Value::Ulong(5),
            Value::Null,
        ] {
            assert!(matches("", &[("n", value.clone())]), "{value:?}");
        }
        for value in [
            Value::Double(5.0),
            Value::from("5"),
            Value::Int(6),
            Value::Timestamp(5),
        ] {
            assert!(!matches("", &[("n", value.clone())]), "{value:?}");
        }
        assert!(matches(
            "",
            &[("f", Value::Double(0.5)), ("t", symbol("text"))]
        ));
        assert!(!matches("", &[("b", Value::Int(1))]));
        assert!(!matches("", &[("at", Value::Long(5))]));
        assert!(matches(
            "",
            &[("at", Value::Timestamp(5)), ("b", Value::Bool(true))]
        ));
    }

    #[test]
    fn all_or_any_fields_match_with_or_without_those_of_x() {
        let wrong = ("n", Value::Int(6));
        let right = ("t", Value::Null);
        let absent = ("absent", Value::Null);
        let x = ("x-kind", Value::from("annotated"));
        let wrong_x = ("x-kind", Value::from("else"));
        for (kind, fields, expected) in [
            ("all", vec![], true),
            ("any", vec![], false),
            ("any", vec![wrong.clone(), right.clone()], true),
            ("all", vec![wrong.clone(), right.clone()], false),
            ("all", vec![right.clone(), absent.clone()], false),
            ("all", vec![right.clone(), wrong_x.clone()], true),
            ("any", vec![x.clone()], false),
            ("all-with-x", vec![right.clone(), x.clone()], true),
            ("all-with-x", vec![right, wrong_x], false),
            ("any-with-x", vec![wrong, x], true),
        ] {
            assert_eq!(matches(kind, &fields), expected, "{kind} {fields:?}");
        }
        assert!(matches("", &[("both", Value::from("property"))]));
    }

    #[test]
    fn another_way_to_match_is_refused() {
        for value in [Value::from("some"), Value::Int(1)] {
            let refused = HeaderMatch::compile(&[(X_MATCH.to_owned(), value)]);
            assert!(matches!(refused, Err(RouterError::Match(_))));
        }
    }
}
