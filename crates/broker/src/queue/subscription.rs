//! Subscription: what a queue has besides that only a topic writes to it.

use store::EntityId;

/// What only a subscription has.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub topic: EntityId,
    /// Whether a message whose filters cannot be evaluated is dead-lettered here; otherwise it is
    /// not selected. (docs/spec/entities.md#17.9)
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
}
