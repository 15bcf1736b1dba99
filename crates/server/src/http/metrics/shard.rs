//! Metrics of the shard: how busy the task is that decides everything.

use super::page::Page;
use crate::shard::report::Report;

pub fn add(page: &mut Page, report: &Report) {
    let usage = &report.usage;
    page.seconds(
        "shard_busy",
        "How long the core was at work; as much as has passed, and it is the bottleneck",
        usage.busy,
    );
    page.seconds(
        "shard_processor",
        "Processor time of the core",
        usage.processor,
    );
    page.counter("shard_rounds", "Rounds of the core", None, usage.rounds);
    page.counter(
        "shard_commands",
        "Commands that the core has decided",
        None,
        usage.commands,
    );
    page.gauge(
        "undecided_batches",
        "Batches of commands that wait for the core",
        None,
        report.undecided as u64,
    );
    page.gauge(
        "fault_rules",
        "Rules by which operations fail on purpose",
        None,
        report.fault_rules.values().sum::<usize>() as u64,
    );
    page.counter(
        "injected_faults",
        "Operations that have failed by such a rule",
        None,
        report.injected_faults,
    );
}
