//! Errors: the broker's errors as statuses of the data plane. (docs/spec/admin.md#11)

use broker::{Eviction, InjectedError, RequestError, SendError, SettleError};
use http::StatusCode;

use crate::error::Error;

/// There is no such queue, topic or subscription.
#[must_use]
pub fn gone(entity: &str) -> Error {
    let text = format!("The messaging entity '{entity}' could not be found.");
    Error::new(StatusCode::GONE, Some(41_000), text)
}

/// The request is invalid, with the reason.
#[must_use]
pub fn invalid(why: &str) -> Error {
    Error::bad(format!("Bad Request. {why}"))
}

/// A message is larger than its entity lets it be.
#[must_use]
pub fn too_large(limit: u64) -> Error {
    let text = format!("The message is larger than is allowed here: {limit} bytes.");
    forbidden(text)
}

/// Messages are moved to a dead-letter queue, never sent there.
#[must_use]
pub fn dead_letter_only() -> Error {
    invalid("Messages cannot be sent to a dead-letter queue.")
}

fn forbidden(text: String) -> Error {
    Error::new(StatusCode::FORBIDDEN, Some(40_300), text)
}

fn invalid_operation(text: String) -> Error {
    Error::new(StatusCode::FORBIDDEN, Some(40_301), text)
}

/// Why messages were not taken.
#[must_use]
pub fn send(error: &SendError, entity: &str) -> Error {
    match error {
        SendError::NotFound => gone(entity),
        SendError::Disabled => invalid_operation(format!(
            "The messaging entity '{entity}' is disabled for Send operations."
        )),
        SendError::Subscription => {
            invalid("Messages are sent to a topic, and come to its subscriptions.")
        }
        SendError::QuotaExceeded { .. }
        | SendError::NamespaceFull { .. }
        | SendError::LengthExceeded { .. }
        | SendError::TooLarge { .. }
        | SendError::TooManyDestinations { .. } => forbidden(format!("Quota exceeded: {error}.")),
        SendError::SessionRequired => {
            invalid("The entity requires sessions: BrokerProperties have to name the SessionId.")
        }
        SendError::DiskNearlyFull => Error::unavailable(),
        SendError::Injected(error) => injected(*error),
        SendError::Unreadable | SendError::Transaction(_) => {
            let text = format!("The messages were not taken: {error}.");
            Error::new(StatusCode::INTERNAL_SERVER_ERROR, Some(50_000), text)
        }
    }
}

/// Why an entity accepts no receive.
#[must_use]
pub fn evicted(reason: Eviction, entity: &str) -> Error {
    match reason {
        Eviction::NotFound => gone(entity),
        Eviction::Disabled => {
            invalid_operation(format!("The messaging entity '{entity}' is disabled."))
        }
        Eviction::Forwarding => invalid(
            "Nothing is received from a topic, or from an entity that forwards its messages.",
        ),
        Eviction::SessionRequired => {
            invalid("The entity requires sessions, which are received over AMQP only.")
        }
        Eviction::Exclusive => invalid("The queue belongs to a connection of AMQP."),
        Eviction::Restored => Error::unavailable(),
        Eviction::Injected(error) => injected(error),
        Eviction::Unreadable { .. } => {
            let text = format!("No message was taken: {reason}.");
            Error::new(StatusCode::INTERNAL_SERVER_ERROR, Some(50_000), text)
        }
    }
}

/// No lock has this name.
#[must_use]
pub fn no_lock() -> Error {
    lock_lost("a token is a GUID")
}

/// The lock is lost.
#[must_use]
pub fn lock(error: &SettleError) -> Error {
    if let SettleError::Injected(error) = error {
        return injected(*error);
    }
    lock_lost(&error.to_string())
}

/// Why a lock was not renewed.
#[must_use]
pub fn request(error: &RequestError, entity: &str) -> Error {
    match error {
        RequestError::NotFound => gone(entity),
        RequestError::Injected(error) => injected(*error),
        RequestError::Unreadable(text) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Error::new(status, Some(50_000), format!("{text}."))
        }
        error => lock_lost(&error.to_string()),
    }
}

/// What a fault rule says, as if it had happened.
#[must_use]
pub fn injected(error: InjectedError) -> Error {
    let (status, code) = match error {
        InjectedError::ServerBusy
        | InjectedError::DetachForced
        | InjectedError::ConnectionForced => (StatusCode::SERVICE_UNAVAILABLE, 50_002),
        InjectedError::Timeout => (StatusCode::GATEWAY_TIMEOUT, 50_400),
        InjectedError::QuotaExceeded => (StatusCode::FORBIDDEN, 40_300),
        InjectedError::EntityDisabled => (StatusCode::FORBIDDEN, 40_301),
        InjectedError::NotFound => (StatusCode::NOT_FOUND, 40_400),
        InjectedError::Unauthorized => (StatusCode::UNAUTHORIZED, 40_100),
        InjectedError::InternalError => (StatusCode::INTERNAL_SERVER_ERROR, 50_000),
    };
    Error::new(status, Some(code), format!("{error}."))
}

fn lock_lost(why: &str) -> Error {
    let text = format!("The message is not locked by this token: {why}.");
    Error::new(StatusCode::NOT_FOUND, Some(40_400), text)
}
