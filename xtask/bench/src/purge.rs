//! Purge: a queue is emptied by batch deletes, while another one is sent to at a fixed rate.
//!
//! What the other queue's senders wait is measured before and during the purge: a purge must not
//! stop other clients.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Scale;
use super::client::{Client, Workload};
use super::deleter::Deleter;
use super::drive::{self, Limits};
use super::memory;
use super::message_sections::MessageSections;
use super::process::{Meter, as_f64};
use super::results::{Results, Unit};
use super::sender::{Plan, Sender};
use super::site::{self, Fresh, Site};

/// Messages a second to the other queue.
const RATE: u32 = 2_000;
/// What one request deletes: as the SDKs ask of Premium, and of Standard.
const BATCHES: [i32; 2] = [4_000, 500];
/// The longest a purge may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Fills a queue and purges it, once for each size of a batch.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    for batch in BATCHES {
        let fresh = site.fresh()?;
        memory::fill(&fresh.place()?, scale.backlog)?;
        let row = format!("purge {} of 1 KiB by {batch}", scale.backlog);
        let before = send_alone(&fresh, scale)?;
        waits(&before, &row, "other queue before", results);
        let sender = purge(&fresh, scale, batch, &row, results)?;
        waits(&sender, &row, "other queue during", results);
        fresh.stop()?;
    }
    Ok(())
}

/// Sends to the other queue while no other client does anything.
fn send_alone(fresh: &Fresh, scale: Scale) -> Result<Client> {
    let mut clients = vec![sender(fresh, scale.seconds)?];
    drive::open(&mut clients)?;
    let all = Duration::from_secs(scale.seconds) + PATIENCE;
    drive::work(&mut clients, Limits { sending: all, all }, 0)?;
    Ok(clients.remove(0))
}

/// Sends to the other queue for as long as the purge takes.
fn purge(
    fresh: &Fresh,
    scale: Scale,
    batch: i32,
    row: &str,
    results: &mut Results,
) -> Result<Client> {
    let deleter = Workload::Delete(Box::new(Deleter::new(site::QUEUE, batch)));
    let mut clients = vec![
        sender(fresh, PATIENCE.as_secs())?,
        Client::connect(&fresh.place()?, deleter)?,
    ];
    drive::open(&mut clients)?;
    let meter = Meter::start(fresh.broker.pid())?;
    let began = drive::purge(&mut clients, PATIENCE)?;
    let usage = meter.read()?;
    if let Workload::Delete(deleter) = clients[1].workload() {
        ensure!(
            deleter.deleted() == scale.backlog,
            "{} of {} messages were deleted",
            deleter.deleted(),
            scale.backlog
        );
        let took = deleter.last().unwrap_or(began) - began;
        results.add(row, "took", Unit::Seconds, took.as_secs_f64());
        let rate = as_f64(deleter.deleted()) / took.as_secs_f64();
        results.add(row, "messages", Unit::PerSecond, rate);
    }
    results.add(row, "broker", Unit::Cores, usage.broker_cores());
    Ok(clients.remove(0))
}

fn sender(fresh: &Fresh, seconds: u64) -> Result<Client> {
    let plan = Plan {
        queue: site::pair(0),
        size: 1_024,
        count: u64::from(RATE) * seconds,
        // A late broker must not slow the schedule down.
        in_flight: u64::MAX,
        sections: MessageSections::Plain,
        every: Some(Duration::from_secs(1) / RATE),
    };
    Client::connect(&fresh.place()?, Workload::Send(Box::new(Sender::new(plan))))
}

fn waits(client: &Client, row: &str, when: &str, results: &mut Results) {
    let Workload::Send(sender) = client.workload() else {
        return;
    };
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let micros = sender.latencies().value_at_quantile(quantile);
        let metric = format!("{when}, {name}");
        results.add(row, &metric, Unit::Milliseconds, as_f64(micros) / 1e3);
    }
}
