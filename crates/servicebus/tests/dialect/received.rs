//! Received: the messages and answers of nodes that the client received.

use amqp::Value;
use amqp::message::Sections;
use bytes::Bytes;
use endpoint::SessionId;

/// A message as the client got it.
#[derive(Clone, Debug)]
pub struct Received {
    pub session: SessionId,
    pub delivery_id: u32,
    pub tag: Bytes,
    pub settled: bool,
    pub payload: Bytes,
}

impl Received {
    pub fn sections(&self) -> Sections {
        Sections::scan(&self.payload).expect("the broker sends sound messages")
    }

    pub fn body(&self) -> Bytes {
        self.payload.slice(self.sections().body)
    }

    pub fn header(&self) -> amqp::message::Header {
        amqp::message::Header::decode(&self.payload[self.sections().header]).expect("a header")
    }

    /// A message annotation.
    pub fn annotation(&self, key: &str) -> Option<Value> {
        map_of(&self.payload, self.sections().message_annotations, key)
    }

    /// The id of a message, which must have one.
    pub fn message_id(&self) -> Value {
        let properties = self.payload.slice(self.sections().properties);
        let properties = amqp::message::Properties::decode(&properties).expect("properties");
        properties.message_id.expect("an id")
    }

    pub fn delivery_annotation(&self, key: &str) -> Option<Value> {
        map_of(&self.payload, self.sections().delivery_annotations, key)
    }

    pub fn application_property(&self, key: &str) -> Option<Value> {
        map_of(&self.payload, self.sections().application_properties, key)
    }
}

fn map_of(payload: &Bytes, range: std::ops::Range<usize>, key: &str) -> Option<Value> {
    if range.is_empty() {
        return None;
    }
    let map = amqp::message::decode_map_section(&payload.slice(range)).expect("a map");
    amqp::value::lookup(&map, key).cloned()
}

/// An answer of a node.
pub struct Response(pub Received);

impl Response {
    pub fn field(&self, key: &str) -> Option<Value> {
        self.0.application_property(key)
    }

    /// The status code of a management node.
    pub fn code(&self) -> i32 {
        match self
            .field("statusCode")
            .or_else(|| self.field("status-code"))
        {
            Some(Value::Int(code)) => code,
            other => panic!("a status code is an int, not {other:?}"),
        }
    }

    pub fn condition(&self) -> String {
        match self.field("errorCondition") {
            Some(Value::Symbol(condition)) => condition.to_string(),
            other => panic!("a condition is a symbol, not {other:?}"),
        }
    }

    pub fn correlation(&self) -> Option<Value> {
        let properties = self.0.payload.slice(self.0.sections().properties);
        amqp::message::Properties::decode(&properties)
            .expect("properties")
            .correlation_id
    }

    /// The body's value.
    pub fn body(&self) -> Value {
        let mut body = self.0.body();
        match amqp::decode::take_value(&mut body).expect("a value") {
            Value::Described(pair) => pair.1,
            other => panic!("a body section is described, not {other:?}"),
        }
    }

    pub fn entry(&self, key: &str) -> Value {
        let body = self.body();
        let map = body.as_map().expect("a map");
        amqp::value::lookup(map, key)
            .cloned()
            .expect("the entry is there")
    }
}
