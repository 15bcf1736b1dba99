//! Stages: what each part of a broker has used: those with threads of their own by the kernel's
//! count of these, the shard by its own count, and connections are all the rest.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use crate::process::as_f64;
use crate::results::{Results, Unit};
use crate::throughput::Run;

/// A look at a broker's counters.
pub struct Reading {
    at: Instant,
    used: Stages,
}

/// Seconds of processor time, unless it says otherwise; since the broker began, or between two
/// looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stages {
    elapsed: f64,
    /// All threads.
    broker: f64,
    committer: f64,
    indexer: f64,
    /// RocksDB's own threads: flushes and compactions.
    tables: f64,
    shard: f64,
    /// Seconds that the shard was at work, with or without a processor.
    busy: f64,
    rounds: f64,
    /// Seconds from taking a group up to its being durable.
    commit: f64,
    /// Seconds of those in which the disk was waited for.
    sync: f64,
    groups: f64,
}

impl Reading {
    /// Looks now.
    pub fn take(place: &Place) -> Result<Self> {
        let threads = threads(place.pid)?;
        let page = metrics(place.address)?;
        let of = |name: &str| -> f64 {
            let threads = threads.iter().filter(|thread| thread.0.starts_with(name));
            threads.map(|thread| thread.1).sum()
        };
        let used = Stages {
            elapsed: 0.0,
            broker: of(""),
            committer: of("committer"),
            indexer: of("indexer"),
            tables: of("rocksdb:"),
            shard: value(&page, "railbus_shard_processor_seconds_total")?,
            busy: value(&page, "railbus_shard_busy_seconds_total")?,
            rounds: value(&page, "railbus_shard_rounds_total")?,
            commit: value(&page, "railbus_commit_duration_seconds_sum")?,
            sync: value(&page, "railbus_commit_sync_seconds_total")?,
            groups: value(&page, "railbus_commit_duration_seconds_count")?,
        };
        let at = Instant::now();
        Ok(Self { at, used })
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Self) -> Stages {
        let (now, then) = (&self.used, &before.used);
        Stages {
            elapsed: (self.at - before.at).as_secs_f64(),
            broker: now.broker - then.broker,
            committer: now.committer - then.committer,
            indexer: now.indexer - then.indexer,
            tables: now.tables - then.tables,
            shard: now.shard - then.shard,
            busy: now.busy - then.busy,
            rounds: now.rounds - then.rounds,
            commit: now.commit - then.commit,
            sync: now.sync - then.sync,
            groups: now.groups - then.groups,
        }
    }
}

impl Stages {
    /// What neither is the shard nor has threads of its own.
    fn connections(&self) -> f64 {
        self.broker - self.committer - self.indexer - self.tables - self.shard
    }

    /// Adds everything.
    pub fn record(&self, results: &mut Results, row: &str, messages: u64, run: &Run) {
        let generator = run.usage.generator.as_secs_f64();
        let count = as_f64(messages.max(1));
        let stages = [
            ("broker", self.broker),
            ("connections", self.connections()),
            ("shard", self.shard),
            ("committer", self.committer),
            ("indexer", self.indexer),
            ("flush and compaction", self.tables),
            ("load generator", generator),
        ];
        results.add(row, "messages", Unit::PerSecond, run.rate(messages));
        for (stage, seconds) in stages {
            let unit = Unit::SecondsPerMillion;
            results.add(row, stage, unit, seconds * 1e6 / count);
        }
        for (stage, seconds) in stages {
            results.add(row, stage, Unit::Cores, seconds / self.elapsed);
        }
        let shares = [
            ("shard at work", self.busy),
            ("committer at work or waiting", self.commit),
            ("committer waiting for the disk", self.sync),
        ];
        for (stage, seconds) in shares {
            let share = 100.0 * seconds / self.elapsed;
            results.add(row, stage, Unit::Percent, share);
        }
        let groups = self.groups.max(1.0);
        results.add(row, "a sync", Unit::Milliseconds, self.sync * 1e3 / groups);
        results.add(row, "in a group", Unit::Messages, count / groups);
        let round = count / self.rounds.max(1.0);
        results.add(row, "in a round", Unit::Messages, round);
    }
}

/// Names and seconds of processor time of the threads of a process.
fn threads(pid: u32) -> Result<Vec<(String, f64)>> {
    let per_second = as_f64(rustix::param::clock_ticks_per_second());
    let mut threads = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // Threads may end at any time; those of the stages do not.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else {
            continue;
        };
        let (name, ticks) = parse(&stat).with_context(|| format!("reading {stat}"))?;
        threads.push((name, as_f64(ticks) / per_second));
    }
    Ok(threads)
}

/// The name, and user and system time. [proc(5)]
fn parse(stat: &str) -> Option<(String, u64)> {
    let (before, fields) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut times = fields.split_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some((name.to_owned(), user + system))
}

/// The page of metrics, with the development key's rights on loopback.
fn metrics(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    ensure!(
        page.starts_with("HTTP/1.1 200"),
        "the broker shows no metrics: {}",
        page.lines().next().unwrap_or_default()
    );
    Ok(page)
}

fn value(page: &str, name: &str) -> Result<f64> {
    let lines = page.lines();
    let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = values.next().with_context(|| format!("no {name}"))?;
    Ok(value.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_name_and_both_its_times() {
        let stat = "77 (rocksdb:low) S 1 77 77 0 -1 4194560 9 0 0 0 12 30 0 0 20 0 9 0";
        assert_eq!(parse(stat), Some(("rocksdb:low".to_owned(), 42)));
        assert_eq!(parse("77 (short) S 1"), None);
    }

    #[test]
    fn a_value_is_that_of_the_whole_name() {
        let page = "# HELP a_total of\na_total_more 3\na_total 1.5\n# EOF\n";
        assert_eq!(value(page, "a_total").expect("there"), 1.5);
        assert!(value(page, "a").is_err());
    }

    #[test]
    fn connections_are_what_is_left_of_the_broker() {
        let stages = Stages {
            broker: 10.0,
            committer: 1.0,
            indexer: 2.0,
            tables: 0.5,
            shard: 3.0,
            ..Stages::default()
        };
        assert_eq!(stages.connections(), 3.5);
    }
}
