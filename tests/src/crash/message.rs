//! Message: what the kinds send, and what the broker shows of it.

use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::value::lookup;
use amqp::{Map, Symbol, Value};
use bytes::{Bytes, BytesMut};

use super::book;
use crate::message;

/// `x-opt-message-state` of a message that can be received.
pub(super) const ACTIVE: i64 = 0;
/// Of one that can be received by its sequence number alone.
pub(super) const DEFERRED: i64 = 1;
/// Of one that waits for its time.
pub(super) const SCHEDULED: i64 = 2;

/// What a message is sent with beside its body.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub id: Option<String>,
    pub session: Option<&'a str>,
    /// When it becomes available, in milliseconds since 1970.
    pub due_ms: Option<i64>,
    /// An application property.
    pub property: Option<(&'a str, &'a str)>,
}

impl Draft<'_> {
    /// The encoded message of `number`.
    pub fn encode(self, number: u64) -> Vec<u8> {
        let mut out = BytesMut::new();
        if let Some(due) = self.due_ms {
            let name = Symbol::new("x-opt-scheduled-enqueue-time");
            let annotations = [(Value::Symbol(name), Value::Timestamp(due))];
            encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
        }
        let properties = Properties {
            message_id: self.id.map(Value::String),
            group_id: self.session.map(str::to_owned),
            ..Properties::default()
        };
        properties.encode(&mut out);
        if let Some((name, value)) = self.property {
            let map = [(Value::from(name), Value::from(value))];
            encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &map);
        }
        out.extend_from_slice(&message::encode(&book::body(number)));
        out.to_vec()
    }
}

/// A message as the broker shows it, with the body of its number.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub number: u64,
    pub sequence: i64,
    /// One of the states above, if the broker says it.
    pub state: i64,
    pub session: Option<String>,
    /// Application properties.
    pub properties: Map,
}

impl Seen {
    /// Reads an encoded message.
    pub fn read(encoded: &Bytes) -> Result<Self, String> {
        let sections = Sections::scan(encoded).map_err(|error| error.to_string())?;
        let map = |range: std::ops::Range<usize>| match range.is_empty() {
            true => Ok(Map::new()),
            false => decode_map_section(&encoded.slice(range)).map_err(|error| error.to_string()),
        };
        let annotations = map(sections.message_annotations.clone())?;
        let integer = |name| lookup(&annotations, name).and_then(Value::as_integer);
        let number = book::number_of(&message::body(encoded))?;
        let properties = sections.properties.clone();
        let session = match properties.is_empty() {
            true => None,
            false => {
                let properties = Properties::decode(&encoded.slice(properties));
                properties.map_err(|error| error.to_string())?.group_id
            }
        };
        Ok(Self {
            number,
            sequence: integer("x-opt-sequence-number")
                .ok_or_else(|| format!("message {number} has no sequence number"))?,
            state: integer("x-opt-message-state").unwrap_or(ACTIVE),
            session,
            properties: map(sections.application_properties.clone())?,
        })
    }
}
