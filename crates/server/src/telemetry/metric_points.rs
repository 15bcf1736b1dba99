//! Metric points: the page of `/metrics` in the form of OTLP.
//!
//! The page is our own, so what is not as we write it is left out. Counters and histograms are
//! cumulative since the start of the export. Names and labels are those of docs/metrics.md, except
//! that a counter has no `_total`.

use serde_json::{Value as Json, json};

use super::text;

/// Values count from the start of the process. [OTLP: AggregationTemporality]
const CUMULATIVE: u8 = 2;

/// A family of the page, with its samples.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    samples: Vec<Sample<'a>>,
}

/// A line of the page.
struct Sample<'a> {
    /// What the line has behind the name of its family.
    suffix: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// The metrics of a page that was made at `now`.
pub fn of(page: &str, start: u64, now: u64) -> Vec<Json> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in page.lines() {
        if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let samples = Vec::new();
            families.push(Family {
                name,
                kind,
                samples,
            });
        } else if let Some(family) = families.last_mut()
            && let Some(sample) = sample(family.name, line)
        {
            family.samples.push(sample);
        }
    }
    let some = families.iter().filter(|family| !family.samples.is_empty());
    some.filter_map(|family| family.encode(start, now))
        .collect()
}

impl Family<'_> {
    fn encode(&self, start: u64, now: u64) -> Option<Json> {
        let points = || self.samples.iter().map(|it| it.number(start, now));
        let (kind, data) = match self.kind {
            "gauge" => (
                "gauge",
                json!({ "dataPoints": points().collect::<Vec<_>>() }),
            ),
            "counter" => (
                "sum",
                json!({
                    "dataPoints": points().collect::<Vec<_>>(),
                    "aggregationTemporality": CUMULATIVE,
                    "isMonotonic": true,
                }),
            ),
            "histogram" => (
                "histogram",
                json!({
                    "dataPoints": self.histograms(start, now),
                    "aggregationTemporality": CUMULATIVE,
                }),
            ),
            _ => return None,
        };
        Some(json!({ "name": self.name, kind: data }))
    }

    /// A histogram begins with its sum; its count and its buckets follow.
    fn histograms(&self, start: u64, now: u64) -> Vec<Json> {
        let is_sum = |sample: &Sample<'_>| sample.suffix == "_sum";
        let starts = (0..self.samples.len()).filter(|&index| is_sum(&self.samples[index]));
        let starts: Vec<_> = starts.collect();
        let ends = starts.iter().skip(1).copied().chain([self.samples.len()]);
        let ranges = starts.iter().copied().zip(ends);
        ranges
            .map(|(first, end)| histogram(&self.samples[first..end], start, now))
            .collect()
    }
}

fn histogram(samples: &[Sample<'_>], start: u64, now: u64) -> Json {
    let (mut bounds, mut counts, mut count, mut before) = (Vec::new(), Vec::new(), 0.0, 0.0);
    for sample in samples {
        match sample.suffix {
            "_count" => count = sample.value,
            "_bucket" => {
                let bound = sample.labels.iter().find(|(key, _)| *key == "le");
                let bound = bound.and_then(|(_, bound)| bound.parse::<f64>().ok());
                bounds.extend(bound.filter(|bound| bound.is_finite()));
                counts.push((sample.value - before).to_string());
                before = sample.value;
            }
            _ => {}
        }
    }
    json!({
        "attributes": samples[0].attributes(),
        "startTimeUnixNano": start.to_string(),
        "timeUnixNano": now.to_string(),
        "count": count.to_string(),
        "sum": samples[0].value,
        "explicitBounds": bounds,
        "bucketCounts": counts,
    })
}

impl Sample<'_> {
    fn attributes(&self) -> Vec<Json> {
        let labels = self.labels.iter();
        labels.map(|(key, value)| text(key, value)).collect()
    }

    fn number(&self, start: u64, now: u64) -> Json {
        json!({
            "attributes": self.attributes(),
            "startTimeUnixNano": start.to_string(),
            "timeUnixNano": now.to_string(),
            "asDouble": self.value,
        })
    }
}

fn sample<'a>(family: &str, line: &'a str) -> Option<Sample<'a>> {
    let rest = line.strip_prefix(family)?;
    let (head, value) = rest.rsplit_once(' ')?;
    let (suffix, labels) = match head.split_once('{') {
        Some((suffix, labels)) => (suffix, labels.strip_suffix('}')?),
        None => (head, ""),
    };
    Some(Sample {
        suffix,
        labels: read_labels(labels)?,
        value: value.parse().ok()?,
    })
}

/// `key="value"` with commas between; in a value `\\`, `"` and a line feed are escaped.
fn read_labels(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (key, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((key, value));
        text = &rest[end + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP railbus_entities Queues
# TYPE railbus_entities gauge
railbus_entities 3
# TYPE railbus_entity_deliveries counter
railbus_entity_deliveries_total{entity=\"a\\\"b,c}\\\\\",state=\"x\"} 5
# TYPE railbus_entity_delivery_time_seconds histogram
# UNIT railbus_entity_delivery_time_seconds seconds
railbus_entity_delivery_time_seconds_sum{entity=\"a\"} 1.5
railbus_entity_delivery_time_seconds_count{entity=\"a\"} 6
railbus_entity_delivery_time_seconds_bucket{le=\"0.001\",entity=\"a\"} 3
railbus_entity_delivery_time_seconds_bucket{le=\"0.004\",entity=\"a\"} 5
railbus_entity_delivery_time_seconds_bucket{le=\"+Inf\",entity=\"a\"} 6
railbus_entity_delivery_time_seconds_sum{entity=\"b\"} 0.0
railbus_entity_delivery_time_seconds_count{entity=\"b\"} 1
railbus_entity_delivery_time_seconds_bucket{le=\"+Inf\",entity=\"b\"} 1
# TYPE railbus_empty counter
# EOF
";

    #[test]
    fn gauges_and_counters_keep_their_names_labels_and_values() {
        let found = of(PAGE, 1, 2);
        let names: Vec<_> = found.iter().map(|metric| &metric["name"]).collect();
        let expected = [
            "railbus_entities",
            "railbus_entity_deliveries",
            "railbus_entity_delivery_time_seconds",
        ];
        assert_eq!(names, expected);
        let gauge = &found[0]["gauge"]["dataPoints"][0];
        assert_eq!(gauge["asDouble"], 3.0);
        let sum = &found[1]["sum"];
        assert_eq!(sum["isMonotonic"], true);
        let point = json!({
            "attributes": [text("entity", "a\"b,c}\\"), text("state", "x")],
            "startTimeUnixNano": "1",
            "timeUnixNano": "2",
            "asDouble": 5.0,
        });
        assert_eq!(sum["dataPoints"], json!([point]));
    }

    #[test]
    fn a_histogram_has_the_counts_of_its_buckets_alone() {
        let found = of(PAGE, 1, 2);
        let points = &found[2]["histogram"]["dataPoints"];
        let point = json!({
            "attributes": [text("entity", "a")],
            "startTimeUnixNano": "1",
            "timeUnixNano": "2",
            "count": "6",
            "sum": 1.5,
            "explicitBounds": [0.001, 0.004],
            "bucketCounts": ["3", "2", "1"],
        });
        assert_eq!(points[0], point);
        assert_eq!(points[1]["bucketCounts"], json!(["1"]));
        assert_eq!(points.as_array().map(Vec::len), Some(2));
    }
}
