//! Throughput: messages a second, and what each costs the broker.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::client::{Client, Workload};
use super::disk;
use super::drive::{self, Limits};
use super::group;
use super::place::Place;
use super::process::{Meter, Usage, as_count, as_f64};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use load::message_sections::MessageSections;
use load::receiver::Receiver;
use load::sender::{Plan, Sender};

/// Messages without an outcome, over all connections of a row.
pub const IN_FLIGHT: u64 = 500;
/// How long a row may take to finish after it sends no more.
const GRACE: Duration = Duration::from_secs(120);

/// What a row did.
pub struct Run {
    /// Messages accepted.
    pub sent: u64,
    /// Messages received and settled.
    pub settled: u64,
    /// From the first to the last outcome.
    pub elapsed: Duration,
    /// What it took.
    pub usage: Usage,
}

/// The rows of [`send`] and [`receive`].
pub const SENDING: &str = "send 1 KiB, 1 connection";
pub const RECEIVING: &str = "receive and settle 1 KiB, 1 connection";
/// The figure for what the broker committed at once.
const GROUP: &str = "broker's average group";

/// Sends, then receives and settles what was sent. The disk is measured before and after the sends,
/// since a shared one changes its speed from minute to minute.
pub fn backlog(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let took = fresh.broker.took.as_secs_f64() * 1e3;
    results.add(
        "start",
        "empty directory to ready",
        Unit::Milliseconds,
        took,
    );
    let before = disk::rate(site, group(site, scale, results)?)?;
    let run = send(&fresh.place()?, scale)?;
    let group = group::average(&fresh.log(), run.sent)?;
    let after = disk::rate(site, group)?;
    record(results, SENDING, run.sent, &run);
    amplification(results, SENDING, 1_024, &run);
    results.add(SENDING, GROUP, Unit::Messages, as_f64(group));
    let share = 200.0 * run.rate(run.sent) / (before + after);
    results.add(SENDING, "of the disk's group rate", Unit::Percent, share);
    let run = receive(&fresh.place()?, scale, run.sent)?;
    record(results, RECEIVING, run.settled, &run);
    fresh.stop()
}

/// How many messages the broker commits at once while it is sent to: as measured last, or else in a
/// short run for that alone.
pub fn group(site: &Site, scale: Scale, results: &Results) -> Result<u64> {
    if let Some(group) = results.newest(SENDING, GROUP) {
        return Ok(as_count(group));
    }
    let fresh = site.fresh()?;
    let short = Scale {
        messages: scale.messages / 8,
        ..scale
    };
    let run = send(&fresh.place()?, short)?;
    let group = group::average(&fresh.log(), run.sent)?;
    fresh.stop()?;
    Ok(group)
}

/// Sends over one connection.
pub fn send(place: &Place, scale: Scale) -> Result<Run> {
    let sender = sender(
        &place.queue(site::QUEUE),
        1_024,
        scale.messages,
        IN_FLIGHT,
        scale.sections,
    );
    execute(place, vec![sender], scale, 0)
}

/// Receives and settles a `backlog` over one connection.
pub fn receive(place: &Place, scale: Scale, backlog: u64) -> Result<Run> {
    let receiver = Workload::Receive(Receiver::new(&place.queue(site::QUEUE)));
    execute(place, vec![receiver], scale, backlog)
}

/// Sends and receives at once on one queue.
pub fn both(site: &Site, scale: Scale, size: usize, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    both_at(&fresh.place()?, scale, size, results)?;
    fresh.stop()
}

/// Does that at any broker.
pub fn both_at(place: &Place, scale: Scale, size: usize, results: &mut Results) -> Result<()> {
    let row = format!("send, receive, settle {}", bytes(size));
    let messages = messages(scale, size);
    let queue = place.queue(site::QUEUE);
    let work = vec![
        sender(&queue, size, messages, IN_FLIGHT, scale.sections),
        Workload::Receive(Receiver::new(&queue)),
    ];
    let run = execute(place, work, scale, 0)?;
    record(results, &row, run.settled, &run);
    amplification(results, &row, size, &run);
    Ok(())
}

/// About the same bytes rather than the same count, or large messages would take minutes.
fn messages(scale: Scale, size: usize) -> u64 {
    if size > 4_096 {
        scale.messages / 8
    } else {
        scale.messages
    }
}

/// Fifty queues with a sender and a receiver each.
pub fn queues(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    queues_at(&fresh.place()?, scale, results)?;
    fresh.stop()
}

/// Does that at any broker.
pub fn queues_at(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    let row = format!("send, receive, settle 1 KiB, {} queues", site::QUEUES);
    queues_called(place, scale, &row, results).map(|_| ())
}

/// Does that as the row of that name.
pub fn queues_called(place: &Place, scale: Scale, row: &str, results: &mut Results) -> Result<Run> {
    let queues = u64::try_from(site::QUEUES)?;
    let mut work = Vec::new();
    for pair in (0..site::QUEUES).map(site::pair) {
        let queue = place.queue(&pair);
        work.push(sender(
            &queue,
            1_024,
            scale.messages / queues,
            IN_FLIGHT / queues,
            scale.sections,
        ));
        work.push(Workload::Receive(Receiver::new(&queue)));
    }
    let run = execute(place, work, scale, 0)?;
    record(results, row, run.settled, &run);
    Ok(run)
}

/// A sender at full speed.
pub fn sender(
    queue: &str,
    size: usize,
    count: u64,
    in_flight: u64,
    sections: MessageSections,
) -> Workload {
    Workload::Send(Box::new(Sender::new(Plan {
        queue: queue.to_owned(),
        size,
        count,
        in_flight,
        sections,
        every: None,
    })))
}

/// Does `work`, with a backlog of `backlog` messages.
pub fn execute(place: &Place, work: Vec<Workload>, scale: Scale, backlog: u64) -> Result<Run> {
    let mut clients = work
        .into_iter()
        .map(|work| Client::connect(place, work))
        .collect::<Result<Vec<_>>>()?;
    go(&mut clients, place.pid, scale, backlog)
}

/// Has `clients` do their work at the broker `pid`, with a backlog of `backlog` messages.
pub fn go(clients: &mut [Client], pid: u32, scale: Scale, backlog: u64) -> Result<Run> {
    drive::open(clients)?;
    let sending = Duration::from_secs(scale.seconds);
    let meter = Meter::start(pid)?;
    let began = drive::work(
        clients,
        Limits {
            sending,
            all: sending + GRACE,
        },
        backlog,
    )?;
    let usage = meter.read()?;
    check_received(clients, backlog)?;
    summarise(clients, began, usage)
}

/// Nothing came twice, and nothing stayed away.
fn check_received(clients: &[Client], backlog: u64) -> Result<()> {
    let (mut sent, mut received, mut receivers) = (backlog, 0, 0);
    for client in clients {
        match client.workload() {
            Workload::Send(sender) => sent += sender.accepted(),
            Workload::Transact(transactor) => sent += transactor.accepted(),
            Workload::Receive(receiver) => {
                received += receiver.received();
                receivers += 1;
            }
            Workload::Task(task) => {
                let tally = task.tally();
                sent += tally.accepted;
                received += tally.taken.map_or(0, |taken| taken.received);
                receivers += u32::from(tally.taken.is_some());
            }
            Workload::Idle(_) | Workload::Defer(_) | Workload::Delete(_) => {}
        }
    }
    ensure!(
        receivers == 0 || received == sent,
        "{received} messages came of {sent} that the broker had"
    );
    Ok(())
}

fn summarise(clients: &[Client], began: Instant, usage: Usage) -> Result<Run> {
    let (mut sent, mut settled, mut refused, mut last) = (0, 0, 0, began);
    for client in clients {
        let newest = match client.workload() {
            Workload::Idle(_) | Workload::Delete(_) => None,
            Workload::Send(sender) => {
                sent += sender.accepted();
                refused += sender.refused();
                sender.last()
            }
            Workload::Transact(transactor) => {
                sent += transactor.accepted();
                transactor.last()
            }
            Workload::Receive(receiver) => {
                settled += receiver.count();
                receiver.last()
            }
            Workload::Defer(deferrer) => {
                settled += deferrer.count();
                deferrer.last()
            }
            Workload::Task(task) => {
                let tally = task.tally();
                sent += tally.accepted;
                refused += tally.refused;
                settled += tally.taken.map_or(0, |taken| taken.settled);
                tally.last
            }
        };
        last = newest.map_or(last, |newest| last.max(newest));
    }
    ensure!(refused == 0, "the broker refused {refused} messages");
    Ok(Run {
        sent,
        settled,
        elapsed: last - began,
        usage,
    })
}

impl Run {
    /// The rate of `messages` messages, in messages a second.
    pub fn rate(&self, messages: u64) -> f64 {
        as_f64(messages) / self.elapsed.as_secs_f64()
    }
}

/// Adds what a row did with `messages` messages.
pub fn record(results: &mut Results, row: &str, messages: u64, run: &Run) {
    results.add(row, "messages", Unit::PerSecond, run.rate(messages));
    results.add(
        row,
        "broker",
        Unit::SecondsPerMillion,
        run.usage.broker_per_million(messages),
    );
    results.add(row, "broker", Unit::Cores, run.usage.broker_cores());
    results.add(
        row,
        "load generator",
        Unit::Cores,
        run.usage.generator_cores(),
    );
}

/// Adds how much was written for each byte of a body that was sent.
pub fn amplification(results: &mut Results, row: &str, size: usize, run: &Run) {
    let bodies = as_f64(run.sent.max(1)) * as_f64(size as u64);
    let times = as_f64(run.usage.written) / bodies;
    results.add(row, "written per byte sent", Unit::Times, times);
}

fn bytes(size: usize) -> String {
    if size < 1_024 {
        format!("{size} B")
    } else {
        format!("{} KiB", size / 1_024)
    }
}
