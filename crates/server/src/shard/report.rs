//! Report: the figures of a shard, which its task collects when metrics or an overview are
//! requested.

use std::collections::BTreeMap;

use broker::QueueInfo;
use store::NamespaceId;

use crate::shard::task_usage::TaskUsage;

/// The most entities that have metrics of their own, which bounds a scrape.
pub const MEASURED_ENTITIES: usize = 2_000;

/// The entities that a report has.
#[derive(Clone, Copy, Debug)]
pub enum Measured {
    /// The oldest of all, this number at most.
    Oldest(usize),
    /// All of a namespace.
    Of(NamespaceId),
}

/// The figures of a shard.
#[derive(Debug)]
pub struct Report {
    pub entities: Vec<QueueInfo>,
    /// The number of entities besides the oldest.
    pub unmeasured: usize,
    /// AMQP connections and shard clients.
    pub connections: usize,
    /// Reads that have not come back.
    pub reads: usize,
    /// Batches of commands that wait to be decided.
    pub undecided: usize,
    /// What the task has done since it began.
    pub usage: TaskUsage,
    /// The number of rules by which operations fail on purpose, in each namespace that has some.
    pub fault_rules: BTreeMap<NamespaceId, usize>,
    /// Operations that have failed by one.
    pub injected_faults: u64,
    pub commits: store::Statistics,
    pub nearly_full: bool,
    /// What may still be written to the disk, if the store has files.
    pub free_bytes: Option<u64>,
}
