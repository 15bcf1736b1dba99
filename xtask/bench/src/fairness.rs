//! Fairness: how long the users of a quiet queue wait while other clients are busy, compared with
//! how long they wait alone.
//!
//! The quiet queue is sent 2,000 messages a second and emptied at once, on two connections that do
//! nothing else. Each disturbance has a broker of its own, on which the quiet queue is measured
//! first. What a disturbance needs is prepared before the second measurement. It works in another
//! thread on the same machine, so part of a wait is for the processor.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;

use super::client::{Client, Workload};
use super::disturb::{DISTURBANCES, Disturbance, PATIENCE, Scene};
use super::drive;
use super::place::Place;
use super::process::{Meter, Usage, as_f64};
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::{self, Site};
use super::watcher::{self, Watcher};
use load::message_sections::MessageSections;
use load::sender::{Plan, Sender};

/// Messages a second.
const RATE: u32 = 2_000;
/// Between two of them.
const EVERY: Duration = Duration::from_micros(1_000_000 / RATE as u64);

/// What the users of the quiet queue waited for, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// From due to accepted: p50 and p99.
    accepted: [f64; 2],
    /// From due to arrived: p50 and p99.
    arrived: [f64; 2],
    /// Messages a second.
    rate: f64,
    usage: Usage,
}

/// Measures the quiet queue beside each disturbance, and before it.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    for (name, disturbance) in DISTURBANCES {
        let row = format!("quiet queue beside {name}");
        let fresh = site.fresh()?;
        let place = fresh.place()?;
        let end = Instant::now() + Duration::from_secs(scale.seconds);
        let alone = quiet(&place, || Instant::now() >= end)?;
        alone.record("alone", &row, results);
        let waits = beside(&place, scale, (&row, disturbance), results)?;
        waits.record("beside", &row, results);
        for (metric, more) in waits.to(alone) {
            results.add(&row, metric, Unit::Times, more);
        }
        fresh.stop()?;
    }
    Ok(())
}

/// Measures the quiet queue for as long as the disturbance takes.
fn beside(
    place: &Place,
    scale: Scale,
    (row, disturbance): (&str, Disturbance),
    results: &mut Results,
) -> Result<Waits> {
    let (ready, prepared) = mpsc::channel();
    let scene = Scene {
        place: place.clone(),
        scale,
        ready,
    };
    let (waits, others) = thread::scope(|scope| {
        let other = scope.spawn(move || disturbance(&scene));
        let measured = match prepared.recv() {
            Ok(()) => quiet(place, || other.is_finished()),
            Err(_) => Err(anyhow!("the disturbance was not prepared")),
        };
        let other = other
            .join()
            .map_err(|_| anyhow!("the disturbance panicked"))?;
        let others = other.context("disturbing")?;
        anyhow::Ok((measured?, others))
    })?;
    results.add(row, "others' messages", Unit::PerSecond, others);
    Ok(waits)
}

/// Sends and receives until it is `enough`.
fn quiet(place: &Place, enough: impl Fn() -> bool) -> Result<Waits> {
    let (queue, arrivals) = (site::pair(0), watcher::waits());
    let watcher = Watcher::new(&queue, EVERY, &arrivals);
    let mut clients = vec![
        Client::connect(place, sender(&queue))?,
        Client::connect(place, Workload::Task(Box::new(watcher)))?,
    ];
    drive::open(&mut clients)?;
    let meter = Meter::start(place.pid)?;
    drive::work_until(&mut clients, PATIENCE, |_| enough())?;
    let usage = meter.read()?;
    let Workload::Send(sender) = clients[0].workload() else {
        return Err(anyhow!("the sender comes first"));
    };
    let (accepted, refused, arrivals) = (sender.accepted(), sender.refused(), arrivals.borrow());
    ensure!(refused == 0, "the broker refused {refused} messages");
    let arrived = arrivals.len();
    ensure!(arrived == accepted, "{arrived} of {accepted} messages came");
    Ok(Waits {
        accepted: quantiles(sender.latencies()),
        arrived: quantiles(&arrivals),
        rate: as_f64(accepted) / usage.elapsed.as_secs_f64(),
        usage,
    })
}

/// Sends at the fixed rate; a late broker must not slow the schedule down.
fn sender(queue: &str) -> Workload {
    Workload::Send(Box::new(Sender::new(Plan {
        queue: queue.to_owned(),
        size: 1_024,
        count: u64::from(RATE) * PATIENCE.as_secs(),
        in_flight: u64::MAX,
        sections: MessageSections::Plain,
        every: Some(EVERY),
    })))
}

/// p50 and p99 in milliseconds.
fn quantiles(micros: &Histogram<u64>) -> [f64; 2] {
    [0.5, 0.99].map(|quantile| as_f64(micros.value_at_quantile(quantile)) / 1e3)
}

impl Waits {
    fn record(&self, when: &str, row: &str, results: &mut Results) {
        let figures = [
            ("accepted, p50", Unit::Milliseconds, self.accepted[0]),
            ("accepted, p99", Unit::Milliseconds, self.accepted[1]),
            ("arrived, p50", Unit::Milliseconds, self.arrived[0]),
            ("arrived, p99", Unit::Milliseconds, self.arrived[1]),
            ("messages", Unit::PerSecond, self.rate),
            ("broker", Unit::Cores, self.usage.broker_cores()),
            ("load generator", Unit::Cores, self.usage.generator_cores()),
        ];
        for (metric, unit, value) in figures {
            results.add(row, &format!("{when}: {metric}"), unit, value);
        }
    }

    /// How many times as long as `alone`.
    fn to(&self, alone: Self) -> [(&'static str, f64); 4] {
        let times = |of: f64, alone: f64| of / alone.max(1e-3);
        let (accepted, arrived) = (alone.accepted, alone.arrived);
        [
            (
                "accepted, p50 to alone",
                times(self.accepted[0], accepted[0]),
            ),
            (
                "accepted, p99 to alone",
                times(self.accepted[1], accepted[1]),
            ),
            ("arrived, p50 to alone", times(self.arrived[0], arrived[0])),
            ("arrived, p99 to alone", times(self.arrived[1], arrived[1])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(accepted: [f64; 2], arrived: [f64; 2]) -> Waits {
        let usage = Usage {
            elapsed: Duration::from_secs(1),
            broker: Duration::ZERO,
            generator: Duration::ZERO,
            written: 0,
        };
        Waits {
            accepted,
            arrived,
            rate: 1.0,
            usage,
        }
    }

    #[test]
    fn waits_are_set_beside_those_of_the_quiet_queue_alone() {
        let alone = latencies([0.5, 2.0], [1.0, 4.0]);
        let beside = latencies([1.0, 2.0], [0.5, 40.0]);
        let times = beside.to(alone).map(|(_, times)| times);
        assert_eq!(times, [2.0, 1.0, 0.5, 10.0]);
    }
}
