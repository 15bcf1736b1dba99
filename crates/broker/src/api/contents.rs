//! Contents: what a namespace had at one moment, as it travels to a file and back.
//!
//! The broker says what there is and keeps it; its caller reads the messages from the store. On
//! the way back the caller brings the entities first and then their messages in pieces, and a last
//! order makes all of them part of a namespace, in one commit.

#![allow(missing_docs, reason = "the fields are named for what they are")]

use bytes::Bytes;
use store::{EntityId, Entry, Head, Index, StoredMessage};

use crate::api::namespace::NamespaceDefinition;

/// An entity of the contents, without its messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FrozenEntity {
    /// What subscriptions name it by.
    pub source: EntityId,
    pub path: String,
    /// As the row of an entity has it.
    pub definition: Bytes,
    pub head: Head,
    /// Of a subscription, as the store has them.
    pub rules: Vec<Entry>,
    /// Blocks of numbers with their least deadlines.
    pub expiries: Vec<(u64, u64)>,
}

/// What is kept until it is released.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contents {
    /// What to release.
    pub id: EntityId,
    /// Topics come before their subscriptions. Messages are in the store under the ids.
    pub entities: Vec<(EntityId, FrozenEntity)>,
}

/// A part of what an entity has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// The number of the entity in the contents.
    pub entity: usize,
    /// With their bodies. Those of one part come in ascending order of their numbers.
    pub messages: Vec<StoredMessage>,
    pub entries: Vec<(Index, Entry)>,
}

/// What a load becomes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LoadTarget {
    /// What the namespace of this name has, instead of what it has now.
    Existing(String),
    New(Box<NamespaceDefinition>),
}
