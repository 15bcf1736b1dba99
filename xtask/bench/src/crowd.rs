//! Crowd: a hundred connections that send and receive, alone and among ten thousand.

use anyhow::Result;

use super::client::{Client, Workload};
use super::drive;
use super::memory;
use super::place::Place;
use super::process::resident;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::throughput::{self, Run};
use load::receiver::Receiver;

/// All connections, the active ones among them.
const CROWD: usize = 10_000;
const ACTIVE: usize = 2 * site::QUEUES;
/// Connections opened at once.
const AT_ONCE: usize = 100;
/// Files that each side needs for all of them.
const FILES: u64 = 12_000;
const ALONE: &str = "50 queues, 100 connections";
const AMONG: &str = "50 queues, 100 connections active of 10,000";

/// Measures a hundred connections on one broker, then again beside all the others.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    memory::allow_so_many_files(FILES)?;
    let fresh = site.fresh()?;
    let place = fresh.place()?;
    let alone = throughput::queues_called(&place, scale, ALONE, results)?;
    results.add(ALONE, "memory", Unit::Mebibytes, resident(place.pid)?);
    let crowd = gather(&place)?;
    results.add(
        AMONG,
        "memory before",
        Unit::Mebibytes,
        resident(place.pid)?,
    );
    let among = throughput::queues_called(&place, scale, AMONG, results)?;
    results.add(AMONG, "memory", Unit::Mebibytes, resident(place.pid)?);
    let more = cost(&among) / cost(&alone).max(1e-9);
    results.add(AMONG, "CPU to that of 100", Unit::Times, more);
    drop(crowd);
    fresh.stop()
}

fn cost(run: &Run) -> f64 {
    run.usage.broker_per_million(run.settled)
}

/// Opens connections that have a receiver without credit each.
fn gather(place: &Place) -> Result<Vec<Client>> {
    let mut crowd: Vec<Client> = Vec::with_capacity(CROWD);
    while crowd.len() < CROWD - ACTIVE {
        let first = crowd.len();
        let next = first..(first + AT_ONCE).min(CROWD - ACTIVE);
        let mut clients = next
            .map(|number| {
                let queue = place.queue(&site::pair(number % site::QUEUES));
                Client::connect(place, Workload::Idle(Some(Receiver::new(&queue))))
            })
            .collect::<Result<Vec<_>>>()?;
        drive::open(&mut clients)?;
        crowd.append(&mut clients);
    }
    Ok(crowd)
}
