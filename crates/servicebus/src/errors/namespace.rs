//! Errors about namespaces. (docs/spec/amqp.md#1.7)

use amqp::Error;
use amqp::error::condition;

/// A host name of one namespace on a connection of another.
pub(crate) fn ambiguous_namespace(host: &str, before: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!(
            "The host name '{host}' is that of another namespace than '{before}' has chosen for this \
             connection."
        ),
    )
}

/// The namespace of a connection is deleted.
pub(crate) fn namespace_deleted() -> Error {
    Error::new(
        condition::CONNECTION_FORCED,
        "The namespace of this connection was deleted.",
    )
}
