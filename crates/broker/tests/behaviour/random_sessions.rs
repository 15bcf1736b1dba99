//! Random command logs about sessions against a model that simply knows which receiver holds which
//! session.
//!
//! Everything is durable at once here; reads are late and come back in any order, windows are
//! tiny. No receiver is given a message of a session that another one holds, each session comes in
//! order, and what is left at the end can be had.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use broker::{
    BrokerSettings, Command, Delivery, Incoming, LockToken, Outcome, Output, QueueSettings,
    ReceiveMode, SessionError, SessionFilter, SettleError, Subqueue, SubqueueId, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{Part, SequenceNumber};

use crate::world::{QUEUE, World, receiver, request};

const LOCK_MS: u64 = 1_000;
/// How much longer a holder with nothing unsettled keeps its session. (docs/spec/amqp.md#3.4)
const GRACE_MS: u64 = 500;
const MAX_DELIVERIES: u32 = 3;
const RECEIVERS: u64 = 5;
const SESSIONS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Send {
        session: usize,
        count: usize,
        ttl_ms: Option<u64>,
    },
    Accept(u64, usize),
    AcceptNext(u64, u64),
    Credit {
        receiver: u64,
        more: u32,
        drain: bool,
    },
    Detach(u64),
    Disconnect(u64),
    /// Settles one of the tokens ever given out.
    Settle {
        which: usize,
        verb: usize,
    },
    Renew(u64, usize),
    Fetch(u64, usize),
    SetState(u64, usize, Option<u8>),
    GetState(u64, usize),
    List,
    Peek(usize),
    /// Deletes up to `count` messages, of one session or of all. The last client that may ask holds
    /// nothing.
    Delete {
        who: u64,
        session: Option<usize>,
        count: usize,
    },
    Answer(usize),
    AnswerAll,
    Wait(u64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..RECEIVERS;
    let which = || 0..SESSIONS;
    let ttl = prop_oneof![4 => Just(None), 1 => (1..2_000_u64).prop_map(Some)];
    prop_oneof![
        8 => (which(), 1..4_usize, ttl)
            .prop_map(|(session, count, ttl_ms)| Op::Send { session, count, ttl_ms }),
        3 => (who(), which()).prop_map(|(who, session)| Op::Accept(who, session)),
        4 => (who(), 0..2_000_u64).prop_map(|(who, ms)| Op::AcceptNext(who, ms)),
        9 => (who(), 0..5_u32, any::<bool>())
            .prop_map(|(receiver, more, drain)| Op::Credit { receiver, more, drain }),
        1 => who().prop_map(Op::Detach),
        1 => who().prop_map(Op::Disconnect),
        10 => (any::<usize>(), 0..6_usize).prop_map(|(which, verb)| Op::Settle { which, verb }),
        2 => (who(), which()).prop_map(|(who, session)| Op::Renew(who, session)),
        3 => (who(), any::<usize>()).prop_map(|(who, which)| Op::Fetch(who, which)),
        2 => (who(), which(), any::<Option<u8>>())
            .prop_map(|(who, session, state)| Op::SetState(who, session, state)),
        1 => (who(), which()).prop_map(|(who, session)| Op::GetState(who, session)),
        1 => Just(Op::List),
        1 => which().prop_map(Op::Peek),
        4 => (0..=RECEIVERS, proptest::option::of(which()), 1..9_usize)
            .prop_map(|(who, session, count)| Op::Delete { who, session, count }),
        10 => any::<usize>().prop_map(Op::Answer),
        4 => Just(Op::AnswerAll),
        4 => (1..1_200_u64).prop_map(Op::Wait),
        1 => Just(Op::Restart),
    ]
}

#[derive(Clone, Debug)]
struct Message {
    session: usize,
    part: Part,
    count: u32,
    expires: u64,
    lock: Option<LockToken>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum SessionRole {
    #[default]
    Away,
    Waiting {
        until: u64,
    },
    Holding {
        session: usize,
        until: u64,
    },
    /// Its time is up; it will be told.
    Losing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Taker {
    session_role: SessionRole,
    limit: u32,
    delivered: u32,
}

struct Model {
    world: World,
    messages: BTreeMap<u64, Message>,
    next: u64,
    takers: Vec<Taker>,
    waiting: VecDeque<u64>,
    given: Vec<(u64, LockToken)>,
    states: BTreeMap<usize, u8>,
    /// What is to be set when the answer comes, by request.
    sets: BTreeMap<u64, (usize, Option<u8>)>,
    requests: u64,
    /// Whether anything ever expired without a word, so that order cannot be told exactly.
    with_ttl: bool,
    /// Deletions that were not answered yet: the client that asked, and the session.
    deleting: BTreeMap<u64, (u64, Option<usize>)>,
    /// Messages that went by deletions, and how many of them were told.
    deleted: usize,
    told: usize,
    /// The receiver that held each session after the last turn.
    held: Vec<Option<usize>>,
}

fn id(session: usize) -> Bytes {
    Bytes::from(format!("session {session}"))
}

fn session_of(id: &Bytes) -> usize {
    let text = std::str::from_utf8(id).unwrap();
    text.strip_prefix("session ").unwrap().parse().unwrap()
}

fn index(who: u64) -> usize {
    usize::try_from(who).unwrap()
}

impl Model {
    fn new(settings: BrokerSettings) -> Self {
        let queue = QueueSettings {
            lock_duration: LOCK_MS,
            max_delivery_count: MAX_DELIVERIES,
            requires_session: true,
            ..QueueSettings::default()
        };
        Self {
            world: World::new(settings, queue),
            messages: BTreeMap::new(),
            next: 1,
            takers: vec![Taker::default(); index(RECEIVERS)],
            waiting: VecDeque::new(),
            given: Vec::new(),
            states: BTreeMap::new(),
            sets: BTreeMap::new(),
            requests: 0,
            with_ttl: false,
            deleting: BTreeMap::new(),
            deleted: 0,
            told: 0,
            held: vec![None; SESSIONS],
        }
    }

    fn now(&self) -> u64 {
        self.world.mono
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send {
                session,
                count,
                ttl_ms,
            } => self.send(session, count, ttl_ms),
            Op::Accept(who, session) => self.accept(who, session, ReceiveMode::PeekLock),
            Op::AcceptNext(who, timeout_ms) => self.accept_next(who, timeout_ms),
            Op::Credit {
                receiver,
                more,
                drain,
            } => self.credit(receiver, more, drain),
            Op::Detach(who) => {
                self.leave(who);
                self.turn(Command::Detach {
                    receiver: receiver(who),
                });
            }
            Op::Disconnect(who) => {
                self.leave(who);
                self.turn(Command::Disconnect {
                    connection: receiver(who).connection,
                });
            }
            Op::Settle { which, verb } => self.settle(which, verb),
            Op::Renew(who, session) => self.renew(who, session),
            Op::Fetch(who, which) => self.fetch(who, which),
            Op::SetState(who, session, state) => self.set_state(who, session, state),
            Op::GetState(who, session) => {
                let request = self.request(who);
                let session = id(session);
                self.turn(Command::GetSessionState {
                    request,
                    entity: QUEUE,
                    session,
                });
            }
            Op::List => self.list(),
            Op::Peek(session) => self.turn(Command::PeekSession {
                request: request(u64::MAX),
                entity: QUEUE,
                session: id(session),
                from: SequenceNumber(1),
                count: 3,
                max_bytes: 1 << 20,
            }),
            Op::Delete {
                who,
                session,
                count,
            } => self.delete(who, session, count),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(which) {
                    self.turn(command);
                }
            }
            Op::AnswerAll => self.answer_all(),
            Op::Wait(ms) => self.wait(ms),
            Op::Restart => {
                self.world.restart();
                self.messages.values_mut().for_each(|m| m.lock = None);
                self.takers.fill(Taker::default());
                self.waiting.clear();
                self.deleting.clear();
                self.told = self.deleted;
            }
        }
    }

    fn request(&mut self, who: u64) -> broker::RequestId {
        self.requests += 1;
        broker::RequestId {
            connection: receiver(who).connection,
            token: self.requests,
        }
    }

    fn send(&mut self, session: usize, count: usize, ttl_ms: Option<u64>) {
        self.with_ttl |= ttl_ms.is_some();
        let messages = (0..count).map(|_| Incoming {
            payload: Bytes::from_static(b"hello"),
            session_id: Some(id(session)),
            ttl_ms,
            ..Incoming::default()
        });
        let messages = messages.collect();
        for _ in 0..count {
            let message = Message {
                session,
                part: Part::Active,
                count: 0,
                expires: ttl_ms.map_or(u64::MAX, |ttl| self.now() + ttl),
                lock: None,
            };
            self.messages.insert(self.next, message);
            self.next += 1;
        }
        self.turn(Command::Send {
            request: request(0),
            entity: QUEUE,
            messages,
        });
    }

    fn accept(&mut self, who: u64, session: usize, mode: ReceiveMode) {
        // What it held may go to another before it comes again.
        self.apply(&Op::Detach(who));
        let holder = self.holder(session);
        let said = self.world.turn(Command::AcceptSession {
            receiver: receiver(who),
            entity: QUEUE,
            mode,
            session: SessionFilter::ById(id(session)),
        });
        let refused = said.iter().any(|output| {
            matches!(output, Output::SessionRefused { error, .. } if *error == SessionError::CannotBeLocked)
        });
        assert_eq!(
            refused,
            holder.is_some(),
            "s{session} is held by {holder:?}"
        );
        if !refused {
            self.takers[index(who)] = Taker {
                session_role: SessionRole::Waiting { until: u64::MAX },
                ..Taker::default()
            };
        }
        self.hear(said);
    }

    fn accept_next(&mut self, who: u64, timeout_ms: u64) {
        self.apply(&Op::Detach(who));
        let until = self.now() + timeout_ms;
        self.takers[index(who)].session_role = SessionRole::Waiting { until };
        self.waiting.push_back(who);
        self.turn(Command::AcceptSession {
            receiver: receiver(who),
            entity: QUEUE,
            mode: ReceiveMode::PeekLock,
            session: SessionFilter::Next { timeout_ms },
        });
    }

    fn holder(&self, session: usize) -> Option<usize> {
        self.takers.iter().position(
            |taker| matches!(taker.session_role, SessionRole::Holding { session: held, .. } if held == session),
        )
    }

    /// The receiver gives up what it has; its messages return as they were.
    fn leave(&mut self, who: u64) {
        self.waiting.retain(|other| *other != who);
        let taker = std::mem::take(&mut self.takers[index(who)]);
        if let SessionRole::Holding { session, .. } = taker.session_role {
            self.release(session, false);
        }
    }

    fn release(&mut self, session: usize, late: bool) {
        let locked = |m: &Message| m.session == session && m.lock.is_some();
        let messages = self.messages.iter().filter(|(_, m)| locked(m));
        for number in messages.map(|(n, _)| *n).collect::<Vec<_>>() {
            self.messages.get_mut(&number).unwrap().lock = None;
            if late {
                self.failed(number);
            } else {
                self.expire_if_due(number);
            }
        }
    }

    fn failed(&mut self, number: u64) {
        let message = self.messages.get_mut(&number).unwrap();
        message.count += 1;
        let count = message.count;
        if message.part == Part::Active && self.now() >= self.messages[&number].expires {
            self.expire_if_due(number);
        } else if count >= MAX_DELIVERIES {
            self.messages.get_mut(&number).unwrap().part = Part::DeadLetter;
        }
    }

    fn expire_if_due(&mut self, number: u64) {
        let message = &self.messages[&number];
        let free = message.part == Part::Active && message.lock.is_none();
        if free && self.now() >= message.expires {
            self.messages.remove(&number);
        }
    }

    fn credit(&mut self, who: u64, more: u32, drain: bool) {
        let taker = &mut self.takers[index(who)];
        taker.limit = taker.delivered + more;
        let limit = taker.limit;
        self.turn(Command::Credit {
            receiver: receiver(who),
            limit,
            drain,
        });
    }

    fn settle(&mut self, which: usize, verb: usize) {
        let Some(place) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (number, token) = self.given[place];
        let changes = Vec::new();
        let outcome = match verb {
            0 | 1 => Outcome::Complete,
            2 => Outcome::abandon(changes),
            3 => Outcome::Defer { changes },
            4 => Outcome::DeadLetter { changes },
            _ => Outcome::Release,
        };
        // A connection that holds the session that it names has lost the message, others the
        // session.
        let who = which as u64 % RECEIVERS;
        let named = which % SESSIONS;
        let lost = match self.takers[index(who)].session_role {
            SessionRole::Holding { session, until } if session == named && self.now() < until => {
                SettleError::LockLost
            }
            _ => SettleError::SessionLockLost,
        };
        let held = self.messages.get_mut(&number);
        // The holder of the named session has no say in messages of another one.
        let is_other = |session| lost == SettleError::LockLost && session != named;
        let found = held.filter(|m| m.lock == Some(token) && !is_other(m.session));
        let expected = match found {
            None => Err(lost),
            Some(message) => {
                message.lock = None;
                match &outcome {
                    Outcome::Complete => drop(self.messages.remove(&number)),
                    Outcome::Abandon { .. } => self.failed(number),
                    Outcome::Defer { .. } => {
                        message.count += 1;
                        message.part = Part::Deferred;
                    }
                    Outcome::DeadLetter { .. } => message.part = Part::DeadLetter,
                    _ => self.expire_if_due(number),
                }
                Ok(())
            }
        };
        let asked = self.request(who);
        let said = self.world.turn(Command::Settle {
            request: Some(asked),
            session: Some(id(named)),
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
        let result = said.iter().find_map(|output| match output {
            Output::Settled { result, .. } => Some(result.clone()),
            _ => None,
        });
        assert_eq!(result, Some(expected), "settling {number}");
        self.hear(said);
    }

    fn renew(&mut self, who: u64, session: usize) {
        let now = self.now();
        let held = match &mut self.takers[index(who)].session_role {
            SessionRole::Holding {
                session: held,
                until,
            } if *held == session && now < *until => {
                *until = now + LOCK_MS;
                true
            }
            _ => false,
        };
        let request = self.request(who);
        let said = self.world.turn(Command::RenewSession {
            request,
            entity: QUEUE,
            session: id(session),
        });
        let renewed = said
            .iter()
            .any(|output| matches!(output, Output::SessionRenewed { result: Ok(_), .. }));
        assert_eq!(renewed, held, "renewing s{session}");
        self.hear(said);
    }

    fn fetch(&mut self, who: u64, which: usize) {
        let Some(place) = which.checked_rem(self.messages.len()) else {
            return;
        };
        let number = *self.messages.keys().nth(place).unwrap();
        let request = self.request(who);
        self.turn(Command::ReceiveDeferred {
            request,
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            numbers: vec![SequenceNumber(number)],
            mode: ReceiveMode::PeekLock,
            max_bytes: usize::MAX,
        });
    }

    fn set_state(&mut self, who: u64, session: usize, state: Option<u8>) {
        let request = self.request(who);
        self.sets.insert(request.token, (session, state));
        self.turn(Command::SetSessionState {
            request,
            entity: QUEUE,
            session: id(session),
            state: state.map(|state| Bytes::from(vec![state; 3])),
        });
    }

    fn list(&mut self) {
        self.turn(Command::ListSessions {
            request: request(2),
            entity: QUEUE,
            updated_after: None,
            skip: 0,
            top: 100,
        });
    }

    fn delete(&mut self, who: u64, session: Option<usize>, count: usize) {
        let request = self.request(who);
        self.deleting.insert(request.token, (who, session));
        self.turn(Command::DeleteMessages {
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            session: session.map(id),
            enqueued_before: Wall(u64::MAX),
            count,
        });
    }

    /// What has left the store without being handed out was deleted by one of `asked`, or has
    /// expired.
    fn take_deleted(&mut self, asked: &[(u64, Option<usize>)], handed_out: &BTreeSet<u64>) {
        let there: BTreeSet<u64> = self.world.disk.with_current(|image| {
            let numbers = image.messages.keys().map(|(_, _, number)| number.0);
            numbers.collect()
        });
        let gone = self.messages.keys();
        let gone = gone.filter(|n| !there.contains(n) && !handed_out.contains(n));
        for number in gone.copied().collect::<Vec<_>>() {
            let message = self.messages.remove(&number).unwrap();
            assert_eq!(message.lock, None, "{number} is held by somebody");
            assert_eq!(message.part, Part::Active, "{number} was put aside");
            if self.now() >= message.expires {
                continue;
            }
            self.deleted += 1;
            let session = message.session;
            if let Some(holder) = self.holder(session)
                && self.held[session] == Some(holder)
            {
                let own = (holder as u64, Some(session));
                assert!(asked.contains(&own), "{number} is r{holder}'s");
            }
        }
    }

    fn count_deleted(&mut self) {
        assert!(self.told <= self.deleted);
        if self.deleting.is_empty() {
            assert_eq!(self.told, self.deleted, "all that went was told");
        }
        self.held = (0..SESSIONS).map(|session| self.holder(session)).collect();
    }

    fn answer_all(&mut self) {
        while let Some(command) = self.world.answer(0) {
            self.turn(command);
        }
    }

    fn wait(&mut self, ms: u64) {
        let to = self.now() + ms;
        while self.world.step_to(to) {
            self.time_passes();
            let said = self.world.turn_with(Vec::new());
            self.hear(said);
        }
        self.time_passes();
    }

    fn time_passes(&mut self) {
        for who in 0..self.takers.len() {
            if let SessionRole::Holding { session, until } = self.takers[who].session_role
                && until + self.grace(session) <= self.now()
            {
                self.takers[who].session_role = SessionRole::Losing;
                self.release(session, true);
            }
        }
    }

    /// How much longer than its lock lasts a session is held: its holder has nothing unsettled.
    fn grace(&self, session: usize) -> u64 {
        let mut locked = self.messages.values().filter(|m| m.lock.is_some());
        match locked.any(|m| m.session == session) {
            true => 0,
            false => GRACE_MS,
        }
    }

    fn turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.hear(said);
    }

    fn hear(&mut self, said: Vec<Output>) {
        let asked: Vec<_> = self.deleting.values().copied().collect();
        self.take_deleted(&asked, &crate::random::handed_out(&said));
        for output in said {
            match output {
                Output::Deliver { receiver, delivery } => {
                    self.delivered(receiver.connection.0, &delivery);
                }
                Output::SessionAccepted {
                    receiver,
                    session_id,
                    lock_ms,
                } => {
                    assert_eq!(lock_ms, LOCK_MS);
                    self.accepted(receiver.connection.0, session_of(&session_id));
                }
                Output::SessionRefused { receiver, error } => {
                    let who = receiver.connection.0;
                    if error == SessionError::Timeout {
                        let SessionRole::Waiting { until } = self.takers[index(who)].session_role
                        else {
                            panic!("r{who} waits");
                        };
                        assert!(until <= self.now());
                    }
                    self.leave(who);
                }
                Output::SessionLost { receiver } => {
                    let taker = &mut self.takers[index(receiver.connection.0)];
                    assert_eq!(taker.session_role, SessionRole::Losing);
                    *taker = Taker::default();
                }
                Output::Deferred {
                    request,
                    result: Ok(deliveries),
                } => {
                    for delivery in &deliveries {
                        let message = &self.messages[&delivery.message.number.0];
                        assert_eq!(message.part, Part::Deferred);
                        let who = index(request.connection.0);
                        assert_eq!(self.holder(message.session), Some(who));
                        self.taken(delivery);
                    }
                }
                Output::SessionStateSet { request, result } => {
                    let (session, state) = self.sets.remove(&request.token).unwrap();
                    if result.is_ok() {
                        let who = index(request.connection.0);
                        assert_eq!(self.holder(session), Some(who));
                        self.states.remove(&session);
                        self.states.extend(state.map(|state| (session, state)));
                    }
                }
                Output::SessionState {
                    request,
                    result: Ok(state),
                } => {
                    let taker = &self.takers[index(request.connection.0)];
                    let SessionRole::Holding { session, until } = taker.session_role else {
                        panic!("only a holder learns of a state");
                    };
                    assert!(self.now() < until);
                    let known = self.states.get(&session);
                    assert_eq!(state.map(|state| state[0]), known.copied());
                }
                Output::Drained { receiver } => self.drained(index(receiver.connection.0)),
                Output::Deleted { request, result } => {
                    self.deleting.remove(&request.token).unwrap();
                    self.told += result.unwrap();
                }
                _ => {}
            }
        }
        self.count_deleted();
        self.world.audit();
    }

    fn accepted(&mut self, who: u64, session: usize) {
        assert_eq!(self.holder(session), None, "s{session} has one holder");
        let SessionRole::Waiting { until } = self.takers[index(who)].session_role else {
            panic!("r{who} did not come for a session");
        };
        if until != u64::MAX {
            assert_eq!(self.waiting.pop_front(), Some(who), "who came first");
            if !self.with_ttl {
                assert_eq!(self.oldest(), Some(session), "the oldest comes first");
            }
        }
        let until = self.now() + LOCK_MS;
        self.takers[index(who)].session_role = SessionRole::Holding { session, until };
    }

    /// Among the sessions without a holder, the one whose first message is the oldest.
    fn oldest(&self) -> Option<usize> {
        let mut live = self.messages.values().filter(|m| self.is_available(m));
        let free = live.find(|m| self.holder(m.session).is_none());
        free.map(|m| m.session)
    }

    fn is_available(&self, message: &Message) -> bool {
        message.part == Part::Active && message.lock.is_none() && self.now() < message.expires
    }

    fn least(&self, session: usize) -> Option<u64> {
        let of_session = |m: &Message| m.session == session && self.is_available(m);
        let mut live = self.messages.iter().filter(|(_, m)| of_session(m));
        live.next().map(|(n, _)| *n)
    }

    fn delivered(&mut self, who: u64, delivery: &Delivery) {
        let taker = &mut self.takers[index(who)];
        taker.delivered += 1;
        assert!(taker.delivered <= taker.limit, "no more than it asked for");
        let SessionRole::Holding { session, until } = taker.session_role else {
            panic!("r{who} holds no session");
        };
        assert!(self.world.mono < until, "its time is not up");
        let number = delivery.message.number.0;
        assert_eq!(self.least(session), Some(number), "s{session} is in order");
        if let Some(left) = delivery.lock_ms() {
            assert_eq!(left, until - self.now());
            self.taken(delivery);
        } else {
            self.messages.remove(&number);
        }
    }

    fn taken(&mut self, delivery: &Delivery) {
        let number = delivery.message.number.0;
        let message = self.messages.get_mut(&number).unwrap();
        assert_eq!(message.lock, None);
        assert_eq!(delivery.message.delivery_count, message.count);
        message.lock = Some(delivery.token);
        self.given.push((number, delivery.token));
    }

    fn drained(&mut self, who: usize) {
        let taker = self.takers[who];
        if let SessionRole::Holding { session, until } = taker.session_role
            && self.now() < until
        {
            let least = self.least(session);
            let exhausted = taker.delivered == taker.limit || least.is_none();
            assert!(exhausted, "r{who} could have had {least:?}");
        }
        self.takers[who].delivered = taker.limit;
    }

    /// Lets everything that is under way come to its end.
    fn settle_down(&mut self) {
        self.wait(0);
        while !self.world.waiting.is_empty() {
            self.answer_all();
            self.wait(0);
        }
    }

    fn finish(&mut self, purge: bool) {
        self.settle_down();
        assert!(self.deleting.is_empty(), "every deletion is answered");
        let numbers: Vec<_> = self.messages.keys().copied().collect();
        numbers.into_iter().for_each(|n| self.expire_if_due(n));
        if let Some(session) = self.oldest() {
            assert!(
                self.waiting.is_empty(),
                "s{session} is free, and somebody waits"
            );
        }
        self.compare_with_store();
        self.compare_with_list();
        if purge {
            self.purge();
        }
        self.take_everything();
    }

    /// When no session has a holder, deletions leave nothing, whatever was passed over before.
    fn purge(&mut self) {
        for who in 0..RECEIVERS {
            self.apply(&Op::Disconnect(who));
        }
        let sessions = (0..SESSIONS - 1).map(Some).chain([None]);
        for session in sessions {
            self.delete(RECEIVERS, session, 1_000);
            self.settle_down();
            let of_session = |m: &Message| session.is_none_or(|session| session == m.session);
            let left = self.messages.values().filter(|m| self.is_available(m));
            let left = left.filter(|m| of_session(m)).count();
            assert_eq!(left, 0, "nothing is left of {session:?}");
        }
    }

    fn compare_with_store(&self) {
        self.world.disk.with_current(|image| {
            let rows = image.messages.keys().map(|(_, part, n)| (n.0, *part));
            let rows: BTreeMap<_, _> = rows.collect();
            let expected = self.messages.iter().map(|(n, m)| (*n, m.part));
            assert_eq!(
                rows,
                expected.collect(),
                "every message is where it should be"
            );
            for (number, message) in &self.messages {
                let key = (QUEUE, SequenceNumber(*number));
                let count = image.delivery_counts.get(&key).copied().unwrap_or(0);
                assert_eq!(count, message.count, "the delivery count of {number}");
            }
        });
    }

    fn compare_with_list(&mut self) {
        let mut said = self.world.turn(Command::ListSessions {
            request: request(2),
            entity: QUEUE,
            updated_after: None,
            skip: 0,
            top: 100,
        });
        while let Some(command) = self.world.answer(0) {
            said.extend(self.world.turn(command));
        }
        let listed = said.iter().find_map(|output| match output {
            Output::Sessions { result, .. } => Some(result.as_ref().unwrap().ids.clone()),
            _ => None,
        });
        let listed: BTreeSet<_> = listed.unwrap().iter().map(session_of).collect();
        let active = self.messages.values().filter(|m| m.part == Part::Active);
        let mut expected: BTreeSet<_> = active.map(|m| m.session).collect();
        expected.extend(self.states.keys());
        // A session that was not looked at since a restart may be listed although it has gone.
        assert!(listed.is_superset(&expected), "{listed:?} {expected:?}");
        self.hear(said);
    }

    /// With receivers that take all, everything comes.
    fn take_everything(&mut self) {
        for who in 0..RECEIVERS {
            self.apply(&Op::Disconnect(who));
        }
        for session in 0..SESSIONS {
            self.accept(0, session, ReceiveMode::ReceiveAndDelete);
            self.apply(&Op::Credit {
                receiver: 0,
                more: 1_000,
                drain: true,
            });
            self.settle_down();
            assert_eq!(self.least(session), None, "nothing is left of s{session}");
        }
        self.leave(0);
        self.accept_next(0, 10);
        self.settle_down();
        assert_eq!(self.waiting.len(), 1, "no session has messages");
    }
}

fn settings() -> impl Strategy<Value = BrokerSettings> {
    let window = prop_oneof![1..5_usize, Just(1_000)];
    let body_bytes = prop_oneof![Just(0), Just(400), Just(1 << 20)];
    let turn_work = prop_oneof![Just(3_usize), Just(1_024)];
    (window, body_bytes, turn_work).prop_map(|(window, body_bytes, turn_work)| BrokerSettings {
        window,
        body_bytes,
        turn_work,
        lineage: true,
        lineage_bytes: 4_096,
        ..BrokerSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn sessions_are_held_by_one_and_come_in_order(
        settings in settings(),
        ops in proptest::collection::vec(op(), 1..150),
        purge in any::<bool>(),
    ) {
        let mut model = Model::new(settings);
        for op in &ops {
            model.apply(op);
        }
        model.finish(purge);
    }
}
