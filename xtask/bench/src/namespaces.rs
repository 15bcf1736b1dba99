//! Namespaces: what creating an empty one takes, in time, processor time and memory.
//!
//! One HTTP connection creates them one after the other. Each is durable when it is answered, so
//! its time is mostly that of the disk; the processor time is the broker's alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Scale;
use super::process::{Meter, as_f64, resident};
use super::results::{Results, Unit};
use super::site::Site;

/// What the row is called.
const ROW: &str = "creating empty namespaces";
/// How many come before, so that what all share is in memory already.
const BEFORE: u64 = 500;
/// More than any header or body of an answer.
const MOST: u64 = 64 << 10;

/// Creates 8,000 namespaces, or 2,000 if rows are short.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    let pid = fresh.broker.pid();
    let mut client = HttpClient::connect(fresh.address()?)?;
    for number in 0..BEFORE {
        client.create(&format!("before-{number}"))?;
    }
    let count: u64 = if scale.is_short() { 2_000 } else { 8_000 };
    let (memory, meter) = (resident(pid)?, Meter::start(pid)?);
    let mut times = Vec::new();
    for number in 0..count {
        let began = Instant::now();
        client.create(&format!("namespace-{number}"))?;
        times.push(began.elapsed());
    }
    let (usage, grown) = (meter.read()?, resident(pid)? - memory);
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("some were created")?;
    let processor = usage.broker_per_million(count) / 1e3;
    let bytes = grown * 1_048_576.0 / as_f64(count);
    results.add(
        ROW,
        "median",
        Unit::Milliseconds,
        median.as_secs_f64() * 1e3,
    );
    results.add(ROW, "processor time of one", Unit::Milliseconds, processor);
    results.add(ROW, "memory of one", Unit::Bytes, bytes);
    fresh.stop()
}

/// A connection that stays open between requests.
struct HttpClient(BufReader<TcpStream>);

impl HttpClient {
    fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    fn create(&mut self, name: &str) -> Result<()> {
        let request = format!(
            "PUT /$railbus/namespaces/{name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        ensure!(length <= MOST, "an answer of {length} bytes");
        let mut body = String::new();
        self.0.by_ref().take(length).read_to_string(&mut body)?;
        ensure!(status.contains(" 201 "), "{status}: {body}");
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.by_ref().take(MOST).read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the broker ended the connection");
        Ok(line.trim_end().to_owned())
    }
}
