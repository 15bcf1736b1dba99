//! Pending schedule peek: what a peek at the schedule has found, and what is still to be read for
//! it.

use std::collections::VecDeque;

use store::{EntityId, SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::RequestId;
use crate::api::output::Output;
use crate::send::timetable::Due;

/// A request for scheduled messages, until its page is full.
#[derive(Debug)]
pub(crate) struct SchedulePeek {
    pub request: RequestId,
    pub entity: EntityId,
    /// The first place that has not been looked at.
    pub(super) from: Due,
    /// Most messages of the answer.
    pub(super) count: usize,
    /// Most bytes of bodies, but for the first message.
    pub(super) max_bytes: usize,
    /// How many entries can be read before those that cannot; only they are read next.
    pub(super) intact: Option<usize>,
    /// Messages that are read next, in their order.
    pub(super) numbers: VecDeque<SequenceNumber>,
    /// Those that were asked for together with one that cannot be read are asked for alone.
    pub(super) alone: bool,
    /// What was asked for by number, while that is read.
    pub(super) asked: Option<Vec<SequenceNumber>>,
    pub(super) found: Vec<StoredMessage>,
}

impl SchedulePeek {
    pub(crate) fn new(
        request: RequestId,
        entity: EntityId,
        from: Due,
        count: usize,
        max_bytes: usize,
    ) -> Self {
        Self {
            request,
            entity,
            from,
            count,
            max_bytes,
            intact: None,
            numbers: VecDeque::new(),
            alone: false,
            asked: None,
            found: Vec::new(),
        }
    }

    pub(crate) fn refusal(&self, error: RequestError) -> Output {
        let (request, result) = (self.request, Err(error));
        Output::Browsed { request, result }
    }
}
