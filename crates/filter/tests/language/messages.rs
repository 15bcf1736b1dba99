//! Messages to test on: a plain description, and its encoding.

use amqp::message::{Header, Properties, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use bytes::{Bytes, BytesMut};
use filter::{Environment, EvaluationError, Facts, Message, Parameters, SqlFilter};

/// A message in parts.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    pub header: Header,
    pub annotations: Vec<(&'static str, Value)>,
    pub properties: Properties,
    pub user: Vec<(String, Value)>,
}

impl Parts {
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.user.push((name.to_owned(), value));
        self
    }

    pub fn labelled(mut self, label: &str) -> Self {
        self.properties.subject = Some(label.to_owned());
        self
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        if self.header != Header::default() {
            self.header.encode(&mut out);
        }
        if !self.annotations.is_empty() {
            let annotations: Vec<_> = self
                .annotations
                .iter()
                .map(|(name, value)| (Symbol::new(name).into(), value.clone()))
                .collect();
            encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
        }
        if self.properties != Properties::default() {
            self.properties.encode(&mut out);
        }
        if !self.user.is_empty() {
            let user: Vec<_> = self
                .user
                .iter()
                .map(|(name, value)| (Value::from(name.as_str()), value.clone()))
                .collect();
            encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &user);
        }
        out.extend_from_slice(BODY);
        out.freeze()
    }
}

/// A data section.
pub const BODY: &[u8] = &[0x00, 0x53, 0x75, 0xa0, 0x04, b'b', b'o', b'd', b'y'];

/// One of everything.
pub fn sample() -> Parts {
    Parts {
        annotations: vec![
            ("x-opt-partition-key", Value::from("key")),
            ("x-opt-scheduled-enqueue-time", Value::Timestamp(5_000)),
        ],
        header: Header {
            ttl: Some(60_000),
            ..Header::default()
        },
        properties: Properties {
            message_id: Some(Value::from("id")),
            correlation_id: Some(Value::Ulong(7)),
            to: Some(Value::from("there")),
            content_type: Some(Symbol::new("text/plain")),
            ..Properties::default()
        },
        user: Vec::new(),
    }
    .labelled("label")
    .with("n", Value::Int(5))
    .with("d", Value::Double(2.5))
    .with("s", Value::from("abc"))
    .with("yes", Value::Bool(true))
    .with("no", Value::Bool(false))
    .with("nothing", Value::Null)
    .with("blob", Value::Binary(Bytes::from_static(b"x")))
    .with("id", Value::Uuid([0xab; 16]))
    .with("at", Value::Timestamp(1_000))
    .with("big", Value::Ulong(u64::MAX))
    .with("span", timespan(20_000))
}

pub fn timespan(ticks: i64) -> Value {
    described("com.microsoft:timespan", Value::Long(ticks))
}

pub fn described(name: &'static str, value: Value) -> Value {
    Value::Described(Box::new((Symbol::new(name).into(), value)))
}

/// What an SQL filter says about a message.
pub fn evaluate(text: &str, parts: &Parts) -> Result<Option<bool>, EvaluationError> {
    let filter =
        SqlFilter::parse(text, &Parameters::NONE).unwrap_or_else(|e| panic!("{text}: {e}"));
    let bytes = parts.encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    filter.evaluate(&message, Environment::default())
}

/// Each line: `T`, `F`, `U` or `E` for an error, and an expression on the sample.
pub fn check_table(parts: &Parts, table: &str) {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        let (expected, text) = line.split_once(' ').unwrap();
        let found = match evaluate(text, parts) {
            Ok(Some(true)) => "T",
            Ok(Some(false)) => "F",
            Ok(None) => "U",
            Err(_) => "E",
        };
        assert_eq!(found, expected, "{text}");
    }
}
