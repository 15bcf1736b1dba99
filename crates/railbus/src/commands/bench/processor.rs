//! Processor: the processor time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads since the process began.
pub fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(used.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}
