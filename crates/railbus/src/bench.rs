//! `railbus bench`: load on an entity of some broker from this machine, and what came of it.
//!
//! Messages of others are safe from it but for `--mode receive`, which says so. What was measured is printed
//! whatever ends the run.

mod drive;
mod figures;
mod histogram;
mod plan;
mod processor;
mod queue;
mod report;
mod stop;
mod taker;
mod trouble;
mod work;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use load::Client;

use crate::arguments::{BenchArguments, BenchMode};
use crate::refusal::Refusal;
use figures::Figures;
use plan::Plan;
use queue::Created;
use stop::Stop;
use work::Work;

pub use trouble::Trouble;

/// Measures, prints, and leaves no queue behind that it has made.
pub fn run(arguments: &BenchArguments) -> Result<ExitCode, Refusal> {
    let plan = Plan::new(arguments)?;
    let stop = Stop::listen()?;
    if !arguments.create {
        measure(&plan, &stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    let created = Created::make(&plan.entity, plan.size, &arguments.broker)?;
    let measured = measure(&plan, &stop);
    // Why the run failed is the better news.
    let deleted = created.delete(&arguments.broker);
    measured.and(deleted).map(|()| ExitCode::SUCCESS)
}

fn measure(plan: &Plan, stop: &Stop) -> Result<(), Refusal> {
    let mut clients = connect(plan)?;
    drive::open(&mut clients, plan, stop)?;
    if std::io::stderr().is_terminal() {
        eprintln!("{}; Ctrl-C ends it early", plan.announced());
    }
    let run = drive::run(&mut clients, plan, stop);
    let figures = Figures::gather(&clients, plan, &run);
    if figures.is_any() || run.trouble.is_none() {
        report::print(plan, &figures)?;
    }
    match run.trouble {
        Some(trouble) => Err(trouble.into()),
        None => Ok(()),
    }
}

fn connect(plan: &Plan) -> Result<Vec<Client<Work>>, Refusal> {
    let epoch = Instant::now();
    let peer = plan.peer()?;
    let mut clients = Vec::new();
    for number in 0..plan.connections {
        if plan.mode != BenchMode::Send {
            clients.push(Work::taker(plan, number, epoch));
        }
        if plan.mode != BenchMode::Receive {
            clients.push(Work::sender(plan, number, epoch));
        }
    }
    let clients = clients.into_iter();
    let clients = clients.map(|work| Client::connect(peer.clone(), work));
    let clients: Result<Vec<_>, _> = clients.collect();
    clients.map_err(|error| Trouble::connecting(error, plan).into())
}
