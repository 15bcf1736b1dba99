//! Phase: how far a connection is on its way to its end.
//!
//! A connection drains before it ends: it reads no more, and writes the answers to all that it
//! gave to the shard.

use dialect::ForcedClose;
use tokio::time::Instant;

/// How a connection comes to its end.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    Open,
    /// No more is read; what was given to the shard is answered, until this moment at the latest.
    Draining(Instant, DrainReason),
    /// The server closes it: the peer was told, and its answer is awaited.
    Closing,
    /// The input has ended, and the dialect was told.
    Ended,
}

/// Why a connection drains.
#[derive(Clone, Copy, Debug)]
pub enum DrainReason {
    Forced(ForcedClose),
    InputEnded,
}

impl Phase {
    /// Whether the socket may be read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Open | Self::Closing)
    }

    /// When a connection that drains ends at the latest.
    pub fn drained_by(self) -> Option<Instant> {
        match self {
            Self::Draining(until, _) => Some(until),
            Self::Open | Self::Closing | Self::Ended => None,
        }
    }
}
