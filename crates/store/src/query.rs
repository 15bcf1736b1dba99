//! Query: what a broker may ask its store for. Every scan names both of its bounds.

#![allow(missing_docs, reason = "the fields are named for what they are")]

use bytes::Bytes;

use crate::id::{EntityId, Part, SequenceNumber};
use crate::record::MessageRow;

/// A question to a [`Reader`](crate::Reader).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Query {
    /// Messages of one part with `from <= number < until`, at most `limit` of them and, when bodies
    /// are asked for, no more once `max_bytes` of bodies are collected (at least one).
    Range {
        entity: EntityId,
        part: Part,
        from: SequenceNumber,
        until: SequenceNumber,
        limit: usize,
        bodies: bool,
        max_bytes: usize,
    },
    /// The named messages of one part; those that are not there are left out.
    Points {
        entity: EntityId,
        part: Part,
        numbers: Vec<SequenceNumber>,
        bodies: bool,
    },
}

/// A message as the store has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredMessage {
    pub part: Part,
    pub number: SequenceNumber,
    pub row: MessageRow,
    pub delivery_count: u32,
    /// Read together with the body.
    pub patch: Option<Bytes>,
    /// When asked for; verified against its checksum.
    pub body: Option<Bytes>,
}
