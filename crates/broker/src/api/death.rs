//! Death: that a message was dead-lettered out of a queue, and why. (docs/spec/rabbitmq.md#12.5)

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use serde::{Deserialize, Serialize};

/// Why a message was dead-lettered. What is none of the others is a rejection.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeathReason {
    Rejected,
    Expired,
    MaxLength,
    DeliveryLimit,
}

impl DeathReason {
    /// By the property that tells Service Bus's clients.
    #[must_use]
    pub fn of(dead_letter_reason: &str) -> Self {
        match dead_letter_reason {
            "TTLExpiredException" => Self::Expired,
            "MaxLengthExceeded" => Self::MaxLength,
            "MaxDeliveryCountExceeded" => Self::DeliveryLimit,
            _ => Self::Rejected,
        }
    }
}

/// All deaths of a message in one queue for one reason.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Death {
    pub queue: String,
    pub reason: DeathReason,
    pub count: u64,
    /// Of the first and the last of them, in milliseconds since the Unix epoch.
    pub first_ms: u64,
    pub last_ms: u64,
    /// The router and the keys by which the message had come.
    pub router: String,
    pub keys: Vec<String>,
    /// The time to live that its sender had given it, in milliseconds.
    pub ttl_ms: Option<u32>,
    /// Whether the message had not died before.
    pub is_first: bool,
}

/// What a message has been through before it came to its queue.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Deaths {
    /// One for each queue and reason, the latest first.
    pub list: Vec<Death>,
    /// Failed deliveries in the queues that it has died in.
    pub failed: u32,
}

impl Deaths {
    /// Notes another death.
    pub(crate) fn add(&mut self, death: Death) {
        let is_same = |one: &Death| (&one.queue, one.reason) == (&death.queue, death.reason);
        let before = self.list.iter().position(is_same);
        let noted = match before.map(|place| self.list.remove(place)) {
            Some(before) => Death {
                count: before.count.saturating_add(1),
                last_ms: death.last_ms,
                ..before
            },
            None => Death {
                is_first: self.list.is_empty(),
                ..death
            },
        };
        self.list.insert(0, noted);
    }

    /// Whether a message comes back to a queue that it has died in, and no client has rejected it
    /// since. Such a circle would not end.
    pub(crate) fn is_circle(&self, queue: &str) -> bool {
        let Some(place) = self.list.iter().position(|death| death.queue == queue) else {
            return false;
        };
        let mut circle = self.list[..=place].iter();
        circle.all(|death| death.reason != DeathReason::Rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(queue: &str, reason: DeathReason, at: u64) -> Death {
        Death {
            queue: queue.to_owned(),
            reason,
            count: 1,
            first_ms: at,
            last_ms: at,
            router: String::new(),
            keys: vec![queue.to_owned()],
            ttl_ms: None,
            is_first: false,
        }
    }

    #[test]
    fn a_death_like_an_earlier_one_raises_its_count_and_comes_first() {
        let mut deaths = Deaths::default();
        for (queue, at) in [("a", 1), ("b", 2), ("a", 3)] {
            deaths.add(death(queue, DeathReason::Expired, at));
        }
        let shown = deaths.list.iter();
        let shown = shown.map(|it| (&*it.queue, it.count, it.first_ms, it.last_ms, it.is_first));
        let expected = [("a", 2, 1, 3, true), ("b", 1, 2, 2, false)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_circle_ends_unless_a_client_has_rejected_the_message_on_its_way() {
        let mut deaths = Deaths::default();
        deaths.add(death("a", DeathReason::Rejected, 1));
        assert!(!deaths.is_circle("a") && !deaths.is_circle("b"));
        deaths.add(death("b", DeathReason::Expired, 2));
        assert!(!deaths.is_circle("a") && deaths.is_circle("b"));
    }
}
