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

use load::{bodies, message_sections, receiver, request_client, sender};
use results::Results;
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

/// One row of the table, or a few that are measured together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Row {
    /// Durable sends of 1 KiB, then receiving and settling them; one connection, 500 in flight
    Backlog,
    /// The disk alone: append and fdatasync, in groups as large as in the row before, and one by
    /// one
    Disk,
    /// Sending and receiving 1 KiB at once
    Both,
    /// Sending and receiving 64 B at once
    Small,
    /// Sending and receiving 16 KiB at once
    Large,
    /// Fifty queues, each with a sender and a receiver
    Queues,
    /// Sending and receiving 1 KiB at once: plain, time to live, duplicate detection, forwarded, a
    /// session, scheduled, deferred, recorded for traces, a topic with an SQL filter,
    /// transactional
    Features,
    /// Sending and receiving 1 KiB at once with trace contexts: telemetry off, and on with 0, 1 and
    /// 100 of 100 messages sampled
    Telemetry,
    /// Publishing 1 KiB to topics: 1 to 1,000 subscriptions, SQL filters, 10 and 100,000
    /// correlation filters
    Topics,
    /// Publishing 1 KiB to an exchange with 1, 10 and 100 bindings
    Routers,
    /// Dynamic nodes that are made and gone with their links, as reply queues are
    Nodes,
    /// Time to accepted at 2,000 messages a second
    Latency,
    /// Durable sends of 1 KiB with one in flight, beside one sync and one round trip
    Single,
    /// Time to accepted at 2,000 messages a second under attack, by attack
    Hostile,
    /// Time to accepted and to arrival on a quiet queue: alone, beside a queue that is hardly
    /// emptied, a connection that never reads, a purge, messages of 100 MiB
    Fairness,
    /// Senders as fast as they can on a disk that is too slow for them: memory by the second
    Pressure,
    /// A queue without receivers, up to a million messages: rates, a crash, and emptying it
    Deep,
    /// 10,000 queues, 10,000 connections and 100,000 sessions in use, each beside fewer of them
    Wide,
    /// What each stage of the broker costs, on one processor and on more
    Cores,
    /// Time, processor time and memory of creating an empty namespace
    Namespaces,
    /// Context switches of a broker without connections
    Idle,
    /// Memory and start times: empty, with idle connections, with a large backlog
    Memory,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Messages of a throughput row, at most.
    pub messages: u64,
    /// Seconds after which a throughput row sends no more.
    pub seconds: u64,
    /// Connections of the memory row.
    pub connections: usize,
    /// Messages of the rows about memory and fairness.
    pub backlog: u64,
    /// Messages of the row about a queue without receivers.
    pub deep: u64,
    /// Seconds of the row about senders that are too fast.
    pub pressure: u64,
    /// Sessions of the row with many.
    pub sessions: u32,
}

impl Scale {
    /// Whether seconds are to do.
    fn is_short(self) -> bool {
        self.seconds < 5
    }

    fn of(options: &Options) -> Self {
        if options.quick {
            Self {
                messages: 50_000,
                seconds: 2,
                connections: 1_000,
                backlog: 100_000,
                deep: options.deep.unwrap_or(300_000),
                pressure: 10,
                sessions: 20_000,
            }
        } else {
            Self {
                messages: 400_000,
                seconds: 8,
                connections: 1_000,
                backlog: 1_000_000,
                deep: options.deep.unwrap_or(1_000_000),
                pressure: 60,
                sessions: 100_000,
            }
        }
    }

    /// A backlog that every broker can keep in memory in its own way.
    fn beside_peers(options: &Options) -> Self {
        Self {
            backlog: if options.quick { 50_000 } else { 200_000 },
            ..Self::of(options)
        }
    }
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
        let (rows, scale) = (rows(options, &peers::ROWS), Scale::beside_peers(options));
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
            eprintln!("round {round} of {rounds}: {}", name(row));
            measure(row, site, Scale::of(options), results)
                .with_context(|| format!("measuring {}", name(row)))?;
        }
    }
    Ok(())
}

fn rows(options: &Options, all: &[Row]) -> Vec<Row> {
    if options.rows.is_empty() {
        all.to_vec()
    } else {
        options.rows.clone()
    }
}

fn name(row: Row) -> String {
    row.to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
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
