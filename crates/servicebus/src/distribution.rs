//! Distributing: a topic's rules look at a message in its sender's connection, before the broker has
//! it, so that many or slow rules keep its sender waiting and nobody else.
//!
//! What they say is a hint, which the broker drops if the rules have changed meanwhile. Messages
//! that will wait for their time get none: rules look at them when that has come. Nor do those of
//! a delivery that are left when it has taken long enough; the broker has its own bounds.

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
