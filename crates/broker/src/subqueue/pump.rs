//! Pump: what keeps the messages of a forwarding subqueue.
//!
//! A message waits for a destination that does not take it now, or for the store to say whether the
//! destination has seen its id before. What was looked up is good for one message.

use store::{EntityId, SequenceNumber};

use crate::api::id::ReadId;
use crate::api::time::Mono;
use crate::send::duplicates::known::Known;

/// What a forwarding subqueue waits for.
#[derive(Debug, Default)]
pub(crate) enum Pump {
    #[default]
    Free,
    /// The destination would not take the next message; it is tried again then.
    Until(Mono),
    /// The destination may have seen this message's id before.
    Lookup(ReadId, SequenceNumber),
    /// It has been looked up.
    Looked(Looked),
    /// The first messages of a queue with sessions are being read.
    Reading(PendingPage),
}

/// What was asked for of the messages of a queue with sessions.
#[derive(Debug)]
pub(crate) struct PendingPage {
    /// All from this number on.
    pub from: SequenceNumber,
    pub limit: usize,
    /// Not if the one message is damaged: only its number is read.
    pub bodies: bool,
    /// What was looked up of one of them waits for the page.
    pub looked: Option<Looked>,
}

/// What a destination's history says of a message's id.
#[derive(Debug)]
pub(crate) struct Looked {
    pub number: SequenceNumber,
    pub destination: EntityId,
    /// How many ids the destination had accepted by then.
    pub seen: u64,
    pub known: Known,
}

impl Pump {
    /// When it wants a tick.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        match self {
            Self::Until(at) => Some(*at),
            _ => None,
        }
    }

    /// Whether it is time to try again.
    pub(crate) fn is_due(&mut self, now: Mono) -> bool {
        let due = self.deadline().is_some_and(|at| at <= now);
        if due {
            *self = Self::Free;
        }
        due
    }

    pub(crate) fn is_waiting(&self, now: Mono) -> bool {
        match self {
            Self::Until(at) => now < *at,
            Self::Lookup(..) | Self::Reading(_) => true,
            Self::Free | Self::Looked(_) => false,
        }
    }
}
