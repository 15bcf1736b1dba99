//! Many: what ten thousand queues cost before anything is in them, and what one of them does.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::Scale;
use super::process::resident;
use super::results::{Results, Unit};
use super::site::{self, Fresh, Site};
use super::throughput;

/// Those in the file; with those that every broker of ours has there are 10,000, the most there can
/// be.
pub const IN_FILE: usize = 10_000 - site::OWN;
const ROW: &str = "10,000 queues";

/// Starts a broker with a file of them and again without, then sends and receives at once.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh_with(&entities())?;
    let took = |took: Duration| took.as_secs_f64() * 1e3;
    let first = took(fresh.broker.took);
    results.add(ROW, "first start", Unit::Milliseconds, first);
    let Fresh { broker, data } = fresh;
    let status = broker.stop()?;
    ensure!(status.success(), "the broker ended with {status}");
    let broker = site.start(data.path())?;
    let fresh = Fresh { broker, data };
    let second = took(fresh.broker.took);
    results.add(ROW, "second start", Unit::Milliseconds, second);
    let memory = resident(fresh.broker.pid())?;
    results.add(ROW, "memory", Unit::Mebibytes, memory);
    let place = fresh.place()?;
    let name = format!("send, receive, settle 1 KiB beside {ROW}");
    throughput::both_called(&place, scale, 1_024, &name, results)?;
    fresh.stop()
}

/// A file with the queues that are not there anyway.
pub fn entities() -> String {
    let queues: Vec<_> = (0..IN_FILE)
        .map(|number| json!({"name": queue(number)}))
        .collect();
    json!({"queues": queues}).to_string()
}

/// The name of one.
pub fn queue(number: usize) -> String {
    format!("many-{number}")
}
