//! Wide: much of everything: ten thousand queues in use, ten thousand connections, a hundred
//! thousand sessions. What a message costs is set beside that of fewer.

use anyhow::Result;
use serde_json::json;

use super::client::Workload;
use super::gatherer::Gatherer;
use super::process::resident;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::spreader::Spreader;
use super::throughput::{self, IN_FLIGHT};
use super::{crowd, sessions};

/// Queues of the file; with those that every broker has there are 10,000, the most there can be.
const IN_FILE: usize = 10_000 - site::OWN;
/// Connections that send, and as many that receive; queues are divided among them.
const CONNECTIONS: usize = 50;
/// So few queues that several messages in a row are for one.
const FEW: usize = 50;
/// As many as there are messages in flight, so that nearly each has one to itself.
const ONE_EACH: usize = IN_FLIGHT as usize;
/// More, up to all but a few of those of the file.
const MANY: [usize; 4] = [1_000, 2_000, 4_000, 9_900];

/// Measures queues, connections, sessions.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let few = queues(site, scale, FEW, results)?;
    let one_each = queues(site, scale, ONE_EACH, results)?;
    for count in MANY {
        let many = queues(site, scale, count, results)?;
        for (metric, fewer) in [("CPU to that of 50", few), ("CPU to that of 500", one_each)] {
            results.add(&name(count), metric, Unit::Times, many / fewer.max(1e-9));
        }
    }
    crowd::measure(site, scale, results)?;
    sessions::measure(site, scale, results)
}

fn name(queues: usize) -> String {
    format!("{queues} of 10,000 queues in use")
}

/// Sends to `queues` of all queues in turn and receives; returns what a million messages cost.
fn queues(site: &Site, scale: Scale, queues: usize, results: &mut Results) -> Result<f64> {
    let fresh = site.fresh_with(&entities())?;
    let place = fresh.place()?;
    let connections = u64::try_from(CONNECTIONS)?;
    let (count, in_flight) = (scale.messages / connections, IN_FLIGHT / connections);
    let mut work = Vec::new();
    for part in parts(queues) {
        let names = || part.clone().map(queue).collect();
        let spreader = Spreader::new(names(), count, in_flight);
        work.push(Workload::Task(Box::new(spreader)));
        work.push(Workload::Task(Box::new(Gatherer::new(names()))));
    }
    let run = throughput::execute(&place, work, scale, 0)?;
    let row = name(queues);
    throughput::record(results, &row, run.settled, &run);
    results.add(&row, "memory", Unit::Mebibytes, resident(place.pid)?);
    fresh.stop()?;
    Ok(run.usage.broker_per_million(run.settled))
}

/// The file with the queues.
fn entities() -> String {
    let queues: Vec<_> = (0..IN_FILE)
        .map(|number| json!({"name": queue(number)}))
        .collect();
    json!({"queues": queues}).to_string()
}

/// The name of one of them.
fn queue(number: usize) -> String {
    format!("many-{number}")
}

/// The numbers of the queues that each connection has.
fn parts(queues: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let part = queues / CONNECTIONS;
    (0..CONNECTIONS).map(move |at| at * part..(at + 1) * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_one_connection_s() {
        for queues in MANY.into_iter().chain([FEW, ONE_EACH]) {
            let all: Vec<usize> = parts(queues).flatten().collect();
            assert!(all.into_iter().eq(0..queues));
            assert!(queues <= IN_FILE);
        }
    }
}
