//! Many: what ten thousand queues cost before anything is in them, and what one of them does.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::Scale;
use super::process::resident;
use super::results::{Results, Unit};
use super::site::{Fresh, Site};
use super::throughput;

/// How many there are.
const QUEUES: u32 = 10_000;
const ROW: &str = "10,000 queues";

/// Starts a broker with a file of them and again without, then sends and receives at once.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let queues: Vec<_> = (0..QUEUES)
        .map(|number| json!({"name": format!("many-{number}")}))
        .collect();
    let fresh = site.fresh_with(&json!({"queues": queues}).to_string())?;
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
