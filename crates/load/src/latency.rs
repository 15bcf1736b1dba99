//! Latency: histograms of microseconds, up to a minute and with three digits, so that any two can
//! be added.

use hdrhistogram::Histogram;

/// The largest value, in microseconds; longer ones count as this.
pub const LONGEST: u64 = 60_000_000;

/// An empty histogram.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order")
}
