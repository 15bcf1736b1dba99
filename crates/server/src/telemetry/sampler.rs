//! Sampler: which messages that have a trace context have spans.
//!
//! The broker begins no trace, so a message without a context never has one.
//! (docs/telemetry.md#traces)

use super::trace_context::TraceContext;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Sampler {
    /// Those whose sender was sampled.
    #[default]
    Parent,
    /// Those whose trace has a number below this one in its last 64 bits; all of them without one.
    TraceId(Option<u64>),
}

impl Sampler {
    /// All that have a context.
    pub const ALWAYS: Self = Self::TraceId(None);

    /// This part of all traces, from 0 to 1, without regard to the sender.
    #[must_use]
    pub fn of_ratio(ratio: f64) -> Self {
        let bound = ratio * 2_f64.powi(64);
        // The cast of a float saturates.
        Self::TraceId((ratio < 1.0).then_some(bound as u64))
    }

    /// The context that this text is, if it is sampled.
    pub(super) fn sampled(self, text: &str) -> Option<TraceContext> {
        // Most senders are not sampled. One digit tells, without the rest.
        if self == Self::Parent && !TraceContext::has_flag(text) {
            return None;
        }
        TraceContext::parse(text).filter(|context| self.samples(context))
    }

    fn samples(self, context: &TraceContext) -> bool {
        match self {
            Self::Parent => context.is_sampled,
            Self::TraceId(None) => true,
            Self::TraceId(Some(bound)) => (context.trace as u64) < bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sampler: Sampler, trace: u128, is_sampled: bool, expected: bool) {
        let context = TraceContext {
            trace,
            parent: 1,
            is_sampled,
        };
        assert_eq!(sampler.samples(&context), expected, "{sampler:?} {trace:x}");
    }

    #[test]
    fn the_sender_decides_or_the_trace() {
        const HIGH: u128 = 0xffff_ffff_ffff_ffff;
        for is_sampled in [false, true] {
            check(Sampler::Parent, 1, is_sampled, is_sampled);
            check(Sampler::ALWAYS, HIGH, is_sampled, true);
            check(Sampler::of_ratio(1.0), HIGH, is_sampled, true);
            check(Sampler::of_ratio(0.0), 1 << 64, is_sampled, false);
            check(Sampler::of_ratio(0.5), HIGH >> 1, is_sampled, true);
            check(Sampler::of_ratio(0.5), (HIGH >> 1) + 1, is_sampled, false);
            // The first 64 bits of some traces are a time.
            check(Sampler::of_ratio(0.5), (HIGH << 64) + 1, is_sampled, true);
        }
    }
}
