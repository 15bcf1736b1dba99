//! Errors of dynamic nodes, and of senders whose messages name their nodes.
//! (docs/spec/amqp.md#3.7, #3.9)

use amqp::Error;
use amqp::error::condition;
use broker::NodeError;

use super::{entity_missing, sentence};

/// A dynamic node where there are none.
pub(crate) fn no_dynamic_nodes() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "Dynamic nodes are not supported.",
    )
}

/// A node that is to be made with an address of the client's. (docs/spec/amqp.md#3.7)
pub(crate) fn dynamic_with_address() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "A dynamic node gets its address from the broker: the address must be null.",
    )
}

/// Properties of another type. (docs/spec/amqp.md#3.7)
pub(crate) fn bad_node_properties() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The dynamic-node-properties of a dynamic node must be a map.",
    )
}

/// A lifetime policy of another type. (docs/spec/amqp.md#3.7)
pub(crate) fn bad_lifetime_policy() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The lifetime-policy of a dynamic node must be a described list.",
    )
}

/// A lifetime policy that the standard does not have. [AMQP 3.5.10-13]
pub(crate) fn unknown_lifetime() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "The lifetime-policy of the dynamic node is not supported.",
    )
}

/// Distribution modes of another type. (docs/spec/amqp.md#3.7)
pub(crate) fn bad_distribution_modes() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The supported-dist-modes of a dynamic node must be symbols.",
    )
}

/// A node that is to hand out copies alone. (docs/spec/amqp.md#3.7)
pub(crate) fn unsupported_distribution_modes() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "The supported-dist-modes of a dynamic node must contain 'move'.",
    )
}

/// A receiver that asks for a topic: it would have neither the topic nor a queue of its own.
pub(crate) fn no_dynamic_topic_for_receiver() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "A dynamic topic is made by a sender's target, not by a receiver's source.",
    )
}

/// Why a link cannot have or use a dynamic node. (docs/spec/amqp.md#3.7)
pub(crate) fn node(error: &NodeError, resource: &str) -> Error {
    let condition = match error {
        NodeError::NotFound => return entity_missing(resource),
        NodeError::Exclusive => condition::RESOURCE_LOCKED,
        NodeError::NotInTier(_) => condition::NOT_ALLOWED,
        NodeError::TooMany { .. } | NodeError::OutOfMemory { .. } => {
            condition::RESOURCE_LIMIT_EXCEEDED
        }
    };
    Error::new(condition, sentence(&error.to_string()))
}

/// A dynamic node went while a link used it. (docs/spec/amqp.md#3.7)
pub(crate) fn node_deleted(resource: &str) -> Error {
    Error::new(
        condition::RESOURCE_DELETED,
        format!("The dynamic node '{resource}' was deleted."),
    )
}

/// A message of a sender without a target that names no node. (docs/spec/amqp.md#3.9)
pub(crate) fn no_to() -> Error {
    Error::new(
        condition::PRECONDITION_FAILED,
        "The link has no target address, so the property 'to' of each message must name its node.",
    )
}

/// A message whose `to` is too long to name anything.
pub(crate) fn relay_address_too_long(limit: usize) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("The address in the property to has more than {limit} bytes."),
    )
}

/// A message to a node of requests, whose answer needs a link of its own.
pub(crate) fn no_relay_to_node(to: &str) -> Error {
    let shown: String = to.chars().take(260).collect();
    Error::new(
        condition::NOT_ALLOWED,
        format!("Requests to '{shown}' are sent on a link of their own."),
    )
}
