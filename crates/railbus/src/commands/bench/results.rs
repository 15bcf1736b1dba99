//! Results: the counts of the connections of a run, added up.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use load::{Client, latency};

use super::driver::BenchRun;
use super::plan::Plan;
use super::workload::Workload;
use crate::arguments::BenchMode;

/// The results of a run.
#[derive(Debug)]
pub struct Results {
    /// Messages accepted, if any were to be sent.
    pub sent: Option<Flow>,
    /// Messages completed, if any were to be received.
    pub received: Option<Flow>,
    pub refused: u64,
    /// Messages that were due, at a rate, and for which there was no credit, or no time.
    pub unsent: u64,
    /// Messages of other senders that were released.
    pub foreign: u64,
    /// Processors that we kept busy ourselves.
    pub cores: f64,
}

/// Messages that went one way.
#[derive(Debug)]
pub struct Flow {
    pub messages: u64,
    /// Of their bodies; of whole messages where bodies are not known.
    pub bytes: u64,
    /// From the begin to the newest outcome.
    pub elapsed: Duration,
    /// In microseconds: to acceptance, or to arrival if that is known.
    pub latencies: Histogram<u64>,
}

impl Results {
    /// Adds up the counts of `clients` in `run`.
    pub fn gather(clients: &[Client<Workload>], plan: &Plan, run: &BenchRun) -> Self {
        let (mut sent, mut received, mut refused, mut foreign) = (None, None, 0, 0);
        for client in clients {
            match client.workload() {
                Workload::Send(sender) => {
                    refused += sender.refused();
                    let flow = sent.get_or_insert_with(Flow::new);
                    flow.add(sender.accepted(), sender.last(), run.began);
                    flow.bytes += sender.accepted() * plan.size as u64;
                    flow.latencies += sender.latencies();
                }
                Workload::Receive(receiver) => {
                    foreign += receiver.foreign() as u64;
                    let flow = received.get_or_insert_with(Flow::new);
                    flow.add(receiver.count(), receiver.last(), run.began);
                    flow.bytes += match plan.mode {
                        BenchMode::Receive => receiver.bytes(),
                        _ => receiver.count() * plan.size as u64,
                    };
                    flow.latencies += receiver.latencies();
                }
            }
        }
        let tried = sent.as_ref().map_or(0, |sent: &Flow| sent.messages) + refused;
        // Waiting for more that does not come is no part of it.
        let flows = sent.iter().chain(&received);
        let busy = flows.map(|flow: &Flow| flow.elapsed).max();
        let busy = busy.unwrap_or_default().as_secs_f64().max(1e-3);
        Self {
            sent,
            received,
            unsent: due(plan, run.sending).saturating_sub(tried),
            refused,
            foreign,
            cores: run.processor.as_secs_f64() / busy,
        }
    }

    /// Whether anything was done.
    pub fn is_any(&self) -> bool {
        let mut flows = self.sent.iter().chain(&self.received);
        flows.any(|flow| flow.messages > 0)
    }
}

impl Flow {
    fn new() -> Self {
        Self {
            messages: 0,
            bytes: 0,
            elapsed: Duration::ZERO,
            latencies: latency::histogram(),
        }
    }

    fn add(&mut self, messages: u64, last: Option<Instant>, began: Instant) {
        self.messages += messages;
        let elapsed = last.map_or(Duration::ZERO, |last| last - began);
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// Messages a second.
    pub fn rate(&self) -> f64 {
        self.a_second(as_f64(self.messages))
    }

    /// Mebibytes a second.
    pub fn mebibytes(&self) -> f64 {
        self.a_second(as_f64(self.bytes) / f64::from(1 << 20))
    }

    fn a_second(&self, amount: f64) -> f64 {
        if self.elapsed.is_zero() {
            return 0.0;
        }
        amount / self.elapsed.as_secs_f64()
    }
}

/// Messages that are due within some time, at a rate.
fn due(plan: &Plan, sending: Duration) -> u64 {
    let rate = u128::from(plan.rate.unwrap_or_default());
    let due = u64::try_from(rate * sending.as_micros() / 1_000_000).unwrap_or(u64::MAX);
    due.min(plan.messages.unwrap_or(u64::MAX))
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn check(options: &str, millis: u64, expected: u64) {
        let words = format!("railbus bench orders {options}");
        let arguments = Arguments::try_parse_from(words.split_whitespace());
        let Command::Bench(arguments) = arguments.expect("they parse").command else {
            panic!("it is a bench");
        };
        let plan = Plan::new(&arguments).expect("it fits");
        assert_eq!(due(&plan, Duration::from_millis(millis)), expected);
    }

    #[test]
    fn at_a_rate_it_is_known_how_many_were_due() {
        check("--rate 2000", 1_500, 3_000);
        check("--rate 3 --messages 4", 10_000, 4);
        check("", 10_000, 0);
    }

    #[test]
    fn a_rate_is_over_the_time_to_the_newest_outcome() {
        let began = Instant::now();
        let mut flow = Flow::new();
        assert_eq!(flow.rate(), 0.0);
        flow.add(100, Some(began + Duration::from_millis(500)), began);
        flow.add(100, Some(began + Duration::from_millis(200)), began);
        flow.add(0, None, began);
        flow.bytes = 1 << 20;
        assert_eq!((flow.rate(), flow.mebibytes()), (400.0, 2.0));
    }
}
