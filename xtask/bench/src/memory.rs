//! Memory: what the broker holds when it is idle, connected to and full, and how fast it is back
//! after a crash with all of it.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::client::{Client, Workload};
use super::drive::{self, Limits};
use super::place::Place;
use super::process::resident;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Fresh, Site};
use load::message_sections::MessageSections;
use load::receiver::Receiver;
use load::sender::{Plan, Sender};

/// The longest a million durable messages may take.
const FILLING: Duration = Duration::from_secs(600);
/// Files that the broker and the generator may each need, in most rows.
const FILES: u64 = 4_096;

/// Measures one broker from its start through connections, backlog, crash and restart.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    allow_files()?;
    let fresh = site.fresh()?;
    let pid = fresh.broker.pid();
    results.add("memory", "at start", Unit::Mebibytes, resident(pid)?);
    let place = fresh.place()?;
    let row = format!("with {} idle connections", scale.connections);
    let idle = connect(&place, scale, || Workload::Idle(None))?;
    results.add("memory", &row, Unit::Mebibytes, resident(pid)?);
    drop(idle);
    linked(&place, scale, results)?;
    grow(&place, scale, results)?;
    let row = format!("with {} messages of 1 KiB", scale.backlog);
    results.add("memory", &row, Unit::Mebibytes, resident(pid)?);
    restart(site, fresh, scale, results)
}

/// Measures idle connections that each have a receiver without credit.
pub fn linked(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    let queue = place.queue(site::QUEUE);
    let link = || Workload::Idle(Some(Receiver::new(&queue)));
    let idle = connect(place, scale, link)?;
    let row = format!("with {} idle connections with a link", idle.len());
    results.add("memory", &row, Unit::Mebibytes, resident(place.pid)?);
    Ok(())
}

/// Opens the idle connections.
fn connect(place: &Place, scale: Scale, work: impl Fn() -> Workload) -> Result<Vec<Client>> {
    let clients = (0..scale.connections).map(|_| Client::connect(place, work()));
    let mut clients = clients.collect::<Result<Vec<_>>>()?;
    drive::open(&mut clients)?;
    Ok(clients)
}

/// Fills a queue, and says whether that slows down as it grows.
pub fn grow(place: &Place, scale: Scale, results: &mut Results) -> Result<()> {
    let client = fill(place, scale.backlog)?;
    if let Workload::Send(sender) = client.workload()
        && let Some(part) = sender.last_to_first_tenth()
    {
        let row = format!("filling with {} messages of 1 KiB", scale.backlog);
        let metric = "last tenth's rate of the first's";
        results.add(&row, metric, Unit::Percent, 100.0 * part);
    }
    Ok(())
}

/// Sends a backlog, all of it durable when this returns.
pub fn fill(place: &Place, backlog: u64) -> Result<Client> {
    fill_queue(place, &place.queue(site::QUEUE), backlog)
}

/// Sends a backlog to `queue`, all of it durable when this returns.
pub fn fill_queue(place: &Place, queue: &str, backlog: u64) -> Result<Client> {
    let plan = Plan {
        queue: queue.to_owned(),
        size: 1_024,
        count: backlog,
        in_flight: 1_000,
        sections: MessageSections::Plain,
        every: None,
    };
    let mut clients = vec![Client::connect(
        place,
        Workload::Send(Box::new(Sender::new(plan))),
    )?];
    drive::open(&mut clients)?;
    drive::work(
        &mut clients,
        Limits {
            sending: FILLING,
            all: FILLING,
        },
        0,
    )?;
    let client = clients.remove(0);
    if let Workload::Send(sender) = client.workload() {
        ensure!(
            sender.accepted() == backlog,
            "only {} messages were accepted",
            sender.accepted()
        );
    }
    Ok(client)
}

/// Crashes the broker and starts it again on the same directory.
fn restart(site: &Site, fresh: Fresh, scale: Scale, results: &mut Results) -> Result<()> {
    let Fresh { broker, data } = fresh;
    broker.crash()?;
    let broker = site.start(data.path())?;
    let row = format!("after a crash with {} messages", scale.backlog);
    results.add(
        "start",
        &row,
        Unit::Milliseconds,
        broker.took.as_secs_f64() * 1e3,
    );
    results.add("memory", &row, Unit::Mebibytes, resident(broker.pid())?);
    broker.stop()?;
    Ok(())
}

/// Raises the limit of open files, for us and the brokers we start.
pub fn allow_files() -> Result<()> {
    allow_so_many_files(FILES)
}

/// Raises it to `files`, or as far as it may be.
pub fn allow_so_many_files(files: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(files, |most| most.min(files));
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                maximum: limit.maximum,
            },
        )?;
    }
    Ok(())
}
