//! Action error: why an action does not apply to a message.

use crate::expression::evaluation::EvaluationError;
use crate::values::value::ValueKind;

/// Why an action could not be carried out on a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum ActionError {
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    #[error("the system property {0} cannot be set to {1}")]
    WrongKind(&'static str, ValueKind),
    #[error("the system property {0} is out of range")]
    OutOfRange(&'static str),
    #[error("the system property {0} takes a duration or a text hh:mm:ss")]
    NoDuration(&'static str),
    #[error("the system property {0} is longer than {1} characters")]
    TooLong(&'static str, usize),
    #[error("the property {0:?} is longer than {1} bytes")]
    TooLarge(String, usize),
    #[error("the partition key differs from the session id")]
    PartitionKeyDiffers,
}
