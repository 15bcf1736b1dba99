//! From broker: the broker's errors as the conditions and sentences that clients know.

use std::fmt::Display;

use amqp::error::condition;
use amqp::{Error, Symbol};
use broker::{
    DeadLetterReason, Eviction, ForwardError, InjectedError, RequestError, RuleError, SendError,
    SettleError,
};

use dialect::condition_of;

use super::{
    EntityName, answer_too_large, bad_argument, disabled, disabled_for_send, entity_missing,
    eviction, lock_lost, sender_to_subscription, sentence, session_lock_lost, session_required,
    sessionful_receiver, too_large, transaction,
};

/// Why a send was refused. (docs/spec/amqp.md#5.5)
pub(crate) fn send(error: &SendError, entity: &EntityName<'_>) -> Error {
    match *error {
        SendError::NotFound => entity_missing(entity.resource),
        SendError::Disabled => disabled_for_send(entity.resource),
        SendError::Subscription => sender_to_subscription(entity.resource),
        SendError::QuotaExceeded { size, limit } => Error::new(
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!(
                "The maximum entity size has been reached or exceeded for {}: '{entity}'. Size of \
                 entity in bytes:{size}, Max entity size in bytes:{limit}. QuotaType: EntitySize",
                entity.kind()
            ),
        ),
        SendError::LengthExceeded { property, limit } => Error::new(
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!(
                "The queue '{}' holds as much as its {property} of {limit} allows.",
                entity.path
            ),
        ),
        SendError::TooLarge { size, limit } => too_large(size, limit),
        SendError::TooManyDestinations { .. } | SendError::NamespaceFull { .. } => Error::new(
            condition::RESOURCE_LIMIT_EXCEEDED,
            sentence(&error.to_string()),
        ),
        SendError::SessionRequired => session_required(),
        SendError::Injected(error) => injected(error, entity.resource),
        SendError::Unreadable => Error::new(
            condition::INTERNAL_ERROR,
            "The history of message ids cannot be read.",
        ),
        SendError::Transaction(ref error) => transaction(error),
        SendError::DiskNearlyFull => Error::new(
            condition::SERVER_BUSY,
            "The server is busy: its disk is nearly full. Messages can be received and settled.",
        ),
    }
}

/// Why a settlement was refused. (docs/spec/amqp.md#5.2)
pub(crate) fn settle(error: &SettleError) -> Error {
    match error {
        SettleError::LockLost => lock_lost(),
        SettleError::SessionLockLost => session_lock_lost(),
        SettleError::Enlisted => Error::new(
            condition::RESOURCE_LOCKED,
            "The message is part of an open transaction and cannot be settled outside of it.",
        ),
        SettleError::Transaction(error) => transaction(error),
        SettleError::NotAllowed => Error::new(
            condition::NOT_ALLOWED,
            "A message of a dead-letter queue cannot be dead-lettered.",
        ),
        SettleError::NotDead | SettleError::NoSession | SettleError::CannotWait => {
            Error::new(condition::NOT_ALLOWED, error.to_string())
        }
        SettleError::Injected(error) => injected(*error, ""),
    }
}

/// Why a request was refused.
pub(crate) fn request(error: &RequestError, entity: &EntityName<'_>) -> Error {
    match error {
        RequestError::NotFound => entity_missing(entity.resource),
        RequestError::Disabled => disabled(entity.resource),
        RequestError::Exclusive => eviction(Eviction::Exclusive, entity.resource),
        RequestError::LockLost => lock_lost(),
        RequestError::SessionLockLost => session_lock_lost(),
        RequestError::SessionsNotSupported => sessionful_receiver(),
        RequestError::LockedWithSession => Error::new(
            condition::NOT_ALLOWED,
            "The message is locked with its session: renew the lock of the session.",
        ),
        RequestError::Refused(error) => send(error, entity),
        RequestError::MessageNotFound(number) => message_not_found(number.0),
        RequestError::AnswerTooLarge => answer_too_large(),
        RequestError::Transaction(error) => transaction(error),
        RequestError::Injected(error) => injected(*error, entity.resource),
        RequestError::TooManyLocks => {
            Error::new(condition::SERVER_BUSY, sentence(&error.to_string()))
        }
        RequestError::Unreadable(text) => Error::new(condition::INTERNAL_ERROR, sentence(text)),
        RequestError::Invalid(text) => bad_argument(text.clone()),
    }
}

/// What a fault rule says, as if it had happened.
pub(crate) fn injected(error: InjectedError, resource: &str) -> Error {
    let mut text = sentence(&error.to_string());
    if !resource.is_empty() {
        text = format!("{text} Resource: '{resource}'.");
    }
    Error::new(condition_of(error), text)
}

/// No message of this number can be received or cancelled.
pub(crate) fn message_not_found(number: impl Display) -> Error {
    Error::new(
        condition::MESSAGE_NOT_FOUND,
        format!(
            "The message with sequence number {number} was not found, or it is neither deferred \
             nor scheduled."
        ),
    )
}

/// Why a rule was not added, removed or listed. (docs/spec/amqp.md#7.3)
pub(crate) fn rule(error: &RuleError, entity: &EntityName<'_>) -> Error {
    let resource = entity.resource;
    match error {
        RuleError::NoSubscription => Error::new(
            condition::NOT_ALLOWED,
            format!("'{resource}' is not a subscription, so it has no rules."),
        ),
        RuleError::Exists(name) => Error::new(
            condition::ENTITY_ALREADY_EXISTS,
            format!("The messaging entity '{entity}|{name}' already exists."),
        ),
        RuleError::NotFound(name) => Error::new(
            condition::NOT_FOUND,
            format!("The messaging entity '{resource}/Rules/{name}' could not be found."),
        ),
        RuleError::Injected(error) => injected(*error, resource),
        RuleError::TooMany { .. } | RuleError::TooLarge { .. } => {
            Error::new(condition::RESOURCE_LIMIT_EXCEEDED, error.to_string())
        }
        RuleError::Name(_) | RuleError::Invalid { .. } => bad_argument(error.to_string()),
    }
}

/// Why a message was not forwarded, as its dead letter says it. (docs/spec/entities.md#14.3, #14.4)
#[must_use]
pub fn describe_forward_error(error: &ForwardError) -> DeadLetterReason {
    let (reason, description) = match error {
        ForwardError::NotFound { .. } => (
            condition::NOT_FOUND,
            "The transfer destination entity does not exist.".to_owned(),
        ),
        ForwardError::Subscription { destination } => (
            condition::NOT_ALLOWED,
            format!("'{destination}' is a subscription: only its topic writes to it."),
        ),
        ForwardError::QuotaExceeded {
            destination,
            size,
            limit,
        } => (
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!(
                "'{destination}' does not take the message: the entity holds {size} bytes of {limit}."
            ),
        ),
        ForwardError::LengthExceeded {
            destination,
            property,
            limit,
        } => (
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!(
                "'{destination}' does not take the message: it holds as much as its {property} of \
                 {limit} allows."
            ),
        ),
        ForwardError::TooLarge {
            destination,
            size,
            limit,
        } => (
            condition::MESSAGE_SIZE_EXCEEDED,
            format!(
                "'{destination}' does not take the message: a message of {size} bytes is larger than \
                 {limit}."
            ),
        ),
        ForwardError::TooManyHops { limit } => (
            Symbol::new("MaxTransferHopCountExceeded"),
            format!("The message was forwarded more than {limit} times."),
        ),
        ForwardError::SessionRequired => (
            Symbol::new("Session id is null."),
            "Session enabled entity doesn't allow a message whose session identifier is null."
                .to_owned(),
        ),
    };
    DeadLetterReason {
        reason: reason.as_str().to_owned(),
        description,
    }
}
