//! Metrics of each entity: its contents and its traffic.
//!
//! Each series has the path of its entity as a label, and the namespace unless it is the default
//! one. Histograms are shown of entities that have any. The number of entities that are measured is
//! bounded, and a metric tells how many are not. (docs/metrics.md)

use std::time::Duration;

use broker::{Latency, QueueInfo};
use prometheus_client::registry::Unit;
use store::{NamespaceId, Part};

use super::labeled_latencies::LabeledLatencies;
use super::page::Page;
use crate::shard::report::Report;

/// The path of the entity, the state if there is one, and the namespace unless it is the default
/// one.
type Labels = Vec<(&'static str, String)>;

/// The name of a namespace besides the default one.
type NameOf<'a> = &'a dyn Fn(NamespaceId) -> Option<String>;

/// The parts whose traffic is shown, by the words of their states.
const STATES: [(&str, Part); 5] = [
    ("active", Part::Active),
    ("dead-letter", Part::DeadLetter),
    ("deferred", Part::Deferred),
    ("scheduled", Part::Scheduled),
    ("transfer-dead-letter", Part::Transfer),
];

pub fn add(page: &mut Page, report: &Report, names: NameOf<'_>) {
    let all = || report.entities.iter();
    add_contents(page, &report.entities, names);
    page.counters(
        "entity_arrivals",
        "Messages that entered a state: sent, forwarded, copied, dead-lettered, activated",
        all().flat_map(|queue| traffic(queue, names, move |part| queue.traffic.arrived(part))),
    );
    page.counters(
        "entity_departures",
        "Messages that left a state: completed, expired, moved, deleted",
        all().flat_map(|queue| traffic(queue, names, move |part| queue.traffic.departed(part))),
    );
    page.counters(
        "entity_deliveries",
        "Messages delivered to receivers, redeliveries included",
        all().map(|queue| (labels(queue, names), queue.traffic.delivered)),
    );
    page.counters(
        "entity_completions",
        "Messages completed, or received in receive-and-delete mode",
        all().map(|queue| (labels(queue, names), queue.traffic.completed)),
    );
    page.counters(
        "entity_expirations",
        "Messages whose time to live ended",
        all().map(|queue| (labels(queue, names), queue.traffic.expired)),
    );
    page.metric(
        "entity_delivery_time",
        "Time from the enqueued time of a message to its first delivery",
        Some(Unit::Seconds),
        latencies(report, names, |queue| queue.traffic.delivery_time),
    );
    page.metric(
        "entity_settlement_time",
        "Time from the enqueued time of a message to its completion or dead-lettering by a receiver",
        Some(Unit::Seconds),
        latencies(report, names, |queue| queue.traffic.settlement_time),
    );
    page.gauge(
        "entities",
        "Queues, topics and subscriptions",
        None,
        (report.entities.len() + report.unmeasured) as u64,
    );
    page.gauge(
        "entities_unmeasured",
        "Entities without metrics of their own, because the limit of measured entities is reached",
        None,
        report.unmeasured as u64,
    );
}

/// The histograms of entities that have any: others would be twice 15 series for nothing.
fn latencies(
    report: &Report,
    names: NameOf<'_>,
    of: impl Fn(&QueueInfo) -> Latency,
) -> LabeledLatencies<Labels> {
    let all = report.entities.iter();
    let all = all.map(|queue| (labels(queue, names), of(queue)));
    let some = all.filter(|(_, latency)| latency.counts.iter().any(|count| *count > 0));
    LabeledLatencies(some.collect())
}

fn add_contents(page: &mut Page, queues: &[QueueInfo], names: NameOf<'_>) {
    page.gauges(
        "entity_messages",
        "Messages of an entity by state; active ones include those that wait to be forwarded",
        None,
        queues.iter().flat_map(|queue| contents(queue, names)),
    );
    page.gauges(
        "entity_size",
        "Bytes of an entity's messages and session states, as its quota counts them",
        Some(Unit::Bytes),
        queues
            .iter()
            .map(|queue| (labels(queue, names), queue.size())),
    );
    page.gauges(
        "entity_oldest_message_age",
        "Time since the next available message was enqueued; missing if that message is not in memory",
        Some(Unit::Seconds),
        queues
            .iter()
            .filter_map(|queue| Some((labels(queue, names), seconds(queue.oldest_age_ms?)))),
    );
    page.gauges(
        "entity_receivers",
        "Receivers of an entity's messages, over AMQP and waiting over HTTP",
        None,
        queues
            .iter()
            .map(|queue| (labels(queue, names), queue.receivers)),
    );
    page.gauges(
        "entity_schedule_lag",
        "Time since the next scheduled message was due; 0 unless the broker is behind",
        Some(Unit::Seconds),
        queues
            .iter()
            .map(|queue| (labels(queue, names), seconds(queue.schedule_lag_ms))),
    );
}

fn contents<'a>(
    queue: &'a QueueInfo,
    names: NameOf<'a>,
) -> impl Iterator<Item = (Labels, u64)> + use<'a> {
    let counts = [
        ("active", queue.active),
        ("dead-letter", queue.dead_letter),
        ("deferred", queue.deferred),
        ("scheduled", queue.scheduled),
        ("transfer", queue.transfer),
        ("transfer-dead-letter", queue.transfer_dead_letter),
    ];
    counts
        .into_iter()
        .map(move |(state, count)| (in_state(queue, state, names), count))
}

fn traffic<'a>(
    queue: &'a QueueInfo,
    names: NameOf<'a>,
    count: impl Fn(Part) -> u64 + 'a,
) -> impl Iterator<Item = (Labels, u64)> {
    STATES
        .into_iter()
        .map(move |(state, part)| (in_state(queue, state, names), count(part)))
}

fn labels(queue: &QueueInfo, names: NameOf<'_>) -> Labels {
    let name = names(queue.namespace);
    let namespace = name.map(|name| ("namespace", name));
    let entity = ("entity", escaped(&queue.path));
    [entity].into_iter().chain(namespace).collect()
}

fn in_state(queue: &QueueInfo, state: &str, names: NameOf<'_>) -> Labels {
    let mut labels = labels(queue, names);
    labels.insert(1, ("state", state.to_owned()));
    labels
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

/// A path as a label has it, which the library does not see to.
fn escaped(path: &str) -> String {
    let path = path.replace('\\', "\\\\");
    path.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use broker::{EntityKind, QueueSettings, SentVia, Traffic, Wall};
    use store::{EntityId, NamespaceId, Statistics};

    use super::*;

    #[test]
    fn every_entity_has_its_counts_size_age_and_lag() {
        let queue = QueueInfo {
            id: EntityId(1),
            namespace: NamespaceId(0),
            path: "a\"b".to_owned(),
            kind: EntityKind::Queue,
            settings: QueueSettings::default(),
            policy: None,
            active: 3,
            locked: 0,
            available_bytes: 0,
            dead_letter: 2,
            deferred: 1,
            scheduled: 7,
            schedule_lag_ms: 1_500,
            bytes: 98,
            oldest_age_ms: Some(250),
            traffic: Traffic {
                delivered: 5,
                completed: 4,
                expired: 6,
                delivery_time: Latency {
                    counts: [3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                    sum_ms: 5_000_012,
                },
                ..Traffic::default()
            },
            receivers: 8,
            transfer: 0,
            sent_via: SentVia {
                messages: 0,
                bytes: 1,
            },
            transfer_dead_letter: 4,
            created: Wall(0),
            updated: Wall(0),
            accessed: None,
        };
        let mut page = Page::new();
        let other = QueueInfo {
            namespace: NamespaceId(5),
            active: 12,
            ..queue.clone()
        };
        let report = Report {
            entities: vec![queue, other],
            unmeasured: 2,
            connections: 0,
            reads: 0,
            undecided: 0,
            fault_rules: BTreeMap::new(),
            injected_faults: 0,
            usage: crate::shard::task_usage::TaskUsage::default(),
            commits: Statistics::default(),
            nearly_full: false,
            free_bytes: None,
        };
        add(&mut page, &report, &|id| {
            (id != NamespaceId(0)).then(|| "shop".to_owned())
        });
        let text = page.into_text().unwrap();
        for line in [
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"active\"} 3",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"dead-letter\"} 2",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"deferred\"} 1",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"scheduled\"} 7",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"transfer-dead-letter\"} 4",
            "railbus_entity_size_bytes{entity=\"a\\\"b\"} 99",
            "railbus_entity_schedule_lag_seconds{entity=\"a\\\"b\"} 1.5",
            "railbus_entity_oldest_message_age_seconds{entity=\"a\\\"b\"} 0.25",
            "railbus_entity_receivers{entity=\"a\\\"b\"} 8",
            "railbus_entity_deliveries_total{entity=\"a\\\"b\"} 5",
            "railbus_entity_completions_total{entity=\"a\\\"b\"} 4",
            "railbus_entity_expirations_total{entity=\"a\\\"b\"} 6",
            "railbus_entity_delivery_time_seconds_sum{entity=\"a\\\"b\"} 5000.012",
            "railbus_entity_delivery_time_seconds_count{entity=\"a\\\"b\"} 6",
            "railbus_entity_delivery_time_seconds_bucket{le=\"0.001\",entity=\"a\\\"b\"} 3",
            "railbus_entity_delivery_time_seconds_bucket{le=\"0.016\",entity=\"a\\\"b\"} 5",
            "railbus_entity_delivery_time_seconds_bucket{le=\"4194.304\",entity=\"a\\\"b\"} 5",
            "railbus_entity_delivery_time_seconds_bucket{le=\"+Inf\",entity=\"a\\\"b\"} 6",
            "railbus_entities 4",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"active\",namespace=\"shop\"} 12",
            "railbus_entity_size_bytes{entity=\"a\\\"b\",namespace=\"shop\"} 99",
            "railbus_entities_unmeasured 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
