//! Clock: the machine's two real clocks, read together. Here the time of broker and connections
//! enters the server.
//!
//! Broker time and connection time are the same readings as separate types. Tokens and time-outs
//! stay on real time. The broker's time may be moved: `broker_clock` is what the shard reads,
//! `virtual_clock` moves it for all namespaces, and `namespace_clocks` for a single one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use broker::{Deadline, Now, Wall};
use dialect::ClockReading;
use endpoint::Mono;
use tokio::time::Instant;

/// How long a sleep towards a moment of the wall clock lasts at most: that clock may jump.
const WALL_CHECK: Duration = Duration::from_secs(1);

/// Reads both clocks; `mono` counts from the server's start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock whose `mono` begins now.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Broker time, unless that is virtual.
    pub fn now(&self) -> Now {
        Now {
            wall: wall(),
            mono: broker::Mono(self.mono()),
        }
    }

    /// Connection time.
    pub fn moment(&self) -> ClockReading {
        ClockReading {
            mono: Mono(self.mono()),
            wall: wall(),
        }
    }

    /// When a connection's `deadline` is reached.
    pub fn instant(&self, deadline: Mono) -> Instant {
        self.start + Duration::from_millis(deadline.0)
    }

    /// When to look whether a broker's `deadline` is reached.
    pub fn wake(&self, deadline: Deadline) -> Option<Instant> {
        let mono = deadline.mono.map(|mono| self.instant(Mono(mono.0)));
        let wall = deadline.wall.map(|due| {
            let left = Duration::from_millis(due.0.saturating_sub(wall().0));
            Instant::now() + left.min(WALL_CHECK)
        });
        mono.into_iter().chain(wall).min()
    }

    fn mono(&self) -> u64 {
        millis(self.start.elapsed())
    }
}

/// Milliseconds since the Unix epoch; a clock set before it counts as the epoch.
fn wall() -> Wall {
    Wall(millis(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    ))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
