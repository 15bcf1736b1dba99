//! Errors of a bench, in the words of the other commands.

use std::time::Duration;

use crate::commands::messaging;

/// Why it did not.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// It was not begun.
    #[error("{0}")]
    Options(&'static str),
    #[error(transparent)]
    Messaging(#[from] messaging::Error),
    #[error(
        "of the messages that were accepted {missing} did not arrive within {grace:?}: does another client receive from {entity}?"
    )]
    Missing {
        missing: u64,
        entity: String,
        grace: Duration,
    },
    #[error(
        "{0} holds too many other messages to find those of this run; they stay there: name an empty queue, or use --create"
    )]
    Others(String),
}

impl BenchError {
    /// A message was refused.
    pub fn refused(why: Option<&amqp::Error>) -> Self {
        messaging::refused("a message", why).into()
    }
}
