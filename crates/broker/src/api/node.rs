//! Dynamic nodes: queues and topics that a client asks for by a link, and that go with it.
//! [AMQP 3.5.3] (docs/spec/amqp.md#3.7)
//!
//! A node's token tells its id, so an address leads to the node without a directory. A dialect
//! puts the token into addresses of its own form. Invariant: one node has one token.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use store::EntityId;

use crate::api::id::ConnectionId;
use crate::api::kind::EntityKind;
use crate::api::name::TEMPORARY;

/// A link of a connection that has a dynamic node as its source or target.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeLinkId {
    pub connection: ConnectionId,
    pub link: u32,
}

/// When a node goes, with its messages. [AMQP 3.5.10-13]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LifetimePolicy {
    /// The link that made it is closed.
    #[default]
    DeleteOnClose,
    /// No link uses it.
    DeleteOnNoLinks,
    /// The link that made it is closed, and no message is left.
    DeleteOnNoMessages,
    /// No link uses it, and no message is left.
    DeleteOnNoLinksOrMessages,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NodeRequest {
    pub kind: NodeKind,
    pub lifetime: LifetimePolicy,
    /// Whether only the connection that made the node may receive from it.
    pub exclusive: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeKind {
    Queue,
    Topic,
}

/// What a link does at a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeUse {
    Send,
    Receive,
}

/// A node that a link may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Node {
    /// Of a topic that the link receives from: the link's own subscription.
    pub entity: EntityId,
    pub kind: EntityKind,
}

/// Why a link cannot use a node, or have one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NodeError {
    #[error("the node does not exist")]
    NotFound,
    #[error("only the connection that made the node receives from it")]
    Exclusive,
    #[error("the connection has made {limit} dynamic nodes that are still there")]
    TooMany { limit: usize },
    #[error("dynamic nodes take {limit} bytes of memory")]
    OutOfMemory { limit: u64 },
    #[error("a namespace of the Basic tier does not have {0}")]
    NotInTier(&'static str),
}

/// The 32 hexadecimal digits that name a node.
#[must_use]
pub fn node_token(node: EntityId) -> String {
    format!("{:016x}{:016x}", node.0, checksum(node))
}

/// The node that a token names, whether it is there or not.
#[must_use]
pub fn node_of_token(token: &str) -> Option<EntityId> {
    let (id, check) = token.split_at_checked(16)?;
    let digits = |text: &str| {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    let node = EntityId(digits(id).filter(|_| check.len() == 16)?);
    let is_sound = node.is_volatile() && digits(check) == Some(checksum(node));
    is_sound.then_some(node)
}

/// The path of a node in the namespace.
#[must_use]
pub fn node_path(node: EntityId) -> String {
    format!("{TEMPORARY}{}", node_token(node))
}

/// The node that a path is that of, in any case.
#[must_use]
pub fn node_at(path: &str) -> Option<EntityId> {
    let (start, token) = path.split_at_checked(TEMPORARY.len())?;
    let is_node = start.eq_ignore_ascii_case(TEMPORARY);
    is_node.then(|| node_of_token(token)).flatten()
}

/// Tells tokens of nodes from other digits; the secret is the id itself.
fn checksum(node: EntityId) -> u64 {
    // The finalizer of SplitMix64: each bit of the id changes about half of the digits.
    let mixed = (node.0 ^ (node.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_found_by_its_path_in_any_case_and_by_no_other() {
        let node = EntityId::volatile(0x1234_5678_9abc_def0);
        let path = node_path(node);
        assert_eq!(path.len(), TEMPORARY.len() + 32);
        assert_eq!(node_at(&path), Some(node));
        assert_eq!(node_at(&path.to_uppercase()), Some(node));
        let shorter = &path[..path.len() - 1];
        let stored = format!("{TEMPORARY}{}", node_token(EntityId(7)));
        let other = format!("{}0{}", &path[..20], &path[21..]);
        let signed = format!("{TEMPORARY}+{}", &path[TEMPORARY.len() + 1..]);
        for path in ["", "orders", TEMPORARY, shorter, &stored, &other, &signed] {
            assert_eq!(node_at(path), None, "{path}");
        }
    }
}
