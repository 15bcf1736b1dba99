//! Process: what the kernel says a process has used.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Processor time used by the process `pid`, all threads together, user and system.
pub fn processor(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    // The name in parentheses may itself hold spaces and parentheses, so count from its end.
    let (_, fields) = stat.rsplit_once(')').context("a name in parentheses")?;
    let mut ticks = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u64>);
    let user = ticks.next().context("user time")??;
    let system = ticks.next().context("system time")??;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis((user + system) * 1_000 / per_second))
}

/// Resident memory of the process `pid` in MiB.
pub fn resident(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS")?;
    let kibibytes: f64 = line
        .split_whitespace()
        .next()
        .context("an empty VmRSS")?
        .parse()?;
    Ok(kibibytes / 1_024.0)
}

/// Processor use of the broker and of the load generator over some time.
pub struct Meter {
    pid: u32,
    began: Instant,
    broker: Duration,
    generator: Duration,
}

/// What a meter read.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Wall-clock time.
    pub elapsed: Duration,
    /// The broker's processor time.
    pub broker: Duration,
    /// Our own.
    pub generator: Duration,
}

impl Meter {
    /// Starts measuring the broker `pid` and ourselves.
    pub fn start(pid: u32) -> Result<Self> {
        let (broker, generator) = (processor(pid)?, processor(std::process::id())?);
        Ok(Self {
            pid,
            began: Instant::now(),
            broker,
            generator,
        })
    }

    /// What was used since the start.
    pub fn read(&self) -> Result<Usage> {
        Ok(Usage {
            elapsed: self.began.elapsed(),
            broker: processor(self.pid)?.saturating_sub(self.broker),
            generator: processor(std::process::id())?.saturating_sub(self.generator),
        })
    }
}

impl Usage {
    /// Processors the broker kept busy.
    pub fn broker_cores(&self) -> f64 {
        self.broker.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// Processors the load generator kept busy; near one, it was the limit.
    pub fn generator_cores(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// The broker's seconds of processor time per million of `messages`.
    pub fn broker_per_million(&self, messages: u64) -> f64 {
        self.broker.as_secs_f64() * 1_000_000.0 / as_f64(messages.max(1))
    }
}

/// A count as a number to calculate with; counts here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}

/// A count that went through [`as_f64`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was a count"
)]
pub fn as_count(number: f64) -> u64 {
    number.round() as u64
}
