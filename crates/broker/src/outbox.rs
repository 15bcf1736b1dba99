//! Outbox: what was decided to be said, waiting for the commit it rests on.
//!
//! Outputs leave in the order in which they were made, and none before its commit is durable.

use std::collections::VecDeque;

use store::CommitId;

use crate::output::Output;

/// Everything that rests on one commit.
#[derive(Debug)]
struct Batch {
    commit: CommitId,
    outputs: Vec<Output>,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Batch>,
}

impl Outbox {
    /// Keeps `outputs` until `commit`, the newest one, is durable.
    pub(crate) fn hold(&mut self, commit: CommitId, outputs: Vec<Output>) {
        if outputs.is_empty() {
            return;
        }
        self.waiting.push_back(Batch { commit, outputs });
    }

    /// Hands out what rests on `durable` or earlier commits.
    pub(crate) fn release(&mut self, durable: CommitId, say: &mut Vec<Output>) {
        while let Some(mut batch) = self.waiting.pop_front_if(|batch| batch.commit <= durable) {
            if say.is_empty() {
                *say = batch.outputs;
            } else {
                say.append(&mut batch.outputs);
            }
        }
    }
}
