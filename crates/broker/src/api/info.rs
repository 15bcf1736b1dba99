//! Info: what callers can read of the core at one moment without changing it.
//!
//! [`QueueInfo`] is the definition of an entity with its counters, for metrics and administrators;
//! `queue/info.rs` fills it in, and [`MessageCounts`] are its messages as Service Bus counts them.
//! [`Deadline`] says when the core wants its next tick, for the shard task.
//! (docs/spec/entities.md#16)

use std::sync::Arc;

use store::{EntityId, NamespaceId};

use crate::api::client_affine::ClientAffineProperties;
use crate::api::kind::EntityKind;
use crate::api::policy::AppliedPolicy;
use crate::api::policy::key::in_force;
use crate::api::settings::QueueSettings;
use crate::api::store_only::StoreOnlyProperties;
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
    /// Bytes of the active ones that are available.
    pub available_bytes: u64,
    pub dead_letter: u64,
    pub deferred: u64,
    pub scheduled: u64,
    /// How long ago the next scheduled message was due.
    pub schedule_lag_ms: u64,
    /// What lies in it; [`Self::size`] is what its size is.
    pub bytes: u64,
    /// How long ago the next available message was enqueued, if it is known without a look at the
    /// disk.
    pub oldest_age_ms: Option<u64>,
    pub traffic: Traffic,
    /// Attached to its messages, those that wait for a session among them; not to its subqueues.
    pub receivers: u64,
    /// How many wait to be transferred: of the active ones those that are forwarded, and all that
    /// are sent via it.
    pub transfer: u64,
    /// Those sent via it that wait for their destination. They count in `transfer` alone.
    pub sent_via: SentVia,
    pub transfer_dead_letter: u64,
    pub created: Wall,
    /// The last change of its settings.
    pub updated: Wall,
    /// When it was used last, if it ever was.
    pub accessed: Option<Wall>,
}

/// Messages that wait for their destination outside of the entity that they are sent via.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct SentVia {
    pub messages: u64,
    pub bytes: u64,
}

/// The messages of an entity as Service Bus counts them: each in one count.
/// (docs/spec/entities.md#16)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct MessageCounts {
    pub active: u64,
    pub dead_letter: u64,
    pub scheduled: u64,
    pub transfer: u64,
    pub transfer_dead_letter: u64,
}

impl MessageCounts {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let all = [
            self.active,
            self.dead_letter,
            self.scheduled,
            self.transfer,
            self.transfer_dead_letter,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

impl QueueInfo {
    /// Bytes of all that it holds and of what is sent via it, as a send via it counts them. Those
    /// of a topic's subscriptions are [`Below`](crate::Below).
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.saturating_add(self.sent_via.bytes)
    }

    /// Its messages as Service Bus counts them.
    #[must_use]
    pub fn counts(&self) -> MessageCounts {
        let forwarded = self.transfer.saturating_sub(self.sent_via.messages);
        MessageCounts {
            active: self.active.saturating_sub(forwarded) + self.deferred,
            dead_letter: self.dead_letter,
            scheduled: self.scheduled,
            transfer: self.transfer,
            transfer_dead_letter: self.transfer_dead_letter,
        }
    }

    /// Its settings as policies make them.
    #[must_use]
    pub fn in_force(&self) -> QueueSettings {
        match &self.policy {
            Some(policy) => in_force(&self.settings, &policy.definition),
            None => self.settings.clone(),
        }
    }
}

/// An entity at one moment.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct EntityInfo {
    pub queue: QueueInfo,
    /// Of a subscription.
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
    /// Of a subscription that a client made.
    pub client_affine: Option<ClientAffineProperties>,
    pub store_only: Arc<StoreOnlyProperties>,
    pub below: Below,
    /// Its last change; of a subscription its topic's. (docs/spec/admin.md#4.4)
    pub version: Wall,
}

/// What a topic's subscriptions have together; of any other entity nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Below {
    pub subscriptions: usize,
    /// True and false filters are SQL filters too.
    pub sql_filters: usize,
    pub correlation_filters: usize,
    pub bytes: u64,
}
