//! Drive: the load generator's loop, one thread for all connections.
//!
//! It waits for sockets and for the next message that is due, so a fixed rate is kept to the
//! microsecond and an idle generator takes no processor from the broker.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::client::{Client, Work};

/// A wait without anything due.
const IDLE: Duration = Duration::from_millis(100);

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

/// Starts the work of every connection and goes on until every message sent has its outcome and,
/// if somebody receives, the messages sent and the `backlog` from before are settled and the
/// broker says that it has nothing more.
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
        let mut works = clients.iter().map(Client::work);
        works.all(|work| match work {
            Work::Receive(receiver) => receiver.is_drained(),
            _ => true,
        })
    })
}

/// Starts the work of every connection, goes on until every purge is done, and then until every
/// message sent has its outcome.
pub fn purge(clients: &mut [Client], all: Duration) -> Result<Instant> {
    let began = Instant::now();
    for client in clients.iter_mut() {
        client.start(began);
    }
    let limits = Limits { sending: all, all };
    until(clients, limits, |clients| {
        let works = clients.iter().map(Client::work);
        works.into_iter().all(|work| match work {
            Work::Delete(deleter) => deleter.is_done(),
            _ => true,
        })
    })?;
    clients.iter_mut().for_each(Client::stop_sending);
    until(clients, limits, |clients| is_done(clients, 0))?;
    Ok(began)
}

fn is_done(clients: &[Client], backlog: u64) -> bool {
    let (mut accepted, mut settled, mut receives) = (backlog, 0, false);
    for client in clients {
        match client.work() {
            Work::Idle(_) | Work::Delete(_) => {}
            Work::Send(sender) if !sender.is_done() => return false,
            Work::Send(sender) => accepted += sender.accepted(),
            Work::Transact(transactor) if !transactor.is_done() => return false,
            Work::Transact(transactor) => accepted += transactor.accepted(),
            Work::Defer(deferrer) => {
                receives = true;
                settled += deferrer.count();
            }
            Work::Receive(receiver) => {
                receives = true;
                settled += receiver.count();
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
            let stands: Vec<_> = clients.iter().filter_map(Client::stands).take(4).collect();
            bail!("not done after {:?}: {}", limits.all, stands.join(", "));
        }
        if now - began >= limits.sending {
            clients.iter_mut().for_each(Client::stop_sending);
        }
        turn(clients, now)?;
    }
    Ok(())
}

/// Lets every connection act, waits for one that is ready, and reads those that are.
fn turn(clients: &mut [Client], now: Instant) -> Result<()> {
    let mut flags = Vec::with_capacity(clients.len());
    for client in clients.iter_mut() {
        let blocked = client.act(now)?;
        flags.push(if blocked {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        });
    }
    let ready = wait(clients, &flags)?;
    let now = Instant::now();
    for (client, ready) in clients.iter_mut().zip(ready) {
        if ready {
            client.read(now)?;
        }
    }
    Ok(())
}

/// Which connections have something to read.
fn wait(clients: &[Client], flags: &[PollFlags]) -> Result<Vec<bool>> {
    let sockets = clients.iter().zip(flags);
    let mut polled: Vec<PollFd<'_>> = sockets
        .map(|(client, flags)| PollFd::new(client.stream(), *flags))
        .collect();
    match poll(&mut polled, Some(&time_out(clients))) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
    Ok(polled
        .iter()
        .map(|socket| socket.revents().intersects(readable))
        .collect())
}

fn time_out(clients: &[Client]) -> Timespec {
    let due = clients.iter().filter_map(Client::due).min();
    let wait = due.map_or(IDLE, |due| {
        due.saturating_duration_since(Instant::now()).min(IDLE)
    });
    Timespec {
        tv_sec: 0,
        tv_nsec: wait.subsec_nanos().into(),
    }
}
