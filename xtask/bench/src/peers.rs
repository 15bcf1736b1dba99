//! Peers: other brokers, measured beside Railbus by the same generator with the same rows.
//!
//! Each row starts each broker in turn on an empty data directory and warms it up, so that a slow
//! minute of the machine hits all of them. A broker that cannot be had or fails is named with
//! the reason.

mod artemis;
mod launch;
mod rabbitmq;
mod railbus;
mod rows;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use xtask::workspace::Workspace;

use super::place::Place;
use super::results::Results;
use super::row::Row;
use super::scale::Scale;
use super::site::{self, Site};

/// The rows that any broker can be measured with.
pub const ROWS: [Row; 9] = [
    Row::Backlog,
    Row::Both,
    Row::Small,
    Row::Large,
    Row::Queues,
    Row::Latency,
    Row::Single,
    Row::Idle,
    Row::Memory,
];

/// A broker to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Kind {
    /// The one of this workspace
    Railbus,
    /// Apache ActiveMQ Artemis as `artemis create` sets it up, anycast queues
    Artemis,
    /// Debian's RabbitMQ, quorum queues
    RabbitmqQuorum,
    /// Debian's RabbitMQ, durable classic queues
    RabbitmqClassic,
}

/// A broker that can be started again and again.
trait Peer {
    /// Its name and version.
    fn name(&self) -> String;
    /// What one has to know to compare it.
    fn notes(&self) -> Vec<String>;
    /// Starts it on an empty data directory, with the queues of every row.
    fn start(&self) -> Result<Running>;
}

/// A broker with which a session opens.
struct Running {
    place: Place,
    /// From the start of the process to the first session.
    took: Duration,
    broker: Box<dyn Stop>,
}

/// A process that is killed when it is dropped.
trait Stop {
    /// Stops it in its own way.
    fn stop(self: Box<Self>) -> Result<()>;
}

/// Measures `rows` with each of `kinds`, round by round. Says whether all of it went well.
pub fn measure(
    workspace: &Workspace,
    site: &Site,
    kinds: &[Kind],
    rows: &[Row],
    scale: Scale,
    results: &mut Results,
) -> Result<bool> {
    for row in rows {
        ensure!(
            ROWS.contains(row),
            "{} is measured without --peers only",
            row.name()
        );
    }
    let peers = prepare(workspace, site, kinds, results);
    let pairs = rows
        .iter()
        .flat_map(|row| peers.iter().map(|peer| (*row, &**peer)));
    let all: Vec<(Row, &dyn Peer)> = pairs.collect();
    let mut left = all.clone();
    for round in 1..=results.rounds() {
        // What failed once is not tried again.
        left.retain(|(row, peer)| measure_one(*row, *peer, round, scale, results));
    }
    Ok(left.len() == all.len() && peers.len() == kinds.len())
}

/// Measures one row at one broker. Says whether that went well; the results say why not.
fn measure_one(row: Row, peer: &dyn Peer, round: u32, scale: Scale, results: &mut Results) -> bool {
    let peer_name = peer.name();
    eprintln!("round {round}: {}, {peer_name}", row.name());
    results.set_broker(&peer_name);
    let measured = rows::measure(row, peer, scale, results);
    if let Err(error) = &measured {
        let why = format!("{} failed in round {round}: {error:#}", row.name());
        results.note(&peer_name, &why);
    }
    measured.is_ok()
}

/// Installs what is missing. What cannot be had is noted in the results.
fn prepare(
    workspace: &Workspace,
    site: &Site,
    kinds: &[Kind],
    results: &mut Results,
) -> Vec<Box<dyn Peer>> {
    let mut peers = Vec::new();
    for kind in kinds {
        match peer(*kind, workspace, site) {
            Ok(peer) => {
                for note in peer.notes() {
                    results.note(&peer.name(), &note);
                }
                peers.push(peer);
            }
            Err(error) => {
                let name = kind.to_possible_value();
                let name = name.map_or_else(String::new, |name| name.get_name().to_owned());
                results.note(&name, &format!("not run: {error:#}"));
            }
        }
    }
    peers
}

fn peer(kind: Kind, workspace: &Workspace, site: &Site) -> Result<Box<dyn Peer>> {
    let cache = workspace.cached("peers")?;
    Ok(match kind {
        Kind::Railbus => Box::new(railbus::Railbus::new(site.clone())),
        Kind::Artemis => Box::new(artemis::Artemis::install(&cache, site.folder())?),
        Kind::RabbitmqQuorum => Box::new(rabbitmq::Rabbitmq::install(
            &cache,
            site.folder(),
            "quorum",
        )?),
        Kind::RabbitmqClassic => Box::new(rabbitmq::Rabbitmq::install(
            &cache,
            site.folder(),
            "classic",
        )?),
    })
}

/// The queues of every row.
fn queues() -> impl Iterator<Item = String> {
    let pairs = (0..site::QUEUES).map(site::pair);
    pairs.chain([site::QUEUE.to_owned()])
}

/// A port on loopback that is free at the moment.
fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

/// Makes `target` by `install`, which gets a folder beside it to work in, unless it is there.
fn install_once(target: &Path, install: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if target.is_dir() {
        return Ok(());
    }
    let parent = target.parent().context("a folder in the cache")?;
    // Whole or not at all: an interrupted installation leaves nothing under the final name.
    let work = tempfile::tempdir_in(parent)?;
    let made = work.path().join("made");
    install(&made)?;
    if !made.is_dir() {
        bail!("nothing was installed for {}", target.display());
    }
    std::fs::rename(&made, target).with_context(|| format!("moving to {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_that_fails_leaves_nothing_and_one_that_is_there_is_kept() {
        let cache = tempfile::tempdir().expect("a folder");
        let target = cache.path().join("broker");
        let failed = install_once(&target, |made| {
            std::fs::create_dir(made)?;
            bail!("no such program")
        });
        assert!(failed.is_err());
        let left = std::fs::read_dir(cache.path()).expect("listed").count();
        assert_eq!(left, 0);
        install_once(&target, |made| Ok(std::fs::create_dir(made)?)).expect("installed");
        install_once(&target, |_| bail!("it is there")).expect("kept");
        assert!(target.is_dir());
    }

    #[test]
    fn every_row_of_all_brokers_has_its_queues() {
        let queues: Vec<_> = queues().collect();
        assert_eq!(queues.len(), site::QUEUES + 1);
        assert!(queues.contains(&site::QUEUE.to_owned()));
        assert!(queues.contains(&site::pair(site::QUEUES - 1)));
    }
}
