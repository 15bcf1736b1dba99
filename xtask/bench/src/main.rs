//! Bench: what a release build does on this machine, and what the machine's disk would allow.
//!
//! Rounds repeat every row in turn, so that a slow minute of the machine hits all of them; the
//! table shows minimum and median. Each row has its own broker on a fresh folder, a count and a
//! time limit. All traffic is on loopback, and the load generator tells its own share of the
//! processor.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use xtask::workspace::Workspace;

mod client;
mod cores;
mod crowd;
mod deep;
mod deferrer;
mod deleter;
mod disk;
mod disturb;
mod drive;
mod fairness;
mod features;
mod gatherer;
mod giant;
mod group;
mod hostile;
mod http_client;
mod idle;
mod latency;
mod memory;
mod namespaces;
mod nodes;
mod peers;
mod place;
mod pressure;
mod process;
mod results;
mod routers;
mod row;
mod scale;
mod sessions;
mod single;
mod site;
mod slow;
mod spreader;
mod taker;
mod task;
mod telemetry;
mod throughput;
mod topics;
mod traffic;
mod transactor;
mod watcher;
mod wide;

use load::message_sections::MessageSections;
use results::Results;
use row::Row;
use scale::Scale;
use site::Site;

/// What to measure, and how long.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Options {
    /// Seconds instead of minutes; the figures are rougher
    #[arg(long)]
    quick: bool,
    /// Only these rows
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Row>,
    /// Messages have ids of their own where a row does not say what they have; without an id, the
    /// broker gives them one
    #[arg(long)]
    ids: bool,
    /// How often each row is measured [default: 5, or 2 with --quick]
    #[arg(long)]
    rounds: Option<u32>,
    /// Messages of the row `deep`, 200,000 at least [default: 1000000, or 300000 with --quick]
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u64).range(200_000..))]
    deep: Option<u64>,
    /// Also measures other brokers, which are installed in the cache folder; only rows that all
    /// of them have [default: all brokers]
    #[arg(long, value_name = "BROKER", value_delimiter = ',', num_args = 0..=1,
          default_missing_value = "railbus,artemis,rabbitmq-quorum,rabbitmq-classic")]
    peers: Option<Vec<peers::Kind>>,
    /// Writes all samples to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Puts the broker's data here; it should be a real disk [default: the cache folder]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Measures this program instead of the one that was built [default: release/railbus of the
    /// target folder in the cache folder]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::find()?;
    let program = options.program.clone();
    let program = program.unwrap_or_else(|| workspace.railbus());
    let version = site::version(&program)?;
    let site = Site::prepare(&workspace, options.directory.as_deref(), program)?;
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 5 });
    let mut results = Results::new(options.quick, rounds);
    results.note("Railbus", &version);
    let well = if let Some(kinds) = &options.peers {
        let (rows, scale) = (rows(options, &peers::ROWS), beside_peers(options));
        peers::measure(&workspace, &site, kinds, &rows, scale, &mut results)?
    } else {
        alone(options, &site, &mut results)?;
        true
    };
    results.print();
    if let Some(path) = &options.json {
        results.write(path)?;
    }
    ensure!(
        well,
        "not every broker could be measured; the table says why"
    );
    Ok(())
}

/// Measures Railbus, round by round.
fn alone(options: &Options, site: &Site, results: &mut Results) -> Result<()> {
    let rounds = results.rounds();
    for round in 1..=rounds {
        for row in rows(options, Row::value_variants()) {
            eprintln!("round {round} of {rounds}: {}", row.name());
            measure(row, site, scale(options), results)
                .with_context(|| format!("measuring {}", row.name()))?;
        }
    }
    Ok(())
}

fn scale(options: &Options) -> Scale {
    let sections = match options.ids {
        true => MessageSections::Id,
        false => MessageSections::Plain,
    };
    Scale::new(options.quick, options.deep, sections)
}

/// With a backlog that every broker can keep in memory in its own way.
fn beside_peers(options: &Options) -> Scale {
    Scale {
        backlog: if options.quick { 50_000 } else { 200_000 },
        ..scale(options)
    }
}

fn rows(options: &Options, all: &[Row]) -> Vec<Row> {
    if options.rows.is_empty() {
        all.to_vec()
    } else {
        options.rows.clone()
    }
}

fn measure(row: Row, site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    match row {
        Row::Backlog => throughput::backlog(site, scale, results),
        Row::Disk => disk::measure(site, throughput::group(site, scale, results)?, results),
        Row::Both => throughput::both(site, scale, 1_024, results),
        Row::Small => throughput::both(site, scale, 64, results),
        Row::Large => throughput::both(site, scale, 16_384, results),
        Row::Queues => throughput::queues(site, scale, results),
        Row::Features => features::measure(site, scale, results),
        Row::Telemetry => telemetry::measure(site, scale, results),
        Row::Topics => topics::measure(site, scale, results),
        Row::Routers => routers::measure(site, scale, results),
        Row::Nodes => nodes::measure(site, scale, results),
        Row::Latency => latency::measure(site, scale, results),
        Row::Single => single::measure(site, scale, results),
        Row::Fairness => fairness::measure(site, scale, results),
        Row::Pressure => pressure::measure(site, scale, results),
        Row::Deep => deep::measure(site, scale, results),
        Row::Wide => wide::measure(site, scale, results),
        Row::Hostile => hostile::measure(site, scale, results),
        Row::Cores => cores::measure(site, scale, results),
        Row::Namespaces => namespaces::measure(site, scale, results),
        Row::Idle => idle::measure(site, scale, results),
        Row::Memory => memory::measure(site, scale, results),
    }
}
