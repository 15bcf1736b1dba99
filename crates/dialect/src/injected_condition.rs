//! Injected condition: the AMQP condition of an error that a fault rule has a client given.

use amqp::Symbol;
use amqp::error::condition;
use broker::InjectedError;

/// The condition that the error would have if it had happened.
#[must_use]
pub fn condition_of(error: InjectedError) -> Symbol {
    match error {
        InjectedError::ServerBusy => condition::SERVER_BUSY,
        InjectedError::Timeout => condition::TIMEOUT,
        InjectedError::QuotaExceeded => condition::RESOURCE_LIMIT_EXCEEDED,
        InjectedError::EntityDisabled => condition::ENTITY_DISABLED,
        InjectedError::NotFound => condition::NOT_FOUND,
        InjectedError::Unauthorized => condition::UNAUTHORIZED_ACCESS,
        InjectedError::InternalError => condition::INTERNAL_ERROR,
        InjectedError::DetachForced => condition::DETACH_FORCED,
        InjectedError::ConnectionForced => condition::CONNECTION_FORCED,
    }
}
