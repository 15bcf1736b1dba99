//! Steps: the bound on the work of routing one message.
//!
//! A step stands for one comparison: of a binding, of a word of a pattern, of a header. A message
//! that would take more steps than there are is refused. (docs/spec/rabbitmq.md#8)

use crate::api::publication::PublishError;
use crate::api::router::MAX_ROUTING_STEPS;

/// The steps that routing may still take.
#[derive(Debug)]
pub(super) struct Steps(usize);

impl Steps {
    pub(super) fn new() -> Self {
        Self(MAX_ROUTING_STEPS)
    }

    pub(super) fn take(&mut self, steps: usize) -> Result<(), PublishError> {
        self.0 = self.0.checked_sub(steps).ok_or(PublishError::TooComplex)?;
        Ok(())
    }
}
