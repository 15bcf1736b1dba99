//! Queues: the entities of every simulated broker.

use broker::{Expiry, QueueSettings, Subqueue};

/// Its receivers take messages without a lock.
pub const FAST: &str = "fast";

/// It remembers ids for ten seconds.
const DETECTS: &str = "detects-duplicates";

const SETTINGS: [&str; 10] = [
    "plain",
    "expires-to-dead-letter",
    "expires-away",
    FAST,
    DETECTS,
    "forwards",
    "forwards-dead-letters",
    "sessions",
    "sessions-once",
    "sessions-cloud",
];

/// Paths and settings, in the order of the ledger's indices.
#[must_use]
pub fn definitions() -> Vec<(&'static str, QueueSettings)> {
    let plain = QueueSettings {
        lock_duration: 5_000,
        max_delivery_count: 5,
        ..QueueSettings::default()
    };
    let dead = QueueSettings {
        default_message_time_to_live: 15_000,
        dead_lettering_on_message_expiration: true,
        lock_duration: 10_000,
        max_delivery_count: 3,
        ..QueueSettings::default()
    };
    let away = QueueSettings {
        default_message_time_to_live: 8_000,
        lock_duration: 5_000,
        ..QueueSettings::default()
    };
    let detects = QueueSettings {
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: 10_000,
        ..plain.clone()
    };
    let forwards = QueueSettings {
        forward_to: Some(DETECTS.to_owned()),
        ..away.clone()
    };
    let hands_on = QueueSettings {
        forward_dead_lettered_messages_to: Some("plain".to_owned()),
        ..dead.clone()
    };
    let fast = QueueSettings::default();
    let [sessions, once, cloud] = with_sessions(&plain, &away, &detects, &dead);
    let settings = [
        plain, dead, away, fast, detects, forwards, hands_on, sessions, once, cloud,
    ];
    SETTINGS.into_iter().zip(settings).collect()
}

/// One that keeps everything, one that forgets and detects duplicates, one that is slow to expire.
fn with_sessions(
    plain: &QueueSettings,
    away: &QueueSettings,
    detects: &QueueSettings,
    dead: &QueueSettings,
) -> [QueueSettings; 3] {
    let requires_session = true;
    let sessions = QueueSettings {
        requires_session,
        ..plain.clone()
    };
    let once = QueueSettings {
        requires_session,
        default_message_time_to_live: away.default_message_time_to_live,
        lock_duration: 3_000,
        ..detects.clone()
    };
    let cloud = QueueSettings {
        requires_session,
        expiry: Some(Expiry::Cloud),
        ..dead.clone()
    };
    [sessions, once, cloud]
}

/// Whether anybody may receive from a queue or its dead-letter queue.
#[must_use]
pub fn is_open(settings: &QueueSettings, subqueue: Subqueue) -> bool {
    match subqueue {
        Subqueue::Main => settings.forward_to.is_none(),
        Subqueue::DeadLetter => settings.forward_dead_lettered_messages_to.is_none(),
        Subqueue::TransferDeadLetter => true,
    }
}

/// Where a path stands among the definitions.
#[must_use]
pub fn index_of(path: &str) -> usize {
    SETTINGS
        .iter()
        .position(|known| *known == path)
        .expect("only these queues exist")
}

/// The path as a constant.
#[must_use]
pub fn path_of(path: &str) -> &'static str {
    SETTINGS[index_of(path)]
}
