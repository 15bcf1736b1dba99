//! Topics: what publishing costs, by the number of subscriptions that get a copy and by the filters
//! that have to be looked at. Nothing is received, so that every copy stays on the disk.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Workload;
use super::process::{Meter, as_f64, resident};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Fresh, Site};
use super::throughput::{self, IN_FLIGHT, Run};
use load::message_sections::MessageSections;
use load::sender::{Plan, Sender};

/// The topic of a row.
pub const TOPIC: &str = "bench-topic";
/// Subscriptions that each get a copy.
const FAN_OUTS: [u32; 4] = [1, 10, 100, 1_000];
/// Subscriptions of the rows about filters, one of which selects a message.
const SUBSCRIPTIONS: u32 = 10;
/// Correlation filters of a topic, few and as many as it can have.
const CORRELATIONS: [u32; 2] = [10, 100_000];

/// Measures every row on a broker of its own.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    for count in FAN_OUTS {
        let subscriptions = (0..count).map(|number| subscription(number, &[]));
        let row = format!("publish 1 KiB, {count} subscriptions");
        let fresh = site.fresh_with(&topic(subscriptions))?;
        publish(fresh, scale, &row, 1, count, results)?;
    }
    let row = format!("publish 1 KiB, {SUBSCRIPTIONS} SQL filters, one matches");
    let fresh = site.fresh_with(&sql(SUBSCRIPTIONS))?;
    publish(fresh, scale, &row, SUBSCRIPTIONS, 1, results)?;
    for count in CORRELATIONS {
        let row = format!("publish 1 KiB, {count} correlation filters, one matches");
        let fresh = site.fresh_with(&correlations(count))?;
        let fresh = restarted(site, fresh, &row, results)?;
        publish(fresh, scale, &row, count, 1, results)?;
    }
    Ok(())
}

/// Publishes messages with one of `keys` keys each, so that each makes `copies` copies.
fn publish(
    fresh: Fresh,
    scale: Scale,
    row: &str,
    keys: u32,
    copies: u32,
    results: &mut Results,
) -> Result<()> {
    let sender = Sender::new(Plan {
        queue: TOPIC.to_owned(),
        size: 1_024,
        // About as many copies in every row, but never too few messages to measure.
        count: (scale.messages / 2 / u64::from(copies)).max(200),
        in_flight: IN_FLIGHT,
        sections: MessageSections::Key(keys),
        every: None,
    });
    let before = stored(&fresh.data)?;
    let meter = Meter::start(fresh.broker.pid())?;
    let run = throughput::execute(
        &fresh.place()?,
        vec![Workload::Send(Box::new(sender))],
        scale,
        0,
    )?;
    // Copies for many are made in turns of their own, after the message is accepted.
    wait_for_copies(fresh.address()?)?;
    let usage = meter.read()?;
    let run = Run {
        elapsed: usage.elapsed,
        usage,
        ..run
    };
    throughput::record(results, row, run.sent, &run);
    let Fresh { broker, data } = fresh;
    let status = broker.stop()?;
    ensure!(status.success(), "the broker ended with {status}");
    let grown = stored(&data)?.saturating_sub(before);
    of_copies(row, &run, run.sent * u64::from(copies), grown, results);
    Ok(())
}

/// Until the topic has handed on all that it took. Its description as SDKs ask for it leaves out
/// the subscriptions, of which there are many, and counts what waits for its copies as transferred.
fn wait_for_copies(broker: SocketAddr) -> Result<()> {
    loop {
        let mut stream = TcpStream::connect(broker)?;
        write!(
            stream,
            "GET /{TOPIC}?api-version=2021-05 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let count = answer
            .split_once(":TransferMessageCount>")
            .context("the topic does not say what it holds")?;
        if count.1.starts_with("0<") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// What the copies of a row's messages cost.
pub fn of_copies(row: &str, run: &Run, copies: u64, grown: u64, results: &mut Results) {
    let processor = run.usage.broker_per_million(copies);
    results.add(row, "broker", Unit::SecondsPerMillionCopies, processor);
    let rate = as_f64(copies) / run.elapsed.as_secs_f64();
    results.add(row, "copies", Unit::PerSecond, rate);
    let bytes = as_f64(grown) / as_f64(copies.max(1));
    results.add(row, "on disk per copy", Unit::Bytes, bytes);
}

/// Says how long the first start took, and a second one with the same file.
fn restarted(site: &Site, fresh: Fresh, row: &str, results: &mut Results) -> Result<Fresh> {
    let millis = |fresh: &Fresh| fresh.broker.took.as_secs_f64() * 1e3;
    results.add(row, "first start", Unit::Milliseconds, millis(&fresh));
    let Fresh { broker, data } = fresh;
    let status = broker.stop()?;
    ensure!(status.success(), "the broker ended with {status}");
    let broker = site.start(data.path())?;
    let fresh = Fresh { broker, data };
    results.add(row, "second start", Unit::Milliseconds, millis(&fresh));
    let memory = resident(fresh.broker.pid())?;
    results.add(row, "memory after it", Unit::Mebibytes, memory);
    Ok(fresh)
}

/// The bytes of all that a broker keeps.
pub fn stored(data: &TempDir) -> Result<u64> {
    bytes(&site::store(data.path()))
}

/// The bytes of all files in `directory`.
fn bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    let entries =
        fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        // Old files may go at any time.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += bytes(&entry.path())?,
            Ok(metadata) => sum += metadata.len(),
            Err(_) => {}
        }
    }
    Ok(sum)
}

/// An entities file with one topic, large enough for a row.
fn topic(subscriptions: impl Iterator<Item = Value>) -> String {
    let subscriptions: Vec<_> = subscriptions.collect();
    let topic = json!({
        "name": TOPIC, "max-size-in-megabytes": 81_920, "subscriptions": subscriptions,
    });
    json!({"topics": [topic]}).to_string()
}

fn subscription(number: u32, rules: &[Value]) -> Value {
    json!({"name": format!("s{number}"), "rules": rules})
}

/// Subscriptions each with a rule in SQL, for a key each.
pub fn sql(subscriptions: u32) -> String {
    let subscriptions = (0..subscriptions).map(|number| {
        let text = format!("sys.Label LIKE 'order-%' AND region = 'eu' AND n = {number}");
        subscription(number, &[json!({"name": "sql", "filter": {"sql": text}})])
    });
    topic(subscriptions)
}

/// A correlation filter for each key, spread over the subscriptions.
fn correlations(count: u32) -> String {
    let each = count / SUBSCRIPTIONS;
    let rule = |key: u32| {
        let fields = json!({"properties": {"key": format!("k{key}")}});
        json!({"name": format!("r{key}"), "filter": {"correlation": fields}})
    };
    let subscriptions = (0..SUBSCRIPTIONS).map(|number| {
        let rules: Vec<_> = (number * each..(number + 1) * each).map(rule).collect();
        subscription(number, &rules)
    });
    topic(subscriptions)
}
