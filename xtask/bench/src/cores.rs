//! Cores: what each stage of the broker costs a message, with the broker on one processor, on two,
//! and on more if there are more.
//!
//! The load generator has a processor to itself as long as there is one left; on two, where the
//! broker has both, they share. Last come two queues on one broker with two processors, beside a
//! queue on each of two brokers with a processor each: the most that two shards on two stores can
//! bring.

mod pinned;
mod stages;

use anyhow::Result;

use super::client::{Client, Workload};
use super::drive;
use super::place::Place;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::throughput::{self, IN_FLIGHT, Run, sender};
use load::receiver::Receiver;
use pinned::Processors;
use stages::Reading;

/// What is done: bytes of a message, queues, messages in flight over all of them, and whether
/// messages are received and settled too.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    size: usize,
    queues: usize,
    in_flight: u64,
    settles: bool,
}

const LOADS: [Load; 5] = [
    Load {
        name: "send 1 KiB",
        size: 1_024,
        queues: 1,
        in_flight: IN_FLIGHT,
        settles: false,
    },
    Load {
        name: "at once, 1 KiB",
        size: 1_024,
        queues: 1,
        in_flight: IN_FLIGHT,
        settles: true,
    },
    Load {
        name: "at once, 1 KiB, 50 queues",
        size: 1_024,
        queues: site::QUEUES,
        in_flight: IN_FLIGHT,
        settles: true,
    },
    Load {
        name: "at once, 1 KiB, 10 queues, 5,000 in flight",
        size: 1_024,
        queues: 10,
        in_flight: 10 * IN_FLIGHT,
        settles: true,
    },
    Load {
        name: "at once, 64 B",
        size: 64,
        queues: 1,
        in_flight: IN_FLIGHT,
        settles: true,
    },
];

/// Measures every load on as many processors as there are, doubling.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let processors = Processors::of_this_machine()?;
    for load in LOADS {
        for count in processors.counts() {
            let row = on(load.name, count);
            let (run, stages) = load.run(site, scale, &processors, count)?;
            stages.record(results, &row, load.messages(&run), &run);
        }
    }
    pair(site, scale, &processors, results)
}

fn on(name: &str, count: usize) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{name}, broker on {count} processor{s}")
}

impl Load {
    fn run(
        self,
        site: &Site,
        scale: Scale,
        processors: &Processors,
        count: usize,
    ) -> Result<(Run, stages::Stages)> {
        let fresh = processors.start(site, 0, count)?;
        let place = fresh.place()?;
        let mut clients = connect(&place, self.workload(&place, scale)?)?;
        drive::open(&mut clients)?;
        let before = Reading::take(&place)?;
        let run = throughput::go(&mut clients, place.pid, scale, 0)?;
        let stages = Reading::take(&place)?.since(&before);
        fresh.stop()?;
        Ok((run, stages))
    }

    fn workload(self, place: &Place, scale: Scale) -> Result<Vec<Workload>> {
        let queues = u64::try_from(self.queues)?;
        let (count, in_flight) = (scale.messages / queues, self.in_flight / queues);
        let names = (0..self.queues).map(|number| place.queue(&site::pair(number)));
        let work = names.flat_map(|queue| {
            let sender = sender(&queue, self.size, count, in_flight, scale.sections);
            let receiver = self
                .settles
                .then(|| Workload::Receive(Receiver::new(&queue)));
            std::iter::once(sender).chain(receiver)
        });
        Ok(work.collect())
    }

    fn messages(self, run: &Run) -> u64 {
        if self.settles { run.settled } else { run.sent }
    }
}

fn connect(place: &Place, work: Vec<Workload>) -> Result<Vec<Client>> {
    work.into_iter()
        .map(|work| Client::connect(place, work))
        .collect()
}

/// Two queues on one broker with two processors, and one on each of two brokers with one each.
fn pair(site: &Site, scale: Scale, processors: &Processors, results: &mut Results) -> Result<()> {
    if processors.count() < 2 {
        return Ok(());
    }
    let load = Load {
        name: "two queues at once, 1 KiB",
        queues: 2,
        in_flight: 2 * IN_FLIGHT,
        ..LOADS[1]
    };
    let (together, _) = load.run(site, scale, processors, 2)?;
    let row = format!("{}, one broker on two processors", load.name);
    let one = together.rate(together.settled);
    results.add(&row, "messages", Unit::PerSecond, one);

    let brokers = [processors.start(site, 0, 1)?, processors.start(site, 1, 1)?];
    let mut clients = Vec::new();
    let alone = LOADS[1];
    for broker in &brokers {
        let place = broker.place()?;
        let half = Scale {
            messages: scale.messages / 2,
            ..scale
        };
        clients.append(&mut connect(&place, alone.workload(&place, half)?)?);
    }
    let run = throughput::go(&mut clients, brokers[0].broker.pid(), scale, 0)?;
    drop(clients);
    for broker in brokers {
        broker.stop()?;
    }
    let row = format!("{}, two brokers on one each", load.name);
    let two = run.rate(run.settled);
    results.add(&row, "messages", Unit::PerSecond, two);
    results.add(&row, "of one broker", Unit::Percent, 100.0 * two / one);
    Ok(())
}
