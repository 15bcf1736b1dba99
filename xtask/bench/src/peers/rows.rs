//! Rows: one row at one peer, from its start to its stop.

use std::time::Duration;

use anyhow::Result;

use super::{Peer, Running};
use crate::client::Workload;
use crate::place::Place;
use crate::process::resident;
use crate::results::{Results, Unit};
use crate::row::Row;
use crate::scale::Scale;
use crate::throughput::{self, IN_FLIGHT};
use crate::{idle, latency, memory, single, site};
use load::receiver::Receiver;

/// What every broker is sent and sends before it is measured, so that code is compiled, caches
/// are filled and files are made.
const WARM_UP: Duration = Duration::from_secs(3);

/// Measures `row` at a broker that is started for it.
pub fn measure(row: Row, peer: &dyn Peer, scale: Scale, results: &mut Results) -> Result<()> {
    memory::allow_files()?;
    let running = peer.start()?;
    let place = running.place.clone();
    if row == Row::Memory {
        return weigh(running, scale, results);
    }
    warm_up(&place, scale)?;
    match row {
        Row::Backlog => {
            let run = throughput::send(&place, scale)?;
            throughput::record(results, throughput::SENDING, run.sent, &run);
            throughput::amplification(results, throughput::SENDING, 1_024, &run);
            let run = throughput::receive(&place, scale, run.sent)?;
            throughput::record(results, throughput::RECEIVING, run.settled, &run);
        }
        Row::Small => throughput::both_at(&place, scale, 64, results)?,
        Row::Large => throughput::both_at(&place, scale, 16_384, results)?,
        Row::Queues => throughput::queues_at(&place, scale, results)?,
        Row::Latency => latency::at(&place, scale, results)?,
        Row::Idle => idle::at(&place, scale, results)?,
        Row::Single => {
            single::at(&place, scale, results)?;
        }
        _ => throughput::both_at(&place, scale, 1_024, results)?,
    }
    running.broker.stop()
}

/// Memory and start times, of a broker that no client has used yet.
fn weigh(running: Running, scale: Scale, results: &mut Results) -> Result<()> {
    let Running {
        place,
        took,
        broker,
    } = running;
    let millis = took.as_secs_f64() * 1e3;
    let row = "empty directory to a session";
    results.add("start", row, Unit::Milliseconds, millis);
    let mebibytes = resident(place.pid)?;
    results.add("memory", "at start", Unit::Mebibytes, mebibytes);
    memory::linked(&place, scale, results)?;
    memory::grow(&place, scale, results)?;
    let row = format!("with {} messages of 1 KiB", scale.backlog);
    results.add("memory", &row, Unit::Mebibytes, resident(place.pid)?);
    broker.stop()
}

fn warm_up(place: &Place, scale: Scale) -> Result<()> {
    let queue = place.queue(site::QUEUE);
    let work = vec![
        throughput::sender(&queue, 1_024, scale.messages, IN_FLIGHT, scale.sections),
        Workload::Receive(Receiver::new(&queue)),
    ];
    let scale = Scale {
        seconds: WARM_UP.as_secs().min(scale.seconds),
        ..scale
    };
    throughput::execute(place, work, scale, 0)?;
    Ok(())
}
