//! Metrics of the store: the duration of commits, the size of their groups, and free space.

use std::time::Duration;

use prometheus_client::registry::Unit;

use super::log2_histogram::Log2Histogram;
use super::page::{Page, measure};
use crate::shard::report::Report;

pub fn add(page: &mut Page, report: &Report) {
    let commits = &report.commits;
    page.metric(
        "commit_duration",
        "Time from taking a group of write sets until it is durable",
        Some(Unit::Seconds),
        Log2Histogram {
            counts: commits.commit_us,
            sum: seconds(measure(commits.commit_us_sum)),
            least: 6,
            greatest: 23,
            bound: seconds,
        },
    );
    page.metric(
        "commit_group_size",
        "Write sets that became durable with one sync",
        None,
        Log2Histogram {
            counts: commits.group_sets,
            sum: measure(commits.sets),
            least: 1,
            greatest: 15,
            bound: |power| power - 1.0,
        },
    );
    page.seconds(
        "commit_sync",
        "Time that commits waited for the disk",
        Duration::from_micros(commits.sync_us_sum),
    );
    page.counter(
        "commit_size",
        "Bytes written to the journal",
        Some(Unit::Bytes),
        commits.bytes,
    );
    page.counter(
        "commit_messages",
        "Message bodies written to the journal",
        None,
        commits.messages,
    );
    page.counter(
        "store_damage",
        "Damaged places found in the store since the start",
        None,
        commits.damaged,
    );
    page.counter(
        "store_scrubbed",
        "Bytes at rest that the scrubber read",
        Some(Unit::Bytes),
        commits.scrubbed,
    );
    let full = u64::from(report.nearly_full);
    page.gauge(
        "disk_nearly_full",
        "1 while sends are refused for want of space",
        None,
        full,
    );
    page.gauge(
        "reads",
        "Reads of the disk in progress",
        None,
        report.reads as u64,
    );
}

fn seconds(us: f64) -> f64 {
    us / 1e6
}
