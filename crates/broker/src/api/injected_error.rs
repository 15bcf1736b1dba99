//! Injected error: what a fault rule refuses with, in the place of an answer of the broker's own.

use serde::{Deserialize, Serialize};

/// What an operation is refused with by a rule.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the texts say it")]
pub enum InjectedError {
    #[error("the server is busy, as a fault rule says")]
    ServerBusy,
    #[error("the operation has timed out, as a fault rule says")]
    Timeout,
    #[error("a quota is exceeded, as a fault rule says")]
    QuotaExceeded,
    #[error("the entity is disabled, as a fault rule says")]
    EntityDisabled,
    #[error("the entity is not found, as a fault rule says")]
    NotFound,
    #[error("a right is missing, as a fault rule says")]
    Unauthorized,
    #[error("the server has an internal error, as a fault rule says")]
    InternalError,
    #[error("the link is detached by force, as a fault rule says")]
    DetachForced,
    #[error("the connection is closed by force, as a fault rule says")]
    ConnectionForced,
}
