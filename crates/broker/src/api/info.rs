//! Info: what can be known of a queue at one moment, and when the broker wants a tick.
//!
//! Neither changes anything: metrics and administrators read the one, the shard task the other.

use std::sync::Arc;

use store::{EntityId, NamespaceId};

use crate::api::kind::EntityKind;
use crate::api::policy::AppliedPolicy;
use crate::api::policy::key::in_force;
use crate::api::settings::QueueSettings;
use crate::api::time::{Mono, Wall};
use crate::api::traffic::Traffic;

/// When a tick is wanted: at whichever of the two is reached first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Deadline {
    pub mono: Option<Mono>,
    pub wall: Option<Wall>,
}

/// A queue's definition and counters at one moment.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct QueueInfo {
    pub id: EntityId,
    pub namespace: NamespaceId,
    pub path: String,
    pub kind: EntityKind,
    /// Its own, whatever policies make of them.
    pub settings: QueueSettings,
    /// The policies that apply to it.
    pub policy: Option<Arc<AppliedPolicy>>,
    pub active: u64,
    /// Of the active ones those that are not available.
    pub locked: u64,
    pub dead_letter: u64,
    pub deferred: u64,
    pub scheduled: u64,
    /// How long ago the next scheduled message was due.
    pub schedule_lag_ms: u64,
    pub bytes: u64,
    /// How long ago the next available message was enqueued, if it is known without a look at the
    /// disk.
    pub oldest_age_ms: Option<u64>,
    pub traffic: Traffic,
    /// Attached to its messages, those that wait for a session among them; not to its subqueues.
    pub receivers: u64,
    /// Of the active ones, how many wait to be forwarded.
    pub transfer: u64,
    pub transfer_dead_letter: u64,
    pub created: Wall,
    /// The last change of its settings.
    pub updated: Wall,
    /// When it was used last, if it ever was.
    pub accessed: Option<Wall>,
}

impl QueueInfo {
    /// Its settings as policies make them.
    #[must_use]
    pub fn in_force(&self) -> QueueSettings {
        match &self.policy {
            Some(policy) => in_force(&self.settings, &policy.definition),
            None => self.settings.clone(),
        }
    }
}
