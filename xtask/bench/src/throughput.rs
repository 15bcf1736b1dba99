//! Throughput: messages a second, and what each costs the broker.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::Scale;
use super::client::{Client, Work};
use super::deferrer::Deferrer;
use super::disk;
use super::dress::Dress;
use super::drive::{self, Limits};
use super::group;
use super::process::{Meter, Usage, as_count, as_f64};
use super::receiver::Receiver;
use super::results::{Results, Unit};
use super::sender::{Plan, Sender};
use super::site::{self, Fresh, Site};
use super::transactor::Transactor;

/// Messages without an outcome, over all connections of a row.
pub const IN_FLIGHT: u64 = 500;
/// Connections that each have a transaction, which together have about as much in flight.
const TRANSACTORS: u64 = 10;
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

/// The figure for what the broker committed at once.
const GROUP: &str = "broker's average group";

/// Sends over `connections`, then receives and settles what was sent. The disk is measured before
/// and after the sends, since a shared one changes its speed from minute to minute.
pub fn backlog(site: &Site, scale: Scale, connections: u64, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let took = fresh.broker.took.as_secs_f64() * 1e3;
    results.add(
        "start",
        "empty directory to ready",
        Unit::Milliseconds,
        took,
    );
    let before = disk::rate(site, group(site, scale, connections, results)?)?;
    let (run, group) = send(&fresh, scale, connections)?;
    let after = disk::rate(site, group)?;
    let name = sending(connections);
    record(results, &name, run.sent, &run);
    results.add(&name, GROUP, Unit::Messages, as_f64(group));
    let share = 200.0 * run.rate(run.sent) / (before + after);
    results.add(&name, "of the disk's group rate", Unit::Percent, share);
    let receivers = (0..connections).map(|_| Work::Receive(Receiver::new(site::QUEUE)));
    let run = execute(&fresh, receivers.collect(), scale, run.sent)?;
    let name = format!("receive and settle 1 KiB, {}", plural(connections));
    record(results, &name, run.settled, &run);
    fresh.stop()
}

/// How many messages the broker commits at once when it is sent to over `connections`: as measured
/// last, or else in a short run for that alone.
pub fn group(site: &Site, scale: Scale, connections: u64, results: &Results) -> Result<u64> {
    if let Some(group) = results.newest(&sending(connections), GROUP) {
        return Ok(as_count(group));
    }
    let fresh = site.fresh()?;
    let short = Scale {
        messages: scale.messages / 8,
        ..scale
    };
    let (_, group) = send(&fresh, short, connections)?;
    fresh.stop()?;
    Ok(group)
}

/// Sends over `connections`; also says how many messages were committed at once.
fn send(fresh: &Fresh, scale: Scale, connections: u64) -> Result<(Run, u64)> {
    let (count, in_flight) = (scale.messages / connections, IN_FLIGHT / connections);
    let senders = (0..connections).map(|_| sender(site::QUEUE, 1_024, count, in_flight));
    let run = execute(fresh, senders.collect(), scale, 0)?;
    let group = group::average(&fresh.log(), run.sent)?;
    Ok((run, group))
}

fn sending(connections: u64) -> String {
    format!("send 1 KiB, {}", plural(connections))
}

/// Sends and receives at once on one queue.
pub fn both(site: &Site, scale: Scale, size: usize, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    // The same bytes rather than the same count, or large messages would take minutes.
    let messages = if size > 4_096 {
        scale.messages / 8
    } else {
        scale.messages
    };
    let work = vec![
        sender(site::QUEUE, size, messages, IN_FLIGHT),
        Work::Receive(Receiver::new(site::QUEUE)),
    ];
    let run = execute(&fresh, work, scale, 0)?;
    record(
        results,
        &format!("send, receive, settle {}", bytes(size)),
        run.settled,
        &run,
    );
    fresh.stop()
}

/// Fifty queues with a sender and a receiver each.
pub fn queues(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let queues = u64::try_from(site::QUEUES)?;
    let mut work = Vec::new();
    for queue in (0..site::QUEUES).map(site::pair) {
        work.push(sender(
            &queue,
            1_024,
            scale.messages / queues,
            IN_FLIGHT / queues,
        ));
        work.push(Work::Receive(Receiver::new(&queue)));
    }
    let run = execute(&fresh, work, scale, 0)?;
    record(
        results,
        &format!("send, receive, settle 1 KiB, {queues} queues"),
        run.settled,
        &run,
    );
    fresh.stop()
}

/// Sends and receives at once, once for each feature that costs something per message.
pub fn features(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let take = |queue| Work::Receive(Receiver::new(queue));
    let session = Work::Receive(Receiver::of_session(site::SESSIONS, site::SESSION));
    let defer = Work::Defer(Box::new(Deferrer::new(site::QUEUE)));
    let send = |queue, dress| Work::Send(Box::new(Sender::new(part(queue, dress, scale))));
    let rows = [
        ("plain", send(site::QUEUE, Dress::Plain), take(site::QUEUE)),
        (
            "duplicate detection",
            send(site::ONCE, Dress::Id),
            take(site::ONCE),
        ),
        (
            "forwarded",
            send(site::START, Dress::Plain),
            take(site::END),
        ),
        ("one session", send(site::SESSIONS, Dress::Session), session),
        (
            "scheduled",
            send(site::QUEUE, Dress::Schedule),
            take(site::QUEUE),
        ),
        ("deferred", send(site::QUEUE, Dress::Plain), defer),
    ];
    for (name, sender, receiver) in rows {
        feature(site, scale, name, vec![sender, receiver], results)?;
    }
    // One transaction after the other would measure nothing but how long a sync takes.
    let mut work = vec![take(site::QUEUE)];
    for _ in 0..TRANSACTORS {
        let mut plan = part(site::QUEUE, Dress::Plain, scale);
        plan.count /= TRANSACTORS;
        work.push(Work::Transact(Box::new(Transactor::new(plan))));
    }
    feature(site, scale, "transactional", work, results)
}

/// What is sent for one feature.
fn part(queue: &str, dress: Dress, scale: Scale) -> Plan {
    Plan {
        queue: queue.to_owned(),
        size: 1_024,
        count: scale.messages / 4,
        in_flight: IN_FLIGHT,
        dress,
        every: None,
    }
}

fn feature(
    site: &Site,
    scale: Scale,
    name: &str,
    work: Vec<Work>,
    results: &mut Results,
) -> Result<()> {
    let fresh = site.fresh()?;
    let run = execute(&fresh, work, scale, 0)?;
    let row = format!("send, receive, settle 1 KiB, {name}");
    record(results, &row, run.settled, &run);
    fresh.stop()
}

/// A sender at full speed.
fn sender(queue: &str, size: usize, count: u64, in_flight: u64) -> Work {
    Work::Send(Box::new(Sender::new(Plan {
        queue: queue.to_owned(),
        size,
        count,
        in_flight,
        dress: Dress::Plain,
        every: None,
    })))
}

/// Does `work`, with a backlog of so many messages.
pub fn execute(fresh: &Fresh, work: Vec<Work>, scale: Scale, backlog: u64) -> Result<Run> {
    let address = fresh.address()?;
    let mut clients = work
        .into_iter()
        .map(|work| Client::connect(address, work))
        .collect::<Result<Vec<_>>>()?;
    drive::open(&mut clients)?;
    let sending = Duration::from_secs(scale.seconds);
    let meter = Meter::start(fresh.broker.pid())?;
    let began = drive::work(
        &mut clients,
        Limits {
            sending,
            all: sending + GRACE,
        },
        backlog,
    )?;
    let usage = meter.read()?;
    summarise(&clients, began, usage)
}

fn summarise(clients: &[Client], began: Instant, usage: Usage) -> Result<Run> {
    let (mut sent, mut settled, mut refused, mut last) = (0, 0, 0, began);
    for client in clients {
        let newest = match client.work() {
            Work::Idle | Work::Delete(_) => None,
            Work::Send(sender) => {
                sent += sender.accepted();
                refused += sender.refused();
                sender.last()
            }
            Work::Transact(transactor) => {
                sent += transactor.accepted();
                transactor.last()
            }
            Work::Receive(receiver) => {
                settled += receiver.count();
                receiver.last()
            }
            Work::Defer(deferrer) => {
                settled += deferrer.count();
                deferrer.last()
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
    fn rate(&self, messages: u64) -> f64 {
        as_f64(messages) / self.elapsed.as_secs_f64()
    }
}

/// Adds what a row did with so many messages.
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

fn plural(connections: u64) -> String {
    if connections == 1 {
        "1 connection".to_owned()
    } else {
        format!("{connections} connections")
    }
}

fn bytes(size: usize) -> String {
    if size < 1_024 {
        format!("{size} B")
    } else {
        format!("{} KiB", size / 1_024)
    }
}
