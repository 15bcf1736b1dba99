//! Statistics: the number and duration of commits since a store was opened.

/// Buckets of a histogram by powers of two.
pub const BUCKETS: usize = 32;

/// One look at a store's counters; all of them only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Groups committed: one write to the log each.
    pub groups: u64,
    /// Write sets in them.
    pub sets: u64,
    /// Writes in those.
    pub writes: u64,
    /// Messages whose bodies are among those.
    pub messages: u64,
    /// Bytes written to the log.
    pub bytes: u64,
    /// Places found damaged, each counted once.
    pub damaged: u64,
    /// Bytes at rest that were read to look for damage.
    pub scrubbed: u64,
    /// Microseconds that all commits took together.
    pub commit_us_sum: u64,
    /// Microseconds of those that were spent waiting for the disk.
    pub sync_us_sum: u64,
    /// How many commits took less than 2^n microseconds and not less than half of that, by n.
    pub commit_us: [u64; BUCKETS],
    /// How many groups had less than 2^n sets and not less than half of that, by n.
    pub group_sets: [u64; BUCKETS],
}
