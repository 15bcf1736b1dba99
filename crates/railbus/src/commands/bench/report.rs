//! Report: the results of a run, for people or in JSON.

use std::io::Write;
use std::thread::available_parallelism;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::histogram::{self, time};
use super::plan::Plan;
use super::results::{Flow, Results, as_f64};
use crate::arguments::BenchMode;
use crate::commands::messaging;
use crate::table::table;

/// What part of the waits is below each of these times.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Processors of our own from which on we may be the limit.
const NEAR: f64 = 0.9;

/// Prints it.
pub fn print(plan: &Plan, results: &Results) -> Result<(), messaging::Error> {
    let text = match plan.json {
        true => format!("{}\n", json(plan, results)),
        false => text(plan, results),
    };
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes());
    printed
        .and_then(|()| stdout.flush())
        .map_err(messaging::Error::Output)
}

/// What went where, with what is known of how long that took.
fn flows(results: &Results) -> Vec<(&'static str, &'static str, &Flow)> {
    let sent = results.sent.iter().map(|flow| ("sent", "accepted", flow));
    let received = results.received.iter();
    let received = received.map(|flow| ("received", "arrived", flow));
    sent.chain(received).collect()
}

fn text(plan: &Plan, results: &Results) -> String {
    let flows = flows(results);
    let mut text = format!("{}\n\n", head(plan));
    let rows = flows.iter().map(|(name, _, flow)| {
        [
            (*name).to_owned(),
            flow.messages.to_string(),
            format!("{:.2}", flow.elapsed.as_secs_f64()),
            format!("{:.0}", flow.rate()),
            format!("{:.2}", flow.mebibytes()),
        ]
    });
    text += &table(
        ["", "messages", "seconds", "messages/s", "MiB/s"],
        rows.collect(),
    );
    let waits: Vec<_> = flows
        .iter()
        .filter(|(_, _, flow)| !flow.latencies.is_empty())
        .map(|(_, name, flow)| (*name, &flow.latencies))
        .collect();
    if !waits.is_empty() {
        text += "\n";
        text += &latencies(&waits);
    }
    for (name, waits) in waits {
        text += &format!("\n{name}\n{}", histogram::text(waits));
    }
    text + "\n" + &notes(plan, results)
}

fn head(plan: &Plan) -> String {
    let connections = match plan.connections {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    let each_way = match plan.mode {
        BenchMode::Both => " each way",
        _ => "",
    };
    let pace = match (plan.mode, plan.rate) {
        (BenchMode::Receive, _) => format!("{} credits", plan.credit),
        (_, Some(rate)) => format!("{} bytes, {rate} a second", plan.size),
        (_, None) => format!("{} bytes, {} in flight", plan.size, plan.in_flight),
    };
    format!("{}: {connections}{each_way}, {pace}", plan.announced())
}

fn latencies(waits: &[(&str, &Histogram<u64>)]) -> String {
    let rows = waits.iter().map(|(name, waits)| {
        let [a, b, c, d] = QUANTILES.map(|(_, quantile)| time(waits.value_at_quantile(quantile)));
        [(*name).to_owned(), a, b, c, d, time(waits.max())]
    });
    let [a, b, c, d] = QUANTILES.map(|(name, _)| name);
    table(["", a, b, c, d, "max"], rows.collect())
}

fn notes(plan: &Plan, results: &Results) -> String {
    let cores = results.cores;
    let mut notes = format!(
        "load generator  {cores:.2} cores of {}, in one thread\n",
        processors()
    );
    if cores >= NEAR {
        notes += "the load generator had no time left: the broker may do more than this\n";
    }
    let tried = results.sent.as_ref().map_or(0, |sent| sent.messages);
    if results.unsent * 100 > tried {
        notes += &format!(
            "behind the rate  {} messages that were due were not sent, and are in no figure\n",
            results.unsent
        );
    }
    if results.refused > 0 {
        notes += &format!("refused  {}\n", results.refused);
    }
    if results.foreign > 0 {
        notes += &format!("given back  {} of others\n", results.foreign);
    }
    if plan.mode == BenchMode::Send
        && let Some(sent) = &results.sent
    {
        notes += &format!("left in {}  {}\n", plan.entity, sent.messages);
    }
    notes
}

fn json(plan: &Plan, results: &Results) -> Value {
    let mut json = json!({
        "entity": plan.entity,
        "broker": plan.authority(),
        "mode": plan.mode,
        "connections": plan.connections,
        "refused": results.refused,
        "unsent": results.unsent,
        "others": results.foreign,
        "generator": {"cores": results.cores, "processors": processors()},
    });
    if plan.mode != BenchMode::Receive {
        json["size"] = plan.size.into();
        json["rate"] = plan.rate.into();
        let in_flight = Some(plan.in_flight).filter(|bound| *bound != u64::MAX);
        json["in-flight"] = in_flight.into();
    }
    if plan.mode != BenchMode::Send {
        json["credit"] = plan.credit.into();
    }
    for (name, latency, flow) in flows(results) {
        json[name] = json!({
            "messages": flow.messages,
            "seconds": flow.elapsed.as_secs_f64(),
            "messages-per-second": flow.rate(),
            "mebibytes-per-second": flow.mebibytes(),
        });
        if !flow.latencies.is_empty() {
            json[format!("{latency}-ms")] = quantiles(&flow.latencies);
        }
    }
    json
}

/// In milliseconds.
fn quantiles(waits: &Histogram<u64>) -> Value {
    let millis = |micros: u64| as_f64(micros) / 1e3;
    let quantiles = QUANTILES.map(|(name, quantile)| {
        let micros = waits.value_at_quantile(quantile);
        (name.to_owned(), json!(millis(micros)))
    });
    let mut json: Map<_, _> = quantiles.into_iter().collect();
    json.insert("max".to_owned(), json!(millis(waits.max())));
    let steps = histogram::steps(waits);
    let steps = steps.iter().map(|step| {
        let up_to = Some(step.up_to).filter(|up_to| *up_to != u64::MAX);
        json!({"up-to": up_to.map(millis), "count": step.count})
    });
    json.insert("histogram".to_owned(), steps.collect());
    Value::Object(json)
}

fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}
