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

/// A virtual host that no namespace is. (docs/spec/rabbitmq.md#2)
pub(crate) fn unknown_virtual_host(name: &str) -> Error {
    let text = format!("virtual host '{name}' does not exist: no namespace has this name.");
    Error::new(condition::NOT_ALLOWED, text)
}

/// The namespace of a connection is deleted.
pub(crate) fn namespace_deleted() -> Error {
    Error::new(
        condition::CONNECTION_FORCED,
        "The namespace of this connection was deleted.",
    )
}
