//! Node links: the state of the two links of a request-response pair.

use std::collections::VecDeque;

use bytes::Bytes;
use dialect::CreditWindow;
use endpoint::LinkId;

/// Most answers that wait for one response link's credit.
const MAX_WAITING: usize = 1_024;

/// The client's sender to a node.
#[derive(Debug)]
pub(crate) struct RequestLink {
    /// [`Node::key`](crate::address::Node::key) of the node.
    pub(crate) node: String,
    pub(crate) credit_window: CreditWindow,
}

/// The client's receiver from a node.
#[derive(Debug)]
pub(crate) struct ResponseLink {
    pub(crate) node: String,
    /// The target's address, if it is text.
    pub(crate) reply_to: Option<String>,
    pub(crate) waiting: VecDeque<Waiting>,
    /// Counts answers for their delivery tags.
    pub(crate) sent: u32,
}

/// An answer that has no credit yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request_link: LinkId,
    pub(crate) payload: Bytes,
}

impl ResponseLink {
    pub(crate) fn new(node: String, reply_to: Option<String>) -> Self {
        Self {
            node,
            reply_to,
            waiting: VecDeque::new(),
            sent: 0,
        }
    }

    /// One answer of a connection may wait whatever its size, so that large messages get through.
    pub(crate) fn has_room(&self, all_waiting_bytes: usize, size: usize, limit: usize) -> bool {
        let bytes = all_waiting_bytes.saturating_add(size);
        self.waiting.len() < MAX_WAITING && (all_waiting_bytes == 0 || bytes <= limit)
    }
}
