//! Transactions at random, with crashes: a model that hears of commits knows what is there.
//!
//! The disk becomes durable in steps, and the shard has its say after each. So what has been
//! heard is exactly what a crash leaves: of a transaction all or nothing. Where everything is
//! durable at once the model also knows every answer beforehand.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Access, BrokerSettings, Command, ConnectionId, Ensured, Incoming, LockToken, Operation,
    Outcome, Output, QueueSettings, ReceiveMode, ReceiverId, RefusalReport, RequestId, SettleError,
    Subqueue, SubqueueId, TransactionError, TransactionId, TransactionSettings, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CommitId, EntityId, Part, SequenceNumber};

use crate::script::START;
use crate::world::{QUEUE, World, ensure};

/// A second queue, which detects duplicates and has no receiver.
const OTHER: EntityId = EntityId(2);
/// A third one, of which everything is scheduled and never due.
const LATER: EntityId = EntityId(3);
const LOCK_MS: u64 = 1_000;
const LIFE_MS: u64 = 2_500;
/// The only connection.
const CONNECTION: ConnectionId = ConnectionId(1);

#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    SendOther(Vec<u8>),
    Credit(u32),
    Declare,
    EnlistSend {
        which: usize,
        ids: Vec<u8>,
    },
    EnlistSettle {
        which: usize,
        token: usize,
        verb: usize,
    },
    Settle {
        token: usize,
        verb: usize,
    },
    Renew(usize),
    /// Of the queue that schedules: a send for later.
    EnlistSchedule {
        which: usize,
        count: usize,
    },
    EnlistCancel {
        which: usize,
        number: usize,
    },
    Cancel(usize),
    Discharge {
        which: usize,
        fail: bool,
    },
    End,
    Answer(usize),
    Wait(u64),
    Sync(u64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let ids = || prop::collection::vec(0..12_u8, 1..4);
    let token = || prop_oneof![3 => 0..4_usize, 1 => any::<usize>()];
    prop_oneof![
        5 => (1..4_usize).prop_map(Op::Send),
        3 => ids().prop_map(Op::SendOther),
        5 => (1..5_u32).prop_map(Op::Credit),
        6 => Just(Op::Declare),
        8 => (any::<usize>(), ids()).prop_map(|(which, ids)| Op::EnlistSend { which, ids }),
        10 => (any::<usize>(), token(), 0..5_usize)
            .prop_map(|(which, token, verb)| Op::EnlistSettle { which, token, verb }),
        3 => (token(), 0..5_usize).prop_map(|(token, verb)| Op::Settle { token, verb }),
        2 => token().prop_map(Op::Renew),
        4 => (any::<usize>(), 1..3_usize)
            .prop_map(|(which, count)| Op::EnlistSchedule { which, count }),
        4 => (any::<usize>(), 0..5_usize)
            .prop_map(|(which, number)| Op::EnlistCancel { which, number }),
        2 => (0..5_usize).prop_map(Op::Cancel),
        8 => (any::<usize>(), prop::bool::weighted(0.3))
            .prop_map(|(which, fail)| Op::Discharge { which, fail }),
        1 => Just(Op::End),
        6 => any::<usize>().prop_map(Op::Answer),
        4 => (1..900_u64).prop_map(Op::Wait),
        6 => (1..4_u64).prop_map(Op::Sync),
        1 => Just(Op::Crash),
    ]
}

/// What a request was about.
#[derive(Clone, Debug)]
enum Asked {
    Send(usize),
    SendOther(Vec<u8>),
    Declare,
    EnlistSend(TransactionId, Vec<u8>),
    EnlistSettle(TransactionId, usize, usize),
    Settle(usize, usize),
    Renew(usize),
    EnlistSchedule(TransactionId, usize),
    EnlistCancel(TransactionId, u64),
    Cancel(u64),
    Discharge(TransactionId, bool),
}

/// A lock that was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    number: u64,
    token: LockToken,
    until: u64,
    over: bool,
}

#[derive(Clone, Debug)]
enum Held {
    Send(Vec<u8>),
    Settle { given: usize, verb: usize },
    Schedule(std::ops::Range<u64>),
    Cancel(u64),
}

struct Model {
    world: World,
    /// Everything is durable at once.
    at_once: bool,
    messages: BTreeMap<u64, Part>,
    next: u64,
    /// Ids in the other queue, in order.
    other: Vec<u8>,
    /// Numbers that are scheduled, and all that ever were promised.
    scheduled: BTreeSet<u64>,
    promised: Vec<u64>,
    given: Vec<Given>,
    limit: u32,
    asked: Vec<Asked>,
    open: BTreeMap<TransactionId, Vec<Held>>,
    /// All that were ever declared.
    declared: Vec<TransactionId>,
}

impl Model {
    fn new(settings: BrokerSettings, at_once: bool) -> Self {
        let queue = QueueSettings {
            lock_duration: LOCK_MS,
            max_delivery_count: 1_000,
            ..QueueSettings::default()
        };
        let other = QueueSettings {
            requires_duplicate_detection: true,
            ..QueueSettings::default()
        };
        let mut world = World::new(settings, queue);
        world.turn(ensure(Ensured::Queue {
            path: "other".to_owned(),
            settings: other,
        }));
        world.turn(ensure(Ensured::Queue {
            path: "later".to_owned(),
            settings: QueueSettings::default(),
        }));
        world.disk.set_automatic(at_once);
        let mut model = Self {
            world,
            at_once,
            messages: BTreeMap::new(),
            next: 1,
            other: Vec::new(),
            scheduled: BTreeSet::new(),
            promised: Vec::new(),
            given: Vec::new(),
            limit: 0,
            asked: Vec::new(),
            open: BTreeMap::new(),
            declared: Vec::new(),
        };
        model.attach();
        model
    }

    fn attach(&mut self) {
        self.limit = 0;
        self.turn(Command::Attach {
            receiver: receiver(),
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Send(count) => {
                let request = self.ask(Asked::Send(*count));
                self.turn(Command::Send {
                    request,
                    entity: QUEUE,
                    messages: vec![message(None); *count],
                });
            }
            Op::SendOther(ids) => {
                let request = self.ask(Asked::SendOther(ids.clone()));
                self.turn(Command::Send {
                    request,
                    entity: OTHER,
                    messages: ids.iter().map(|id| message(Some(*id))).collect(),
                });
            }
            Op::Credit(more) => {
                self.limit += more;
                self.turn(Command::Credit {
                    receiver: receiver(),
                    limit: self.limit,
                    drain: false,
                });
            }
            Op::Declare => {
                let request = self.ask(Asked::Declare);
                self.turn(Command::Declare {
                    request,
                    namespace: store::NamespaceId(0),
                    coordinator: 7,
                });
            }
            Op::EnlistSend { which, ids } => self.enlist_send(*which, ids),
            Op::EnlistSettle { which, token, verb } => self.enlist_settle(*which, *token, *verb),
            Op::Settle { token, verb } => self.settle(*token, *verb),
            Op::Renew(token) => self.renew(*token),
            Op::EnlistSchedule { which, count } => self.enlist_schedule(*which, *count),
            Op::EnlistCancel { which, number } => self.enlist_cancel(*which, *number),
            Op::Cancel(number) => self.cancel(*number),
            Op::Discharge { which, fail } => self.discharge(*which, *fail),
            Op::End => self.end(),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(*which) {
                    self.turn(command);
                }
            }
            Op::Wait(ms) => self.wait(*ms),
            Op::Sync(commits) => {
                let durable = self.world.disk.durable();
                self.world.disk.sync_to(CommitId(durable.0 + commits));
                self.hear();
            }
            Op::Crash => self.crash(),
        }
    }

    /// The coordinator ends. What is discharged already is decided all the same.
    fn end(&mut self) {
        if self.at_once {
            self.turn(Command::EndTransactions {
                connection: CONNECTION,
                coordinator: 7,
            });
            let discharged = self.discharged();
            self.open.retain(|id, _| discharged.contains(id));
        }
    }

    /// Those whose discharge has been asked for.
    fn discharged(&self) -> BTreeSet<TransactionId> {
        let ids = self.asked.iter().filter_map(|asked| match asked {
            Asked::Discharge(id, _) => Some(*id),
            _ => None,
        });
        ids.collect()
    }

    /// One of those that were declared, seldom an old one.
    fn pick(&self, which: usize) -> Option<TransactionId> {
        let discharged = self.discharged();
        let open: Vec<_> = self
            .open
            .keys()
            .filter(|id| !discharged.contains(id))
            .collect();
        match which % 8 {
            0 => self
                .declared
                .get(which.checked_rem(self.declared.len())?)
                .copied(),
            _ => open.get(which.checked_rem(open.len())?).map(|id| **id),
        }
    }

    /// One of the locks that were given, mostly a late one.
    fn pick_lock(&self, which: usize) -> Option<usize> {
        let index = which.checked_rem(self.given.len())?;
        Some(self.given.len() - 1 - index)
    }

    fn ask(&mut self, asked: Asked) -> RequestId {
        self.asked.push(asked);
        request(self.asked.len() as u64 - 1)
    }

    fn enlist_send(&mut self, which: usize, ids: &[u8]) {
        let Some(transaction) = self.pick(which) else {
            return;
        };
        let request = self.ask(Asked::EnlistSend(transaction, ids.to_vec()));
        self.turn(Command::Enlist {
            request,
            transaction,
            operation: Box::new(Operation::Send {
                entity: OTHER,
                messages: ids.iter().map(|id| message(Some(*id))).collect(),
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    }

    fn enlist_settle(&mut self, which: usize, token: usize, verb: usize) {
        let (Some(transaction), Some(given)) = (self.pick(which), self.pick_lock(token)) else {
            return;
        };
        let request = self.ask(Asked::EnlistSettle(transaction, given, verb));
        self.turn(Command::Enlist {
            request,
            transaction,
            operation: Box::new(Operation::Settle {
                subqueue: SubqueueId {
                    entity: QUEUE,
                    subqueue: Subqueue::Main,
                },
                session: None,
                tokens: vec![self.given[given].token],
                outcome: outcome(verb),
                on_rollback: None,
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    }

    fn enlist_schedule(&mut self, which: usize, count: usize) {
        let Some(transaction) = self.pick(which) else {
            return;
        };
        let request = self.ask(Asked::EnlistSchedule(transaction, count));
        let scheduled = Incoming {
            scheduled: Some(Wall(START + (1 << 40))),
            ..message(None)
        };
        self.turn(Command::Enlist {
            request,
            transaction,
            operation: Box::new(Operation::Send {
                entity: LATER,
                messages: vec![scheduled; count],
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    }

    /// One of the numbers that were promised, mostly a late one.
    fn pick_number(&self, which: usize) -> Option<u64> {
        let index = which.checked_rem(self.promised.len())?;
        self.promised.iter().rev().nth(index).copied()
    }

    fn enlist_cancel(&mut self, which: usize, number: usize) {
        let (Some(transaction), Some(number)) = (self.pick(which), self.pick_number(number)) else {
            return;
        };
        let request = self.ask(Asked::EnlistCancel(transaction, number));
        self.turn(Command::Enlist {
            request,
            transaction,
            operation: Box::new(Operation::Cancel {
                entity: LATER,
                numbers: vec![SequenceNumber(number)],
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    }

    fn cancel(&mut self, number: usize) {
        let Some(number) = self.pick_number(number) else {
            return;
        };
        let request = self.ask(Asked::Cancel(number));
        self.turn(Command::CancelScheduled {
            request,
            entity: LATER,
            numbers: vec![SequenceNumber(number)],
        });
    }

    fn settle(&mut self, token: usize, verb: usize) {
        let Some(given) = self.pick_lock(token) else {
            return;
        };
        let request = Some(self.ask(Asked::Settle(given, verb)));
        self.turn(Command::Settle {
            session: None,
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token: self.given[given].token,
            outcome: outcome(verb),
        });
    }

    fn renew(&mut self, token: usize) {
        let Some(given) = self.pick_lock(token) else {
            return;
        };
        let request = self.ask(Asked::Renew(given));
        self.turn(Command::Renew {
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            tokens: vec![self.given[given].token],
        });
    }

    fn discharge(&mut self, which: usize, fail: bool) {
        let Some(transaction) = self.pick(which) else {
            return;
        };
        if self.discharged().contains(&transaction) {
            return;
        }
        let request = self.ask(Asked::Discharge(transaction, fail));
        self.turn(Command::Discharge {
            request,
            transaction,
            fail,
        });
    }

    fn wait(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.hear();
        }
    }

    fn turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.heard(said);
    }

    fn hear(&mut self) {
        let said = self.world.turn_with(Vec::new());
        self.heard(said);
        self.world.audit();
    }

    fn heard(&mut self, said: Vec<Output>) {
        for output in said {
            match output {
                Output::Deliver { delivery, .. } => self.given.push(Given {
                    number: delivery.message.number.0,
                    token: delivery.token,
                    until: self.world.mono + LOCK_MS,
                    over: false,
                }),
                Output::TimedOut { transaction, .. } => drop(self.open.remove(&transaction)),
                Output::Declared { result, .. } => {
                    let id = result.unwrap();
                    self.open.insert(id, Vec::new());
                    self.declared.push(id);
                }
                Output::Sent {
                    request, result, ..
                } => self.sent(request, result.ok().map(|first| first.0)),
                Output::Cancelled { request, result } => {
                    self.cancelled(request, result.is_ok());
                }
                Output::Settled { request, result } => self.settled(request, result),
                Output::Renewed { request, result } => {
                    let Asked::Renew(given) = self.about(request) else {
                        panic!("it was a renewal");
                    };
                    if self.at_once {
                        assert_eq!(result.is_ok(), self.is_live(given), "renewing");
                    }
                    if result.is_ok() {
                        self.given[given].until = self.world.mono + LOCK_MS;
                    }
                }
                Output::Discharged { request, result } => {
                    let Asked::Discharge(id, fail) = self.about(request) else {
                        panic!("it was a discharge");
                    };
                    self.is_discharged(id, fail, &result);
                }
                _ => {}
            }
        }
    }

    fn about(&self, request: RequestId) -> Asked {
        self.asked[usize::try_from(request.token).unwrap()].clone()
    }

    fn cancelled(&mut self, request: RequestId, ok: bool) {
        match self.about(request) {
            Asked::Cancel(number) if ok => {
                assert!(self.scheduled.remove(&number), "{number} is scheduled");
            }
            Asked::EnlistCancel(id, number) if ok => {
                let held = self.open.get_mut(&id);
                held.expect("it is open").push(Held::Cancel(number));
            }
            _ => {}
        }
    }

    fn sent(&mut self, request: RequestId, first: Option<u64>) {
        let ok = first.is_some();
        match self.about(request) {
            Asked::Send(count) => {
                for _ in 0..count {
                    self.messages.insert(self.next, Part::Active);
                    self.next += 1;
                }
            }
            Asked::SendOther(ids) => self.accept_others(&ids),
            Asked::EnlistSend(id, ids) if ok => {
                let held = self.open.get_mut(&id);
                held.expect("it is open").push(Held::Send(ids));
            }
            Asked::EnlistSchedule(id, count) if ok => {
                let first = first.expect("it is ok");
                let numbers = first..first + count as u64;
                self.promised.extend(numbers.clone());
                let held = self.open.get_mut(&id);
                held.expect("it is open").push(Held::Schedule(numbers));
            }
            Asked::EnlistSchedule(id, _) | Asked::EnlistSend(id, _) => {
                assert!(!self.is_usable(id), "{id:?} is over");
            }
            other => panic!("{other:?} was no send"),
        }
    }

    fn accept_others(&mut self, ids: &[u8]) {
        for id in ids {
            if !self.other.contains(id) {
                self.other.push(*id);
            }
        }
    }

    fn is_usable(&self, id: TransactionId) -> bool {
        self.open.contains_key(&id) && !self.discharged().contains(&id)
    }

    fn is_live(&self, given: usize) -> bool {
        let given = &self.given[given];
        !given.over && self.world.mono < given.until
    }

    fn is_enlisted(&self, given: usize) -> bool {
        let mut held = self.open.values().flatten();
        held.any(|held| matches!(held, Held::Settle { given: other, .. } if *other == given))
    }

    fn settled(&mut self, request: RequestId, result: Result<(), SettleError>) {
        let (transaction, given, verb) = match self.about(request) {
            Asked::EnlistSettle(id, given, verb) => (Some(id), given, verb),
            Asked::Settle(given, verb) => (None, given, verb),
            other => panic!("{other:?} was no settlement"),
        };
        if self.at_once {
            let is_open = transaction.is_none_or(|id| self.is_usable(id));
            match &result {
                Ok(()) => assert!(self.is_live(given) && !self.is_enlisted(given) && is_open),
                Err(SettleError::LockLost) => assert!(!self.is_live(given)),
                Err(SettleError::Enlisted) => {
                    assert!(self.is_live(given) && self.is_enlisted(given));
                }
                Err(SettleError::Transaction(_)) => assert!(!is_open),
                Err(error) => panic!("it is no dead letter, and has no session: {error}"),
            }
        }
        match (transaction, result) {
            (Some(id), Ok(())) => {
                let held = self.open.get_mut(&id).expect("it is open");
                held.push(Held::Settle { given, verb });
            }
            (None, Ok(())) => self.ended(given, verb),
            (_, Err(_)) => {}
        }
    }

    fn ended(&mut self, given: usize, verb: usize) {
        let given = &mut self.given[given];
        given.over = true;
        let number = given.number;
        match verb {
            0 => assert!(self.messages.remove(&number).is_some(), "{number} is there"),
            1 => drop(self.messages.insert(number, Part::Deferred)),
            2 => drop(self.messages.insert(number, Part::DeadLetter)),
            _ => {}
        }
    }

    fn is_discharged(
        &mut self,
        id: TransactionId,
        fail: bool,
        result: &Result<(), TransactionError>,
    ) {
        let Some(held) = self.open.remove(&id) else {
            assert!(
                matches!(
                    result,
                    Err(TransactionError::Unknown | TransactionError::TimedOut)
                ),
                "{id:?} was over"
            );
            return;
        };
        let possible = held.iter().all(|held| match held {
            Held::Settle { given, .. } => self.is_live(*given),
            Held::Cancel(number) => self.scheduled.contains(number),
            Held::Send(_) | Held::Schedule(_) => true,
        });
        // What is scheduled after the look-up for its cancellation comes too late for that.
        let surely = !held.iter().any(|held| matches!(held, Held::Cancel(_)));
        if self.at_once && !fail && (surely || result.is_ok()) {
            assert_eq!(result.is_ok(), possible, "{id:?}: {result:?}");
        }
        if fail || result.is_err() {
            return;
        }
        for held in held {
            match held {
                Held::Send(ids) => self.accept_others(&ids),
                Held::Settle { given, verb } => self.ended(given, verb),
                Held::Schedule(numbers) => self.scheduled.extend(numbers),
                Held::Cancel(number) => {
                    assert!(self.scheduled.remove(&number), "{number} is scheduled");
                }
            }
        }
    }

    fn crash(&mut self) {
        self.world.restart();
        self.open.clear();
        self.given.iter_mut().for_each(|given| given.over = true);
        self.compare();
        self.attach();
    }

    /// What was said is what is there.
    fn compare(&self) {
        self.world.audit();
        self.world.disk.with_current(|image| {
            let of = |queue| {
                let rows = image.messages.keys().filter(move |(of, ..)| *of == queue);
                rows.map(|(_, part, number)| (number.0, *part))
            };
            let rows: BTreeMap<u64, Part> = of(QUEUE).collect();
            assert_eq!(rows, self.messages);
            let later: BTreeMap<u64, Part> = of(LATER).collect();
            assert!(later.values().all(|part| *part == Part::Scheduled));
            assert!(later.keys().eq(self.scheduled.iter()), "{later:?}");
            let others = of(OTHER).map(|(number, _)| {
                let payload = &image.bodies[&(OTHER, SequenceNumber(number))];
                payload[0]
            });
            assert_eq!(others.collect::<Vec<_>>(), self.other);
            let history = image
                .entries
                .keys()
                .filter(|(of, index, _)| *of == OTHER && *index == store::Index::DuplicateId);
            assert_eq!(history.count(), self.other.len(), "one entry for each id");
        });
    }

    fn finish(&mut self) {
        while let Some(command) = self.world.answer(0) {
            self.turn(command);
        }
        self.world.disk.sync_all();
        self.hear();
        self.compare();
        self.crash();
    }
}

fn receiver() -> ReceiverId {
    ReceiverId {
        connection: CONNECTION,
        link: 0,
    }
}

fn request(token: u64) -> RequestId {
    RequestId {
        connection: CONNECTION,
        token,
    }
}

/// A message whose body is its id.
fn message(id: Option<u8>) -> Incoming {
    let body = Bytes::from(vec![id.unwrap_or_default()]);
    Incoming {
        payload: body.clone(),
        message_id: id.map(|_| body),
        ..Incoming::default()
    }
}

fn outcome(verb: usize) -> Outcome {
    let changes = vec![("key".to_owned(), Bytes::from_static(b"\x40"))];
    match verb {
        0 => Outcome::Complete,
        1 => Outcome::Defer { changes },
        2 => Outcome::DeadLetter { changes },
        3 => Outcome::abandon(changes),
        _ => Outcome::Release,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn all_of_a_transaction_happens_or_nothing(
        window in prop_oneof![1..5_usize, Just(1_000)],
        at_once in any::<bool>(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let transactions = TransactionSettings {
            life: LIFE_MS,
            open: 1_000,
            ..TransactionSettings::default()
        };
        let settings = BrokerSettings { window, transactions, ..BrokerSettings::default() };
        let mut model = Model::new(settings, at_once);
        for op in &ops {
            model.apply(op);
        }
        model.finish();
    }
}
