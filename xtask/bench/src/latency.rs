//! Latency: from the moment when a message is due to its outcome, at a fixed rate.

use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::client::{Client, Workload};
use super::drive::{self, Limits};
use super::place::Place;
use super::process::{Meter, as_f64};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use load::sender::{Plan, Sender};

/// Messages a second.
const RATE: u32 = 2_000;

/// What the row is called.
const ROW: &str = "accepted at 2,000 a second";
/// What is told of the waits.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// Sends 1 KiB at a fixed rate over one connection and records what the waits were.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    at(&fresh.place()?, scale, results)?;
    fresh.stop()
}

/// Does that at any broker.
pub fn at(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    paced(place, scale, ROW, results)
}

/// Does that at a broker that may have other things to do.
pub fn paced(place: &Place, scale: Scale, row: &str, results: &mut Results) -> Result<()> {
    let plan = Plan {
        queue: place.queue(site::QUEUE),
        size: 1_024,
        count: u64::from(RATE) * scale.seconds,
        // A late broker must not slow the schedule down.
        in_flight: u64::MAX,
        sections: scale.sections,
        every: Some(Duration::from_secs(1) / RATE),
    };
    let mut clients = vec![Client::connect(
        place,
        Workload::Send(Box::new(Sender::new(plan))),
    )?];
    drive::open(&mut clients)?;
    let meter = Meter::start(place.pid)?;
    let all = Duration::from_secs(scale.seconds + 60);
    drive::work(&mut clients, Limits { sending: all, all }, 0)?;
    let usage = meter.read()?;
    let Workload::Send(sender) = clients[0].workload() else {
        bail!("the connection was to send");
    };
    ensure!(
        sender.refused() == 0,
        "the broker refused {} messages",
        sender.refused()
    );
    for (metric, quantile) in QUANTILES {
        let micros = sender.latencies().value_at_quantile(quantile);
        results.add(row, metric, Unit::Milliseconds, as_f64(micros) / 1e3);
    }
    results.add(row, "broker", Unit::Cores, usage.broker_cores());
    results.add(row, "load generator", Unit::Cores, usage.generator_cores());
    Ok(())
}
