//! Report: the figures of a shard, which its task collects when metrics or an overview are
//! requested.

use broker::QueueInfo;

use crate::task_usage::TaskUsage;

/// The most entities that have metrics of their own, which bounds a scrape.
pub const MEASURED_ENTITIES: usize = 2_000;

/// The figures of a shard.
#[derive(Debug)]
pub struct Report {
    /// The oldest entities, as many as were asked for.
    pub entities: Vec<QueueInfo>,
    /// The number of further entities.
    pub unmeasured: usize,
    /// AMQP connections and shard clients.
    pub connections: usize,
    /// Reads that have not come back.
    pub reads: usize,
    /// Batches of commands that wait to be decided.
    pub undecided: usize,
    /// What the task has done since it began.
    pub usage: TaskUsage,
    /// Rules by which operations fail on purpose.
    pub fault_rules: usize,
    /// Operations that have failed by one.
    pub injected_faults: u64,
    pub commits: store::Statistics,
    pub nearly_full: bool,
}
