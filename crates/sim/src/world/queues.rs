//! Queues: the entities of every simulated broker. Topics are in `queues/topics.rs`.

use std::sync::LazyLock;

use broker::{
    Expiry, Overflow, Priorities, QueueSettings, RetryBackoff, RuleDescription, Subqueue,
};

use crate::rule::Rule;
use crate::topology;

mod topics;

/// Its receivers take messages without a lock.
pub const FAST: &str = "fast";

/// It remembers ids for ten seconds.
const DETECTS: &str = "detects-duplicates";

/// It refuses what it has no room for.
pub const LIMITED: &str = "limited";

/// What an entity is.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum What {
    Queue,
    Topic,
    Subscription {
        topic: &'static str,
        name: &'static str,
        /// None at all for the one that it has if none is named.
        rules: Vec<Rule>,
        dead_letters_failures: bool,
    },
}

/// An entity that every broker has.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Definition {
    pub path: &'static str,
    pub settings: QueueSettings,
    pub what: What,
}

impl Definition {
    /// Whether a client may receive from it or its dead-letter queue.
    #[must_use]
    pub fn is_open(&self, subqueue: Subqueue) -> bool {
        match (&self.what, subqueue) {
            (What::Topic, _) => false,
            (_, Subqueue::Main) => self.settings.forward_to.is_none(),
            (_, Subqueue::DeadLetter) => self.settings.forward_dead_lettered_messages_to.is_none(),
            (_, Subqueue::TransferDeadLetter) => true,
        }
    }

    /// The rules of a subscription that has others than the one of a subscription without any.
    #[must_use]
    pub fn rules(&self) -> Option<Vec<RuleDescription>> {
        match &self.what {
            What::Subscription { rules, .. } if !rules.is_empty() => {
                Some(rules.iter().map(Rule::describe).collect())
            }
            _ => None,
        }
    }

    /// Whether a client may send to it.
    #[must_use]
    pub fn takes_sends(&self) -> bool {
        !matches!(self.what, What::Subscription { .. })
    }
}

/// In the order of the ledger's indices: a topic is before its subscriptions.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    let queues = queues().into_iter();
    let queues = queues.map(|(path, settings)| Definition {
        path,
        settings,
        what: What::Queue,
    });
    queues.chain(topics::definitions()).collect()
}

/// Entities that come and go.
#[must_use]
pub fn temporary() -> Vec<Definition> {
    let queue = |path, settings| Definition {
        path,
        settings,
        what: What::Queue,
    };
    let expires = QueueSettings {
        expires: 15_000,
        ..plain()
    };
    let queues = [queue("temporary", plain()), queue("expiring", expires)];
    let declared = topology::DECLARED.map(|path| queue(path, topology::declared_settings()));
    let queues = queues.into_iter().chain(declared);
    queues.chain(topics::temporary()).collect()
}

const BACKOFF: RetryBackoff = RetryBackoff {
    min: 500,
    max: 8_000,
    factor: 3,
};

/// Paths and settings of queues.
fn queues() -> Vec<(&'static str, QueueSettings)> {
    let plain = plain();
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
        retry_backoff: Some(BACKOFF),
        ..dead.clone()
    };
    let publishes = QueueSettings {
        forward_to: Some(topics::SECOND.to_owned()),
        ..plain.clone()
    };
    let short = QueueSettings {
        max_length: Some(6),
        ..away.clone()
    };
    let limited = QueueSettings {
        max_length: Some(6),
        overflow: Overflow::RejectPublish,
        ..plain.clone()
    };
    let by_priority = |settings: QueueSettings| QueueSettings {
        priorities: Some(Priorities::QUORUM),
        ..settings
    };
    let [sessions, once, cloud] = with_sessions(&plain, &away, &detects, &dead);
    vec![
        ("plain", by_priority(plain)),
        ("expires-to-dead-letter", dead),
        ("expires-away", by_priority(away)),
        (FAST, QueueSettings::default()),
        (DETECTS, detects),
        ("forwards", forwards),
        ("forwards-dead-letters", hands_on),
        ("sessions", sessions),
        ("sessions-once", once),
        ("sessions-cloud", cloud),
        ("publishes", publishes),
        ("short", by_priority(short)),
        (LIMITED, limited),
    ]
}

fn plain() -> QueueSettings {
    QueueSettings {
        lock_duration: 5_000,
        max_delivery_count: 5,
        ..QueueSettings::default()
    }
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

/// Where a path stands among the definitions.
#[must_use]
pub fn index_of(path: &str) -> usize {
    PATHS
        .iter()
        .position(|known| *known == path)
        .expect("only these entities exist")
}

/// All of them, by index.
static PATHS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| definitions().iter().map(|it| it.path).collect());
