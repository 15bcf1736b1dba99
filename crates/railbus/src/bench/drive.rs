//! Drive: opens the connections of a bench, lets them work until its end, and closes them so that nothing
//! stays locked.

use std::time::{Duration, Instant};

use load::sender::Sender;
use load::turn::turn;
use load::{Client, Error};

use super::plan::Plan;
use super::processor;
use super::stop::Stop;
use super::taker::Taker;
use super::trouble::Trouble;
use super::work::Work;
use crate::arguments::BenchMode;

/// How long connections may take to open.
const OPENING: Duration = Duration::from_secs(60);
/// How long what was sent may take to be accepted and to arrive, after nothing more is sent.
const GRACE: Duration = Duration::from_secs(30);
/// How long goodbyes may take.
const FAREWELL: Duration = Duration::from_secs(5);
/// Nothing comes any more when nothing has come for so long.
const QUIET: Duration = Duration::from_secs(1);

/// How a run went.
pub struct Run {
    pub began: Instant,
    /// How long new messages were sent.
    pub sending: Duration,
    /// Our own processor time until the newest outcome.
    pub processor: Duration,
    pub trouble: Option<Trouble>,
}

/// Opens every connection and link.
pub fn open(clients: &mut [Client<Work>], plan: &Plan, stop: &Stop) -> Result<(), Trouble> {
    let limit = Instant::now() + OPENING;
    let opened = until(clients, limit, |clients| {
        stop.is_asked() || clients.iter().all(Client::is_open)
    });
    match opened {
        Ok(true) => Ok(()),
        Ok(false) => Err(Trouble::late(plan)),
        Err(error) => Err(Trouble::connecting(error, plan)),
    }
}

/// Works until the end of the plan.
pub fn run(clients: &mut [Client<Work>], plan: &Plan, stop: &Stop) -> Run {
    let probed = probe(clients, plan, stop);
    let began = Instant::now();
    let before = processor::used();
    let mut sending = Duration::ZERO;
    let worked = probed.and_then(|()| {
        work(clients, plan, stop, began)?;
        sending = began.elapsed();
        finish(clients, plan, stop)
    });
    let processor = processor::used().saturating_sub(before);
    // A connection that is lost can not be left in order.
    let trouble = match worked {
        Ok(trouble) => {
            let closed = close(clients).map_err(|error| Trouble::running(error, plan));
            trouble.or(closed.err())
        }
        Err(error) => Some(Trouble::running(error, plan)),
    };
    Run {
        began,
        sending,
        processor,
        trouble,
    }
}

/// Looks whether there is room among messages of others before anything is sent.
fn probe(clients: &mut [Client<Work>], plan: &Plan, stop: &Stop) -> Result<(), Error> {
    if plan.mode != BenchMode::Both {
        return Ok(());
    }
    for client in clients.iter_mut() {
        if let (Work::Take(taker), engine) = client.work_mut() {
            taker.probe(engine);
        }
    }
    let limit = Instant::now() + OPENING;
    until(clients, limit, |clients| {
        stop.is_asked() || takers(clients).all(Taker::has_probed)
    })?;
    Ok(())
}

/// Sends and receives what is planned, or until the time is over.
fn work(
    clients: &mut [Client<Work>],
    plan: &Plan,
    stop: &Stop,
    began: Instant,
) -> Result<(), Error> {
    if !takers(clients).any(Taker::is_flooded) {
        start(clients, plan, began);
    }
    until(clients, began + plan.duration, |clients| {
        stop.is_asked() || is_done(clients, plan, began) || must_end(clients)
    })?;
    Ok(())
}

/// Waits for what is still to come of what was sent. Says what there is to complain of, although the
/// connections stand.
fn finish(
    clients: &mut [Client<Work>],
    plan: &Plan,
    stop: &Stop,
) -> Result<Option<Trouble>, Error> {
    clients.iter_mut().for_each(Client::stop_sending);
    let asked = stop.is_asked();
    let grace = if asked { FAREWELL } else { GRACE };
    until(clients, Instant::now() + grace, |clients| {
        let asked_now = !asked && stop.is_asked();
        asked_now || takers(clients).any(Taker::is_flooded) || is_complete(clients)
    })?;
    Ok(complaint(clients, plan, grace))
}

fn start(clients: &mut [Client<Work>], plan: &Plan, began: Instant) {
    let (takers, senders): (Vec<_>, Vec<_>) = clients
        .iter_mut()
        .partition(|client| client.work().as_taker().is_some());
    takers.into_iter().for_each(|client| client.start(began));
    for (client, number) in senders.into_iter().zip(0..) {
        client.start(began + plan.offset(number));
    }
}

/// Whether all that was planned is done.
fn is_done(clients: &[Client<Work>], plan: &Plan, began: Instant) -> bool {
    if clients
        .iter()
        .any(|client| client.work().as_sender().is_some())
    {
        return is_complete(clients);
    }
    let settled: u64 = takers(clients).map(Taker::count).sum();
    let newest = takers(clients).filter_map(Taker::newest).max();
    let is_quiet = newest.unwrap_or(began).elapsed() >= QUIET;
    plan.messages.is_some_and(|all| settled >= all) || (plan.ends_when_quiet && is_quiet)
}

/// Whether it would lead nowhere to go on.
fn must_end(clients: &[Client<Work>]) -> bool {
    refused(clients) > 0 || takers(clients).any(Taker::is_flooded)
}

/// Whether every message sent has its outcome and, if somebody receives, is completed.
fn is_complete(clients: &[Client<Work>]) -> bool {
    let mut senders = clients
        .iter()
        .filter_map(|client| client.work().as_sender());
    senders.all(Sender::is_done) && missing(clients) == 0
}

/// Messages that were accepted and are not completed.
fn missing(clients: &[Client<Work>]) -> u64 {
    if takers(clients).next().is_none() {
        return 0;
    }
    let senders = clients
        .iter()
        .filter_map(|client| client.work().as_sender());
    let accepted: u64 = senders.map(Sender::accepted).sum();
    accepted.saturating_sub(takers(clients).map(Taker::count).sum())
}

fn refused(clients: &[Client<Work>]) -> u64 {
    let senders = clients
        .iter()
        .filter_map(|client| client.work().as_sender());
    senders.map(Sender::refused).sum()
}

fn complaint(clients: &[Client<Work>], plan: &Plan, grace: Duration) -> Option<Trouble> {
    let mut senders = clients
        .iter()
        .filter_map(|client| client.work().as_sender());
    if refused(clients) > 0 {
        let why = senders.find_map(Sender::refusal);
        return Some(Trouble::refused(why));
    }
    if takers(clients).any(Taker::is_flooded) {
        return Some(Trouble::Others(plan.entity.clone()));
    }
    if !senders.all(Sender::is_done) {
        return Some(Trouble::late(plan));
    }
    match missing(clients) {
        0 => None,
        missing => Some(Trouble::Missing {
            missing,
            entity: plan.entity.clone(),
            grace,
        }),
    }
}

/// Takes what is on its way, gives back what belongs to others, and says goodbye.
fn close(clients: &mut [Client<Work>]) -> Result<(), Error> {
    let limit = Instant::now() + FAREWELL;
    clients.iter_mut().for_each(Client::drain);
    until(clients, limit, |clients| {
        takers(clients).all(Taker::is_finished)
    })?;
    for client in clients.iter_mut() {
        if let (Work::Take(taker), engine) = client.work_mut() {
            taker.give_back(engine);
        }
    }
    until(clients, limit, |clients| {
        takers(clients).all(Taker::has_given_back)
    })?;
    clients.iter_mut().for_each(Client::close);
    until(clients, limit, |clients| {
        clients.iter().all(Client::is_closed)
    })?;
    Ok(())
}

fn takers(clients: &[Client<Work>]) -> impl Iterator<Item = &Taker> {
    clients.iter().filter_map(|client| client.work().as_taker())
}

/// Goes on until it is done, or until the limit; says whether it is done.
fn until(
    clients: &mut [Client<Work>],
    limit: Instant,
    done: impl Fn(&[Client<Work>]) -> bool,
) -> Result<bool, Error> {
    loop {
        if done(clients) {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= limit {
            return Ok(false);
        }
        turn(clients, now)?;
    }
}
