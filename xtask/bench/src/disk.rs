//! Disk: what append and fdatasync allow on the same disk in the same run, with no broker.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::process::as_f64;
use super::results::{Results, Unit};
use super::site::Site;

/// Bytes of a message.
const MESSAGE: usize = 1_024;
/// Messages of a group: about what the broker's committer gathers with 500 in flight.
const GROUP: usize = 256;
/// How long each kind is measured.
const TIME: Duration = Duration::from_millis(1_000);

/// Measures groups and single messages.
pub fn measure(site: &Site, results: &mut Results) -> Result<()> {
    for (name, group) in [("groups of 256 x 1 KiB", GROUP), ("1 KiB one by one", 1)] {
        let rate = append(site, group)?;
        results.add("disk, append + fdatasync", name, Unit::PerSecond, rate);
    }
    Ok(())
}

/// Messages a second in groups, to set a broker's rate against.
pub fn group_rate(site: &Site) -> Result<f64> {
    append(site, GROUP)
}

/// Messages a second.
fn append(site: &Site, group: usize) -> Result<f64> {
    let path = site.folder().join("append");
    let mut file = File::create(&path)?;
    let bytes = vec![0x5a; MESSAGE * group];
    let began = Instant::now();
    let mut messages = 0;
    while began.elapsed() < TIME {
        file.write_all(&bytes)?;
        file.sync_data()?;
        messages += u64::try_from(group)?;
    }
    let rate = as_f64(messages) / began.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
