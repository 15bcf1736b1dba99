//! Error: the error that one peer sends to the other. [AMQP 2.8.14]
//!
//! This file also lists the conditions that Railbus uses, so that each is spelt once.

use std::borrow::Cow;

use bytes::BytesMut;

use crate::cursor::Cursor;
use crate::decode::DecodeError;
use crate::descriptor;
use crate::encode;
use crate::fields::{Fields, mandatory};
use crate::symbol::Symbol;
use crate::value::Map;

/// A condition with a sentence for people and, seldom, further facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The kind of the error; clients decide by it.
    pub condition: Symbol,
    /// For people; some clients match on parts of it.
    pub description: Option<Cow<'static, str>>,
    /// Further facts by name.
    pub info: Option<Map>,
}

impl Error {
    /// An error without further facts.
    pub fn new(condition: Symbol, description: impl Into<Cow<'static, str>>) -> Self {
        Self {
            condition,
            description: Some(description.into()),
            info: None,
        }
    }

    /// Reads an error that stands alone in a composite's field.
    pub(crate) fn field(fields: &mut Fields<'_>) -> Result<Option<Self>, DecodeError> {
        fields.present()?.map(Self::decode).transpose()
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.descriptor()? {
            descriptor::ERROR => {}
            other => return Err(DecodeError::UnexpectedDescriptor(other)),
        }
        let mut fields = Fields::open(cursor, "error", 3)?;
        let error = Self {
            condition: mandatory(fields.symbol("condition")?, "condition")?,
            description: fields.text("description")?.map(Cow::Owned),
            info: fields.map("info")?,
        };
        fields.finish()?;
        Ok(error)
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        let start = encode::described_list(out, descriptor::ERROR, 3);
        encode::symbol(out, self.condition.as_str());
        encode::option(out, self.description.as_deref(), encode::string);
        encode::option(out, self.info.as_deref(), encode::map);
        encode::list_finish(out, start);
    }
}

/// The conditions, by the standard's names and Service Bus's. [AMQP 2.8.15-18; docs/spec/amqp.md#9]
#[allow(
    missing_docs,
    reason = "each condition is described where the standard or the contract names it"
)]
pub mod condition {
    use crate::symbol::Symbol;

    pub const INTERNAL_ERROR: Symbol = Symbol::new("amqp:internal-error");
    pub const NOT_FOUND: Symbol = Symbol::new("amqp:not-found");
    pub const UNAUTHORIZED_ACCESS: Symbol = Symbol::new("amqp:unauthorized-access");
    pub const DECODE_ERROR: Symbol = Symbol::new("amqp:decode-error");
    pub const RESOURCE_LIMIT_EXCEEDED: Symbol = Symbol::new("amqp:resource-limit-exceeded");
    pub const NOT_ALLOWED: Symbol = Symbol::new("amqp:not-allowed");
    pub const INVALID_FIELD: Symbol = Symbol::new("amqp:invalid-field");
    pub const NOT_IMPLEMENTED: Symbol = Symbol::new("amqp:not-implemented");
    pub const RESOURCE_LOCKED: Symbol = Symbol::new("amqp:resource-locked");
    pub const PRECONDITION_FAILED: Symbol = Symbol::new("amqp:precondition-failed");
    pub const RESOURCE_DELETED: Symbol = Symbol::new("amqp:resource-deleted");
    pub const ILLEGAL_STATE: Symbol = Symbol::new("amqp:illegal-state");
    pub const FRAME_SIZE_TOO_SMALL: Symbol = Symbol::new("amqp:frame-size-too-small");
    pub const CONNECTION_FORCED: Symbol = Symbol::new("amqp:connection:forced");
    pub const FRAMING_ERROR: Symbol = Symbol::new("amqp:connection:framing-error");
    pub const WINDOW_VIOLATION: Symbol = Symbol::new("amqp:session:window-violation");
    pub const ERRANT_LINK: Symbol = Symbol::new("amqp:session:errant-link");
    pub const HANDLE_IN_USE: Symbol = Symbol::new("amqp:session:handle-in-use");
    pub const UNATTACHED_HANDLE: Symbol = Symbol::new("amqp:session:unattached-handle");
    pub const DETACH_FORCED: Symbol = Symbol::new("amqp:link:detach-forced");
    pub const TRANSFER_LIMIT_EXCEEDED: Symbol = Symbol::new("amqp:link:transfer-limit-exceeded");
    pub const MESSAGE_SIZE_EXCEEDED: Symbol = Symbol::new("amqp:link:message-size-exceeded");
    pub const UNKNOWN_TRANSACTION: Symbol = Symbol::new("amqp:transaction:unknown-id");
    pub const TRANSACTION_ROLLBACK: Symbol = Symbol::new("amqp:transaction:rollback");
    pub const TRANSACTION_TIMEOUT: Symbol = Symbol::new("amqp:transaction:timeout");
    pub const STOLEN: Symbol = Symbol::new("amqp:link:stolen");
    pub const TIMEOUT: Symbol = Symbol::new("com.microsoft:timeout");
    pub const SERVER_BUSY: Symbol = Symbol::new("com.microsoft:server-busy");
    pub const MESSAGE_LOCK_LOST: Symbol = Symbol::new("com.microsoft:message-lock-lost");
    pub const SESSION_LOCK_LOST: Symbol = Symbol::new("com.microsoft:session-lock-lost");
    pub const SESSION_CANNOT_BE_LOCKED: Symbol =
        Symbol::new("com.microsoft:session-cannot-be-locked");
    pub const MESSAGE_NOT_FOUND: Symbol = Symbol::new("com.microsoft:message-not-found");
    pub const ENTITY_DISABLED: Symbol = Symbol::new("com.microsoft:entity-disabled");
    pub const ENTITY_ALREADY_EXISTS: Symbol = Symbol::new("com.microsoft:entity-already-exists");
    pub const ARGUMENT_ERROR: Symbol = Symbol::new("com.microsoft:argument-error");
    pub const ARGUMENT_OUT_OF_RANGE: Symbol = Symbol::new("com.microsoft:argument-out-of-range");
    pub const DEAD_LETTER: Symbol = Symbol::new("com.microsoft:dead-letter");
}
