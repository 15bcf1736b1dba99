//! Subscription: what a queue has besides that only a topic writes to it.

use store::EntityId;

use crate::api::client_affine::ClientAffineProperties;

/// What only a subscription has.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub topic: EntityId,
    /// Of one that a client made.
    pub client_affine: Option<ClientAffineProperties>,
    /// Whether a message whose filters cannot be evaluated is dead-lettered here; otherwise it is
    /// not selected. (docs/spec/entities.md#17.9)
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
}
