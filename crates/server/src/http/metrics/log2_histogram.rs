//! Log2 histogram: a histogram by powers of two, as the store keeps it.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use store::statistics::BUCKETS;

use super::page::measure;

/// Counts of values; those at index n are below 2^n and not below half of that.
#[derive(Clone, Debug)]
pub struct Log2Histogram {
    pub counts: [u64; BUCKETS],
    /// Of all values, in the unit that is shown.
    pub sum: f64,
    /// The least and the greatest n that has a bucket; what is below or beyond is in the next one.
    pub least: usize,
    pub greatest: usize,
    /// What 2^n is in the unit that is shown, and includes.
    pub bound: fn(f64) -> f64,
}

impl Log2Histogram {
    fn buckets(&self) -> Vec<(f64, u64)> {
        let below: u64 = self.counts.iter().take(self.least).sum();
        let beyond: u64 = self.counts.iter().skip(self.greatest + 1).sum();
        let counts = self.counts.iter().enumerate();
        let shown = counts.skip(self.least).take(self.greatest + 1 - self.least);
        let mut buckets: Vec<_> = shown
            .map(|(power, count)| ((self.bound)(measure(1 << power)), *count))
            .collect();
        if let Some(first) = buckets.first_mut() {
            first.1 += below;
        }
        // What the encoder takes for infinity.
        buckets.push((f64::MAX, beyond));
        buckets
    }
}

impl EncodeMetric for Log2Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let count = self.counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum, count, &self.buckets(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_least_or_beyond_the_greatest_bucket_is_counted_all_the_same() {
        let mut counts = [0; BUCKETS];
        for (power, count) in [(0, 1), (3, 2), (4, 4), (5, 8), (6, 16), (31, 32)] {
            counts[power] = count;
        }
        let log2_histogram = Log2Histogram {
            counts,
            sum: 0.0,
            least: 4,
            greatest: 5,
            bound: |power| power - 1.0,
        };
        assert_eq!(
            log2_histogram.buckets(),
            [(15.0, 7), (31.0, 8), (f64::MAX, 48)]
        );
    }
}
