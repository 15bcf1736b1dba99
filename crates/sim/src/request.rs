//! Request: what clients ask of `$management`, and what comes back.

use amqp::encode;
use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::value::{Map, lookup};
use amqp::{Value, decode};
use bytes::{Bytes, BytesMut};

/// A request to `node`, named `id`.
#[must_use]
pub fn request(id: u64, node: &str, operation: &str, body: Map) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::Ulong(id)),
        reply_to: Some(Value::String(node.to_owned())),
        ..Properties::default()
    };
    properties.encode(&mut out);
    encode_map_section(
        &mut out,
        descriptor::APPLICATION_PROPERTIES,
        &[("operation".into(), operation.into())],
    );
    encode::value(
        &mut out,
        &Value::described(descriptor::VALUE, Value::Map(body)),
    );
    out.freeze()
}

/// An answer.
#[allow(missing_docs, reason = "named for what they are")]
pub struct Response {
    /// The request's name.
    pub correlation: u64,
    pub code: i64,
    pub body: Map,
}

impl Response {
    /// Reads an answer; `None` if it is none.
    #[must_use]
    pub fn decode(payload: &Bytes) -> Option<Self> {
        let sections = Sections::scan(payload).ok()?;
        let properties = Properties::decode(&payload.slice(sections.properties)).ok()?;
        let application =
            decode_map_section(&payload.slice(sections.application_properties)).ok()?;
        let Some(Value::Ulong(correlation)) = properties.correlation_id else {
            return None;
        };
        let code = lookup(&application, "statusCode")?.as_integer()?;
        let body = match decode::value(&payload.slice(sections.body)).ok()? {
            Value::Described(described) => described.1.as_map().cloned().unwrap_or_default(),
            _ => return None,
        };
        Some(Self {
            correlation,
            code,
            body,
        })
    }

    /// Lock token, if there is one, and encoded message.
    #[must_use]
    pub fn messages(&self) -> Vec<(Option<[u8; 16]>, Bytes)> {
        let Some(Value::List(messages)) = lookup(&self.body, "messages") else {
            return Vec::new();
        };
        messages
            .iter()
            .filter_map(Value::as_map)
            .filter_map(|message| {
                let token = match lookup(message, "lock-token") {
                    Some(Value::Uuid(token)) => Some(*token),
                    _ => None,
                };
                match lookup(message, "message") {
                    Some(Value::Binary(bytes)) => Some((token, bytes.clone())),
                    _ => None,
                }
            })
            .collect()
    }
}
