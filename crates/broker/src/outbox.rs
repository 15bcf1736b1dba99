//! Outbox: what was decided to be said, waiting for the commit it rests on.
//!
//! Outputs leave in the order in which they were made, and none before its commit is durable.

use std::collections::VecDeque;

use store::CommitId;

use crate::output::Output;

/// Everything that rests on one commit, and its messages' bytes.
#[derive(Debug)]
struct Batch {
    commit: CommitId,
    outputs: Vec<Output>,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Batch>,
    bytes: usize,
}

impl Outbox {
    /// Keeps `outputs` until `commit`, the newest one, is durable. `bytes` were submitted with it.
    pub(crate) fn hold(&mut self, commit: CommitId, outputs: Vec<Output>, bytes: usize) {
        if outputs.is_empty() && bytes == 0 {
            return;
        }
        self.bytes += bytes;
        self.waiting.push_back(Batch {
            commit,
            outputs,
            bytes,
        });
    }

    /// Hands out what rests on `durable` or earlier commits.
    pub(crate) fn release(&mut self, durable: CommitId, say: &mut Vec<Output>) {
        while let Some(mut batch) = self.waiting.pop_front_if(|batch| batch.commit <= durable) {
            self.bytes -= batch.bytes;
            if say.is_empty() {
                *say = batch.outputs;
            } else {
                say.append(&mut batch.outputs);
            }
        }
    }

    /// Bytes of messages that were submitted and are not durable.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.bytes
    }
}
