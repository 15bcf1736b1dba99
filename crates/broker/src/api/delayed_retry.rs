//! Delayed retry: which returned messages wait before they are available again, and how long.
//! (docs/spec/rabbitmq.md#12.6)
//!
//! What a client says of one message goes before it. Durations are milliseconds.

use serde::{Deserialize, Serialize};

/// The messages that wait.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetriedMessages {
    /// None.
    #[default]
    Disabled,
    /// Those that are returned in any way.
    All,
    /// Those whose delivery count was raised.
    Failed,
    /// Those whose delivery count was not raised.
    Returned,
}

/// The words that arguments and policies have for them.
pub(crate) const WORDS: &[&str] = &["disabled", "all", "failed", "returned"];

impl RetriedMessages {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct DelayedRetry {
    /// The messages that wait.
    pub messages: RetriedMessages,
    /// The wait of a first delivery; a later one multiplies it by the delivery count. Without it
    /// no message waits.
    pub min: Option<u64>,
    /// The longest wait; `min` if it is absent or less.
    pub max: Option<u64>,
}

impl DelayedRetry {
    /// How long a message waits that comes back with this delivery count, which its return has
    /// raised if its delivery `failed`.
    #[must_use]
    pub fn delay(self, delivery_count: u32, failed: bool) -> Option<u64> {
        let waits = match self.messages {
            RetriedMessages::Disabled => false,
            RetriedMessages::All => true,
            RetriedMessages::Failed => failed,
            RetriedMessages::Returned => !failed,
        };
        let min = self.min.filter(|_| waits)?;
        let max = self.max.unwrap_or(min).max(min);
        Some(min.saturating_mul(delivery_count.max(1).into()).min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_with_the_delivery_count_between_its_bounds() {
        let retry = |messages, min, max| DelayedRetry { messages, min, max };
        let all = retry(RetriedMessages::All, Some(10), Some(25));
        let waits = [0, 1, 2, 3, u32::MAX].map(|count| all.delay(count, false));
        assert_eq!(waits, [10, 10, 20, 25, 25].map(Some));
        let (failed, returned) = (RetriedMessages::Failed, RetriedMessages::Returned);
        for (setting, expected) in [
            (retry(failed, Some(10), None), [Some(10), None]),
            (retry(returned, Some(10), None), [None, Some(10)]),
            (retry(returned, Some(10), Some(5)), [None, Some(10)]),
            (retry(RetriedMessages::All, None, Some(5)), [None, None]),
            (
                retry(RetriedMessages::Disabled, Some(1), None),
                [None, None],
            ),
        ] {
            let waits = [true, false].map(|failed| setting.delay(3, failed));
            assert_eq!(waits, expected, "{setting:?}");
        }
    }
}
