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
