//! Callers: clients that come for one request each, as those of HTTP do.
//!
//! One asks for a message with a single credit and leaves with it, its lock unsettled, or has it
//! removed first; one that waits too long, or whose peer has gone, drains its credit and leaves.
//! Others bring a token that a caller was shown: they complete, unlock, renew or redrive by it, be
//! it in time or not.

use std::collections::BTreeMap;

use broker::{
    Access, Command, ConnectionId, Delivery, LockToken, Outcome, Output, ReceiveMode, ReceiverId,
    RedrivenMessage, RequestId, Subqueue, SubqueueId,
};
use bytes::Bytes;
use store::EntityId;

use super::World;
use super::queues::{Definition, FAST, What};
use crate::inbox::NamespaceIndex;
use crate::ledger::Ask;
use crate::message::MessageId;
use crate::violation::Violation;

/// Most callers that wait at a time.
const MOST_WAITING: usize = 5;
/// Most locks that callers know of.
const MOST_SHOWN: usize = 50;

/// A caller that waits for a message.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    entity: EntityId,
    subqueue: Subqueue,
    /// The message is to be removed when it is shown.
    removes: bool,
    /// What is dead there can be redriven.
    redrives: bool,
    /// The caller's peer has gone, so the caller would not take the message any more.
    is_abandoned: bool,
}

/// A lock that a caller was shown.
#[derive(Clone, Debug)]
struct Shown {
    from: Waiting,
    token: LockToken,
    id: MessageId,
    payload: Bytes,
}

/// What a caller asked of a lock.
#[derive(Clone, Copy, Debug)]
struct Asked {
    subqueue: Subqueue,
    id: MessageId,
    /// Neither renewals nor redrives end a message.
    ask: Option<Ask>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Callers {
    waiting: BTreeMap<ConnectionId, Waiting>,
    asked: BTreeMap<ConnectionId, Asked>,
    shown: Vec<Shown>,
}

impl World {
    /// A caller comes, has enough of waiting, or brings a lock back.
    pub(super) fn call(&mut self, n: NamespaceIndex) {
        if self.faults_stopped {
            return;
        }
        match self.rng.below(10) {
            0..=3 => self.call_for_message(n),
            4..=5 => self.stop_waiting(n),
            _ => self.bring_lock(n),
        }
    }

    fn call_for_message(&mut self, n: NamespaceIndex) {
        let all = self.definitions.iter().chain(&self.temporary);
        let all: Vec<_> = all.collect();
        let definition = all[self.rng.below(all.len())].clone();
        let subqueue = match self.rng.chance(500) {
            true => Subqueue::Main,
            false => Subqueue::DeadLetter,
        };
        let Some(entity) = self.namespaces[n].ledger.live(definition.path) else {
            return;
        };
        if !may_be_called(&definition, subqueue)
            || self.namespaces[n].callers.waiting.len() >= MOST_WAITING
        {
            return;
        }
        let waiting = Waiting {
            entity,
            subqueue,
            removes: self.rng.chance(300),
            redrives: can_be_redriven(&definition),
            is_abandoned: false,
        };
        let connection = self.new_caller(n);
        self.namespaces[n]
            .callers
            .waiting
            .insert(connection, waiting);
        let receiver = receiver_of(connection);
        let mode = ReceiveMode::PeekLock;
        self.server.inbox.push(
            n,
            Command::Attach {
                receiver,
                subqueue: SubqueueId { entity, subqueue },
                access: Access::Consume(mode),
                selector: None,
            },
        );
        self.credit(n, connection, false);
    }

    fn new_caller(&mut self, n: NamespaceIndex) -> ConnectionId {
        self.namespaces[n].next_connection()
    }

    fn credit(&mut self, n: NamespaceIndex, connection: ConnectionId, drain: bool) {
        self.server.inbox.push(
            n,
            Command::Credit {
                receiver: receiver_of(connection),
                limit: 1,
                drain,
            },
        );
    }

    /// One that waits has waited long enough, or its peer has gone.
    fn stop_waiting(&mut self, n: NamespaceIndex) {
        let count = self.namespaces[n].callers.waiting.len();
        if count == 0 {
            return;
        }
        let is_abandoned = self.rng.chance(500);
        let place = self.rng.below(count);
        let connection = self.namespaces[n]
            .callers
            .waiting
            .iter_mut()
            .nth(place)
            .map(|found| {
                found.1.is_abandoned |= is_abandoned;
                *found.0
            });
        if let Some(connection) = connection {
            self.credit(n, connection, true);
        }
    }

    /// All callers have waited long enough.
    pub(super) fn drain_callers(&mut self, n: NamespaceIndex) {
        for connection in self.namespaces[n]
            .callers
            .waiting
            .keys()
            .copied()
            .collect::<Vec<_>>()
        {
            self.credit(n, connection, true);
        }
        self.namespaces[n].callers.shown.clear();
    }

    /// The broker has died, and no caller is told anything.
    pub(super) fn forget_callers(&mut self, n: NamespaceIndex) {
        for asked in std::mem::take(&mut self.namespaces[n].callers)
            .asked
            .into_values()
        {
            if let Some(ask) = asked.ask {
                self.namespaces[n].ledger.answer_lost(asked.id, ask);
            }
        }
    }

    /// A caller brings a token, perhaps not for the last time.
    fn bring_lock(&mut self, n: NamespaceIndex) {
        let count = self.namespaces[n].callers.shown.len();
        if count == 0 {
            return;
        }
        let place = self.rng.below(count);
        let shown = match self.rng.chance(200) {
            true => self.namespaces[n].callers.shown[place].clone(),
            false => self.namespaces[n].callers.shown.swap_remove(place),
        };
        let connection = self.new_caller(n);
        match self.rng.below(10) {
            0..=3 if shown.from.subqueue != Subqueue::Main && shown.from.redrives => {
                self.redrive(n, connection, shown);
            }
            0..=4 => self.settle_by(n, connection, &shown, Ask::Complete),
            5..=6 => self.settle_by(n, connection, &shown, Ask::Abandon),
            7 => self.settle_by(n, connection, &shown, Ask::Release),
            _ => self.renew_by(n, connection, &shown),
        }
    }

    fn settle_by(&mut self, n: NamespaceIndex, connection: ConnectionId, shown: &Shown, ask: Ask) {
        self.namespaces[n].ledger.asked(shown.id, ask);
        let outcome = match ask {
            Ask::Complete => Outcome::Complete,
            Ask::Abandon => Outcome::abandon(Vec::new()),
            _ => Outcome::Release,
        };
        self.server.inbox.push(
            n,
            Command::Settle {
                request: Some(request_of(connection)),
                session: None,
                subqueue: SubqueueId {
                    entity: shown.from.entity,
                    subqueue: shown.from.subqueue,
                },
                token: shown.token,
                outcome,
            },
        );
        self.note_asked(n, connection, shown, Some(ask));
    }

    fn renew_by(&mut self, n: NamespaceIndex, connection: ConnectionId, shown: &Shown) {
        self.server.inbox.push(
            n,
            Command::Renew {
                request: request_of(connection),
                subqueue: SubqueueId {
                    entity: shown.from.entity,
                    subqueue: shown.from.subqueue,
                },
                tokens: vec![shown.token],
            },
        );
        self.note_asked(n, connection, shown, None);
    }

    fn redrive(&mut self, n: NamespaceIndex, connection: ConnectionId, shown: Shown) {
        self.note_asked(n, connection, &shown, None);
        self.server.inbox.push(
            n,
            Command::Redrive {
                request: request_of(connection),
                subqueue: SubqueueId {
                    entity: shown.from.entity,
                    subqueue: shown.from.subqueue,
                },
                token: shown.token,
                message: RedrivenMessage::Unchanged(shown.payload),
            },
        );
    }

    fn note_asked(
        &mut self,
        n: NamespaceIndex,
        connection: ConnectionId,
        shown: &Shown,
        ask: Option<Ask>,
    ) {
        let asked = Asked {
            subqueue: shown.from.subqueue,
            id: shown.id,
            ask,
        };
        self.namespaces[n].callers.asked.insert(connection, asked);
    }

    /// Takes in what is said to a caller; gives back what is for another client.
    ///
    /// # Errors
    /// I2, when a settlement is answered that did not take place.
    pub(super) fn called(
        &mut self,
        n: NamespaceIndex,
        output: Output,
    ) -> Result<Option<Output>, Violation> {
        let connection = output.connection();
        if let Some(waiting) = self.namespaces[n].callers.waiting.get(&connection).copied() {
            match output {
                Output::Deliver { delivery, .. } => self.shown(n, connection, waiting, &delivery),
                Output::Drained { .. } | Output::Evicted { .. } => self.leave(n, connection),
                _ => {}
            }
            return Ok(None);
        }
        let Some(asked) = self.namespaces[n].callers.asked.get(&connection).copied() else {
            return Ok(Some(output));
        };
        if let (Output::Settled { result, .. }, Some(ask)) = (&output, asked.ask) {
            let done = result.is_ok();
            self.namespaces[n]
                .ledger
                .answered(asked.id, asked.subqueue, ask, done)?;
        }
        self.leave(n, connection);
        Ok(None)
    }

    /// A message came for a caller that waits.
    fn shown(
        &mut self,
        n: NamespaceIndex,
        connection: ConnectionId,
        from: Waiting,
        delivery: &Delivery,
    ) {
        self.namespaces[n].callers.waiting.remove(&connection);
        self.namespaces[n].ledger.report.calls += 1;
        let Some(id) = self.namespaces[n].ledger.locked_by(delivery.token) else {
            return self.leave(n, connection);
        };
        let shown = Shown {
            from,
            token: delivery.token,
            id,
            payload: delivery.message.payload.clone(),
        };
        if from.is_abandoned {
            self.settle_by(n, connection, &shown, Ask::Release);
        } else if from.removes {
            self.settle_by(n, connection, &shown, Ask::Complete);
        } else {
            self.namespaces[n].callers.shown.push(shown);
            if self.namespaces[n].callers.shown.len() > MOST_SHOWN {
                self.namespaces[n].callers.shown.remove(0);
            }
            self.leave(n, connection);
        }
    }

    fn leave(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        self.namespaces[n].callers.waiting.remove(&connection);
        self.namespaces[n].callers.asked.remove(&connection);
        self.server.inbox.push(n, Command::Leave { connection });
    }
}

fn receiver_of(connection: ConnectionId) -> ReceiverId {
    ReceiverId {
        connection,
        link: 0,
    }
}

fn request_of(connection: ConnectionId) -> RequestId {
    RequestId {
        connection,
        token: 1,
    }
}

/// Sessions are not for callers; where messages are taken without locks, no caller locks one.
fn may_be_called(definition: &Definition, subqueue: Subqueue) -> bool {
    let is_main = subqueue == Subqueue::Main;
    let is_fast = definition.path == FAST;
    definition.is_open(subqueue) && !(is_main && (definition.settings.requires_session || is_fast))
}

/// What is redriven arrives there and stays. A copy would be a message like the one that it was
/// made of.
fn can_be_redriven(definition: &Definition) -> bool {
    let stays = definition.settings.forward_to.is_none() && definition.path != FAST;
    stays && matches!(definition.what, What::Queue)
}
