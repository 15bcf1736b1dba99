//! Key schedule: when the keys of an issuer at a URL are loaded. (docs/spec/amqp.md#2.8)
//!
//! Loaded keys are due again after ten minutes, and earlier on demand: when a token names a key
//! that is not among them, at most once in five minutes. Keys that could not be loaded are tried
//! again after two seconds, and each time after twice as long, up to a minute. A demand for keys
//! that never were there waits for the next try. Moments are arguments; nothing here waits.

use std::time::Duration;

use broker::Wall;
use dialect::ClockReading;
use endpoint::Mono;

/// How often keys are loaded.
const REFRESH: Duration = Duration::from_secs(10 * 60);
/// An unknown key id causes no load so soon after another.
const RELOAD: Duration = Duration::from_secs(5 * 60);
/// How soon keys that could not be loaded are tried again, the first time and at most.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// See the head of this file.
#[derive(Debug)]
pub struct KeySchedule {
    retry: Duration,
    due: Mono,
    reload_from: Wall,
}

impl KeySchedule {
    /// The keys are due at once.
    pub fn new() -> Self {
        Self {
            retry: FIRST_RETRY,
            due: Mono(0),
            reload_from: Wall(0),
        }
    }

    /// The keys were tried, and are loaded or not.
    pub fn handle_load(&mut self, now: ClockReading, is_loaded: bool) {
        let wait = match is_loaded {
            true => {
                self.retry = FIRST_RETRY;
                REFRESH
            }
            false => {
                let wait = self.retry;
                self.retry = (wait * 2).min(LAST_RETRY);
                wait
            }
        };
        self.due = Mono(now.mono.0.saturating_add(millis(wait)));
        self.reload_from = Wall(now.wall.0.saturating_add(millis(RELOAD)));
    }

    /// When the keys are tried without a demand.
    pub fn due(&self) -> Mono {
        self.due
    }

    /// From when a demand loads keys that are there.
    pub fn reload_from(&self) -> Wall {
        self.reload_from
    }

    /// Whether a demand loads the keys now. `has_keys` says whether there are any.
    pub fn loads_on_demand(&self, now: Wall, has_keys: bool) -> bool {
        has_keys && now >= self.reload_from
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000;
    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;

    /// Some time after the start.
    fn at(milliseconds: u64) -> ClockReading {
        ClockReading {
            mono: Mono(milliseconds),
            wall: Wall(START + milliseconds),
        }
    }

    #[test]
    fn loaded_keys_are_due_after_ten_minutes_and_a_demand_loads_them_after_five() {
        let mut schedule = KeySchedule::new();
        assert_eq!(schedule.due(), Mono(0));
        let mut now = MINUTE;
        for _ in 0..3 {
            schedule.handle_load(at(now), true);
            assert_eq!(schedule.due(), at(now + 10 * MINUTE).mono);
            for (after, expected) in [
                (0, false),
                (SECOND, false),
                (5 * MINUTE - 1, false),
                (5 * MINUTE, true),
                (9 * MINUTE, true),
            ] {
                let found = schedule.loads_on_demand(at(now + after).wall, true);
                assert_eq!(found, expected, "{after} ms after the load");
            }
            now += 5 * MINUTE;
        }
    }

    #[test]
    fn failed_loads_are_tried_again_ever_later_and_a_demand_does_not_hurry_them() {
        let mut schedule = KeySchedule::new();
        let mut now = 0;
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            schedule.handle_load(at(now), false);
            assert_eq!(schedule.due(), at(now + seconds * SECOND).mono);
            let next = at(schedule.due().0).wall;
            // Known keys that could not be loaded again keep the five minutes too.
            assert!(!schedule.loads_on_demand(next, true));
            assert!(!schedule.loads_on_demand(at(now + 6 * MINUTE).wall, false));
            now = schedule.due().0;
        }
        schedule.handle_load(at(now), true);
        schedule.handle_load(at(now), false);
        let first_again = at(now + 2 * SECOND).mono;
        assert_eq!(schedule.due(), first_again, "a success begins anew");
    }

    #[test]
    fn a_wall_clock_that_is_set_back_delays_no_refresh() {
        let mut schedule = KeySchedule::new();
        schedule.handle_load(at(MINUTE), true);
        // An hour is set back between two loads: the five minutes are an hour longer, and the
        // refresh, which is not, makes them five again.
        let set_back = |milliseconds: u64| ClockReading {
            mono: Mono(milliseconds),
            wall: Wall(START + milliseconds - 60 * MINUTE),
        };
        let mut due = 11 * MINUTE;
        assert!(!schedule.loads_on_demand(set_back(due).wall, true));
        for is_loaded in [true, true, false] {
            assert_eq!(schedule.due(), Mono(due));
            schedule.handle_load(set_back(due), is_loaded);
            assert!(!schedule.loads_on_demand(set_back(due + 5 * MINUTE - 1).wall, true));
            assert!(schedule.loads_on_demand(set_back(due + 5 * MINUTE).wall, true));
            due += 10 * MINUTE;
        }
        assert_eq!(schedule.due(), Mono(due - 10 * MINUTE + 2 * SECOND));
    }
}
