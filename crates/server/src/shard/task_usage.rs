//! Task usage: the work and processor time of a shard task, for metrics.
//!
//! A round is the work between two waits: taking the messages that arrived, one turn, sending the
//! outputs. Its duration by the machine's clock, which also runs while other threads have the
//! processor, shows how near the shard is to being the bottleneck; it includes the wait for the
//! disk if the task commits itself. Processor time comes from the thread's own clock. Reading that
//! takes most of a microsecond, so one round of 16 is measured and counts for all of them. A round
//! awaits nothing, so it begins and ends on one thread.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// One of this many rounds is timed by the thread's clock.
const SAMPLE: u32 = 16;

/// Counters since the task began; all of them only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TaskUsage {
    /// Rounds made.
    pub rounds: u64,
    /// Commands decided in them.
    pub commands: u64,
    /// How long they took.
    pub busy: Duration,
    /// How much processor time they took, from the sample.
    pub processor: Duration,
}

/// A round under way.
pub struct Round {
    began: Instant,
    /// The processor time at its begin, if the round is in the sample.
    processor: Option<Duration>,
}

impl TaskUsage {
    /// A round begins now.
    pub fn begin(&self) -> Round {
        let is_sampled = self.rounds.is_multiple_of(SAMPLE.into());
        Round {
            began: Instant::now(),
            processor: is_sampled.then(processor_time),
        }
    }

    /// `round` ends now.
    pub fn end(&mut self, round: &Round) {
        self.rounds += 1;
        if let Some(before) = round.processor {
            self.processor += processor_time().saturating_sub(before) * SAMPLE;
        }
        self.busy += round.began.elapsed();
    }
}

/// What this thread has used so far.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends a round when both clocks have moved on.
    fn work(usage: &mut TaskUsage) {
        let round = usage.begin();
        let before = processor_time();
        while processor_time() == before || round.began.elapsed().is_zero() {
            std::hint::spin_loop();
        }
        usage.end(&round);
    }

    #[test]
    fn every_round_takes_time_and_one_of_sixteen_is_measured_for_all() {
        let mut usage = TaskUsage::default();
        work(&mut usage);
        assert!(!usage.busy.is_zero() && usage.processor >= Duration::from_nanos(1) * SAMPLE);
        let told = usage;
        for _ in 1..SAMPLE {
            work(&mut usage);
        }
        assert_eq!(usage.processor, told.processor);
        assert!(usage.busy > told.busy);
        work(&mut usage);
        assert!(usage.processor > told.processor);
        assert_eq!(usage.rounds, u64::from(SAMPLE) + 1);
    }
}
