//! `/metrics`: what every entity holds, in the text format of Prometheus.
//!
//! Labels are an entity's path and a few fixed words, so there are as many series as entities times
//! eight. They are made of the shard's counters when they are asked for; nothing is kept.

use std::sync::atomic::AtomicU64;

use broker::QueueInfo;
use hyper::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::oneshot;

use super::answer::{self, Response};
use crate::door::House;
use crate::shard::Message;

/// What OpenMetrics text is called.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Entity {
    entity: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Counted {
    entity: String,
    state: &'static str,
}

#[derive(Default)]
struct Metrics {
    messages: Family<Counted, Gauge<u64, AtomicU64>>,
    bytes: Family<Entity, Gauge<u64, AtomicU64>>,
    schedule_lag: Family<Entity, Gauge<f64, AtomicU64>>,
}

/// Answers a request to whoever may manage.
pub async fn respond(method: &Method, house: &House) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return answer::method_not_allowed("GET, HEAD");
    }
    let (answer, queues) = oneshot::channel();
    // The shard is gone only when the server stops or has failed.
    drop(house.inbox.send(Message::Queues(answer)).await);
    match queues.await {
        Ok(queues) => answer::text(StatusCode::OK, TEXT, encode(&queues)),
        Err(_) => answer::error(StatusCode::SERVICE_UNAVAILABLE, "the broker is stopping"),
    }
}

fn encode(queues: &[QueueInfo]) -> String {
    let metrics = Metrics::default();
    for queue in queues {
        metrics.set(queue);
    }
    let mut registry = Registry::with_prefix("railbus");
    registry.register(
        "entity_messages",
        "Messages of an entity by state; active ones include those that wait to be forwarded",
        metrics.messages,
    );
    registry.register_with_unit(
        "entity_size",
        "What an entity's messages and session states take",
        Unit::Bytes,
        metrics.bytes,
    );
    registry.register_with_unit(
        "entity_schedule_lag",
        "How long ago the next scheduled message was due",
        Unit::Seconds,
        metrics.schedule_lag,
    );
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("a string takes all that is written to it");
    text
}

impl Metrics {
    fn set(&self, queue: &QueueInfo) {
        let counts = [
            ("active", queue.active),
            ("dead-letter", queue.dead_letter),
            ("deferred", queue.deferred),
            ("scheduled", queue.scheduled),
            ("transfer", queue.transfer),
            ("transfer-dead-letter", queue.transfer_dead_letter),
        ];
        for (state, count) in counts {
            let counted = Counted {
                entity: escaped(&queue.path),
                state,
            };
            self.messages.get_or_create(&counted).set(count);
        }
        let entity = Entity {
            entity: escaped(&queue.path),
        };
        self.bytes.get_or_create(&entity).set(queue.bytes);
        let lag = std::time::Duration::from_millis(queue.schedule_lag_ms);
        self.schedule_lag
            .get_or_create(&entity)
            .set(lag.as_secs_f64());
    }
}

/// A path as a label has it, which the library does not see to.
fn escaped(path: &str) -> String {
    let path = path.replace('\\', "\\\\");
    path.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use broker::{EntityKind, QueueSettings, Wall};
    use store::{EntityId, NamespaceId};

    use super::*;

    #[test]
    fn every_entity_has_its_counts_size_and_lag() {
        let queue = QueueInfo {
            id: EntityId(1),
            namespace: NamespaceId(0),
            path: "a\"b".to_owned(),
            kind: EntityKind::Queue,
            settings: QueueSettings::default(),
            active: 3,
            dead_letter: 2,
            deferred: 1,
            scheduled: 7,
            schedule_lag_ms: 1_500,
            bytes: 99,
            transfer: 0,
            transfer_dead_letter: 4,
            created: Wall(0),
            updated: Wall(0),
            accessed: None,
        };
        let text = encode(&[queue]);
        for line in [
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"active\"} 3",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"dead-letter\"} 2",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"deferred\"} 1",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"scheduled\"} 7",
            "railbus_entity_messages{entity=\"a\\\"b\",state=\"transfer-dead-letter\"} 4",
            "railbus_entity_size_bytes{entity=\"a\\\"b\"} 99",
            "railbus_entity_schedule_lag_seconds{entity=\"a\\\"b\"} 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
