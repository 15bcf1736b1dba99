//! Response: the answer to a request. (docs/spec/rabbitmq.md#5; rules 7, 8)

use amqp::error::condition;
use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{Error, Value, encode};
use broker::Resource;
use bytes::{Bytes, BytesMut};

use crate::errors;
use crate::message::AMQP_VALUE;

/// A status code with a body; that of an error is its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    status: u16,
    body: Value,
}

impl Response {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            body: Value::String(text.into()),
        }
    }

    pub(crate) fn with(status: u16, body: Value) -> Self {
        Self { status, body }
    }

    /// About a queue that belongs to another connection.
    pub(crate) fn locked(queue: Resource<'_>) -> Self {
        let error = errors::locked(queue);
        Self::new(400, error.description.as_deref().unwrap_or_default())
    }

    pub(crate) fn no_content() -> Self {
        Self::with(204, Value::Null)
    }

    /// For the operator's log.
    pub(crate) fn error(&self) -> Option<Error> {
        let text = self.body.as_text()?.to_owned();
        let condition = match self.status {
            404 => condition::NOT_FOUND,
            409 => condition::PRECONDITION_FAILED,
            403 => condition::NOT_ALLOWED,
            _ => condition::INVALID_FIELD,
        };
        Some(Error::new(condition, text))
    }

    /// The message, whose correlation id is the request's message id.
    pub(crate) fn encode(&self, correlation_id: Option<Value>) -> Bytes {
        let mut out = BytesMut::new();
        Properties {
            subject: Some(self.status.to_string()),
            correlation_id,
            ..Properties::default()
        }
        .encode(&mut out);
        let version = (Value::from("http:response"), Value::from("1.1"));
        encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &[version]);
        encode::descriptor(&mut out, AMQP_VALUE);
        encode::value(&mut out, &self.body);
        out.freeze()
    }
}
