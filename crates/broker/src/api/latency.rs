//! Latency: a histogram of the time that messages of an entity wait, for metrics.
//!
//! Buckets are powers of four of a millisecond, so that adding a value is one shift and two
//! additions. Counters wrap.

/// Buckets: those below 4^n ms for n from 0 to 11 (70 minutes), and one for all that is longer.
pub const LATENCY_BUCKETS: usize = 13;

/// Numbers of messages by the time that they took. All of them only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Latency {
    /// How many took less than 4^n ms and not less than a quarter of that, by n; the last has no
    /// upper bound.
    pub counts: [u64; LATENCY_BUCKETS],
    /// Of all of them, in milliseconds.
    pub sum_ms: u64,
}

impl Latency {
    /// The upper bound of a bucket in milliseconds; none of the last.
    #[must_use]
    pub const fn bound_ms(bucket: usize) -> Option<u64> {
        match bucket + 1 < LATENCY_BUCKETS {
            true => Some(1 << (2 * bucket)),
            false => None,
        }
    }

    pub(crate) fn add(&mut self, ms: u64) {
        let bits = u64::BITS - ms.leading_zeros();
        let bucket = (bits.div_ceil(2) as usize).min(LATENCY_BUCKETS - 1);
        self.counts[bucket] = self.counts[bucket].wrapping_add(1);
        self.sum_ms = self.sum_ms.wrapping_add(ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_is_above_it() {
        for ms in (0..70).chain([1_023, 1_024, (1 << 22) - 1, 1 << 22, 1 << 40, u64::MAX]) {
            let mut latency = Latency::default();
            latency.add(ms);
            let above = |&bucket: &usize| Latency::bound_ms(bucket).is_none_or(|bound| ms < bound);
            let expected = (0..LATENCY_BUCKETS).find(above).unwrap();
            assert_eq!(latency.counts[expected], 1, "{ms} ms: {latency:?}");
            assert_eq!(latency.sum_ms, ms);
        }
    }
}
