//! Large message throttle: a pause between the reads of a very large message.
//!
//! A peer that sends a hundred mebibytes at full speed keeps one processor busy with copies into
//! fresh memory, and a second one with sending; other connections wait for either. A connection
//! with such a message therefore pauses after each round of reads, if another connection has sent
//! bytes lately. A connection that is alone is not slowed down.

use std::time::Duration;

/// The length of a pause: a round of reads takes a tenth of it.
const PAUSE: Duration = Duration::from_millis(2);
/// The size from which an unfinished message is very large.
const LARGE_MESSAGE_BYTES: usize = 4 << 20;
/// Rounds without bytes of other connections until this connection counts as alone.
const ACTIVE_ROUNDS: u32 = 16;

/// The throttle of one connection, with what it knows of the other connections.
#[derive(Debug, Default)]
pub struct LargeMessageThrottle {
    /// Bytes of other connections up to the last round.
    others: u64,
    /// Bytes of this connection.
    own: u64,
    /// Rounds in which other connections still count as active.
    rounds: u32,
}

impl LargeMessageThrottle {
    /// Counts bytes that this connection received.
    pub fn count_received(&mut self, bytes: u64) {
        self.own += bytes;
    }

    /// The pause after a round, if any. `partial` is the bytes of this connection's unfinished
    /// messages, `received` the bytes of all connections so far.
    pub fn pause_after_round(&mut self, partial: usize, received: u64) -> Option<Duration> {
        if partial < LARGE_MESSAGE_BYTES {
            return None;
        }
        let others = received.saturating_sub(self.own);
        if others == std::mem::replace(&mut self.others, others) {
            self.rounds = self.rounds.saturating_sub(1);
        } else {
            self.rounds = ACTIVE_ROUNDS;
        }
        (self.rounds > 0).then_some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_alone_does_not_pause() {
        let mut throttle = LargeMessageThrottle::default();
        for round in 1..=99 {
            throttle.count_received(100);
            // Earlier bytes of other connections count once.
            let pauses = throttle
                .pause_after_round(LARGE_MESSAGE_BYTES, 7 + 100 * round)
                .is_some();
            assert_eq!(pauses, round <= u64::from(ACTIVE_ROUNDS), "{round}");
        }
    }

    #[test]
    fn a_connection_that_is_not_alone_pauses_within_a_very_large_message() {
        let mut throttle = LargeMessageThrottle::default();
        for round in 1..=99 {
            throttle.count_received(100);
            assert_eq!(
                throttle.pause_after_round(LARGE_MESSAGE_BYTES - 1, 101 * round),
                None
            );
            assert_eq!(
                throttle.pause_after_round(LARGE_MESSAGE_BYTES, 101 * round),
                Some(PAUSE)
            );
        }
    }
}
