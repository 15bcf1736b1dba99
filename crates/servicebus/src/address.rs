//! Address: the node that a link's address or a token's audience names.
//! (docs/spec/amqp.md#2.4, #3.1)
//!
//! Clients write the same node in many ways: relative, with a leading slash, as a whole URI, with
//! percent escapes, in any case. All of them become one [`Node`]. The attach keeps the original
//! text for its reply.

use access::scope::{DEAD_LETTER, MANAGEMENT, TRANSFER, normalise, strip_segment};
use broker::Subqueue;

/// The name of the claims node.
pub(crate) const CBS: &str = "$cbs";

/// A node that an address names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Node {
    /// The node that takes tokens.
    Cbs,
    /// Requests about an entity, or (`None`) about the namespace.
    Management(Option<EntityAddress>),
    /// The messages of an entity.
    Entity(EntityAddress),
    /// A node that is to be made for the link. (docs/spec/amqp.md#3.7)
    Dynamic,
    /// The durable subscription that a receiver without a source names by its own name.
    /// (docs/spec/amqp.md#13.3)
    DurableSubscription,
    /// The nodes that the messages of a sender name. (docs/spec/amqp.md#3.9)
    Anonymous,
}

/// A queue or one of its subqueues.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct EntityAddress {
    /// The entity's path, in the case it was written in.
    pub(crate) entity: String,
    pub(crate) subqueue: Subqueue,
}

impl EntityAddress {
    /// The whole path, subqueue included.
    pub(crate) fn path(&self) -> String {
        let suffix = match self.subqueue {
            Subqueue::Main => "",
            Subqueue::DeadLetter => "/$DeadLetterQueue",
            Subqueue::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        };
        format!("{}{suffix}", self.entity)
    }

    fn parse(path: &str) -> Self {
        let (entity, subqueue) = match strip_segment(path, DEAD_LETTER) {
            None => (path, Subqueue::Main),
            Some(parent) => match strip_segment(parent, TRANSFER) {
                None => (parent, Subqueue::DeadLetter),
                Some(parent) => (parent, Subqueue::TransferDeadLetter),
            },
        };
        Self {
            entity: entity.to_owned(),
            subqueue,
        }
    }
}

impl Node {
    /// The node that `address` names, whether it exists or not.
    pub(crate) fn parse(address: &str) -> Self {
        let path = normalise(jms_name(address).unwrap_or(address));
        if path.eq_ignore_ascii_case(CBS) {
            return Self::Cbs;
        }
        match strip_segment(&path, MANAGEMENT) {
            Some("") => Self::Management(None),
            Some(entity) => Self::Management(Some(EntityAddress::parse(entity))),
            None => Self::Entity(EntityAddress::parse(&path)),
        }
    }

    /// The node's path as it was written, without scheme, host and escapes.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Cbs => CBS.to_owned(),
            Self::Management(None) => MANAGEMENT.to_owned(),
            Self::Management(Some(entity)) => format!("{}/{MANAGEMENT}", entity.path()),
            Self::Entity(entity) => entity.path(),
            Self::Dynamic | Self::DurableSubscription | Self::Anonymous => String::new(),
        }
    }

    /// One key for all ways to write the node.
    pub(crate) fn key(&self) -> String {
        self.name().to_lowercase()
    }
}

/// The name in `queue://NAME` or `topic://NAME`, as JMS components write destinations: there is no
/// host in them.
fn jms_name(address: &str) -> Option<&str> {
    let (scheme, name) = address.split_once("://")?;
    matches!(scheme, "queue" | "topic").then_some(name)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
