//! Errors: the conditions and texts of this dialect. (docs/spec/rabbitmq.md#14)
//!
//! Clients compare some texts, so they are RabbitMQ's where it has them.

use std::fmt;

use amqp::error::condition;
use amqp::{Error, Symbol, Value};
use broker::{InjectedError, NodeError, PublishError, Resource, SendError};
use bytes::Bytes;
use dialect::RenewalError;

use crate::address::AddressError;
use crate::virtual_host::VirtualHost;

/// The reason of a queue that takes no more.
const MAX_LENGTH: Symbol = Symbol::new("maxlen");

pub(crate) fn address(error: &AddressError) -> Error {
    let text = match error {
        AddressError::Bad(text) => {
            format!("Attach rejected: {{bad_address_string,<<\"{text}\">>}}")
        }
        AddressError::BadSource(text) => {
            format!("Attach rejected: {{bad_address,{{utf8,<<\"{text}\">>}}}}")
        }
        AddressError::Unknown(text) => {
            format!("Attach rejected: {{unknown_destination,\"{text}\"}}")
        }
    };
    Error::new(condition::INVALID_FIELD, text)
}

/// A token that is not taken in the place of another.
pub(crate) fn bad_token(error: &RenewalError) -> Error {
    Error::new(condition::UNAUTHORIZED_ACCESS, error.to_string())
}

/// An address that a message's `to` has.
pub(crate) fn message_address(error: &AddressError) -> Error {
    let (AddressError::Bad(text) | AddressError::Unknown(text) | AddressError::BadSource(text)) =
        error;
    let text = format!("bad 'to' address string: {text}");
    Error::new(condition::PRECONDITION_FAILED, text)
}

pub(crate) fn no_message_address() -> Error {
    let text = "anonymous terminus requires 'to' address to be set";
    Error::new(condition::PRECONDITION_FAILED, text)
}

/// A queue or an exchange that is not there.
pub(crate) fn not_found(resource: Resource<'_>) -> Error {
    Error::new(condition::NOT_FOUND, format!("no {resource}"))
}

/// The same error, of one delivery that came settled.
pub(crate) fn of_delivery(mut error: Error, tag: Bytes) -> Error {
    let entry = (
        Value::Symbol(Symbol::new("delivery-tag")),
        Value::Binary(tag),
    );
    error.info.get_or_insert_default().push(entry);
    error
}

/// A queue that belongs to another connection. Clients look for the beginning of the text.
pub(crate) fn locked(queue: Resource<'_>) -> Error {
    let text = format!(
        "cannot obtain exclusive access to locked {queue}. It could be originally declared on \
         another connection or the exclusive property value does not match that of the original \
         declaration."
    );
    Error::new(condition::RESOURCE_LOCKED, text)
}

pub(crate) fn queue_deleted() -> Error {
    Error {
        condition: condition::RESOURCE_DELETED,
        description: None,
        info: None,
    }
}

/// `what` is the right as RabbitMQ calls it.
pub(crate) fn no_access(what: &str, resource: impl fmt::Display, user: &str) -> Error {
    let text = format!("{what} access to {resource} refused for user '{user}'");
    Error::new(condition::UNAUTHORIZED_ACCESS, text)
}

pub(crate) fn not_paired() -> Error {
    let text = "Link property 'paired' is not set to boolean value 'true'";
    Error::new(condition::INVALID_FIELD, text)
}

pub(crate) fn half_open() -> Error {
    let text = "received transfer on half open management link pair";
    Error::new(condition::PRECONDITION_FAILED, text)
}

/// A delivery that is settled, or is not, against what its link was attached with.
pub(crate) fn contrary_settlement(settled: bool) -> Error {
    let mode = if settled { "unsettled" } else { "settled" };
    let text = format!(
        "sender settle mode is '{mode}' but transfer settled flag is interpreted as being \
         '{settled}'"
    );
    Error::new(condition::INVALID_FIELD, text)
}

pub(crate) fn not_implemented(what: &str) -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        format!("{what} is not implemented"),
    )
}

pub(crate) fn no_sends(name: &str) -> Error {
    let text = format!("clients cannot send to '{name}'");
    Error::new(condition::NOT_ALLOWED, text)
}

/// A queue that serves this dialect not, for a setting that its other clients have made.
pub(crate) fn unusable(resource: Resource<'_>, why: &str) -> Error {
    let text = format!("{resource} {why}");
    Error::new(condition::PRECONDITION_FAILED, text)
}

pub(crate) fn credit_overrun() -> Error {
    let text = "the link has no credit";
    Error::new(condition::TRANSFER_LIMIT_EXCEEDED, text)
}

pub(crate) fn undecodable(error: &amqp::DecodeError) -> Error {
    Error::new(condition::DECODE_ERROR, error.to_string())
}

pub(crate) fn no_body() -> Error {
    Error::new(condition::DECODE_ERROR, "the message has no body")
}

pub(crate) fn wrong_user(claimed: &str, user: &str) -> Error {
    let text = format!("user_id property set to '{claimed}' but authenticated user was '{user}'");
    Error::new(condition::UNAUTHORIZED_ACCESS, text)
}

pub(crate) fn too_large(limit: u64) -> Error {
    let text = format!("message size > maximum message size ({limit} bytes)");
    Error::new(condition::MESSAGE_SIZE_EXCEEDED, text)
}

pub(crate) fn bad_x_cc() -> Error {
    let text = "message annotation 'x-cc' is not a list of strings";
    Error::new(condition::INVALID_FIELD, text)
}

pub(crate) fn bad_schedule() -> Error {
    let text = "message annotation 'x-opt-scheduled-enqueue-time' is not a time";
    Error::new(condition::INVALID_FIELD, text)
}

/// Why the broker refused a message for `queue`.
pub(crate) fn send(error: &SendError, queue: &str) -> Error {
    match error {
        SendError::QuotaExceeded { .. } | SendError::LengthExceeded { .. } => Error {
            condition: condition::RESOURCE_LIMIT_EXCEEDED,
            description: Some(format!("queue '{queue}' exceeded maximum length").into()),
            info: Some(vec![
                (Value::Symbol("queue".into()), Value::from(queue)),
                (Value::Symbol("reason".into()), Value::Symbol(MAX_LENGTH)),
            ]),
        },
        SendError::NamespaceFull { .. } => Error::new(
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!("queue '{queue}': {error}"),
        ),
        SendError::SessionRequired => Error::new(
            condition::INVALID_FIELD,
            format!("queue '{queue}' requires a group-id"),
        ),
        SendError::Injected(error) => injected(*error),
        other => Error::new(
            condition::PRECONDITION_FAILED,
            format!("queue '{queue}': {other}"),
        ),
    }
}

/// What a fault rule says, as if it had happened.
pub(crate) fn injected(error: InjectedError) -> Error {
    Error::new(dialect::condition_of(error), error.to_string())
}

/// Why an exchange refused a message.
pub(crate) fn publish(error: &PublishError, host: &VirtualHost) -> Error {
    match error {
        PublishError::NotFound(name) => not_found(host.exchange(name)),
        PublishError::Rejected { destination, error } => send(error, destination),
        PublishError::Internal(name) => {
            let text = format!("write access to internal {} refused", host.exchange(name));
            Error::new(condition::UNAUTHORIZED_ACCESS, text)
        }
        PublishError::Injected(error) => injected(*error),
        PublishError::TooComplex | PublishError::TooLarge { .. } => {
            Error::new(condition::RESOURCE_LIMIT_EXCEEDED, error.to_string())
        }
    }
}

/// Why a link has no reply queue.
pub(crate) fn node(queue: Resource<'_>, error: NodeError) -> Error {
    let condition = match error {
        NodeError::NotFound => return not_found(queue),
        NodeError::Exclusive => condition::RESOURCE_LOCKED,
        NodeError::NotInTier(_) => condition::NOT_ALLOWED,
        NodeError::TooMany { .. } | NodeError::OutOfMemory { .. } => {
            condition::RESOURCE_LIMIT_EXCEEDED
        }
    };
    Error::new(condition, error.to_string())
}

pub(crate) fn too_many_pairs() -> Error {
    let text = "the connection has the maximum number of management link pairs";
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
}

/// A client that sends requests and gives no credit for their responses.
pub(crate) fn unread_responses() -> Error {
    let text = "too many responses wait for credit";
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
}
