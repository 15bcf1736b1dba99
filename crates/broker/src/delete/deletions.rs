//! Deletions: those of one queue, in the order in which they were asked for.
//!
//! The first one goes on when its queue's turn has come, and stays first until it is answered. The
//! deletion scheduler says whose turn it is; a queue stands in its line once.

use std::collections::VecDeque;

use store::EntityId;

use crate::context::Context;
use crate::delete::deletion::Deletion;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    waiting: VecDeque<Deletion>,
    /// Whether the queue waits for its turn to delete.
    is_in_line: bool,
}

impl Deletions {
    /// Another one comes.
    pub(super) fn add(&mut self, deletion: Deletion) {
        self.waiting.push_back(deletion);
    }

    /// The one that goes on next.
    pub(crate) fn first(&self) -> Option<&Deletion> {
        self.waiting.front()
    }

    /// Takes out the first one, to go on with it.
    pub(crate) fn take_first(&mut self) -> Option<Deletion> {
        self.waiting.pop_front()
    }

    /// The first one has to wait.
    pub(crate) fn put_back(&mut self, deletion: Deletion) {
        self.waiting.push_front(deletion);
    }

    /// The queue waits for its turn.
    pub(super) fn line_up(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_in_line, true) {
            cx.shared.deletion_scheduler.line_up(entity);
        }
    }

    /// The queue's turn has come.
    pub(super) fn leave_line(&mut self) {
        self.is_in_line = false;
    }
}
