//! Faults: how often things go wrong, per hundred thousand steps, and how small memory is.

/// What may break in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Faults {
    /// The process dies and starts again on what is durable.
    pub crash: u64,
    /// A commit fails, which is a crash that loses everything pending.
    pub failed_commit: u64,
    /// Commits take seconds for a while.
    pub slow_disk: u64,
    /// A connection is cut at any byte.
    pub cut: u64,
    /// A client stops reading for a while.
    pub stall: u64,
    /// The wall clock jumps, both ways.
    pub clock_jump: u64,
    /// The disk is nearly full for a while.
    pub nearly_full: u64,
    /// One of the next calls to a model disk goes wrong.
    pub disk: u64,
    /// An administrator sets rules by which sends fail, or takes them away.
    pub fault_rules: u64,
}

impl Faults {
    /// Nothing breaks.
    pub const NONE: Self = Self {
        crash: 0,
        failed_commit: 0,
        slow_disk: 0,
        cut: 0,
        stall: 0,
        clock_jump: 0,
        nearly_full: 0,
        disk: 0,
        fault_rules: 0,
    };

    /// Everything breaks now and then.
    pub const ALL: Self = Self {
        crash: 20,
        failed_commit: 5,
        slow_disk: 20,
        cut: 100,
        stall: 50,
        clock_jump: 20,
        nearly_full: 5,
        disk: 0,
        fault_rules: 300,
    };

    /// The same, and much of it happens to the disk.
    pub const DISK: Self = Self {
        crash: 40,
        disk: 60,
        ..Self::ALL
    };
}
