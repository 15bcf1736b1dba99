//! Target: where a binding leads, and how many bindings lead there.

use std::collections::BTreeMap;

use store::EntityId;

use super::steps::Steps;
use crate::api::publication::PublishError;

/// Where a binding leads.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Target {
    /// A queue or topic.
    Entity(EntityId),
    Router(EntityId),
}

/// Targets, and how many bindings lead to each of them.
#[derive(Debug, Default)]
pub(super) struct Targets(BTreeMap<Target, usize>);

impl Targets {
    pub(super) fn add(&mut self, target: Target) {
        *self.0.entry(target).or_default() += 1;
    }

    pub(super) fn remove(&mut self, target: Target) {
        let count = self.0.get_mut(&target);
        let count = count.expect("a binding that goes was added");
        *count -= 1;
        if *count == 0 {
            self.0.remove(&target);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn collect(
        &self,
        steps: &mut Steps,
        found: &mut Vec<Target>,
    ) -> Result<(), PublishError> {
        steps.take(self.0.len())?;
        found.extend(self.0.keys());
        Ok(())
    }
}
