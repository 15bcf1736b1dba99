//! Deep: a queue is filled without a receiver, the broker crashes, and a receiver empties it.
//!
//! Neither the rate nor memory nor the time of a start may depend on how much is there; what a
//! message costs when it is taken is set beside that of the row `backlog`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::place::Place;
use super::process::{as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Fresh, Site};
use super::throughput::{self, IN_FLIGHT, Run};

/// Messages whose rate is told, at the beginning and at the end.
const PART: u64 = 100_000;
const SIZE: usize = 1_024;
/// The longest ten million may take to be sent, in seconds.
const FILLING: u64 = 1_800;

/// Fills, crashes, starts again, and empties.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let shallow = shallow(site, scale, results)?;
    let fresh = site.fresh()?;
    fill(&fresh.place()?, scale, results)?;
    let fresh = restart(site, fresh, scale, results)?;
    let run = throughput::receive(&fresh.place()?, patient(scale), scale.deep)?;
    let row = format!("receive and settle {} of 1 KiB", scale.deep);
    throughput::record(results, &row, run.settled, &run);
    let more = cost(&run) / shallow.max(1e-9);
    results.add(&row, "CPU to the shallow queue's", Unit::Times, more);
    throughput::amplification(
        results,
        &row,
        SIZE,
        &Run {
            sent: run.settled,
            ..run
        },
    );
    let memory = resident(fresh.broker.pid())?;
    results.add(&row, "memory", Unit::Mebibytes, memory);
    fresh.stop()
}

/// What a message costs when a backlog as that of the row `backlog` is taken.
fn shallow(site: &Site, scale: Scale, results: &mut Results) -> Result<f64> {
    let fresh = site.fresh()?;
    let place = fresh.place()?;
    let sent = throughput::send(&place, scale)?.sent;
    let run = throughput::receive(&place, scale, sent)?;
    let row = format!("receive and settle {} of 1 KiB", scale.messages);
    throughput::record(results, &row, run.settled, &run);
    fresh.stop()?;
    Ok(cost(&run))
}

fn cost(run: &Run) -> f64 {
    run.usage.broker_per_million(run.settled)
}

/// The first and the last of the messages are runs of their own, so that each has its rate.
fn fill(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    let row = format!("send {} of 1 KiB", scale.deep);
    let (mut elapsed, mut written) = (Duration::ZERO, 0);
    let parts = [
        ("first 100,000", PART),
        ("between", scale.deep - 2 * PART),
        ("last 100,000", PART),
    ];
    for (metric, count) in parts {
        let run = send(place, scale, count)?;
        results.add(&row, metric, Unit::PerSecond, run.rate(run.sent));
        let cost = run.usage.broker_per_million(run.sent);
        results.add(&row, metric, Unit::SecondsPerMillion, cost);
        elapsed += run.elapsed;
        written += run.usage.written;
    }
    results.add(&row, "took", Unit::Seconds, elapsed.as_secs_f64());
    let bodies = as_f64(scale.deep) * as_f64(SIZE as u64);
    let times = as_f64(written) / bodies;
    results.add(&row, "written per byte sent", Unit::Times, times);
    results.add(&row, "memory", Unit::Mebibytes, resident(place.pid)?);
    Ok(())
}

fn send(place: &Place, scale: Scale, count: u64) -> Result<Run> {
    let sender = throughput::sender(
        &place.queue(site::QUEUE),
        SIZE,
        count,
        IN_FLIGHT,
        scale.sections,
    );
    let run = throughput::execute(place, vec![sender], patient(scale), 0)?;
    let sent = run.sent;
    ensure!(
        sent == count,
        "only {sent} of {count} messages were accepted"
    );
    Ok(run)
}

fn patient(scale: Scale) -> Scale {
    Scale {
        seconds: FILLING,
        ..scale
    }
}

/// Crashes the broker and starts it again on the same directory.
fn restart(site: &Site, fresh: Fresh, scale: Scale, results: &mut Results) -> Result<Fresh> {
    let Fresh { broker, data } = fresh;
    broker.crash()?;
    let broker = site.start(data.path())?;
    let row = format!("start after a crash with {} messages", scale.deep);
    let took = broker.took.as_secs_f64() * 1e3;
    results.add(&row, "took", Unit::Milliseconds, took);
    let memory = resident(broker.pid())?;
    results.add(&row, "memory", Unit::Mebibytes, memory);
    Ok(Fresh { broker, data })
}
