//! Response: encodes the answer of a request-response node. (docs/spec/amqp.md#2.3, #7.1)
//!
//! The two kinds of node name the fields of their status differently, and clients check the exact
//! types: codes are int, conditions are symbols, and the correlation id has the type of the
//! request's message id.

use amqp::encode;
use amqp::message::{Header, Properties, descriptor, encode_map_section};
use amqp::{Error, Symbol, Value};
use bytes::{Bytes, BytesMut};

/// How a node names the fields of its status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NodeKind {
    /// `status-code`; no condition, since one client forgets the code when there is one.
    Cbs,
    /// `statusCode`.
    Management,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: i32,
    pub(crate) description: String,
    pub(crate) condition: Option<Symbol>,
}

impl Status {
    pub(crate) const fn new(code: i32, description: String) -> Self {
        Self {
            code,
            description,
            condition: None,
        }
    }

    pub(crate) fn ok() -> Self {
        Self::new(200, "OK".to_owned())
    }

    pub(crate) fn no_content() -> Self {
        Self::new(204, "No Content".to_owned())
    }

    /// The status of an error. (docs/spec/amqp.md#7.2)
    pub(crate) fn of(error: Error) -> Self {
        let code = code(error.condition.as_str());
        let description = error.description.unwrap_or_default().into_owned();
        Self {
            code,
            description,
            condition: Some(error.condition),
        }
    }
}

/// The code of a condition. (docs/spec/amqp.md#7.2)
fn code(condition: &str) -> i32 {
    match condition {
        "com.microsoft:argument-error"
        | "com.microsoft:argument-out-of-range"
        | "com.microsoft:entity-disabled"
        | "amqp:not-allowed"
        | "amqp:invalid-field"
        | "amqp:decode-error"
        | "amqp:resource-locked"
        | "amqp:transaction:unknown-id"
        | "amqp:transaction:timeout" => 400,
        "amqp:unauthorized-access" => 401,
        "amqp:resource-limit-exceeded" | "amqp:link:message-size-exceeded" => 403,
        "amqp:not-found" | "com.microsoft:message-not-found" => 404,
        "com.microsoft:timeout" => 408,
        "com.microsoft:entity-already-exists" => 409,
        "com.microsoft:message-lock-lost"
        | "com.microsoft:session-lock-lost"
        | "com.microsoft:session-cannot-be-locked" => 410,
        "amqp:not-implemented" => 501,
        "com.microsoft:server-busy" => 503,
        _ => 500,
    }
}

/// An answer to the request whose message id was `correlation`; `body` writes the body's value.
pub(crate) fn encode(
    dialect: NodeKind,
    correlation: Option<Value>,
    status: Status,
    body: impl FnOnce(&mut BytesMut),
) -> Bytes {
    let mut out = BytesMut::new();
    Header {
        delivery_count: Some(0),
        ..Header::default()
    }
    .encode(&mut out);
    Properties {
        correlation_id: correlation,
        ..Properties::default()
    }
    .encode(&mut out);
    encode_map_section(
        &mut out,
        descriptor::APPLICATION_PROPERTIES,
        &fields(dialect, status),
    );
    encode::descriptor(&mut out, 0x77);
    body(&mut out);
    out.freeze()
}

fn fields(dialect: NodeKind, status: Status) -> Vec<(Value, Value)> {
    let (code, description) = match dialect {
        NodeKind::Cbs => ("status-code", "status-description"),
        NodeKind::Management => ("statusCode", "statusDescription"),
    };
    let mut fields = vec![
        (Value::from(code), Value::Int(status.code)),
        (Value::from(description), Value::String(status.description)),
    ];
    if let (NodeKind::Management, Some(condition)) = (dialect, status.condition) {
        fields.push((Value::from("errorCondition"), Value::Symbol(condition)));
    }
    fields
}

/// The body of errors and of empty answers. (docs/spec/amqp.md#7.1)
pub(crate) fn empty_map(out: &mut BytesMut) {
    encode::map(out, &[]);
}
