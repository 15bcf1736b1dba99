//! Process: what the kernel says a process has used.

use std::fs;
use std::iter::Sum;
use std::ops::Add;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What stands behind the name in `/proc/PID/stat`, from the state on. [proc(5)]
fn stat(pid: u32) -> Result<String> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    // The name in parentheses may itself hold spaces and parentheses, so count from its end.
    let (_, fields) = stat.rsplit_once(')').context("a name in parentheses")?;
    Ok(fields.to_owned())
}

/// `root` and the processes that descend from it, parents first.
pub fn family(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Others come and go at any time.
        let parent = stat(pid).ok().and_then(|stat| {
            let mut fields = stat.split_whitespace();
            fields.nth(1)?.parse::<u32>().ok()
        });
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        family.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(family)
}

/// Whether the process `pid` runs the program `name`.
pub fn is_called(pid: u32, name: &str) -> bool {
    let called = fs::read_to_string(format!("/proc/{pid}/comm"));
    called.is_ok_and(|called| called.trim_end() == name)
}

/// What the process `root` and those that descend from it have together.
fn total<T: Sum + Add<Output = T>>(root: u32, of: impl Fn(u32) -> Result<T>) -> Result<T> {
    let others = family(root)?.into_iter().skip(1);
    // Children may end at any time; the root may not.
    let others: T = others.filter_map(|pid| of(pid).ok()).sum();
    Ok(of(root)? + others)
}

/// Processor time used by the process `root` and those that descend from it, user and system.
pub fn processor(root: u32) -> Result<Duration> {
    total(root, processor_of)
}

/// That of one process, all threads together.
fn processor_of(pid: u32) -> Result<Duration> {
    let fields = stat(pid)?;
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

/// Bytes that the process `root` and those that descend from it gave the disk to write. [proc(5)]
pub fn written(root: u32) -> Result<u64> {
    total(root, |pid| {
        field(&format!("/proc/{pid}/io"), "write_bytes:")
    })
}

/// How often threads of the process `root` and those that descend from it got or left a processor.
pub fn switches(root: u32) -> Result<u64> {
    total(root, |pid| {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            // Threads may end at any time; what they did is no longer told.
            if let Ok(status) = fs::read_to_string(thread?.path().join("status")) {
                sum += switches_in(&status)?;
            }
        }
        Ok(sum)
    })
}

/// Those of the thread that `status` tells of, on its own account and not.
fn switches_in(status: &str) -> Result<u64> {
    Ok(
        number(status, "voluntary_ctxt_switches:")?
            + number(status, "nonvoluntary_ctxt_switches:")?,
    )
}

/// The number behind `key` in a file of lines.
fn field(path: &str, key: &str) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    number(&text, key).with_context(|| format!("reading {path}"))
}

/// The number behind `key` at the begin of one of the lines of `text`.
fn number(text: &str, key: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("no {key}"))?.parse()?)
}

/// Resident memory of the process `root` and those that descend from it, in MiB.
pub fn resident(root: u32) -> Result<f64> {
    total(root, resident_of)
}

fn resident_of(pid: u32) -> Result<f64> {
    let kibibytes = field(&format!("/proc/{pid}/status"), "VmRSS:")?;
    Ok(as_f64(kibibytes) / 1_024.0)
}

/// Processor use of the broker and of the load generator over some time.
pub struct Meter {
    pid: u32,
    began: Instant,
    broker: Duration,
    generator: Duration,
    written: u64,
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
    /// Bytes that the broker gave the disk to write.
    pub written: u64,
}

impl Meter {
    /// Starts measuring the broker `pid` and ourselves.
    pub fn start(pid: u32) -> Result<Self> {
        let (broker, generator) = (processor(pid)?, processor_of(std::process::id())?);
        Ok(Self {
            pid,
            began: Instant::now(),
            broker,
            generator,
            written: written(pid)?,
        })
    }

    /// What was used since the start.
    pub fn read(&self) -> Result<Usage> {
        Ok(Usage {
            elapsed: self.began.elapsed(),
            broker: processor(self.pid)?.saturating_sub(self.broker),
            generator: processor_of(std::process::id())?.saturating_sub(self.generator),
            written: written(self.pid)?.saturating_sub(self.written),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_counted_with_its_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep starts");
        let all = family(std::process::id()).expect("listed");
        let alone = family(child.id()).expect("listed");
        child.kill().expect("killed");
        child.wait().expect("it ends");
        assert_eq!(all[0], std::process::id());
        assert!(all.contains(&child.id()));
        assert_eq!(alone, [child.id()]);
    }

    #[test]
    fn switches_are_both_the_wanted_and_the_others() {
        let status = "Threads:\t4\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches_in(status).expect("counted"), 157);
        assert!(switches_in("Threads:\t4\n").is_err());
    }

    #[test]
    fn what_the_kernel_counts_is_found() {
        let own = std::process::id();
        assert!(resident(own).expect("counted") > 0.0);
        assert!(written(own).is_ok());
        assert!(field("/proc/self/status", "Nothing:").is_err());
    }
}
