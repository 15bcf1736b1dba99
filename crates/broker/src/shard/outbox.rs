//! Outbox: outputs that wait for the commit they depend on.
//!
//! An output waits for the newest commit that there was when it was made, and outputs leave in the
//! order in which they were made. A delivery need not wait so long: it knows the commit that it
//! rests on, and once that is durable it passes what waits for later ones. It passes no other
//! delivery of its entity, since messages are handed out in order across receivers, and nothing
//! else that is said to its connection but answers to sends and settlements, which are about other
//! messages.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use store::{CommitId, EntityId};

use crate::api::id::ConnectionId;
use crate::api::output::Output;

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
    firm: FxHashMap<Matter, usize>,
}

impl Outbox {
    /// Keeps `outputs` until `commit`, the newest one, is durable. What rests on what is `durable`
    /// already is said; all that waited for it was said before.
    pub(crate) fn hold(
        &mut self,
        commit: CommitId,
        durable: CommitId,
        mut outputs: Vec<Output>,
        emitted: &mut Vec<Output>,
    ) {
        if commit <= durable {
            return append(emitted, &mut outputs);
        }
        let mut batch = Batch {
            commit,
            outputs: Vec::with_capacity(outputs.len()),
            firm: Vec::new(),
        };
        for output in outputs {
            if self.may_pass(&output, durable) {
                emitted.push(output);
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
    pub(crate) fn release(&mut self, durable: CommitId, emitted: &mut Vec<Output>) {
        while let Some(mut batch) = self.waiting.pop_front_if(|batch| batch.commit <= durable) {
            append(emitted, &mut batch.outputs);
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
                    && !is_firm(Matter::Deliveries(delivery.message.entity))
                    && !is_firm(Matter::Connection(receiver.connection))
            }
            _ => false,
        }
    }

    /// Notes that nothing may pass `output`, if so.
    fn count(&mut self, output: &Output, firm: &mut Vec<Matter>) {
        let matter = match output {
            Output::Sent { .. }
            | Output::Published { .. }
            | Output::Settled { .. }
            | Output::LockEnded { .. } => return,
            Output::Deliver { delivery, .. } => Matter::Deliveries(delivery.message.entity),
            other => Matter::Connection(other.connection()),
        };
        if firm.last() != Some(&matter) {
            firm.push(matter);
            *self.firm.entry(matter).or_default() += 1;
        }
    }

    fn forget(&mut self, matter: Matter) {
        let left = self.firm.get_mut(&matter);
        let left = left.expect("it was counted when its batch was held");
        *left -= 1;
        if *left == 0 {
            self.firm.remove(&matter);
        }
    }
}

fn append(emitted: &mut Vec<Output>, outputs: &mut Vec<Output>) {
    if emitted.is_empty() {
        std::mem::swap(emitted, outputs);
    } else {
        emitted.append(outputs);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use store::SequenceNumber;

    use super::*;
    use crate::api::id::{LockToken, ReceiverId, RequestId};
    use crate::api::output::{Browsed, Delivery, MessageState};
    use crate::api::time::Wall;

    const DURABLE: CommitId = CommitId(7);

    /// A delivery to a connection, named by its number.
    fn delivery(entity: u64, connection: u64, number: u64, rests_on: u64) -> Output {
        let message = Browsed {
            entity: EntityId(entity),
            number: SequenceNumber(number),
            enqueued_number: SequenceNumber(number),
            was_forwarded: false,
            was_scheduled: false,
            lock: None,
            enqueued: Wall(0),
            ttl_ms: None,
            expires: None,
            delivery_count: 0,
            acquired_count: 0,
            state: MessageState::Active,
            payload: Bytes::new(),
            additions: None,
        };
        Output::Deliver {
            receiver: receiver(connection),
            delivery: Box::new(Delivery {
                message,
                token: LockToken(number.into()),
                rests_on: CommitId(rests_on),
            }),
        }
    }

    fn receiver(connection: u64) -> ReceiverId {
        ReceiverId {
            connection: ConnectionId(connection),
            link: 0,
        }
    }

    fn settled(connection: u64) -> Output {
        let connection = ConnectionId(connection);
        Output::Settled {
            request: RequestId {
                connection,
                token: 0,
            },
            result: Ok(()),
        }
    }

    fn drained(connection: u64) -> Output {
        Output::Drained {
            receiver: receiver(connection),
        }
    }

    fn names(said: &[Output]) -> Vec<String> {
        let name = |output: &Output| match output {
            Output::Deliver { delivery, .. } => delivery.message.number.to_string(),
            Output::Settled { .. } => "settled".to_owned(),
            Output::Drained { .. } => "drained".to_owned(),
            other => format!("{other:?}"),
        };
        said.iter().map(name).collect()
    }

    /// What is said at once of turns that wait for one commit after the other, and what once all
    /// are durable.
    fn said(turns: Vec<Vec<Output>>) -> (Vec<String>, Vec<String>) {
        let mut outbox = Outbox::default();
        let mut at_once = Vec::new();
        let mut commit = DURABLE;
        for outputs in turns {
            commit = commit.next();
            outbox.hold(commit, DURABLE, outputs, &mut at_once);
        }
        let mut later = Vec::new();
        outbox.release(commit, &mut later);
        assert!(outbox.firm.is_empty() && outbox.waiting.is_empty());
        (names(&at_once), names(&later))
    }

    #[test]
    fn a_delivery_passes_answers_once_what_it_rests_on_is_durable() {
        let turn = vec![
            settled(1),
            delivery(1, 1, 5, 7),
            delivery(1, 1, 6, 8),
            settled(1),
        ];
        let (at_once, later) = said(vec![turn]);
        assert_eq!(at_once, ["#5"]);
        assert_eq!(later, ["settled", "#6", "settled"]);
    }

    #[test]
    fn deliveries_of_an_entity_keep_their_order_whoever_gets_them() {
        let turns = vec![
            vec![
                delivery(1, 1, 5, 8),
                delivery(1, 2, 6, 7),
                delivery(2, 1, 50, 7),
            ],
            vec![delivery(1, 1, 7, 0), delivery(2, 2, 51, 0)],
        ];
        let (at_once, later) = said(turns);
        assert_eq!(at_once, ["#50", "#51"]);
        assert_eq!(later, ["#5", "#6", "#7"]);
    }

    #[test]
    fn a_delivery_does_not_pass_what_its_receiver_is_told() {
        let turns = vec![
            vec![drained(1), delivery(1, 2, 5, 0)],
            vec![delivery(1, 1, 6, 0), delivery(1, 2, 7, 0)],
        ];
        let (at_once, later) = said(turns);
        assert_eq!(at_once, ["#5"]);
        assert_eq!(later, ["drained", "#6", "#7"]);
    }

    #[test]
    fn what_was_passed_no_longer_is_once_it_was_said() {
        let mut outbox = Outbox::default();
        let mut said = Vec::new();
        let next = DURABLE.next();
        outbox.hold(next, DURABLE, vec![drained(1)], &mut said);
        outbox.release(DURABLE, &mut said);
        assert_eq!(names(&said), [""; 0]);
        outbox.release(next, &mut said);
        outbox.hold(next.next(), next, vec![delivery(1, 1, 5, 7)], &mut said);
        assert_eq!(names(&said), ["drained", "#5"]);
    }
}
