//! Threads: how much processor time those of this process have used, by their names.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What threads of a kind have used together.
#[derive(Clone, Copy, Default)]
pub struct Used {
    pub committer: Duration,
    pub indexer: Duration,
    /// RocksDB's own.
    pub tables: Duration,
}

/// What this thread has used.
pub fn own() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .expect("not negative")
}

/// What there was used so far.
pub fn used() -> Used {
    let mut used = Used::default();
    for thread in std::fs::read_dir("/proc/self/task").expect("Linux") {
        let path = thread.expect("listed").path();
        // Threads may end at any time; those of the stores do not.
        let Ok(stat) = std::fs::read_to_string(path.join("stat")) else {
            continue;
        };
        let (before, fields) = stat.rsplit_once(')').expect("a name in brackets");
        let of_kind = match before.rsplit('(').next() {
            Some("committer") => &mut used.committer,
            Some("indexer") => &mut used.indexer,
            Some(name) if name.starts_with("rocksdb:") => &mut used.tables,
            _ => continue,
        };
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks = times.map(|ticks| ticks.parse::<u64>().expect("a number"));
        *of_kind += Duration::from_millis(ticks.sum::<u64>() * 10);
    }
    used
}

/// The difference.
pub fn since(before: &Used, now: &Used) -> Used {
    Used {
        committer: now.committer - before.committer,
        indexer: now.indexer - before.indexer,
        tables: now.tables - before.tables,
    }
}
