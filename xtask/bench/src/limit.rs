//! Limit: the broker's rate beside that of a program which only writes the same rows to the same
//! store, in groups as large as the broker's and with the same sync.
//!
//! The program is `limit_bench` of `rocks`. It has the machine to itself, while the broker shares
//! it with the load generator.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::client::Work;
use super::place::Place;
use super::process::as_f64;
use super::receiver::Receiver;
use super::results::{Results, Unit};
use super::site::{self, Site};
use super::throughput::{self, IN_FLIGHT, Run};
use super::{Scale, group};

/// A row, and what its broker did.
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

/// Measures the broker and then the program, for each case.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let program = Program(site.limit());
    for case in &CASES {
        let fresh = site.fresh()?;
        let run = case.run(&fresh.place()?, scale)?;
        let group = group::average(&fresh.log(), run.sent)?;
        fresh.stop()?;
        let limit = program.run(site, case, group, scale)?;
        let rate = run.rate(run.sent);
        let broker = run.usage.broker_per_million(run.sent);
        let row = case.row;
        results.add(row, "broker", Unit::PerSecond, rate);
        results.add(row, "broker", Unit::SecondsPerMillion, broker);
        results.add(row, "broker's average group", Unit::Messages, as_f64(group));
        results.add(row, "program", Unit::PerSecond, limit.rate);
        let cpu = limit.cpu_per_million;
        results.add(row, "program", Unit::SecondsPerMillion, cpu);
        results.add(row, "program's average group", Unit::Messages, limit.group);
        let share = 100.0 * rate / limit.rate;
        results.add(row, "broker of program", Unit::Percent, share);
    }
    Ok(())
}

impl Case {
    fn run(&self, place: &Place, scale: Scale) -> Result<Run> {
        let messages = throughput::messages(scale, self.size);
        let queue = place.queue(site::QUEUE);
        let mut work = vec![throughput::sender(&queue, self.size, messages, IN_FLIGHT)];
        if self.settles {
            work.push(Work::Receive(Receiver::new(&queue)));
        }
        throughput::execute(place, work, scale, 0)
    }
}

struct Program(PathBuf);

/// What the program did.
struct Limit {
    rate: f64,
    cpu_per_million: f64,
    group: f64,
}

impl Program {
    fn run(&self, site: &Site, case: &Case, group: u64, scale: Scale) -> Result<Limit> {
        let data = tempfile::tempdir_in(site.folder())?;
        let backlog = if case.settles { 2 * IN_FLIGHT } else { 0 };
        let mut command = Command::new(&self.0);
        command.arg(data.path());
        let size = u64::try_from(case.size)?;
        for number in [scale.seconds, size, group, backlog] {
            command.arg(number.to_string());
        }
        let output = command
            .output()
            .with_context(|| format!("starting {}", self.0.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "the program ended with {}",
            output.status
        );
        Limit::parse(&said).with_context(|| format!("the program said: {said}"))
    }
}

impl Limit {
    fn parse(said: &str) -> Result<Self> {
        let number = |key: &str| {
            let mut words = said.split_whitespace();
            let word = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            let number = word.and_then(|word| word.parse::<u64>().ok());
            number.with_context(|| format!("no {key}")).map(as_f64)
        };
        let (messages, elapsed) = (number("messages")?, number("elapsed_us")?);
        Ok(Self {
            rate: messages * 1e6 / elapsed,
            cpu_per_million: number("cpu_us")? / messages,
            group: messages / number("groups")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_line_gives_rate_processor_time_and_group() {
        let said = "messages=400000 groups=2000 elapsed_us=4000000 cpu_us=1200000\n";
        let limit = Limit::parse(said).expect("a line");
        let figures = [limit.rate, limit.cpu_per_million, limit.group];
        assert_eq!(figures.map(f64::round), [100_000.0, 3.0, 200.0]);
        assert!(Limit::parse("messages=1").is_err());
    }
}
