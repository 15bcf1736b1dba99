//! `railbus bench`: puts load on an entity of a broker from this machine, and reports the results.
//!
//! Messages of other senders are safe from it except in `--mode receive`, whose help says so. The
//! results are printed however the run ends.

mod driver;
pub mod error;
mod histogram;
mod plan;
mod processor;
mod queue;
mod receiver;
mod report;
mod results;
mod stop_signal;
mod workload;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use load::Client;

use crate::arguments::{BenchArguments, BenchMode};
use crate::command_error::CommandError;
use plan::Plan;
use queue::Created;
use results::Results;
use stop_signal::StopSignal;
use workload::Workload;

/// Measures, prints, and leaves no queue behind that it has made.
pub fn run(arguments: &BenchArguments) -> Result<ExitCode, CommandError> {
    let plan = Plan::new(arguments)?;
    let stop_signal = StopSignal::listen()?;
    if !arguments.create {
        measure(&plan, &stop_signal)?;
        return Ok(ExitCode::SUCCESS);
    }
    let created = Created::make(&plan.entity, plan.size, &arguments.broker)?;
    let measured = measure(&plan, &stop_signal);
    // Why the run failed is the better news.
    let deleted = created.delete(&arguments.broker);
    measured.and(deleted).map(|()| ExitCode::SUCCESS)
}

fn measure(plan: &Plan, stop_signal: &StopSignal) -> Result<(), CommandError> {
    let mut clients = connect(plan)?;
    driver::open(&mut clients, plan, stop_signal)?;
    if std::io::stderr().is_terminal() {
        eprintln!("{}; Ctrl-C ends it early", plan.announced());
    }
    let run = driver::run(&mut clients, plan, stop_signal);
    let results = Results::gather(&clients, plan, &run);
    if results.is_any() || run.error.is_none() {
        report::print(plan, &results)?;
    }
    match run.error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn connect(plan: &Plan) -> Result<Vec<Client<Workload>>, CommandError> {
    let epoch = Instant::now();
    let peer = plan.peer()?;
    let mut clients = Vec::new();
    for number in 0..plan.connections {
        if plan.mode != BenchMode::Send {
            clients.push(Workload::receiver(plan, number, epoch));
        }
        if plan.mode != BenchMode::Receive {
            clients.push(Workload::sender(plan, number, epoch));
        }
    }
    let clients = clients.into_iter();
    let clients = clients.map(|work| Client::connect(peer.clone(), work));
    let clients: Result<Vec<_>, _> = clients.collect();
    clients.map_err(|error| plan.connecting_error(error).into())
}
