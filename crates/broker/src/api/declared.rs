//! Declared: how a client of RabbitMQ has declared a queue, as far as that still matters.
//!
//! A queue that was made otherwise (by Service Bus's administration, by a file) has nothing of it.
//! It counts as a quorum queue, and keeps its dead letters. What a declaration says stays as it is
//! as long as the queue does. (docs/spec/rabbitmq.md#12.1, #12.5)

use serde::{Deserialize, Serialize};

/// RabbitMQ's two ordinary kinds of queue.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueType {
    /// The type of a declaration that names none.
    Classic,
    /// The type that queues have which no client of RabbitMQ has declared.
    Quorum,
}

/// See the head of this file.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Declared {
    /// The type of the queue.
    pub queue_type: QueueType,
    /// Whether the declaration says what becomes of the message with which the queue is too long.
    #[serde(default)]
    pub has_overflow: bool,
}

impl Declared {
    /// Whether the queue's own word on overflow goes before that of a policy.
    /// (docs/spec/rabbitmq.md#12.1)
    pub(crate) fn fixes_overflow(self) -> bool {
        self.queue_type == QueueType::Classic && self.has_overflow
    }
}
