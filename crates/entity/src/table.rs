//! The table of properties: one row for everything that a description of an entity can say.
//! (docs/spec/entities.md#2)
//!
//! Readers, writers, options, plans, exports and the OpenAPI document loop over it; the tests
//! compare the documents with it. The order is that of the options.

use broker::{EntityDescription, EntityKind, QueueSettings};
use serde_json::Value as Json;

use crate::duration::{DAY, MINUTE, NEVER, SECOND};
use crate::property::{InEmulator, Property, Slot};

const ALL: &[EntityKind] = &[
    EntityKind::Queue,
    EntityKind::Topic,
    EntityKind::Subscription,
];
/// What receivers take messages from.
const RECEIVED: &[EntityKind] = &[EntityKind::Queue, EntityKind::Subscription];
/// What senders send messages to.
const SENT_TO: &[EntityKind] = &[EntityKind::Queue, EntityKind::Topic];
const QUEUE: &[EntityKind] = &[EntityKind::Queue];
const TOPIC: &[EntityKind] = &[EntityKind::Topic];
const SUBSCRIPTION: &[EntityKind] = &[EntityKind::Subscription];

/// All properties.
pub const PROPERTIES: &[Property] = &[
    Property {
        name: Some("lock-duration"),
        element: Some("LockDuration"),
        kinds: RECEIVED,
        slot: |it| {
            let text = &mut it.store_only.texts.lock_duration;
            Slot::Duration(&mut it.settings.lock_duration, text)
        },
        range: 5 * SECOND..=5 * MINUTE,
        help: "Time that a receiver may hold a message before it is available again: 30s or PT30S, from 5s to 5m",
        ..Property::PLAIN
    },
    Property {
        name: Some("max-delivery-count"),
        element: Some("MaxDeliveryCount"),
        kinds: RECEIVED,
        slot: |it| Slot::Count(&mut it.settings.max_delivery_count),
        range: 1..=i32::MAX as u64,
        help: "Number of failed deliveries after which a message is dead-lettered",
        ..Property::PLAIN
    },
    Property {
        name: Some("dead-lettering-on-message-expiration"),
        element: Some("DeadLetteringOnMessageExpiration"),
        kinds: RECEIVED,
        slot: |it| Slot::Flag(&mut it.settings.dead_lettering_on_message_expiration),
        help: "Dead-letter messages that expire",
        ..Property::PLAIN
    },
    Property {
        name: Some("requires-session"),
        element: Some("RequiresSession"),
        kinds: RECEIVED,
        slot: |it| Slot::Flag(&mut it.settings.requires_session),
        fixed: true,
        help: "Require a session id on every message; cannot be changed later",
        ..Property::PLAIN
    },
    Property {
        name: Some("forward-to"),
        element: Some("ForwardTo"),
        kinds: RECEIVED,
        slot: |it| {
            let text = &mut it.store_only.texts.forward_to;
            Slot::Target(&mut it.settings.forward_to, text)
        },
        help: "Queue or topic to forward messages to; an empty text ends forwarding",
        ..Property::PLAIN
    },
    Property {
        name: Some("forward-dead-lettered-messages-to"),
        element: Some("ForwardDeadLetteredMessagesTo"),
        kinds: RECEIVED,
        slot: |it| {
            let text = &mut it.store_only.texts.forward_dead_lettered_messages_to;
            Slot::Target(&mut it.settings.forward_dead_lettered_messages_to, text)
        },
        help: "Queue or topic to forward dead letters to; an empty text ends forwarding",
        ..Property::PLAIN
    },
    Property {
        name: Some("max-size-in-megabytes"),
        element: Some("MaxSizeInMegabytes"),
        kinds: SENT_TO,
        slot: |it| Slot::Megabytes(&mut it.settings.max_size),
        // Up to the largest of the Premium tier.
        range: 1..=81_920,
        emulator: InEmulator::Never("its size"),
        help: "Largest size of the entity with its dead letters, in MiB",
        ..Property::PLAIN
    },
    Property {
        name: Some("max-message-size"),
        element: Some("MaxMessageSizeInKilobytes"),
        kinds: SENT_TO,
        slot: |it| Slot::Bytes(&mut it.settings.max_message_size),
        // Up to the largest of the Premium tier.
        range: 1..=100 << 20,
        cloud_least: Some(1 << 20),
        emulator: InEmulator::Never("the size of its messages"),
        help: "Largest size of a message: 64KiB or bytes, up to 100MiB; an empty text sets the broker's default",
        ..Property::PLAIN
    },
    Property {
        name: Some("requires-duplicate-detection"),
        element: Some("RequiresDuplicateDetection"),
        kinds: SENT_TO,
        slot: |it| Slot::Flag(&mut it.settings.requires_duplicate_detection),
        fixed: true,
        help: "Discard messages whose message id was sent before; cannot be changed later",
        ..Property::PLAIN
    },
    Property {
        name: Some("duplicate-detection-history-time-window"),
        element: Some("DuplicateDetectionHistoryTimeWindow"),
        kinds: SENT_TO,
        slot: |it| {
            let text = &mut it.store_only.texts.duplicate_detection_history_time_window;
            let window = &mut it.settings.duplicate_detection_history_time_window;
            Slot::Duration(window, text)
        },
        // As little as the emulator allows, as much as the cloud does.
        range: 5 * SECOND..=7 * DAY,
        cloud_least: Some(20 * SECOND),
        help: "Time for which duplicate detection keeps message ids: 10m or PT10M, from 5s to 7d",
        ..Property::PLAIN
    },
    Property {
        name: Some("default-message-time-to-live"),
        element: Some("DefaultMessageTimeToLive"),
        kinds: ALL,
        slot: |it| {
            let text = &mut it.store_only.texts.default_message_time_to_live;
            Slot::Duration(&mut it.settings.default_message_time_to_live, text)
        },
        // What lives for no time goes to receivers that wait for it, or nowhere.
        range: 0..=NEVER,
        cloud_least: Some(SECOND),
        help: "Default and maximum of the time to live of messages: 1h, PT1H or never",
        ..Property::PLAIN
    },
    Property {
        name: Some("expiry"),
        kinds: RECEIVED,
        slot: |it| Slot::Expiry(&mut it.settings.expiry),
        emulator: InEmulator::Never("its expiry"),
        help: "When expired messages are removed: eager or cloud; an empty text sets the broker's default",
        ..Property::PLAIN
    },
    Property {
        name: Some("auto-delete-on-idle"),
        element: Some("AutoDeleteOnIdle"),
        kinds: ALL,
        slot: |it| {
            let text = &mut it.store_only.texts.auto_delete_on_idle;
            Slot::Duration(&mut it.settings.auto_delete_on_idle, text)
        },
        range: 5 * MINUTE..=NEVER,
        emulator: InEmulator::Unusual,
        help: "Time without use after which the entity is deleted: 5m, PT5M or never, at least 5m",
        ..Property::PLAIN
    },
    Property {
        name: Some("expires"),
        kinds: RECEIVED,
        slot: |it| {
            let text = &mut it.store_only.texts.expires;
            Slot::Duration(&mut it.settings.expires, text)
        },
        range: 1..=NEVER,
        emulator: InEmulator::Never("its expiry without receivers"),
        help: "Time without a receiver after which the entity is deleted: 30s, PT30S or never",
        ..Property::PLAIN
    },
    Property {
        name: Some("max-length"),
        kinds: RECEIVED,
        slot: |it| Slot::Limit(&mut it.settings.max_length),
        range: 0..=i64::MAX as u64,
        emulator: InEmulator::Never("the length of it"),
        help: "Largest number of available messages; an empty text removes the limit",
        ..Property::PLAIN
    },
    Property {
        name: Some("max-length-bytes"),
        kinds: RECEIVED,
        slot: |it| Slot::Limit(&mut it.settings.max_length_bytes),
        range: 0..=i64::MAX as u64,
        emulator: InEmulator::Never("the length of it in bytes"),
        help: "Largest size of all available messages, in bytes; an empty text removes the limit",
        ..Property::PLAIN
    },
    Property {
        name: Some("overflow"),
        kinds: QUEUE,
        slot: |it| Slot::Overflow(&mut it.settings.overflow),
        emulator: InEmulator::Never("its overflow"),
        help: "Action at max-length or max-length-bytes: drop-head dead-letters the oldest message, reject-publish refuses the new one, reject-publish-dlx refuses and dead-letters it",
        ..Property::PLAIN
    },
    Property {
        name: Some("retry-backoff"),
        kinds: RECEIVED,
        slot: |it| Slot::RetryBackoff(&mut it.settings.retry_backoff),
        emulator: InEmulator::Never("its retry-backoff"),
        help: "Delay before the next delivery of a message: min=1s,max=1m,factor=2; an empty text removes it",
        ..Property::PLAIN
    },
    Property {
        name: Some("status"),
        element: Some("Status"),
        kinds: ALL,
        slot: |it| Slot::Status(&mut it.settings.status),
        emulator: InEmulator::Unusual,
        help: "Operations that clients may do: active, disabled, send-disabled or receive-disabled",
        ..Property::PLAIN
    },
    Property {
        name: Some("dead-lettering-on-filter-evaluation-exceptions"),
        element: Some("DeadLetteringOnFilterEvaluationExceptions"),
        kinds: SUBSCRIPTION,
        slot: |it| Slot::Flag(&mut it.dead_lettering_on_filter_evaluation_exceptions),
        emulator: InEmulator::Unusual,
        help: "Dead-letter messages for which a rule cannot be evaluated",
        ..Property::PLAIN
    },
    // What is only stored: Atom descriptions alone have it.
    Property {
        element: Some("EnablePartitioning"),
        kinds: SENT_TO,
        slot: |it| Slot::Flag(&mut it.store_only.enable_partitioning),
        fixed: true,
        ..Property::PLAIN
    },
    Property {
        element: Some("EnableSubscriptionPartitioning"),
        kinds: TOPIC,
        slot: |it| Slot::Flag(&mut it.store_only.enable_subscription_partitioning),
        fixed: true,
        ..Property::PLAIN
    },
    Property {
        element: Some("EnableExpress"),
        kinds: SENT_TO,
        slot: |it| Slot::Flag(&mut it.store_only.enable_express),
        ..Property::PLAIN
    },
    Property {
        element: Some("EnableBatchedOperations"),
        kinds: ALL,
        slot: |it| Slot::Flag(&mut it.store_only.enable_batched_operations),
        ..Property::PLAIN
    },
    Property {
        element: Some("FilteringMessagesBeforePublishing"),
        kinds: TOPIC,
        slot: |it| Slot::Flag(&mut it.store_only.filtering_messages_before_publishing),
        ..Property::PLAIN
    },
    Property {
        element: Some("IsAnonymousAccessible"),
        kinds: SENT_TO,
        slot: |it| Slot::Flag(&mut it.store_only.is_anonymous_accessible),
        ..Property::PLAIN
    },
    Property {
        element: Some("SupportOrdering"),
        kinds: SENT_TO,
        slot: |it| Slot::Flag(&mut it.store_only.support_ordering),
        ..Property::PLAIN
    },
    Property {
        element: Some("UserMetadata"),
        kinds: ALL,
        slot: |it| Slot::Text(&mut it.store_only.user_metadata),
        ..Property::PLAIN
    },
];

/// The properties of a kind of entity that our own files, JSON and the command line have, with
/// their names.
pub fn named(kind: EntityKind) -> impl Iterator<Item = (&'static str, &'static Property)> {
    let properties = PROPERTIES.iter();
    let of_kind = properties.filter(move |property| property.kinds.contains(&kind));
    of_kind.filter_map(|property| Some((property.name?, property)))
}

/// The properties of a kind of entity that Atom descriptions have, with their elements.
pub fn elements(kind: EntityKind) -> impl Iterator<Item = (&'static str, &'static Property)> {
    let properties = PROPERTIES.iter();
    let of_kind = properties.filter(move |property| property.kinds.contains(&kind));
    of_kind.filter_map(|property| Some((property.element?, property)))
}

/// Gives what cannot be changed the value that it has; returns the names of what was different,
/// each with the value that stays.
pub fn keep_fixed(
    kind: EntityKind,
    wanted: &mut QueueSettings,
    stored: &QueueSettings,
) -> Vec<(&'static str, Json)> {
    let describe = |settings| EntityDescription {
        settings,
        ..EntityDescription::default()
    };
    let mut new = describe(std::mem::take(wanted));
    let mut old = describe(stored.clone());
    let mut kept = Vec::new();
    for (name, property) in named(kind).filter(|(_, property)| property.fixed) {
        let value = property.get(&mut old);
        if property.get(&mut new) != value {
            property.copy(&mut old, &mut new);
            kept.push((name, value.unwrap_or_default()));
        }
    }
    *wanted = new.settings;
    kept
}
