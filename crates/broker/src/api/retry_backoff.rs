//! Retry backoff: how long messages whose deliveries failed wait before the next one.
//! (docs/spec/entities.md#10.1)

use serde::{Deserialize, Serialize};

/// How long a message waits whose delivery count was raised, before it is available again.
/// (docs/spec/entities.md#10.1)
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RetryBackoff {
    /// Milliseconds after the first delivery.
    pub min: u64,
    /// Most milliseconds.
    pub max: u64,
    /// Each further delivery multiplies the wait by this.
    pub factor: u64,
}

impl RetryBackoff {
    /// Milliseconds after this many deliveries.
    #[must_use]
    pub fn delay(self, delivery_count: u32) -> u64 {
        let times = self.factor.saturating_pow(delivery_count.saturating_sub(1));
        self.min.saturating_mul(times).min(self.max)
    }
}
