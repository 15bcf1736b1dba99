//! Routers: what publishing to an exchange costs, by the number of bindings that a message takes.
//! Nothing is received, as in `topics`, so that both can be compared.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, ensure};
use serde_json::json;

use super::client::Workload;
use super::process::Meter;
use super::results::Results;
use super::scale::Scale;
use super::site::{Fresh, Site};
use super::throughput::{self, IN_FLIGHT, Run};
use super::topics;
use load::message_sections::MessageSections;
use load::sender::{Plan, Sender};

/// The exchange of every row.
const ROUTER: &str = "bench-router";
/// Bindings that each lead to a queue of their own.
const BINDINGS: [u32; 3] = [1, 10, 100];

/// Measures every row on a broker of its own.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    for count in BINDINGS {
        let fresh = site.fresh()?;
        declare(fresh.address()?, count)?;
        publish(fresh, scale, count, results)?;
    }
    Ok(())
}

fn publish(fresh: Fresh, scale: Scale, bindings: u32, results: &mut Results) -> Result<()> {
    let row = format!("publish 1 KiB, {bindings} bindings");
    let sender = Sender::new(Plan {
        queue: format!("/exchanges/{ROUTER}"),
        size: 1_024,
        // As in the rows about topics.
        count: (scale.messages / 2 / u64::from(bindings)).max(200),
        in_flight: IN_FLIGHT,
        sections: MessageSections::Key(1),
        every: None,
    });
    let before = topics::stored(&fresh.data)?;
    let meter = Meter::start(fresh.broker.pid())?;
    let run = throughput::execute(
        &fresh.place()?,
        vec![Workload::Send(Box::new(sender))],
        scale,
        0,
    )?;
    // A message is accepted when each queue has it.
    let usage = meter.read()?;
    let run = Run {
        elapsed: usage.elapsed,
        usage,
        ..run
    };
    throughput::record(results, &row, run.sent, &run);
    let Fresh { broker, data } = fresh;
    let status = broker.stop()?;
    ensure!(status.success(), "the broker ended with {status}");
    let grown = topics::stored(&data)?.saturating_sub(before);
    let copies = run.sent * u64::from(bindings);
    topics::of_copies(&row, &run, copies, grown, results);
    Ok(())
}

/// Makes a fanout exchange with a queue for each binding, as RabbitMQ's tools do.
fn declare(broker: SocketAddr, bindings: u32) -> Result<()> {
    let name = |number: u32| format!("bench-bound-{number}");
    let queues: Vec<_> = (0..bindings)
        .map(|number| json!({"name": name(number), "vhost": "/", "durable": true}))
        .collect();
    let bindings: Vec<_> = (0..bindings)
        .map(|number| {
            json!({
                "source": ROUTER, "vhost": "/", "destination": name(number),
                "destination_type": "queue", "routing_key": "", "arguments": {},
            })
        })
        .collect();
    let exchange = json!({"name": ROUTER, "vhost": "/", "type": "fanout", "durable": true});
    let definitions = json!({"queues": queues, "exchanges": [exchange], "bindings": bindings});
    let body = definitions.to_string();
    let mut stream = TcpStream::connect(broker)?;
    write!(
        stream,
        "POST /api/definitions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(
        answer.starts_with("HTTP/1.1 204"),
        "the exchange is not made: {answer}"
    );
    Ok(())
}
