//! Metric points: the page of `/metrics` in the form of OTLP.
//!
//! The page is our own, so what is not as we write it is left out. Counters and histograms are
//! cumulative since the start of the export. Names and labels are those of docs/metrics.md, except
//! that a counter has no `_total`.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use super::attribute::text;

/// Values count from the start of the process.
const CUMULATIVE: AggregationTemporality = AggregationTemporality::Cumulative;

/// A family of the page, with its samples.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
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
pub fn of(page: &str, start: u64, now: u64) -> Vec<Metric> {
    let mut help = "";
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in page.lines() {
        if let Some((_, text)) = line
            .strip_prefix("# HELP ")
            .and_then(|rest| rest.split_once(' '))
        {
            help = text;
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let samples = Vec::new();
            families.push(Family {
                name,
                kind,
                help,
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
    fn encode(&self, start: u64, now: u64) -> Option<Metric> {
        let points = || {
            self.samples
                .iter()
                .map(|it| it.number(start, now))
                .collect()
        };
        let data = match self.kind {
            "gauge" => Data::Gauge(Gauge {
                data_points: points(),
            }),
            "counter" => Data::Sum(Sum {
                data_points: points(),
                aggregation_temporality: CUMULATIVE.into(),
                is_monotonic: true,
            }),
            "histogram" => Data::Histogram(Histogram {
                data_points: self.histograms(start, now),
                aggregation_temporality: CUMULATIVE.into(),
            }),
            _ => return None,
        };
        Some(Metric {
            name: self.name.to_owned(),
            description: self.help.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    /// A histogram begins with its sum; its count and its buckets follow.
    fn histograms(&self, start: u64, now: u64) -> Vec<HistogramDataPoint> {
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

fn histogram(samples: &[Sample<'_>], start: u64, now: u64) -> HistogramDataPoint {
    let mut point = HistogramDataPoint {
        attributes: samples[0].attributes(),
        start_time_unix_nano: start,
        time_unix_nano: now,
        sum: Some(samples[0].value),
        ..HistogramDataPoint::default()
    };
    let mut before = 0;
    for sample in samples {
        match sample.suffix {
            "_count" => point.count = count(sample.value),
            "_bucket" => {
                let bound = sample.labels.iter().find(|(key, _)| *key == "le");
                let bound = bound.and_then(|(_, bound)| bound.parse::<f64>().ok());
                let bound = bound.filter(|bound| bound.is_finite());
                point.explicit_bounds.extend(bound);
                let so_far = count(sample.value);
                point.bucket_counts.push(so_far.saturating_sub(before));
                before = so_far;
            }
            _ => {}
        }
    }
    point
}

/// A count of the page, which writes all values as numbers with a fraction.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count is a whole number that is not negative"
)]
fn count(value: f64) -> u64 {
    value as u64
}

impl Sample<'_> {
    fn attributes(&self) -> Vec<KeyValue> {
        let labels = self.labels.iter();
        labels.map(|(key, value)| text(key, value)).collect()
    }

    fn number(&self, start: u64, now: u64) -> NumberDataPoint {
        NumberDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: start,
            time_unix_nano: now,
            value: Some(Value::AsDouble(self.value)),
            ..NumberDataPoint::default()
        }
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
        let names: Vec<_> = found.iter().map(|metric| metric.name.as_str()).collect();
        let expected = [
            "railbus_entities",
            "railbus_entity_deliveries",
            "railbus_entity_delivery_time_seconds",
        ];
        assert_eq!(names, expected);
        assert_eq!(found[0].description, "Queues");
        let Some(Data::Gauge(gauge)) = &found[0].data else {
            panic!("{:?}", found[0]);
        };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(3.0)));
        let point = NumberDataPoint {
            attributes: vec![text("entity", "a\"b,c}\\"), text("state", "x")],
            start_time_unix_nano: 1,
            time_unix_nano: 2,
            value: Some(Value::AsDouble(5.0)),
            ..NumberDataPoint::default()
        };
        let sum = Sum {
            data_points: vec![point],
            aggregation_temporality: CUMULATIVE.into(),
            is_monotonic: true,
        };
        assert_eq!(found[1].data, Some(Data::Sum(sum)));
    }

    #[test]
    fn a_histogram_has_the_counts_of_its_buckets_alone() {
        let found = of(PAGE, 1, 2);
        let Some(Data::Histogram(histogram)) = &found[2].data else {
            panic!("{:?}", found[2]);
        };
        let point = HistogramDataPoint {
            attributes: vec![text("entity", "a")],
            start_time_unix_nano: 1,
            time_unix_nano: 2,
            count: 6,
            sum: Some(1.5),
            explicit_bounds: vec![0.001, 0.004],
            bucket_counts: vec![3, 2, 1],
            ..HistogramDataPoint::default()
        };
        let points = &histogram.data_points;
        assert_eq!(points[0], point);
        assert_eq!(points[1].bucket_counts, [1]);
        assert_eq!(points.len(), 2);
    }
}
