//! Telemetry: what spans cost beside the same messages while telemetry is off.
//!
//! Each message has the trace context of its sender, and each that was sampled makes three spans:
//! sent, received, completed. The collector takes all of them and does nothing with them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};

use super::client::Workload;
use super::results::Results;
use super::scale::Scale;
use super::site::{self, Site};
use super::throughput::{self, IN_FLIGHT};
use load::message_sections::MessageSections;
use load::receiver::Receiver;
use load::sender::{Plan, Sender};

/// Messages of a hundred that are sampled while telemetry is on.
const SAMPLED: [u8; 3] = [0, 1, 100];

/// Measures each on a broker of its own.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    row(site, scale, "telemetry off", "", 1, results)?;
    for sampled in SAMPLED {
        let collector = collector()?;
        let settings = format!("\n[telemetry]\nendpoint = \"http://{collector}\"\n");
        let name = format!("{sampled} of 100 sampled");
        row(site, scale, &name, &settings, sampled, results)?;
    }
    Ok(())
}

fn row(
    site: &Site,
    scale: Scale,
    name: &str,
    settings: &str,
    sampled: u8,
    results: &mut Results,
) -> Result<()> {
    let fresh = site.fresh_configured(settings)?;
    let sender = Sender::new(Plan {
        queue: site::QUEUE.to_owned(),
        size: 1_024,
        count: scale.messages,
        in_flight: IN_FLIGHT,
        sections: MessageSections::Traced(sampled),
        every: None,
    });
    let work = vec![
        Workload::Send(Box::new(sender)),
        Workload::Receive(Receiver::new(site::QUEUE)),
    ];
    let run = throughput::execute(&fresh.place()?, work, scale, 0)?;
    let row = format!("send, receive, settle 1 KiB with a trace context, {name}");
    throughput::record(results, &row, run.settled, &run);
    fresh.stop()
}

/// Starts a collector that takes everything until the program ends.
fn collector() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(error) = take(stream) {
                eprintln!("the collector: {error:#}");
            }
        }
    });
    Ok(address)
}

/// Reads one request and answers it.
fn take(mut stream: TcpStream) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("a length that is none")?;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")?;
    Ok(())
}
