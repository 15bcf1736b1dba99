//! Sessions: many with one message each, sent, accepted, received and settled; beside few.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::client::Workload;
use super::place::Place;
use super::process::{as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::taker::Taker;
use super::throughput::{self, IN_FLIGHT, Run};
use load::message_sections::MessageSections;
use load::sender::{Plan, Sender};

/// Sessions that many are set beside.
const FEW: u32 = 1_000;
/// Connections that take sessions, and how many each takes at a time.
const TAKERS: u32 = 4;
const LINKS: u32 = 25;
/// The longest that one pass may take, in seconds.
const PATIENCE: u64 = 300;

/// What it cost to send and to take as many messages.
struct Cost {
    send: f64,
    take: f64,
}

/// Measures few sessions, again and again until as many messages went as with many; then many.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let few = all(site, scale, FEW, results)?;
    let many = all(site, scale, scale.sessions, results)?;
    let row = name(scale.sessions);
    let metrics = [
        ("send, CPU to that of few", many.send / few.send.max(1e-9)),
        ("take, CPU to that of few", many.take / few.take.max(1e-9)),
    ];
    for (metric, times) in metrics {
        results.add(&row, metric, Unit::Times, times);
    }
    Ok(())
}

fn name(sessions: u32) -> String {
    format!("{sessions} sessions of one message")
}

/// Sends one message to each of `sessions` sessions and takes them, over and over if they are few.
fn all(site: &Site, scale: Scale, sessions: u32, results: &mut Results) -> Result<Cost> {
    let fresh = site.fresh()?;
    let place = fresh.place()?;
    let mut sent = Sum::default();
    let mut taken = Sum::default();
    let mut memory = 0.0;
    for _ in 0..passes(scale.sessions, sessions) {
        sent.add(&send(&place, scale, sessions)?);
        memory = resident(place.pid)?.max(memory);
        taken.add(&take(&place, scale, sessions)?);
    }
    let row = name(sessions);
    sent.record("send", &row, results);
    taken.record("accept, receive, settle", &row, results);
    results.add(&row, "memory with all of them", Unit::Mebibytes, memory);
    fresh.stop()?;
    Ok(Cost {
        send: sent.cost(),
        take: taken.cost(),
    })
}

/// How often `sessions` are filled so that as many messages go as with `many`.
fn passes(many: u32, sessions: u32) -> u32 {
    many.div_ceil(sessions.max(1)).max(1)
}

fn send(place: &Place, scale: Scale, sessions: u32) -> Result<Run> {
    let sender = Workload::Send(Box::new(Sender::new(Plan {
        queue: place.queue(site::SESSIONS),
        size: 1_024,
        count: u64::from(sessions),
        in_flight: IN_FLIGHT,
        sections: MessageSections::Sessions(sessions),
        every: None,
    })));
    throughput::execute(place, vec![sender], patient(scale), 0)
}

fn take(place: &Place, scale: Scale, sessions: u32) -> Result<Run> {
    let (queue, sessions) = (place.queue(site::SESSIONS), u64::from(sessions));
    let turns = Rc::new(Cell::new(sessions));
    let taker = |_| Workload::Task(Box::new(Taker::new(&queue, LINKS, &turns)));
    let work = (0..TAKERS).map(taker).collect();
    let run = throughput::execute(place, work, patient(scale), sessions)?;
    let settled = run.settled;
    ensure!(
        settled == sessions,
        "{settled} of {sessions} messages were settled"
    );
    Ok(run)
}

fn patient(scale: Scale) -> Scale {
    Scale {
        seconds: PATIENCE,
        ..scale
    }
}

/// Several passes together.
#[derive(Default)]
struct Sum {
    messages: u64,
    elapsed: Duration,
    processor: Duration,
}

impl Sum {
    fn add(&mut self, run: &Run) {
        self.messages += run.sent.max(run.settled);
        self.elapsed += run.elapsed;
        self.processor += run.usage.broker;
    }

    /// Processor seconds per million.
    fn cost(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / as_f64(self.messages.max(1))
    }

    fn record(&self, metric: &str, row: &str, results: &mut Results) {
        let rate = as_f64(self.messages) / self.elapsed.as_secs_f64().max(1e-9);
        results.add(row, metric, Unit::PerSecond, rate);
        results.add(row, metric, Unit::SecondsPerMillion, self.cost());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sessions_are_filled_until_as_many_messages_went() {
        assert_eq!(passes(100_000, 1_000), 100);
        assert_eq!(passes(20_500, 1_000), 21);
        assert_eq!(passes(500, 1_000), 1);
        assert_eq!(passes(500, 500), 1);
    }
}
