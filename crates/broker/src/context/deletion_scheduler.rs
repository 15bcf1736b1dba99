//! Deletion scheduler: how fast messages are deleted in batches, so that other clients notice less
//! of it.
//!
//! A client that waits for a commit waits for all that is in its group. So a piece of a deletion is
//! begun only when the one before is durable, and no more than one is in a group. A piece is small
//! when a client has lately asked for something else, and otherwise most of what a turn may do,
//! since no client waits. Queues with deletions stand in line; each has its share and goes to the
//! end.

use std::collections::VecDeque;

use store::EntityId;

/// A small piece, and a queue's share of a large one, are this part of a turn's work; a large one
/// leaves as much to others.
const SHARE: usize = 4;
/// Pieces without another request, after which a request no longer counts as recent.
const RECENT_PIECES: u32 = 4;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct DeletionScheduler {
    /// Messages of a small piece, and of one queue before it is another's turn.
    share: usize,
    /// Messages of a large piece.
    most: usize,
    line: VecDeque<EntityId>,
    /// How many of this turn's piece were looked at.
    taken: usize,
    /// Whether the last piece is not durable yet.
    is_pending: bool,
    /// Pieces for which other requests are still expected.
    busy_pieces_left: u32,
}

impl DeletionScheduler {
    /// For turns of so much work, of which the largest piece leaves a share to what is due besides.
    pub(crate) fn new(turn_work: usize) -> Self {
        let share = (turn_work / SHARE).max(1);
        Self {
            share,
            most: turn_work.saturating_sub(share).max(1),
            line: VecDeque::new(),
            taken: 0,
            is_pending: false,
            busy_pieces_left: 0,
        }
    }

    /// How many messages of one queue are deleted before it is another's turn.
    pub(crate) fn share(&self) -> usize {
        self.share
    }

    /// A command is there that is no part of a deletion.
    pub(crate) fn note_other_request(&mut self) {
        self.busy_pieces_left = RECENT_PIECES;
    }

    /// Puts a queue, which is not in the line, at its end.
    pub(crate) fn line_up(&mut self, entity: EntityId) {
        self.line.push_back(entity);
    }

    /// The queue whose turn it is, if one may go on.
    pub(crate) fn next(&mut self) -> Option<EntityId> {
        self.is_due().then(|| self.line.pop_front()).flatten()
    }

    /// Whether a queue may go on.
    pub(crate) fn is_due(&self) -> bool {
        !self.line.is_empty() && self.may_take()
    }

    /// Takes a message's place in this turn's piece, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let may = self.may_take();
        self.taken += usize::from(may);
        may
    }

    /// The end of a turn. Returns whether there was a piece in it.
    pub(crate) fn end_piece(&mut self) -> bool {
        let was_piece = std::mem::take(&mut self.taken) > 0;
        if was_piece {
            self.is_pending = true;
            self.busy_pieces_left = self.busy_pieces_left.saturating_sub(1);
        }
        was_piece
    }

    /// Whether a client has lately asked for something else.
    pub(crate) fn has_other_requests(&self) -> bool {
        self.busy_pieces_left > 0
    }

    /// The last piece is durable.
    pub(crate) fn go_on(&mut self) {
        self.is_pending = false;
    }

    fn may_take(&self) -> bool {
        let most = if self.has_other_requests() {
            self.share
        } else {
            self.most
        };
        !self.is_pending && self.taken < most
    }
}
