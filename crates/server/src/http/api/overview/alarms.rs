//! Alarms: what an operator has to look at, in sentences, the worst first.

use broker::QueueInfo;
use serde::Serialize;

use crate::shard::report::Report;

/// Alarms about entities at most.
const ENTITIES: usize = 20;

/// How bad it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Critical,
    Warning,
}

/// One thing to look at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Alarm {
    severity: Severity,
    /// The path of the entity that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    text: String,
}

/// The alarms of a report.
pub fn of(report: &Report) -> Vec<Alarm> {
    let of_broker = |text: String| Alarm {
        severity: Severity::Critical,
        entity: None,
        text,
    };
    let mut alarms = Vec::new();
    if report.nearly_full {
        let text = "the disk is nearly full: sends are refused until space is free";
        alarms.push(of_broker(text.to_owned()));
    }
    if report.commits.damaged > 0 {
        let places = report.commits.damaged;
        alarms.push(of_broker(format!(
            "{places} places of the store are damaged"
        )));
    }
    let rules: usize = report.fault_rules.values().sum();
    if rules > 0 {
        let failed = report.injected_faults;
        alarms.push(Alarm {
            severity: Severity::Warning,
            entity: None,
            text: format!(
                "operations fail on purpose: {rules} fault rules, {failed} failed so far"
            ),
        });
    }
    alarms.extend(of_entities(report));
    alarms
}

/// Those of them that are about entities.
pub fn of_entities(report: &Report) -> Vec<Alarm> {
    let alarms = report.entities.iter().filter_map(of_entity);
    alarms.take(ENTITIES).collect()
}

/// An entity that has used nine tenths of its size refuses sends soon.
fn of_entity(queue: &QueueInfo) -> Option<Alarm> {
    let is_nearly_full = queue.size() > queue.settings.max_size / 10 * 9;
    is_nearly_full.then(|| Alarm {
        severity: Severity::Warning,
        entity: Some(queue.path.clone()),
        text: format!(
            "{} of {} bytes are used: at the maximum size, sends are refused",
            queue.size(),
            queue.settings.max_size
        ),
    })
}
