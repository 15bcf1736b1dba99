//! Governed: what policies make of an entity, beside what it has of its own.

use std::sync::Arc;

use crate::api::policy::AppliedPolicy;
use crate::api::settings::QueueSettings;

/// What policies make of an entity.
#[derive(Debug)]
pub(crate) struct Governed {
    /// What the entity has of its own.
    pub own: QueueSettings,
    pub applied: Arc<AppliedPolicy>,
    /// The longest life that they leave messages that are there already, in milliseconds.
    pub stored_ttl_ms: Option<u64>,
}
