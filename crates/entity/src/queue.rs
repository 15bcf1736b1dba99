//! A queue, as files and our own interface write it. (docs/spec/entities.md#2.1)

#![allow(
    missing_docs,
    reason = "the fields are named for the contract's properties"
)]

use broker::{Expiry, QueueSettings, Status};
use serde::Deserialize;

use super::millis::Millis;
use super::name::EntityPath;
use super::size::{Count, Size};
use crate::definition::QueueDefinition;

/// 5 seconds to 5 minutes.
pub type LockDuration = Millis<5_000, 300_000>;
/// From 1 second on.
pub type TimeToLive = Millis<1_000, { u64::MAX }>;
/// 5 seconds, as the emulator allows, to 7 days, as the cloud does.
pub type HistoryWindow = Millis<5_000, { 7 * 24 * 60 * 60 * 1_000 }>;
/// From 5 minutes on.
pub type IdleTime = Millis<300_000, { u64::MAX }>;
/// Any positive 32-bit integer.
pub type DeliveryCount = Count<1, { i32::MAX as u64 }>;
/// Up to what Premium has.
pub type MaxSize = Count<1, 81_920>;
/// Up to what Premium has.
pub type MaxMessageSize = Size<1, { 100 << 20 }>;

/// One of `[[queues]]`. Every key but the name is optional; an unknown key is an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueConfig {
    pub name: EntityPath,
    /// How long a receiver may hold a message before it is available again.
    pub lock_duration: Option<LockDuration>,
    /// Deliveries before a message is dead-lettered.
    pub max_delivery_count: Option<DeliveryCount>,
    /// Default and ceiling of messages' own time to live.
    pub default_message_time_to_live: Option<TimeToLive>,
    pub dead_lettering_on_message_expiration: Option<bool>,
    /// Of the queue with its subqueues.
    pub max_size_in_megabytes: Option<MaxSize>,
    /// Of one message. The broker's setting otherwise.
    pub max_message_size: Option<MaxMessageSize>,
    /// The broker's setting otherwise.
    pub expiry: Option<Expiry>,
    pub requires_session: Option<bool>,
    pub requires_duplicate_detection: Option<bool>,
    pub duplicate_detection_history_time_window: Option<HistoryWindow>,
    pub forward_to: Option<EntityPath>,
    pub forward_dead_lettered_messages_to: Option<EntityPath>,
    pub status: Option<Status>,
    /// Deleted with its messages when it has not been used for this time.
    pub auto_delete_on_idle: Option<IdleTime>,
}

impl From<QueueConfig> for QueueDefinition {
    fn from(queue: QueueConfig) -> Self {
        let default = QueueSettings::default();
        let settings = QueueSettings {
            lock_duration: queue
                .lock_duration
                .map_or(default.lock_duration, |millis| millis.0),
            max_delivery_count: queue
                .max_delivery_count
                .map_or(default.max_delivery_count, delivery_count),
            default_message_time_to_live: queue
                .default_message_time_to_live
                .map_or(default.default_message_time_to_live, |millis| millis.0),
            dead_lettering_on_message_expiration: queue
                .dead_lettering_on_message_expiration
                .unwrap_or(default.dead_lettering_on_message_expiration),
            max_size: queue
                .max_size_in_megabytes
                .map_or(default.max_size, |megabytes| megabytes.0 << 20),
            max_message_size: queue.max_message_size.map(|size| size.0),
            expiry: queue.expiry,
            requires_session: queue.requires_session.unwrap_or(default.requires_session),
            requires_duplicate_detection: queue
                .requires_duplicate_detection
                .unwrap_or(default.requires_duplicate_detection),
            duplicate_detection_history_time_window: queue
                .duplicate_detection_history_time_window
                .map_or(default.duplicate_detection_history_time_window, |millis| {
                    millis.0
                }),
            forward_to: queue.forward_to.map(EntityPath::into_string),
            forward_dead_lettered_messages_to: queue
                .forward_dead_lettered_messages_to
                .map(EntityPath::into_string),
            status: queue.status.unwrap_or_default(),
            auto_delete_on_idle: queue
                .auto_delete_on_idle
                .map_or(default.auto_delete_on_idle, |millis| millis.0),
        };
        Self {
            path: queue.name.into_string(),
            settings,
        }
    }
}

/// The number as settings have it.
///
/// # Panics
/// Never: such a count is an `i32`.
#[must_use]
pub fn delivery_count(count: DeliveryCount) -> u32 {
    u32::try_from(count.0).expect("the count is checked to be an i32")
}
