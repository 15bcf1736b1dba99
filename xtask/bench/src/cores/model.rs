//! Model: how many messages a second a broker can do, from what a message costs in each of its stages.
//!
//! At most: all stages share the processors, so none can do more than these have time for. The shard, the
//! committer and the indexer are one thread each of their shard or store, and one after the other for
//! all of its messages. The committer also waits for the disk: once a group, in which there can be no more
//! than the messages in flight. Connections are as parallel as there are of them.
//!
//! At least: a few messages in flight go through all stages as one group, and nothing goes on in two
//! stages at once. What several processors cost one another is not in the model.

/// The most bytes in a group of the committer.
const GROUP_BYTES: f64 = (8 << 20) as f64;

/// Microseconds of processor time a message, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// All stages together.
    pub broker: f64,
    /// Who sends and receives.
    pub generator: f64,
    pub shard: f64,
    pub committer: f64,
    /// Microseconds that one group waits for the disk, and messages in that.
    pub sync: f64,
    pub group: f64,
    pub indexer: f64,
    /// Flushes and compactions of the index.
    pub tables: f64,
    /// Bytes of a message.
    pub size: f64,
    /// Bytes that the disk takes in a microsecond.
    pub bandwidth: f64,
}

/// What a broker is made of, and how much it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    pub processors: f64,
    pub shards: f64,
    pub stores: f64,
    pub in_flight: f64,
}

impl Build {
    /// One shard on one store.
    pub fn of_today(processors: usize, in_flight: u64) -> Self {
        Self {
            processors: crate::process::as_f64(processors as u64),
            shards: 1.0,
            stores: 1.0,
            in_flight: crate::process::as_f64(in_flight),
        }
    }
}

impl Costs {
    /// The same for messages of `size` bytes on a disk of so many megabytes a second.
    pub fn on_disk(self, size: usize, bandwidth: f64) -> Self {
        Self {
            size: crate::process::as_f64(size as u64),
            bandwidth,
            ..self
        }
    }

    /// The same on a disk that takes any number of bytes.
    pub fn without_bytes(self) -> Self {
        Self {
            bandwidth: f64::INFINITY,
            ..self
        }
    }

    /// The same on the disk as it was for the `others`, since it changes from minute to minute.
    pub fn waiting_as(self, others: &Self) -> Self {
        Self {
            sync: others.sync,
            group: others.group,
            ..self
        }
    }

    /// Messages a second at most, with the load generator on a machine of its own.
    pub fn most(&self, build: Build) -> f64 {
        let limits = [
            build.processors * 1e6 / self.broker,
            build.shards * 1e6 / self.shard,
            build.stores * self.committer_rate(build.in_flight / build.stores),
            build.stores * 1e6 / self.indexer,
            self.disk_rate(),
        ];
        limits.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Messages a second at least: one group goes through all stages, then the next.
    pub fn least(&self) -> f64 {
        let stages = self.broker - self.indexer - self.tables + self.generator;
        1e6 / (stages + self.sync / self.group)
    }

    /// Messages a second at most with the load generator on this machine: on the broker's processors if they
    /// are `shared`, or else on one of its own.
    pub fn most_here(&self, build: Build, shared: bool) -> f64 {
        let rate = self.most(build);
        let limit = if shared {
            build.processors * 1e6 / (self.broker + self.generator)
        } else {
            1e6 / self.generator
        };
        rate.min(limit)
    }

    /// What one of each can do at most, by name.
    pub fn limits(&self, in_flight: f64) -> [(&'static str, f64); 5] {
        [
            ("one processor", 1e6 / self.broker),
            ("one shard", 1e6 / self.shard),
            (
                "one committer",
                self.without_bytes().committer_rate(in_flight),
            ),
            ("one indexer", 1e6 / self.indexer),
            ("the disk", self.disk_rate()),
        ]
    }

    fn committer_rate(&self, in_flight: f64) -> f64 {
        let most = GROUP_BYTES / self.size.max(1.0);
        let group = in_flight.min(most).max(1.0);
        let more = (group - self.group).max(0.0);
        let sync = self.sync + more * self.size / self.bandwidth;
        1e6 / (self.committer + sync / group)
    }

    fn disk_rate(&self) -> f64 {
        1e6 * self.bandwidth / self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        broker: 4.0,
        generator: 1.0,
        shard: 0.5,
        committer: 0.6,
        sync: 200.0,
        group: 500.0,
        indexer: 0.25,
        tables: 0.25,
        size: 1_000.0,
        bandwidth: 1_000.0,
    };

    fn rate(processors: f64, shards: f64, stores: f64, in_flight: f64) -> f64 {
        COSTS.most(Build {
            processors,
            shards,
            stores,
            in_flight,
        })
    }

    #[test]
    fn few_processors_are_the_limit_and_then_the_slowest_stage() {
        assert_eq!(rate(1.0, 1.0, 1.0, 1e5), 250_000.0);
        // A group of 1,000: 600 of processor time, 200 for the sync, 500 for the bytes that it has more.
        assert_eq!(rate(16.0, 1.0, 1.0, 1_000.0).round(), 769_231.0);
        assert_eq!(rate(64.0, 1.0, 8.0, 1e6), 1e6, "the disk");
    }

    #[test]
    fn few_messages_in_flight_make_small_groups() {
        assert!(rate(16.0, 1.0, 1.0, 50.0) < rate(16.0, 1.0, 1.0, 1_000.0) / 2.0);
    }

    #[test]
    fn at_least_one_group_goes_through_all_stages() {
        // 4.0 without the 0.5 of the index, 1.0 of the generator, 200 / 500 for the sync.
        assert_eq!(COSTS.least().round(), 204_082.0);
    }

    #[test]
    fn a_generator_on_the_same_processors_takes_its_part() {
        let build = Build::of_today(1, 10_000);
        assert_eq!(COSTS.most_here(build, true), 200_000.0);
        assert_eq!(COSTS.most_here(build, false), 250_000.0);
    }
}
