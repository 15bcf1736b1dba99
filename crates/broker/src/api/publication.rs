//! Publication: a message for a router, and what becomes of it. (docs/spec/rabbitmq.md#9)
//!
//! A router is what RabbitMQ calls an exchange. One answer tells about all destinations: how many
//! have the message, that no binding matched, or which destination refused it.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use store::NamespaceId;

use crate::api::error::SendError;
use crate::api::incoming::Incoming;
use crate::api::injected_error::InjectedError;
use crate::api::router::{MAX_COPIED_BYTES, MAX_ROUTING_STEPS};

/// A message for a router.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Publication {
    pub namespace: NamespaceId,
    /// The name of a router.
    pub router: String,
    /// The routing key, and further ones.
    pub keys: Vec<String>,
    /// Headers are read from its payload if a binding asks for them.
    pub message: Incoming,
}

impl Publication {
    /// What it takes of memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let keys = self.keys.iter().map(String::len);
        self.message.size() + self.router.len() + keys.sum::<usize>()
    }
}

/// What became of a message that was published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Routed {
    /// Each of these queues and topics has it once. One that detects duplicates may have had it
    /// before.
    Stored { destinations: usize },
    /// No binding matched.
    Unmatched,
}

/// Why a message that was published was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PublishError {
    #[error("the router '{0}' does not exist")]
    NotFound(String),
    #[error("only other routers send to the router '{0}'")]
    Internal(String),
    /// This queue or topic has refused it, or the first one that did. The others have it.
    #[error("'{destination}' has refused the message: {error}")]
    Rejected {
        destination: String,
        error: SendError,
    },
    #[error("routing takes more than {MAX_ROUTING_STEPS} steps")]
    TooComplex,
    #[error("{copies} copies of the message take more than {MAX_COPIED_BYTES} bytes")]
    TooLarge { copies: usize },
    #[error(transparent)]
    Injected(InjectedError),
}
