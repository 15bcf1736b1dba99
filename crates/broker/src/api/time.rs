//! Time: two clocks, both passed in.
//!
//! Locks and waits go by `mono`, which never goes back; time to live and enqueued time by `wall`,
//! which may jump both ways.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Wall(pub u64);

/// Milliseconds on a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Mono(pub u64);

impl Mono {
    /// The moment that is `ms` milliseconds later.
    pub(crate) fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    pub wall: Wall,
    pub mono: Mono,
}
