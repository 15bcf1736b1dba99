//! Namespaces: what creating an empty one takes, in time, processor time and memory.
//!
//! One HTTP connection creates them one after the other. Each is durable when it is answered, so
//! its time is mostly that of the disk; the processor time is the broker's alone.

use std::time::Instant;

use anyhow::{Context, Result};

use super::http_client::HttpClient;
use super::process::{Meter, as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::Site;

/// What the row is called.
const ROW: &str = "creating empty namespaces";
/// How many come before, so that what all share is in memory already.
const BEFORE: u64 = 500;
/// Creates 8,000 namespaces, or 2,000 if rows are short.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let pid = fresh.broker.pid();
    let mut client = HttpClient::connect(fresh.address()?)?;
    for number in 0..BEFORE {
        create(&mut client, &format!("before-{number}"))?;
    }
    let count: u64 = if scale.is_short() { 2_000 } else { 8_000 };
    let (memory, meter) = (resident(pid)?, Meter::start(pid)?);
    let mut times = Vec::new();
    for number in 0..count {
        let began = Instant::now();
        create(&mut client, &format!("namespace-{number}"))?;
        times.push(began.elapsed());
    }
    let (usage, grown) = (meter.read()?, resident(pid)? - memory);
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("some were created")?;
    let processor = usage.broker_per_million(count) / 1e3;
    let bytes = grown * 1_048_576.0 / as_f64(count);
    results.add(
        ROW,
        "median",
        Unit::Milliseconds,
        median.as_secs_f64() * 1e3,
    );
    results.add(ROW, "processor time of one", Unit::Milliseconds, processor);
    results.add(ROW, "memory of one", Unit::Bytes, bytes);
    fresh.stop()
}

/// Creates an empty namespace. Returns what the broker says of it.
pub fn create(client: &mut HttpClient, name: &str) -> Result<String> {
    client.ask("PUT", &format!("namespaces/{name}"), "")
}
