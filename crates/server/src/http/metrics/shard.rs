//! Metrics of the shard: how busy the task is that decides everything.

use super::page::Page;
use crate::shard::report::Report;

pub fn add(page: &mut Page, report: &Report) {
    let usage = &report.usage;
    page.seconds(
        "shard_busy",
        "Time that the shard was at work; a rate near 1 with several clients means that it is the bottleneck",
        usage.busy,
    );
    page.seconds(
        "shard_processor",
        "Processor time of the shard, estimated from one round of sixteen",
        usage.processor,
    );
    page.counter("shard_rounds", "Rounds of the core", None, usage.rounds);
    page.counter(
        "shard_commands",
        "Commands that the shard has carried out",
        None,
        usage.commands,
    );
    page.gauge(
        "undecided_batches",
        "Batches of commands that wait for the shard",
        None,
        report.undecided as u64,
    );
    page.gauge(
        "fault_rules",
        "Fault rules in force, in all namespaces",
        None,
        report.fault_rules.values().sum::<usize>() as u64,
    );
    page.counter(
        "injected_faults",
        "Operations that failed by a fault rule",
        None,
        report.injected_faults,
    );
}
