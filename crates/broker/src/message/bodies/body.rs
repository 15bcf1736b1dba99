//! Body: a message's payload as it is in memory, and what belongs to it.

use std::sync::Arc;

use bytes::Bytes;

use crate::api::rule::Distribution;
use crate::message::patch::Patch;

/// Smaller payloads get their own allocation when they stay: a slice would pin the whole buffer
/// that the socket was read into. (Architecture: a slice pins its buffer)
pub(super) const COPY_LIMIT: usize = 4 * 1024;
/// What a resident body costs besides its bytes.
pub(super) const OVERHEAD: usize = 128;

/// A message's payload and the properties changed since it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub payload: Bytes,
    pub memory: Memory,
    pub patch: Option<Box<Patch>>,
    /// What its topic's rules made of it when it was sent.
    pub distribution: Option<Arc<Distribution>>,
}

/// What shares the memory that a payload lies in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Memory {
    /// Whatever else was read from the socket with it.
    Received,
    /// Nothing.
    Own,
    /// The copies of the message that a topic has made.
    Shared,
}

impl Body {
    /// A payload that has its own allocation.
    pub(crate) fn new(payload: Bytes, patch: Option<Box<Patch>>) -> Self {
        Self {
            payload,
            memory: Memory::Own,
            patch,
            distribution: None,
        }
    }

    /// As it comes from a socket.
    pub(crate) fn received(payload: Bytes) -> Self {
        Self {
            memory: Memory::Received,
            ..Self::new(payload, None)
        }
    }

    /// Lets its clones be kept at the cost of one.
    pub(crate) fn share(&mut self) {
        self.own();
        self.memory = Memory::Shared;
    }

    /// Leaves the buffer that it was read into, if it is small.
    pub(super) fn own(&mut self) {
        if self.memory == Memory::Received && self.payload.len() <= COPY_LIMIT {
            self.payload = Bytes::copy_from_slice(&self.payload);
            self.memory = Memory::Own;
        }
    }

    /// What it takes in memory, in bytes, if it shares nothing.
    pub(super) fn cost(&self) -> usize {
        let patch = self.patch.as_ref().map_or(0, |patch| patch.bytes());
        let distribution = self.distribution.as_ref().map_or(0, |it| it.bytes());
        self.payload.len() + patch + distribution + OVERHEAD
    }
}
