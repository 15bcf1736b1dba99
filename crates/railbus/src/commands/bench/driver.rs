//! Driver: opens the connections of a bench, runs them until its end, and closes them so that no
//! message stays locked.

use std::time::{Duration, Instant};

use load::event_loop::run_once;
use load::sender::Sender;
use load::{Client, Error};

use super::error::BenchError;
use super::plan::Plan;
use super::processor;
use super::receiver::BenchReceiver;
use super::stop_signal::StopSignal;
use super::workload::Workload;
use crate::arguments::BenchMode;

/// How long connections may take to open.
const OPENING: Duration = Duration::from_secs(60);
/// How long what was sent may take to be accepted and to arrive, after nothing more is sent.
const GRACE: Duration = Duration::from_secs(30);
/// How long closing may take.
const CLOSE_TIME_OUT: Duration = Duration::from_secs(5);
/// The queue counts as empty when no message has come for this time.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// How a run went.
pub struct BenchRun {
    pub began: Instant,
    /// How long new messages were sent.
    pub sending: Duration,
    /// Our own processor time until the newest outcome.
    pub processor: Duration,
    pub error: Option<BenchError>,
}

/// Opens every connection and link.
pub fn open(
    clients: &mut [Client<Workload>],
    plan: &Plan,
    stop_signal: &StopSignal,
) -> Result<(), BenchError> {
    let limit = Instant::now() + OPENING;
    let opened = until(clients, limit, |clients| {
        stop_signal.is_requested() || clients.iter().all(Client::is_open)
    });
    match opened {
        Ok(true) => Ok(()),
        Ok(false) => Err(plan.late_error()),
        Err(error) => Err(plan.connecting_error(error)),
    }
}

/// Works until the end of the plan.
pub fn run(clients: &mut [Client<Workload>], plan: &Plan, stop_signal: &StopSignal) -> BenchRun {
    let continue_probe = probe(clients, plan, stop_signal);
    let began = Instant::now();
    let before = processor::used();
    let mut sending = Duration::ZERO;
    let worked = continue_probe.and_then(|()| {
        work(clients, plan, stop_signal, began)?;
        sending = began.elapsed();
        finish(clients, plan, stop_signal)
    });
    let processor = processor::used().saturating_sub(before);
    // A connection that is lost cannot be left in order.
    let error = match worked {
        Ok(error) => {
            let closed = close(clients).map_err(|error| plan.running_error(error));
            error.or(closed.err())
        }
        Err(error) => Some(plan.running_error(error)),
    };
    BenchRun {
        began,
        sending,
        processor,
        error,
    }
}

/// Checks before anything is sent that the queue has few messages of other senders.
fn probe(
    clients: &mut [Client<Workload>],
    plan: &Plan,
    stop_signal: &StopSignal,
) -> Result<(), Error> {
    if plan.mode != BenchMode::Both {
        return Ok(());
    }
    for client in clients.iter_mut() {
        if let (Workload::Receive(receiver), engine) = client.workload_mut() {
            receiver.probe(engine);
        }
    }
    let limit = Instant::now() + OPENING;
    until(clients, limit, |clients| {
        stop_signal.is_requested() || receivers(clients).all(BenchReceiver::has_probed)
    })?;
    Ok(())
}

/// Sends and receives what is planned, or until the time is over.
fn work(
    clients: &mut [Client<Workload>],
    plan: &Plan,
    stop_signal: &StopSignal,
    began: Instant,
) -> Result<(), Error> {
    if !receivers(clients).any(BenchReceiver::has_too_many_foreign) {
        start(clients, plan, began);
    }
    until(clients, began + plan.duration, |clients| {
        stop_signal.is_requested() || is_done(clients, plan, began) || must_stop(clients)
    })?;
    Ok(())
}

/// Waits for the outcomes and arrivals of sent messages. Returns the failure of the run, if any,
/// although its connections are open.
fn finish(
    clients: &mut [Client<Workload>],
    plan: &Plan,
    stop_signal: &StopSignal,
) -> Result<Option<BenchError>, Error> {
    clients.iter_mut().for_each(Client::stop_sending);
    let asked = stop_signal.is_requested();
    let grace = if asked { CLOSE_TIME_OUT } else { GRACE };
    until(clients, Instant::now() + grace, |clients| {
        let asked_now = !asked && stop_signal.is_requested();
        asked_now
            || receivers(clients).any(BenchReceiver::has_too_many_foreign)
            || is_complete(clients)
    })?;
    Ok(failure(clients, plan, grace))
}

fn start(clients: &mut [Client<Workload>], plan: &Plan, began: Instant) {
    let (receivers, senders): (Vec<_>, Vec<_>) = clients
        .iter_mut()
        .partition(|client| client.workload().as_receiver().is_some());
    receivers.into_iter().for_each(|client| client.start(began));
    for (client, number) in senders.into_iter().zip(0..) {
        client.start(began + plan.offset(number));
    }
}

/// Whether all that was planned is done.
fn is_done(clients: &[Client<Workload>], plan: &Plan, began: Instant) -> bool {
    if clients
        .iter()
        .any(|client| client.workload().as_sender().is_some())
    {
        return is_complete(clients);
    }
    let settled: u64 = receivers(clients).map(BenchReceiver::count).sum();
    let newest = receivers(clients).filter_map(BenchReceiver::newest).max();
    let is_quiet = newest.unwrap_or(began).elapsed() >= QUIET_PERIOD;
    plan.messages.is_some_and(|all| settled >= all) || (plan.ends_when_quiet && is_quiet)
}

/// Whether the run cannot succeed any more.
fn must_stop(clients: &[Client<Workload>]) -> bool {
    refused(clients) > 0 || receivers(clients).any(BenchReceiver::has_too_many_foreign)
}

/// Whether every sent message has its outcome and, if there are receivers, is completed.
fn is_complete(clients: &[Client<Workload>]) -> bool {
    let mut senders = clients
        .iter()
        .filter_map(|client| client.workload().as_sender());
    senders.all(Sender::is_done) && missing(clients) == 0
}

/// Messages that were accepted and are not completed.
fn missing(clients: &[Client<Workload>]) -> u64 {
    if receivers(clients).next().is_none() {
        return 0;
    }
    let senders = clients
        .iter()
        .filter_map(|client| client.workload().as_sender());
    let accepted: u64 = senders.map(Sender::accepted).sum();
    accepted.saturating_sub(receivers(clients).map(BenchReceiver::count).sum())
}

fn refused(clients: &[Client<Workload>]) -> u64 {
    let senders = clients
        .iter()
        .filter_map(|client| client.workload().as_sender());
    senders.map(Sender::refused).sum()
}

fn failure(clients: &[Client<Workload>], plan: &Plan, grace: Duration) -> Option<BenchError> {
    let mut senders = clients
        .iter()
        .filter_map(|client| client.workload().as_sender());
    if refused(clients) > 0 {
        let why = senders.find_map(Sender::refusal);
        return Some(BenchError::refused(why));
    }
    if receivers(clients).any(BenchReceiver::has_too_many_foreign) {
        return Some(BenchError::Others(plan.entity.clone()));
    }
    if !senders.all(Sender::is_done) {
        return Some(plan.late_error());
    }
    match missing(clients) {
        0 => None,
        missing => Some(BenchError::Missing {
            missing,
            entity: plan.entity.clone(),
            grace,
        }),
    }
}

/// Receives the messages on their way, releases those of other senders, and closes the connections.
fn close(clients: &mut [Client<Workload>]) -> Result<(), Error> {
    let limit = Instant::now() + CLOSE_TIME_OUT;
    clients.iter_mut().for_each(Client::drain);
    until(clients, limit, |clients| {
        receivers(clients).all(BenchReceiver::is_finished)
    })?;
    for client in clients.iter_mut() {
        if let (Workload::Receive(receiver), engine) = client.workload_mut() {
            receiver.release_foreign(engine);
        }
    }
    until(clients, limit, |clients| {
        receivers(clients).all(BenchReceiver::has_released)
    })?;
    clients.iter_mut().for_each(Client::close);
    until(clients, limit, |clients| {
        clients.iter().all(Client::is_closed)
    })?;
    Ok(())
}

fn receivers(clients: &[Client<Workload>]) -> impl Iterator<Item = &BenchReceiver> {
    clients
        .iter()
        .filter_map(|client| client.workload().as_receiver())
}

/// Runs until it is done, or until the limit; returns whether it is done.
fn until(
    clients: &mut [Client<Workload>],
    limit: Instant,
    done: impl Fn(&[Client<Workload>]) -> bool,
) -> Result<bool, Error> {
    loop {
        if done(clients) {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= limit {
            return Ok(false);
        }
        run_once(clients, now)?;
    }
}
