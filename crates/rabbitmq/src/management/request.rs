//! Request: reads a request of a management pair. (docs/spec/rabbitmq.md#5)
//!
//! Some clients write the body before the properties (rule 6).

use amqp::message::{BodyKind, Properties, scan_in_any_order};
use amqp::{DecodeError, Value, decode};
use bytes::Bytes;

use amqp::items;

/// What is done with what a path names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Method {
    Get,
    Put,
    Post,
    Delete,
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) message_id: Option<Value>,
    pub(crate) method: Option<Method>,
    pub(crate) path: String,
    /// Behind the path.
    pub(crate) query: String,
    pub(crate) body: Option<Value>,
    /// Bytes that it came in.
    pub(crate) size: usize,
}

impl Request {
    /// Reads a message; one that is none is a request without a method.
    pub(crate) fn read(payload: &Bytes) -> Self {
        let request = Self::decode(payload).unwrap_or_default();
        Self {
            size: payload.len(),
            ..request
        }
    }

    fn decode(payload: &Bytes) -> Result<Self, DecodeError> {
        let (payload, sections) = scan_in_any_order(payload)?;
        let properties = match sections.properties.is_empty() {
            true => Properties::default(),
            false => Properties::decode(&payload.slice(sections.properties.clone()))?,
        };
        let method = match properties.subject.as_deref() {
            Some("GET") => Some(Method::Get),
            Some("PUT") => Some(Method::Put),
            Some("POST") => Some(Method::Post),
            Some("DELETE") => Some(Method::Delete),
            _ => None,
        };
        let to = properties.to.as_ref().and_then(Value::as_text);
        let to = to.unwrap_or_default();
        let (path, query) = to.split_once('?').unwrap_or((to, ""));
        let body = match sections.body_kind {
            BodyKind::Value => {
                let body = payload.slice(sections.body.clone());
                let value = items::undescribed(&body)?;
                Some(decode::value(&body.slice_ref(value))?)
            }
            _ => None,
        };
        Ok(Self {
            message_id: properties.message_id,
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            body,
            size: 0,
        })
    }
}
