//! Pressure: senders that are faster than the disk, and no receivers. What the broker keeps in
//! memory has to stay bounded, and all that a sender may notice is less credit.
//!
//! Eight connections send 16 KiB each with no window but the broker's credit. So that the commit is
//! what they wait for on a fast disk too, the same disk is kept busy by a thread that writes a file
//! over and over and syncs it. It stops before the store has three fifths of what is
//! free on that disk, or 50 GiB.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::client::Workload;
use super::process::{as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::throughput::{self, Run};

/// What the row is called.
const ROW: &str = "send 16 KiB, 8 connections, slow disk";
const CONNECTIONS: u64 = 8;
const SIZE: usize = 16 << 10;
/// All bodies together at most: what a minute brings on a fast disk, and three fifths of what is
/// free. The store writes a hundredth more.
const MOST: u64 = 48 << 30;
/// Between two looks at the broker's memory.
const SECOND: Duration = Duration::from_secs(1);
/// What the other writer writes before it syncs, and how large its file becomes.
const PIECE: usize = 8 << 20;
const PIECES: u64 = 32;

/// Sends, and looks at the broker's memory each second.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let (place, folder) = (fresh.place()?, site.folder());
    let count = most(folder)? / SIZE as u64 / CONNECTIONS;
    let queue = place.queue(site::QUEUE);
    let sender = |_| throughput::sender(&queue, SIZE, count, u64::MAX, scale.sections);
    let long = Scale {
        seconds: scale.pressure,
        ..scale
    };
    let enough = AtomicBool::new(false);
    let (run, memory, other) = thread::scope(|scope| {
        let memory = scope.spawn(|| watch(place.pid, &enough));
        let other = scope.spawn(|| keep_busy(folder, &enough));
        let work: Vec<Workload> = (0..CONNECTIONS).map(sender).collect();
        let run = throughput::execute(&place, work, long, 0);
        enough.store(true, Ordering::Relaxed);
        anyhow::Ok((run?, join(memory)?, join(other)?))
    })?;
    record(&run, &memory, results);
    let busy = as_f64(other) / run.usage.elapsed.as_secs_f64() / as_f64(1 << 20);
    results.add(ROW, "other writer, a second", Unit::Mebibytes, busy);
    results.add(ROW, "memory after a rest", Unit::Mebibytes, {
        thread::sleep(3 * SECOND);
        resident(place.pid)?
    });
    fresh.stop()
}

/// How many bytes may be sent.
fn most(folder: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(MOST.min(disk.f_bavail * disk.f_frsize / 5 * 3))
}

fn record(run: &Run, memory: &Memory, results: &mut Results) {
    // A refusal has failed the row already.
    throughput::record(results, ROW, run.sent, run);
    throughput::amplification(results, ROW, SIZE, run);
    let rate = run.rate(run.sent) * as_f64(SIZE as u64) / as_f64(1 << 20);
    results.add(ROW, "bodies, a second", Unit::Mebibytes, rate);
    results.add(ROW, "took", Unit::Seconds, run.elapsed.as_secs_f64());
    results.add(ROW, "memory first", Unit::Mebibytes, memory.first);
    results.add(ROW, "memory max", Unit::Mebibytes, memory.max);
    results.add(ROW, "memory last", Unit::Mebibytes, memory.last);
    let growth = memory.growth;
    results.add(
        ROW,
        "memory, max of halves, second less first",
        Unit::Mebibytes,
        growth,
    );
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

/// The broker's resident memory in MiB, by the second.
#[derive(Debug, PartialEq)]
struct Memory {
    first: f64,
    max: f64,
    last: f64,
    /// The maximum of the second half less that of the first: what grows without bound grows here.
    growth: f64,
}

impl Memory {
    fn of(samples: &[f64]) -> Option<Self> {
        let max = |samples: &[f64]| samples.iter().copied().fold(f64::MIN, f64::max);
        let (before, after) = samples.split_at(samples.len().div_ceil(2));
        let (first, last) = (*samples.first()?, *samples.last()?);
        let after = if after.is_empty() { before } else { after };
        Some(Self {
            first,
            max: max(samples),
            last,
            growth: max(after) - max(before),
        })
    }
}

fn watch(pid: u32, enough: &AtomicBool) -> Result<Memory> {
    let mut samples = vec![resident(pid)?];
    let mut next = Instant::now() + SECOND;
    while !enough.load(Ordering::Relaxed) {
        thread::sleep(
            next.saturating_duration_since(Instant::now())
                .min(SECOND / 10),
        );
        if Instant::now() >= next {
            samples.push(resident(pid)?);
            next += SECOND;
        }
    }
    Memory::of(&samples).ok_or_else(|| anyhow!("memory was not looked at"))
}

/// Writes to the same disk until that is `enough`; returns how many bytes.
fn keep_busy(folder: &Path, enough: &AtomicBool) -> Result<u64> {
    let path = folder.join("busy");
    let mut file = File::create(&path)?;
    let bytes = vec![0x5a; PIECE];
    let mut pieces = 0_u64;
    while !enough.load(Ordering::Relaxed) {
        if pieces.is_multiple_of(PIECES) {
            file.seek(SeekFrom::Start(0))?;
        }
        file.write_all(&bytes)?;
        file.sync_data()?;
        pieces += 1;
    }
    std::fs::remove_file(&path)?;
    Ok(pieces * PIECE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(samples: &[f64], [first, max, last, growth]: [f64; 4]) {
        let memory = Memory {
            first,
            max,
            last,
            growth,
        };
        assert_eq!(Memory::of(samples), Some(memory), "{samples:?}");
    }

    #[test]
    fn growth_is_what_the_second_half_adds() {
        check(&[10.0, 90.0, 80.0, 85.0], [10.0, 90.0, 85.0, -5.0]);
        check(&[10.0, 20.0, 30.0, 40.0], [10.0, 40.0, 40.0, 20.0]);
        check(&[10.0, 20.0, 30.0], [10.0, 30.0, 30.0, 10.0]);
        check(&[10.0], [10.0, 10.0, 10.0, 0.0]);
        assert_eq!(Memory::of(&[]), None);
    }
}
