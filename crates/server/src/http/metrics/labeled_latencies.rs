//! Labeled latencies: a histogram of waiting times for each of several labels.

use std::fmt::Error;

use broker::{LATENCY_BUCKETS, Latency};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::page::measure;

/// Histograms with their labels.
#[derive(Debug)]
pub struct LabeledLatencies<L>(pub Vec<(L, Latency)>);

impl<L: EncodeLabelSet> EncodeMetric for LabeledLatencies<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        for (labels, latency) in &self.0 {
            let mut encoder = encoder.encode_family(labels)?;
            let buckets = (0..LATENCY_BUCKETS).map(|bucket| {
                let bound = Latency::bound_ms(bucket);
                // The greatest number is what the encoder takes for infinity.
                let seconds = bound.map_or(f64::MAX, |ms| measure(ms) / 1_000.0);
                (seconds, latency.counts[bucket])
            });
            let buckets: Vec<_> = buckets.collect();
            let count = latency.counts.iter().sum();
            let sum = measure(latency.sum_ms) / 1_000.0;
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
