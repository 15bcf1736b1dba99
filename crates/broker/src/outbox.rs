//! Outbox: what was decided to be said, waiting for the commit it rests on.
//!
//! An output waits for the newest commit that there was when it was made, and outputs leave in the order in
//! which they were made. A delivery need not wait so long: it knows the commit that it rests on, and once that
//! is durable it passes what waits for later ones. It passes no other delivery of its entity, since messages
//! are handed out in order whoever gets them, and nothing else that is said to its connection but answers to
//! sends and settlements, which are about other messages.

use std::collections::{HashMap, VecDeque};

use store::{CommitId, EntityId};

use crate::id::ConnectionId;
use crate::output::Output;

/// Within which outputs may not pass each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Matter {
    Deliveries(EntityId),
    Connection(ConnectionId),
}

/// Everything that waits for one commit.
#[derive(Debug)]
struct Batch {
    commit: CommitId,
    outputs: Vec<Output>,
    /// What those are about that may not be passed, each time that it is something else.
    firm: Vec<Matter>,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Batch>,
    /// How often a matter is in that list of any batch.
    firm: HashMap<Matter, usize>,
}

impl Outbox {
    /// Keeps `outputs` until `commit`, the newest one, is durable. What rests on what is `durable` already is
    /// said; all that waited for it was said before.
    pub(crate) fn hold(
        &mut self,
        commit: CommitId,
        durable: CommitId,
        mut outputs: Vec<Output>,
        say: &mut Vec<Output>,
    ) {
        if commit <= durable {
            return append(say, &mut outputs);
        }
        let mut batch = Batch {
            commit,
            outputs: Vec::with_capacity(outputs.len()),
            firm: Vec::new(),
        };
        for output in outputs {
            if self.may_pass(&output, durable) {
                say.push(output);
            } else {
                self.count(&output, &mut batch.firm);
                batch.outputs.push(output);
            }
        }
        if !batch.outputs.is_empty() {
            self.waiting.push_back(batch);
        }
    }

    /// Hands out what waited for `durable` or earlier commits.
    pub(crate) fn release(&mut self, durable: CommitId, say: &mut Vec<Output>) {
        while let Some(mut batch) = self.waiting.pop_front_if(|batch| batch.commit <= durable) {
            append(say, &mut batch.outputs);
            for matter in batch.firm {
                self.forget(matter);
            }
        }
    }

    fn may_pass(&self, output: &Output, durable: CommitId) -> bool {
        match output {
            Output::Deliver { receiver, delivery } => {
                let is_firm = |matter| self.firm.contains_key(&matter);
                delivery.rests_on <= durable
                    && !is_firm(Matter::Deliveries(delivery.entity))
                    && !is_firm(Matter::Connection(receiver.connection))
            }
            _ => false,
        }
    }

    /// Notes that nothing may pass `output`, if so.
    fn count(&mut self, output: &Output, firm: &mut Vec<Matter>) {
        let matter = match output {
            Output::Sent { .. } | Output::Settled { .. } => return,
            Output::Deliver { delivery, .. } => Matter::Deliveries(delivery.entity),
            other => Matter::Connection(other.connection()),
        };
        if firm.last() != Some(&matter) {
            firm.push(matter);
            *self.firm.entry(matter).or_default() += 1;
        }
    }

    fn forget(&mut self, matter: Matter) {
        if let Some(left) = self.firm.get_mut(&matter) {
            *left -= 1;
            if *left == 0 {
                self.firm.remove(&matter);
            }
        }
    }
}

fn append(say: &mut Vec<Output>, outputs: &mut Vec<Output>) {
    if say.is_empty() {
        std::mem::swap(say, outputs);
    } else {
        say.append(outputs);
    }
}
