//! Report: what a run did, counted. The ledger and the world raise the same counters.

use crate::journaled::DiskCounts;

/// Declares the counters once, with the sum of two reports.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a run did.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[allow(missing_docs, reason = "named for what they are")]
        pub struct Report {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Report {
            /// Counts another run with this one.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    operations,
    steps,
    /// Sends that were accepted.
    accepted,
    /// Deliveries that left the shard.
    deliveries,
    /// Scheduled messages that became available.
    activated,
    /// Abandoned messages that waited for their next delivery.
    waited,
    /// Those that were available again after a crash.
    waited_over_crash,
    /// Scheduled messages that were taken back.
    cancelled,
    /// Messages that were accepted and dropped.
    duplicates,
    /// Messages that went on to another queue.
    forwarded,
    /// Messages that went from topics to subscriptions.
    published,
    /// Copies that subscriptions took.
    copies,
    /// Copies that queues took of what was published to routers.
    routed,
    /// Changes of namespaces that are snapshotted, forked and reset.
    snapshot_changes,
    /// Policies that were put and removed.
    policies,
    /// Consumers of subscriptions that are made by attaching.
    subscribed,
    /// Durable ones of these subscriptions that were ended by request.
    unsubscribed,
    /// Exclusive queues that were made.
    exclusive_queues,
    /// Entities that expired without receivers where policies say so.
    expired_entities,
    /// Messages that were completed where policies are.
    governed_completions,
    /// Messages that a queue refused where policies are, and made dead letters of.
    refused_dead_letters,
    /// Sends that a queue has refused since it would have been too long.
    refused_by_length,
    /// Sends that such a queue has taken, since it had room.
    accepted_with_room,
    /// Connections that a fault rule has dropped.
    injected,
    /// Sends of RabbitMQ's dialect that were accepted.
    rabbitmq_accepted,
    /// Messages that consumers of that dialect got.
    rabbitmq_deliveries,
    /// Those that they settled with success.
    rabbitmq_completions,
    /// Those that came back since their consumer was gone.
    rabbitmq_returns,
    /// Those of them whose consumer had ended its session.
    rabbitmq_session_returns,
    /// Queues and exchanges that its clients declared.
    declared,
    /// Bindings that they made.
    bound,
    /// Queues, exchanges and bindings that they removed.
    unmade,
    /// Purges of queues.
    purges,
    /// Messages that they published to exchanges and that queues took.
    publications,
    /// Those that no queue took.
    unroutable,
    /// Messages that came out of dynamic nodes.
    node_deliveries,
    /// Messages that clients deleted.
    deleted,
    /// Messages that were shown to callers.
    calls,
    /// Dead letters that went back.
    redriven,
    /// Sessions that were granted.
    accepts,
    /// Transactions that were committed.
    committed,
    /// Transactions that took too long.
    timed_out,
    /// Write sets that were checked one by one.
    write_sets,
    crashes,
    cuts,
    recounts,
    /// Calls to model disks.
    disk_calls,
    /// Records of the journal that were acknowledged.
    records,
    power_cuts,
    /// Ends of the process without a power cut.
    kills,
    /// Flipped bits on copies of the disk.
    flips,
    /// Those that were noticed; the others changed nothing.
    noticed_flips,
    backups,
    released_segments,
    moved_bodies,
    /// Times that files of settled ranges were dropped.
    reclaimed_ranges,
}

impl Report {
    /// Counts what happened to a model disk.
    pub fn add_disk(&mut self, counts: &DiskCounts) {
        self.disk_calls += counts.calls;
        self.records += counts.records;
        self.power_cuts += counts.cuts;
        self.kills += counts.kills;
        self.flips += counts.flips;
        self.noticed_flips += counts.noticed;
        self.backups += counts.backups;
        self.released_segments += counts.released;
        self.moved_bodies += counts.moved;
        self.reclaimed_ranges += counts.reclaimed;
    }
}
