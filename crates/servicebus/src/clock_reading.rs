//! Moment: one reading of the machine's real clocks.
//!
//! Tokens, idle time-outs and `locked-until` go by these even when the broker's clock is virtual,
//! since clients compare them with their own.

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
