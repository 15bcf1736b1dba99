//! Row: a row of the table, or a few that are measured together.

use clap::ValueEnum;

/// One row of the table, or a few that are measured together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Row {
    /// Durable sends of 1 KiB, then receiving and settling them; one connection, 500 in flight
    Backlog,
    /// The disk alone: append and fdatasync, in groups as large as in the row before, and one by
    /// one
    Disk,
    /// Sending and receiving 1 KiB at once
    Both,
    /// Sending and receiving 64 B at once
    Small,
    /// Sending and receiving 16 KiB at once
    Large,
    /// Fifty queues, each with a sender and a receiver
    Queues,
    /// Sending and receiving 1 KiB at once: plain, time to live, duplicate detection, forwarded, a
    /// session, scheduled, deferred, recorded for traces, a topic with an SQL filter,
    /// transactional
    Features,
    /// Sending and receiving 1 KiB at once with trace contexts: telemetry off, and on with 0, 1 and
    /// 100 of 100 messages sampled
    Telemetry,
    /// Publishing 1 KiB to topics: 1 to 1,000 subscriptions, SQL filters, 10 and 100,000
    /// correlation filters
    Topics,
    /// Publishing 1 KiB to an exchange with 1, 10 and 100 bindings
    Routers,
    /// Dynamic nodes that are made and gone with their links, as reply queues are
    Nodes,
    /// Time to accepted at 2,000 messages a second
    Latency,
    /// Durable sends of 1 KiB with one in flight, beside one sync and one round trip
    Single,
    /// Time to accepted at 2,000 messages a second under attack, by attack
    Hostile,
    /// Time to accepted and to arrival on a quiet queue: alone, beside a queue that is hardly
    /// emptied, a connection that never reads, a purge, the deletion of a full namespace, messages
    /// of 100 MiB
    Fairness,
    /// Senders as fast as they can on a disk that is too slow for them: memory by the second
    Pressure,
    /// A queue without receivers, up to a million messages: rates, a crash, and emptying it
    Deep,
    /// 10,000 queues, 10,000 connections and 100,000 sessions in use, each beside fewer of them
    Wide,
    /// What each stage of the broker costs, on one processor and on more
    Cores,
    /// Time, processor time and memory of creating an empty namespace
    Namespaces,
    /// Context switches of a broker without connections
    Idle,
    /// Memory and start times: empty, with idle connections, with a large backlog
    Memory,
}

impl Row {
    /// As it is called on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}
