//! Spoken: the dialect that a client's links speak, which their addresses tell.

use amqp::DeliveryState;

use crate::ledger::Ask;

/// A dialect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum Spoken {
    ServiceBus,
    RabbitMq,
}

impl Spoken {
    /// The address of an entity or of one of its subqueues.
    #[must_use]
    pub fn address(self, path: &str) -> String {
        match self {
            Self::ServiceBus => path.to_owned(),
            Self::RabbitMq => {
                let name = path.replace('/', "%2F").replace('$', "%24");
                format!("/queues/{name}")
            }
        }
    }
}

/// The state by which a consumer of RabbitMQ asks for an outcome; it has no word to defer.
/// (docs/spec/rabbitmq.md#10.3)
#[must_use]
pub fn rabbitmq_state(ask: Ask) -> DeliveryState {
    match ask {
        Ask::Complete => DeliveryState::Accepted,
        Ask::Abandon => DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: None,
        },
        Ask::Release => DeliveryState::Released,
        Ask::DeadLetter | Ask::Defer => DeliveryState::Rejected(None),
    }
}
