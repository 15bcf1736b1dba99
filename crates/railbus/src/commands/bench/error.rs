//! Errors of a bench, in the words of the other commands.

use std::time::Duration;

use super::plan::Plan;
use crate::commands::messaging;
use crate::remote;

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
    /// An error before the first message.
    pub fn connecting(error: load::Error, plan: &Plan) -> Self {
        match error {
            load::Error::Connect(error) | load::Error::Lost(error) => {
                let error = remote::Error::Connect {
                    authority: plan.authority().to_owned(),
                    reason: error.to_string(),
                };
                messaging::Error::from(error).into()
            }
            error => Self::running(error, plan),
        }
    }

    /// An error in between.
    pub fn running(error: load::Error, plan: &Plan) -> Self {
        let error = match error {
            load::Error::Detached(error) => messaging::refused(&plan.entity, error.as_ref()),
            load::Error::Token { code, reason } => messaging::Error::Request {
                what: format!("access to {}", plan.entity),
                code,
                reason,
            },
            load::Error::Closed(Some(error)) | load::Error::Ended(Some(error)) => {
                messaging::Error::Ended {
                    authority: plan.authority().to_owned(),
                    reason: messaging::describe_error(&error),
                }
            }
            error => messaging::Error::Ended {
                authority: plan.authority().to_owned(),
                reason: error.to_string(),
            },
        };
        error.into()
    }

    /// A message was refused.
    pub fn refused(why: Option<&amqp::Error>) -> Self {
        messaging::refused("a message", why).into()
    }

    /// An answer did not come.
    pub fn late(plan: &Plan) -> Self {
        messaging::Error::Late(plan.announced()).into()
    }
}
