//! Queues that come, change and go at random, under everything that may be under way with them.
//!
//! What must hold: every request is answered once, with late reads in any order; no receiver is
//! given a message of a queue that is gone or refuses receivers; every receiver hears once that it
//! has to go; counters are those of a recount; and a queue that is gone has left nothing behind.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Access, BrokerSettings, Command, ConnectionId, Ensured, Incoming, LockToken, Operation, Order,
    Outcome, Output, QueueSettings, ReceiveMode, ReceiverId, RefusalReport, RequestId,
    SessionFilter, Status, Subqueue, SubqueueId, TransactionId, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{EntityId, Part, SequenceNumber};

use crate::world::{World, administer};

const PATHS: [&str; 4] = ["a", "b", "c", "d"];
const RECEIVERS: u64 = 5;
const IDLE_MS: u64 = 60_000;

#[derive(Clone, Debug)]
enum Op {
    Ensure {
        path: usize,
        status: usize,
        idle: bool,
    },
    Remove(usize),
    Send {
        to: usize,
        count: usize,
        later: Option<u64>,
        id: u8,
    },
    Attach {
        receiver: u64,
        to: usize,
        dead: bool,
    },
    Credit(u64, u32),
    Detach(u64),
    Disconnect(u64),
    Settle(usize, usize),
    Ask {
        to: usize,
        what: usize,
        number: u64,
    },
    Transact {
        to: usize,
        what: usize,
    },
    Commit,
    Answer(usize),
    AnswerAll,
    Wait(u64),
    Jump(i64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let path = || 0..PATHS.len();
    let later = prop_oneof![3 => Just(None), 1 => (1..20_000_u64).prop_map(Some)];
    let status = prop_oneof![3 => Just(0), 1 => 1..4_usize];
    prop_oneof![
        5 => (path(), status, any::<bool>())
            .prop_map(|(path, status, idle)| Op::Ensure { path, status, idle }),
        3 => path().prop_map(Op::Remove),
        10 => (path(), 1..4_usize, later, any::<u8>())
            .prop_map(|(to, count, later, id)| Op::Send { to, count, later, id }),
        4 => (0..RECEIVERS, path(), any::<bool>())
            .prop_map(|(receiver, to, dead)| Op::Attach { receiver, to, dead }),
        6 => (0..RECEIVERS, 0..5_u32).prop_map(|(receiver, more)| Op::Credit(receiver, more)),
        1 => (0..RECEIVERS).prop_map(Op::Detach),
        1 => (0..RECEIVERS).prop_map(Op::Disconnect),
        8 => (any::<usize>(), 0..4_usize).prop_map(|(which, verb)| Op::Settle(which, verb)),
        12 => (path(), 0..6_usize, 1..6_u64)
            .prop_map(|(to, what, number)| Op::Ask { to, what, number }),
        4 => (path(), 0..3_usize).prop_map(|(to, what)| Op::Transact { to, what }),
        2 => Just(Op::Commit),
        5 => any::<usize>().prop_map(Op::Answer),
        1 => Just(Op::AnswerAll),
        3 => (1..30_000_u64).prop_map(Op::Wait),
        1 => (-100_000..100_000_i64).prop_map(Op::Jump),
        1 => Just(Op::Restart),
    ]
}

/// Each path has a kind of its own: plain, with sessions, with a history of ids, forwarding.
fn settings(path: usize, status: usize, idle: bool) -> QueueSettings {
    let status = [
        Status::Active,
        Status::Disabled,
        Status::SendDisabled,
        Status::ReceiveDisabled,
    ][status];
    QueueSettings {
        lock_duration: 5_000,
        requires_session: path == 1,
        requires_duplicate_detection: path == 2,
        forward_to: (path == 3).then(|| PATHS[2].to_owned()),
        status,
        auto_delete_on_idle: if idle { IDLE_MS } else { u64::MAX },
        ..QueueSettings::default()
    }
}

#[derive(Default)]
struct Model {
    /// Those that there are, by path.
    queues: BTreeMap<usize, (EntityId, QueueSettings)>,
    /// Ids that are not to be seen again.
    gone: BTreeSet<EntityId>,
    receivers: BTreeMap<ReceiverId, EntityId>,
    limits: BTreeMap<u64, u32>,
    asked: BTreeSet<RequestId>,
    /// What sends were for.
    sends: BTreeMap<RequestId, EntityId>,
    tokens: Vec<(EntityId, LockToken)>,
    transaction: Option<TransactionId>,
    count: u64,
}

impl Model {
    fn request(&mut self, connection: u64) -> RequestId {
        self.count += 1;
        let request = RequestId {
            connection: ConnectionId(connection),
            token: self.count,
        };
        self.asked.insert(request);
        request
    }

    /// The queue of a path; one that never was if there is none.
    fn entity(&self, path: usize) -> EntityId {
        let queue = self.queues.get(&path);
        queue.map_or(EntityId(999), |(id, _)| *id)
    }

    fn hear(&mut self, output: Output) {
        match output {
            Output::Deliver { receiver, delivery } => {
                let entity = self.receivers[&receiver];
                let lets = |(_, queue): &&(EntityId, QueueSettings)| queue.status.allows_receive();
                let queue = self.queues.values().find(|(id, _)| *id == entity);
                assert!(queue.as_ref().is_some_and(lets), "a delivery of {entity:?}");
                if delivery.lock_ms().is_some() {
                    self.tokens.push((entity, delivery.token));
                }
            }
            Output::SessionAccepted { receiver, .. } => {
                assert!(self.receivers.contains_key(&receiver));
            }
            Output::SessionRefused { receiver, .. }
            | Output::SessionLost { receiver }
            | Output::Evicted { receiver, .. } => {
                let known = self.receivers.remove(&receiver);
                assert!(
                    known.is_some(),
                    "{receiver:?} hears twice that it has to go"
                );
            }
            Output::EntityChanged(change) => {
                let path = PATHS.iter().position(|path| *path == change.path).unwrap();
                assert!(!self.gone.contains(&change.id), "an id comes back");
                match change.settings {
                    Some(settings) => drop(self.queues.insert(path, (change.id, settings))),
                    None => {
                        let (id, _) = self.queues.remove(&path).unwrap();
                        assert_eq!(id, change.id);
                        assert!(
                            self.receivers.values().all(|at| *at != id),
                            "a receiver was not told"
                        );
                        self.gone.insert(id);
                    }
                }
            }
            Output::Declared { request, result } => {
                self.answered(request);
                self.transaction = result.ok();
            }
            Output::NodeOpened { .. }
            | Output::NodeClosed { .. }
            | Output::Subscribed { .. }
            | Output::Dropped { .. }
            | Output::Ended { .. }
            | Output::CreditWithheld { .. } => {
                panic!("neither a dynamic node nor a subscription was asked for");
            }
            Output::Drained { .. }
            | Output::DeliveryTimedOut { .. }
            | Output::LockEnded { .. }
            | Output::Activity { .. }
            | Output::TimedOut { .. }
            | Output::RulesChanged(..)
            | Output::NamespaceChanged(_) => {}
            Output::Sent {
                request, result, ..
            } => {
                self.answered(request);
                if let Some(entity) = self.sends.remove(&request).filter(|_| result.is_ok()) {
                    let lets = |(_, queue): &(EntityId, QueueSettings)| queue.status.allows_send();
                    let queue = self.queues.values().find(|(id, _)| *id == entity);
                    assert!(queue.is_some_and(lets), "a message for {entity:?}");
                }
            }
            Output::Administered { request, .. }
            | Output::Published { request, .. }
            | Output::Settled { request, .. }
            | Output::Renewed { request, .. }
            | Output::Browsed { request, .. }
            | Output::Deferred { request, .. }
            | Output::Deleted { request, .. }
            | Output::Cancelled { request, .. }
            | Output::Discharged { request, .. }
            | Output::SessionRenewed { request, .. }
            | Output::SessionState { request, .. }
            | Output::SessionStateSet { request, .. }
            | Output::RuleChanged { request, .. }
            | Output::Rules { request, .. }
            | Output::Sessions { request, .. }
            | Output::SenderAttached { request, .. } => self.answered(request),
        }
    }

    fn answered(&mut self, request: RequestId) {
        assert!(self.asked.remove(&request), "{request:?} is answered twice");
    }
}

struct Run {
    world: World,
    model: Model,
}

impl Run {
    fn new(settings: BrokerSettings) -> Self {
        let mut run = Self {
            world: World::empty(settings),
            model: Model::default(),
        };
        for path in 0..PATHS.len() {
            run.apply(&Op::Ensure {
                path,
                status: 0,
                idle: false,
            });
        }
        run
    }

    fn turn(&mut self, command: Command) {
        for output in self.world.turn(command) {
            self.model.hear(output);
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Ensure { path, status, idle } => {
                let request = self.model.request(0);
                self.turn(administer(
                    request,
                    Order::ensure(vec![Ensured::Queue {
                        path: PATHS[path].to_owned(),
                        settings: settings(path, status, idle),
                    }]),
                ));
            }
            Op::Remove(path) => {
                let request = self.model.request(0);
                let path = PATHS[path].to_owned();
                self.turn(administer(request, Order::Remove { path }));
            }
            Op::Send {
                to,
                count,
                later,
                id,
            } => self.send(to, count, later, id),
            Op::Attach { receiver, to, dead } => self.attach(receiver, to, dead),
            Op::Credit(receiver, more) => {
                let limit = self.model.limits.entry(receiver).or_default();
                *limit += more;
                let limit = *limit;
                self.turn(Command::Credit {
                    receiver: name(receiver),
                    limit,
                    drain: more == 4,
                });
            }
            Op::Detach(receiver) => {
                self.model.receivers.remove(&name(receiver));
                let receiver = name(receiver);
                self.turn(Command::Detach { receiver });
            }
            Op::Disconnect(receiver) => {
                self.model.receivers.remove(&name(receiver));
                let connection = name(receiver).connection;
                self.turn(Command::Disconnect { connection });
            }
            Op::Settle(which, verb) => self.settle(which, verb),
            Op::Ask { to, what, number } => self.ask(to, what, number),
            Op::Transact { to, what } => self.transact(to, what),
            Op::Commit => {
                if let Some(transaction) = self.model.transaction.take() {
                    let request = self.model.request(90);
                    self.turn(Command::Discharge {
                        request,
                        transaction,
                        fail: false,
                    });
                }
            }
            Op::Answer(which) => {
                if let Some(answer) = self.world.answer(which) {
                    self.turn(answer);
                }
            }
            Op::AnswerAll => self.answer_all(),
            Op::Wait(ms) => self.wait(ms),
            Op::Jump(ms) => {
                self.world.jumped += ms;
                self.turn(Command::Tick);
            }
            Op::Restart => {
                self.world.restart();
                self.model.receivers.clear();
                self.model.limits.clear();
                self.model.asked.clear();
                self.model.transaction = None;
            }
        }
    }

    fn send(&mut self, to: usize, count: usize, later: Option<u64>, id: u8) {
        let request = self.model.request(80);
        let entity = self.model.entity(to);
        self.model.sends.insert(request, entity);
        let due = later.map(|later| Wall(self.world.now().wall.0 + later));
        let message = |index: usize| Incoming {
            payload: Bytes::from(vec![b'm'; index + 1]),
            message_id: Some(Bytes::from(vec![id % 16])),
            session_id: Some(Bytes::from(vec![b's', id % 3])),
            scheduled: due,
            ..Incoming::default()
        };
        self.turn(Command::Send {
            request,
            entity,
            messages: (0..count).map(message).collect(),
        });
    }

    fn attach(&mut self, receiver: u64, to: usize, dead: bool) {
        let entity = self.model.entity(to);
        let (receiver, mode) = (name(receiver), ReceiveMode::PeekLock);
        // Whatever it was before, it is that no more.
        self.model.receivers.insert(receiver, entity);
        self.model.limits.remove(&receiver.connection.0);
        self.turn(if to == 1 && !dead {
            let session = match receiver.connection.0 % 2 {
                0 => SessionFilter::Next { timeout_ms: 10_000 },
                _ => SessionFilter::ById(Bytes::from_static(b"s\0")),
            };
            Command::AcceptSession {
                receiver,
                entity,
                mode,
                session,
            }
        } else {
            Command::Attach {
                receiver,
                subqueue: SubqueueId {
                    entity,
                    subqueue: subqueue(dead),
                },
                access: Access::Consume(mode),
                selector: None,
            }
        });
    }

    fn settle(&mut self, which: usize, verb: usize) {
        let Some(index) = which.checked_rem(self.model.tokens.len()) else {
            return;
        };
        let (entity, token) = self.model.tokens[index];
        let changes = Vec::new();
        let outcome = match verb {
            0 => Outcome::Complete,
            1 => Outcome::abandon(changes),
            2 => Outcome::Defer { changes },
            _ => Outcome::DeadLetter { changes },
        };
        let request = self.model.request(81);
        self.turn(Command::Settle {
            request: Some(request),
            session: None,
            subqueue: SubqueueId {
                entity,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
    }

    fn ask(&mut self, to: usize, what: usize, number: u64) {
        let entity = self.model.entity(to);
        let request = self.model.request(82);
        let session = Bytes::from_static(b"s\0");
        let (number, subqueue) = (SequenceNumber(number), subqueue(number.is_multiple_of(4)));
        let command = match what {
            0 => Command::Peek {
                request,
                subqueue: SubqueueId { entity, subqueue },
                state: None,
                from: number,
                count: 5,
                max_bytes: 1_000,
            },
            1 => Command::ReceiveDeferred {
                request,
                session: None,
                subqueue: SubqueueId {
                    entity,
                    subqueue: Subqueue::Main,
                },
                numbers: vec![number],
                mode: ReceiveMode::ReceiveAndDelete,
                max_bytes: 1_000,
            },
            2 => Command::CancelScheduled {
                request,
                entity,
                numbers: vec![number],
            },
            3 => Command::PeekSession {
                request,
                entity,
                session,
                from: number,
                count: 5,
                max_bytes: 1_000,
            },
            4 => Command::ListSessions {
                request,
                entity,
                updated_after: None,
                skip: 0,
                top: 10,
            },
            _ => {
                // The receiver that holds the session by its id.
                self.model.asked.remove(&request);
                let request = self.model.request(1);
                Command::SetSessionState {
                    request,
                    entity,
                    session,
                    state: Some(Bytes::from_static(b"state")),
                }
            }
        };
        self.turn(command);
    }

    fn transact(&mut self, to: usize, what: usize) {
        let Some(transaction) = self.model.transaction else {
            let request = self.model.request(90);
            return self.turn(Command::Declare {
                request,
                namespace: store::NamespaceId(0),
                coordinator: 0,
            });
        };
        let entity = self.model.entity(to);
        let request = self.model.request(90);
        let message = Incoming {
            payload: Bytes::from_static(b"transacted"),
            message_id: Some(Bytes::from_static(b"id")),
            session_id: Some(Bytes::from_static(b"s\0")),
            ..Incoming::default()
        };
        let operation = match what {
            0 => Operation::Send {
                entity,
                messages: vec![message],
            },
            1 => Operation::Cancel {
                entity,
                numbers: vec![SequenceNumber(1)],
            },
            _ => {
                let last = self.model.tokens.last().copied();
                let (entity, token) = last.unwrap_or((entity, LockToken(1)));
                Operation::Settle {
                    session: None,
                    subqueue: SubqueueId {
                        entity,
                        subqueue: Subqueue::Main,
                    },
                    tokens: vec![token],
                    outcome: Outcome::Complete,
                    on_rollback: None,
                }
            }
        };
        self.turn(Command::Enlist {
            request,
            transaction,
            operation: Box::new(operation),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    }

    fn wait(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.turn(Command::Tick);
            self.answer_all();
        }
    }

    fn answer_all(&mut self) {
        while let Some(answer) = self.world.answer(0) {
            self.turn(answer);
        }
    }

    fn audit(&self) {
        self.world.audit();
        let queues = &self.model.queues;
        let live: BTreeSet<_> = queues.values().map(|(id, _)| *id).collect();
        let found: BTreeSet<_> = self.world.shard.broker.queues().map(|q| q.id).collect();
        assert_eq!(live, found);
        self.world.disk.with_current(|image| {
            let stored: BTreeSet<_> = image.entities.keys().copied().collect();
            assert_eq!(live, stored);
            let owners = image.messages.keys().map(|(id, _, _)| *id);
            let owners = owners.chain(image.bodies.keys().map(|(id, _)| *id));
            let owners = owners.chain(image.heads.keys().copied());
            let owners = owners.chain(image.patches.keys().map(|(id, _)| *id));
            let owners = owners.chain(image.delivery_counts.keys().map(|(id, _)| *id));
            let owners = owners.chain(image.expiries.keys().map(|(id, _, _)| *id));
            let owners = owners.chain(image.entries.keys().map(|(id, _, _)| *id));
            for owner in owners {
                assert!(live.contains(&owner), "{owner:?} has left something behind");
            }
            for queue in self.world.shard.broker.queues() {
                let rows = image.messages.keys().filter(|(id, _, _)| *id == queue.id);
                let count = |parts: &[Part]| {
                    let rows = rows.clone();
                    rows.filter(|(_, part, _)| parts.contains(part)).count() as u64
                };
                assert_eq!(queue.active, count(&[Part::Active]));
                assert_eq!(queue.scheduled, count(&[Part::Scheduled]));
                assert_eq!(queue.deferred, count(&[Part::Deferred]));
                let dead = [Part::DeadLetter, Part::DeadLetterDeferred];
                assert_eq!(queue.dead_letter, count(&dead));
                let transfer = [Part::Transfer, Part::TransferDeferred];
                assert_eq!(queue.transfer_dead_letter, count(&transfer));
            }
        });
    }
}

fn name(receiver: u64) -> ReceiverId {
    ReceiverId {
        connection: ConnectionId(receiver + 1),
        link: 0,
    }
}

fn subqueue(dead: bool) -> Subqueue {
    if dead {
        Subqueue::DeadLetter
    } else {
        Subqueue::Main
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn queues_may_come_change_and_go_at_any_moment(
        ops in prop::collection::vec(op(), 1..200),
        window in 2..8_usize,
    ) {
        let mut run = Run::new(BrokerSettings {
            window,
            ..BrokerSettings::default()
        });
        for op in &ops {
            run.apply(op);
        }
        run.audit();
        run.answer_all();
        run.audit();
        prop_assert!(
            run.model.asked.is_empty(),
            "nobody answers {:?}",
            run.model.asked
        );
    }
}
