//! Limit: the broker beside a program that writes the same rows to RocksDB and does nothing else,
//! which the same load generator drives with the same window.
//!
//! Both make groups of whatever came while they synced. Beside them stands the broker's store
//! alone, without protocol and generator, in groups as large as the broker's: that has the machine
//! to itself.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::bare::{self, Bare, Store};
use super::client::Workload;
use super::place::Place;
use super::process::{as_count, as_f64};
use super::receiver::Receiver;
use super::results::{Results, Unit};
use super::site::{self, Site};
use super::throughput::{self, IN_FLIGHT, Run};
use super::{Scale, group};

/// What is sent, and whether it is received.
struct Case {
    row: &'static str,
    size: usize,
    /// Whether messages are settled while others are sent.
    settles: bool,
}

const CASES: [Case; 3] = [
    Case {
        row: "limit of send 1 KiB",
        size: 1_024,
        settles: false,
    },
    Case {
        row: "limit of send, receive, settle 1 KiB",
        size: 1_024,
        settles: true,
    },
    Case {
        row: "limit of send, receive, settle 16 KiB",
        size: 16_384,
        settles: true,
    },
];

/// Measures the broker, the program and the store, for each case.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    for case in &CASES {
        let broker = case.at_broker(site, scale)?;
        let program = case.at_program(site, scale)?;
        let store = case.store_alone(site, broker.group, scale)?;
        for (who, done) in [
            ("broker", &broker),
            ("program", &program),
            ("store alone", &store),
        ] {
            results.add(case.row, who, Unit::PerSecond, done.rate);
            results.add(case.row, who, Unit::SecondsPerMillion, done.cpu_per_million);
            let metric = format!("{who}, average group");
            results.add(case.row, &metric, Unit::Messages, done.group);
        }
        for (metric, of) in [
            ("broker of program", &program),
            ("broker of store alone", &store),
        ] {
            let share = 100.0 * broker.rate / of.rate;
            results.add(case.row, metric, Unit::Percent, share);
        }
    }
    Ok(())
}

/// What one of them did.
struct Done {
    rate: f64,
    cpu_per_million: f64,
    group: f64,
}

impl Case {
    fn at_broker(&self, site: &Site, scale: Scale) -> Result<Done> {
        let fresh = site.fresh()?;
        let run = self.run(&fresh.place()?, scale)?;
        let group = group::average(&fresh.log(), run.sent)?;
        fresh.stop()?;
        Ok(Done::of(&run, as_f64(group)))
    }

    fn at_program(&self, site: &Site, scale: Scale) -> Result<Done> {
        let bare = Bare::start(site, Store::RocksDb)?;
        let run = self.run(&bare.place(), scale)?;
        Ok(Done::of(&run, bare.stop()?))
    }

    fn run(&self, place: &Place, scale: Scale) -> Result<Run> {
        let messages = throughput::messages(scale, self.size);
        let queue = place.queue(site::QUEUE);
        let mut work = vec![throughput::sender(&queue, self.size, messages, IN_FLIGHT)];
        if self.settles {
            work.push(Workload::Receive(Receiver::new(&queue)));
        }
        throughput::execute(place, work, scale, 0)
    }

    /// The store of the broker, by `limit_bench` of `rocks`.
    fn store_alone(&self, site: &Site, group: f64, scale: Scale) -> Result<Done> {
        let data = tempfile::tempdir_in(site.folder())?;
        let backlog = if self.settles { 2 * IN_FLIGHT } else { 0 };
        let program: PathBuf = site.example("limit_bench");
        let mut command = Command::new(&program);
        command.arg(data.path());
        let (size, group) = (u64::try_from(self.size)?, as_count(group));
        for number in [scale.seconds, size, group, backlog] {
            command.arg(number.to_string());
        }
        let output = command
            .output()
            .with_context(|| format!("starting {}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let status = output.status;
        ensure!(status.success(), "the program ended with {status}");
        Done::parse(&said).with_context(|| format!("the program said: {said}"))
    }
}

impl Done {
    fn of(run: &Run, group: f64) -> Self {
        Self {
            rate: run.rate(run.sent),
            cpu_per_million: run.usage.broker_per_million(run.sent),
            group,
        }
    }

    fn parse(said: &str) -> Result<Self> {
        let number = |key| bare::parse::<u64>(said, key).map(as_f64);
        let (messages, elapsed) = (number("messages")?, number("elapsed_us")?);
        Ok(Self {
            rate: messages * 1e6 / elapsed,
            cpu_per_million: number("cpu_us")? / messages,
            group: bare::group(said)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_s_line_gives_rate_processor_time_and_group() {
        let said = "messages=400000 groups=2000 elapsed_us=4000000 cpu_us=1200000\n";
        let done = Done::parse(said).expect("a line");
        let figures = [done.rate, done.cpu_per_million, done.group];
        assert_eq!(figures.map(f64::round), [100_000.0, 3.0, 200.0]);
        assert!(Done::parse("messages=1").is_err());
    }
}
