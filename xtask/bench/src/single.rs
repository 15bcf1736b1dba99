//! Single: one message in flight, so each waits for a sync and a round trip of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::disk;
use super::place::Place;
use super::process::as_f64;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::throughput;

/// What the row is called.
const ROW: &str = "send 1 KiB, 1 in flight";
/// How long round trips are measured.
const TIME: Duration = Duration::from_millis(500);
/// About what goes out and comes back for one message.
const REQUEST: usize = 1_100;
const ANSWER: usize = 24;

/// Sends one after the other, and says what the disk and the loopback device alone would allow. The
/// disk is measured before and after, since a shared one changes its speed.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let before = disk::rate(site, 1)?;
    let rate = at(&fresh.place()?, scale, results)?;
    let after = disk::rate(site, 1)?;
    fresh.stop()?;
    let sync = 2.0 / (before + after);
    let trip = round_trip()?.as_secs_f64();
    results.add(ROW, "one sync", Unit::Milliseconds, sync * 1e3);
    results.add(ROW, "one round trip", Unit::Milliseconds, trip * 1e3);
    let share = 100.0 * rate * (sync + trip);
    results.add(ROW, "of one sync and one round trip", Unit::Percent, share);
    Ok(())
}

/// Does that at any broker; returns the messages a second.
pub fn at(place: &Place, scale: Scale, results: &mut Results) -> Result<f64> {
    let sender = throughput::sender(
        &place.queue(site::QUEUE),
        1_024,
        scale.messages,
        1,
        scale.sections,
    );
    let run = throughput::execute(place, vec![sender], scale, 0)?;
    throughput::record(results, ROW, run.sent, &run);
    Ok(run.rate(run.sent))
}

/// From a write on one end of a connection to what the other end's answer brings.
fn round_trip() -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let echo = thread::spawn(move || {
        // It ends when the near end is gone.
        let mut request = [0; REQUEST];
        while far.read_exact(&mut request).is_ok() && far.write_all(&[0; ANSWER]).is_ok() {}
    });
    let began = Instant::now();
    let mut trips = 0;
    while began.elapsed() < TIME {
        near.write_all(&[0; REQUEST])?;
        near.read_exact(&mut [0; ANSWER])?;
        trips += 1;
    }
    let took = began.elapsed();
    drop(near);
    let _ = echo.join();
    Ok(Duration::from_secs_f64(took.as_secs_f64() / as_f64(trips)))
}
