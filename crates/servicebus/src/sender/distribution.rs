//! Distribution: evaluates a topic's rules on a message in its sender's connection, before the
//! broker has it. Many or slow rules then delay only that sender.
//!
//! The result is a hint, and the broker drops it if the rules have changed in the meantime.
//! Scheduled messages get none, because rules are evaluated when the message becomes active. When a
//! delivery has taken long enough, its remaining messages get none either; the broker has its own
//! bounds.

use broker::{Incoming, RuleSnapshot};

/// Most bytes of hints with one delivery.
const MAX_BYTES: usize = 1 << 20;
/// Steps of some nanoseconds after which no more hints are given with a delivery.
const MAX_STEPS: u64 = 4 << 20;
/// More steps than this, a few tens of microseconds, are long for a message.
const LONG: u64 = 4 << 10;

/// Says of each message what `rules` make of it. Returns whether that has taken long.
pub(crate) fn distribute(rules: &RuleSnapshot, messages: &mut [Incoming]) -> bool {
    let (mut bytes, mut steps, mut looked_at) = (0_usize, 0, 0);
    for message in messages {
        if message.scheduled.is_some() {
            continue;
        }
        looked_at += 1;
        let Some(distribution) = rules.distribute(&message.payload, &mut steps) else {
            continue;
        };
        bytes = bytes.saturating_add(distribution.bytes());
        if bytes > MAX_BYTES || steps > MAX_STEPS {
            break;
        }
        message.distribution = Some(Box::new(distribution));
    }
    steps > LONG * looked_at
}
