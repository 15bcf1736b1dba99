//! Breath: a pause in reading a very large message while others are there too.
//!
//! A peer that sends a hundred mebibytes as fast as it can keeps a processor busy with nothing but copies
//! into fresh memory, and its own another; who comes meanwhile waits for one of both. So such a connection
//! pauses after each round of reads if any other one has been heard lately. Who is alone is not held up.

use std::time::Duration;

/// How long: a round of reads takes a tenth of it.
const PAUSE: Duration = Duration::from_millis(2);
/// An unfinished message is very large from here on.
const LARGE: usize = 4 << 20;
/// Others have been heard lately until so many rounds have passed in which nobody was.
const LATELY: u32 = 16;

/// What one connection knows of the others.
#[derive(Debug, Default)]
pub struct LargeMessageThrottle {
    /// Bytes that others had sent after the last round.
    others: u64,
    /// Those that came here.
    own: u64,
    /// For so many more rounds it is taken that others are there.
    rounds: u32,
}

impl LargeMessageThrottle {
    /// So many bytes came in here.
    pub fn count_received(&mut self, bytes: u64) {
        self.own += bytes;
    }

    /// How long to pause after a round, with so many bytes of unfinished messages here, when all
    /// connections have brought `received` bytes so far.
    pub fn pause_after_round(&mut self, partial: usize, received: u64) -> Option<Duration> {
        if partial < LARGE {
            return None;
        }
        let others = received.saturating_sub(self.own);
        if others == std::mem::replace(&mut self.others, others) {
            self.rounds = self.rounds.saturating_sub(1);
        } else {
            self.rounds = LATELY;
        }
        (self.rounds > 0).then_some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_does_not_pause() {
        let mut throttle = LargeMessageThrottle::default();
        for round in 1..=99 {
            throttle.count_received(100);
            // What others sent before is heard once.
            let pauses = throttle.pause_after_round(LARGE, 7 + 100 * round).is_some();
            assert_eq!(pauses, round <= u64::from(LATELY), "{round}");
        }
    }

    #[test]
    fn who_is_not_alone_pauses_within_a_very_large_message() {
        let mut throttle = LargeMessageThrottle::default();
        for round in 1..=99 {
            throttle.count_received(100);
            assert_eq!(throttle.pause_after_round(LARGE - 1, 101 * round), None);
            assert_eq!(throttle.pause_after_round(LARGE, 101 * round), Some(PAUSE));
        }
    }
}
