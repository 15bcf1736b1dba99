//! Clock reading: one reading of the machine's real clocks.
//!
//! Tokens, idle time-outs and `locked-until` use real time even when the broker's clock is virtual,
//! because clients compare them with their own clocks. The broker's time, which may
//! be moved, is `broker::Now`.

use broker::Wall;
use endpoint::Mono;

/// Real time, both ways.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClockReading {
    /// Never goes back.
    pub mono: Mono,
    /// May jump both ways.
    pub wall: Wall,
}
