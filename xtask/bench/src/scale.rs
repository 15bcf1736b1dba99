//! Scale: how much is measured.

use load::message_sections::MessageSections;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Messages of a throughput row, at most.
    pub messages: u64,
    /// Seconds after which a throughput row sends no more.
    pub seconds: u64,
    /// Connections of the memory row.
    pub connections: usize,
    /// Messages of the rows about memory and fairness.
    pub backlog: u64,
    /// Messages of the row about a queue without receivers.
    pub deep: u64,
    /// Seconds of the row about senders that are too fast.
    pub pressure: u64,
    /// Sessions of the row with many.
    pub sessions: u32,
    /// What messages have besides their bodies, where a row does not say.
    pub sections: MessageSections,
}

impl Scale {
    /// Whether seconds are to do.
    pub fn is_short(self) -> bool {
        self.seconds < 5
    }

    /// Rows of seconds if it `is_quick`, or of minutes. The row `deep` has that many messages.
    pub fn new(is_quick: bool, deep: Option<u64>, sections: MessageSections) -> Self {
        if is_quick {
            Self {
                messages: 50_000,
                seconds: 2,
                connections: 1_000,
                backlog: 100_000,
                deep: deep.unwrap_or(300_000),
                pressure: 10,
                sessions: 20_000,
                sections,
            }
        } else {
            Self {
                messages: 400_000,
                seconds: 8,
                connections: 1_000,
                backlog: 1_000_000,
                deep: deep.unwrap_or(1_000_000),
                pressure: 60,
                sessions: 100_000,
                sections,
            }
        }
    }
}
