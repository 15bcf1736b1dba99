//! Disk: what append and fdatasync allow on the same disk in the same run, with no broker.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::fs::OFlags;

use super::process::as_f64;
use super::results::{Results, Unit};
use super::site::Site;

/// Bytes of a message.
const MESSAGE: usize = 1_024;
/// What offsets, lengths and addresses past the system's cache are multiples of.
const PAGE: usize = 4_096;
/// Bytes written at once when it is asked how many the disk takes, and how often until it begins from the front.
const LARGE: usize = 4 << 20;
const LARGES: u64 = 16;
/// How long each kind is measured.
const TIME: Duration = Duration::from_millis(1_000);

/// Measures groups as large as the broker makes them, and single messages.
pub fn measure(site: &Site, broker_group: u64, results: &mut Results) -> Result<()> {
    let row = "disk, append + fdatasync";
    let grouped = rate(site, broker_group)?;
    let metric = "1 KiB in groups as large as the broker's";
    results.add(row, metric, Unit::PerSecond, grouped);
    results.add(row, "1 KiB one by one", Unit::PerSecond, rate(site, 1)?);
    Ok(())
}

/// Messages a second in groups of that many, to set a broker's rate against.
pub fn rate(site: &Site, group: u64) -> Result<f64> {
    let path = site.folder().join("append");
    let mut file = File::create(&path)?;
    let bytes = vec![0x5a; MESSAGE * usize::try_from(group)?];
    let began = Instant::now();
    let mut messages = 0;
    while began.elapsed() < TIME {
        file.write_all(&bytes)?;
        file.sync_data()?;
        messages += group;
    }
    let rate = as_f64(messages) / began.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}

/// Megabytes a second that the disk takes as a journal writes them: past the system's cache, in pieces of 4 MiB
/// that are synced each, over blocks that the file has already. Where a file system has no way past the
/// cache they go through it.
pub fn bandwidth(site: &Site) -> Result<f64> {
    let path = site.folder().join("stream");
    let memory = vec![0x5a; LARGE + PAGE];
    let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
    let piece = &memory[start..start + LARGE];
    let file = begin(&path, piece)?;
    let at = |piece: u64| piece % LARGES * LARGE as u64;
    for number in 1..LARGES {
        file.write_all_at(piece, at(number))?;
    }
    file.sync_all()?;
    let began = Instant::now();
    let mut pieces = 0;
    while began.elapsed() < TIME {
        file.write_all_at(piece, at(pieces))?;
        file.sync_data()?;
        pieces += 1;
    }
    let bytes = as_f64(pieces * LARGE as u64);
    let rate = bytes / began.elapsed().as_secs_f64() / 1e6;
    std::fs::remove_file(&path)?;
    Ok(rate)
}

/// A file with a first piece, past the cache if that can be.
fn begin(path: &Path, piece: &[u8]) -> io::Result<File> {
    let open = |flags: OFlags| -> io::Result<File> {
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let mut options = File::options();
        options.create(true).truncate(true).write(true);
        let file = options.custom_flags(flags).open(path)?;
        file.write_all_at(piece, 0)?;
        Ok(file)
    };
    match open(OFlags::DIRECT) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => open(OFlags::empty()),
        begun => begun,
    }
}
