//! Idle: how often a broker wakes up, and what it takes, while no client wants anything.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::place::Place;
use super::process::{Meter, as_f64, switches};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::Site;

/// What the row is called.
const ROW: &str = "idle, no connection";
/// What a start leaves to do is done by then.
const REST: Duration = Duration::from_secs(3);

/// Watches a broker for a minute, or for ten seconds if rows are short.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    at(&fresh.place()?, scale, results)?;
    fresh.stop()
}

/// Does that with any broker.
pub fn at(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    thread::sleep(REST);
    let (before, meter) = (switches(place.pid)?, Meter::start(place.pid)?);
    thread::sleep(Duration::from_secs(if scale.is_short() { 10 } else { 60 }));
    let (after, usage) = (switches(place.pid)?, meter.read()?);
    let minutes = usage.elapsed.as_secs_f64() / 60.0;
    let switches = as_f64(after.saturating_sub(before)) / minutes;
    results.add(ROW, "context switches", Unit::PerMinute, switches);
    results.add(ROW, "broker", Unit::Cores, usage.broker_cores());
    Ok(())
}
