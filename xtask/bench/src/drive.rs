//! Drive: how long all connections go on, and what for.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use load::event_loop::run_once;

use super::client::{Client, Workload};

/// How far to go, at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this long nothing new is sent.
    pub sending: Duration,
    /// After this long the run has failed.
    pub all: Duration,
}

/// Opens every connection and link.
pub fn open(clients: &mut [Client]) -> Result<()> {
    let limits = Limits {
        sending: Duration::from_secs(60),
        all: Duration::from_secs(60),
    };
    until(clients, limits, |clients| {
        clients.iter().all(Client::is_open)
    })
}

/// Starts the work of every connection and goes on until every message sent has its outcome and, if
/// a client receives, the messages sent and the `backlog` from before are settled and the broker
/// says that it has nothing more.
pub fn work(clients: &mut [Client], limits: Limits, backlog: u64) -> Result<Instant> {
    let began = Instant::now();
    for client in clients.iter_mut() {
        client.start(began);
    }
    until(clients, limits, |clients| is_done(clients, backlog))?;
    drain(clients, limits)?;
    Ok(began)
}

/// Goes on until every broker has said that it has nothing more for a receiver.
fn drain(clients: &mut [Client], limits: Limits) -> Result<()> {
    clients.iter_mut().for_each(Client::drain);
    until(clients, limits, |clients| {
        let mut works = clients.iter().map(Client::workload);
        works.all(|work| match work {
            Workload::Receive(receiver) => receiver.is_drained(),
            _ => true,
        })
    })
}

/// Starts the work of every connection, goes on until every purge is done, and then until every
/// message sent has its outcome.
pub fn purge(clients: &mut [Client], all: Duration) -> Result<Instant> {
    work_until(clients, all, |clients| {
        let mut works = clients.iter().map(Client::workload);
        works.all(|work| match work {
            Workload::Delete(deleter) => deleter.is_done(),
            _ => true,
        })
    })
}

/// Starts the work of every connection, goes on until that is `enough`, and then until every
/// message sent has its outcome.
pub fn work_until(
    clients: &mut [Client],
    all: Duration,
    enough: impl Fn(&[Client]) -> bool,
) -> Result<Instant> {
    let began = Instant::now();
    for client in clients.iter_mut() {
        client.start(began);
    }
    let limits = Limits { sending: all, all };
    until(clients, limits, enough)?;
    clients.iter_mut().for_each(Client::stop_sending);
    until(clients, limits, |clients| is_done(clients, 0))?;
    Ok(began)
}

fn is_done(clients: &[Client], backlog: u64) -> bool {
    let (mut accepted, mut settled, mut receives) = (backlog, 0, false);
    for client in clients {
        match client.workload() {
            Workload::Idle(_) | Workload::Delete(_) => {}
            Workload::Send(sender) if !sender.is_done() => return false,
            Workload::Send(sender) => accepted += sender.accepted(),
            Workload::Transact(transactor) if !transactor.is_done() => return false,
            Workload::Transact(transactor) => accepted += transactor.accepted(),
            Workload::Defer(deferrer) => {
                receives = true;
                settled += deferrer.count();
            }
            Workload::Receive(receiver) => {
                receives = true;
                settled += receiver.count();
            }
            Workload::Task(task) => {
                let tally = task.tally();
                if !tally.is_answered {
                    return false;
                }
                accepted += tally.accepted;
                receives |= tally.taken.is_some();
                settled += tally.taken.map_or(0, |taken| taken.settled);
            }
        }
    }
    !receives || settled >= accepted
}

fn until(clients: &mut [Client], limits: Limits, done: impl Fn(&[Client]) -> bool) -> Result<()> {
    let began = Instant::now();
    while !done(clients) {
        let now = Instant::now();
        if now - began >= limits.all {
            let status: Vec<_> = clients.iter().filter_map(Client::status).take(4).collect();
            bail!("not done after {:?}: {}", limits.all, status.join(", "));
        }
        if now - began >= limits.sending {
            clients.iter_mut().for_each(Client::stop_sending);
        }
        run_once(clients, now)?;
    }
    Ok(())
}
