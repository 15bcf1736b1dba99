//! Crashes at random among sessions: what was said is true afterwards, whichever receiver held
//! which session.
//!
//! The disk becomes durable in steps. After a crash every message has its place in its session
//! (the audit of the world), no accepted message is missing unless its end was asked for, and a
//! state is one that was said to be set or is about to be.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    BrokerSettings, Command, Incoming, LockToken, Outcome, Output, QueueSettings, ReceiveMode,
    SessionFilter, Subqueue, SubqueueId,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CommitId, Part};

use crate::world::{QUEUE, World, receiver};

const RECEIVERS: u64 = 3;
const SESSIONS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Send(usize, usize),
    Accept(u64, usize),
    AcceptNext(u64),
    Credit(u64, u32),
    Detach(u64),
    Settle { which: usize, verb: usize },
    SetState(u64, usize, Option<u8>),
    Answer(usize),
    Wait(u64),
    Sync(u64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..RECEIVERS;
    let which = || 0..SESSIONS;
    prop_oneof![
        8 => (which(), 1..4_usize).prop_map(|(session, count)| Op::Send(session, count)),
        3 => (who(), which()).prop_map(|(who, session)| Op::Accept(who, session)),
        3 => who().prop_map(Op::AcceptNext),
        8 => (who(), 0..6_u32).prop_map(|(who, more)| Op::Credit(who, more)),
        1 => who().prop_map(Op::Detach),
        10 => (any::<usize>(), 0..5_usize).prop_map(|(which, verb)| Op::Settle { which, verb }),
        3 => (who(), which(), any::<Option<u8>>())
            .prop_map(|(who, session, state)| Op::SetState(who, session, state)),
        9 => any::<usize>().prop_map(Op::Answer),
        3 => (1..1_200_u64).prop_map(Op::Wait),
        8 => (1..6_u64).prop_map(Op::Sync),
        1 => Just(Op::Crash),
    ]
}

struct Listener {
    world: World,
    /// Accepted messages and their sessions.
    sent: BTreeMap<u64, usize>,
    /// Numbers whose end was asked for.
    ending: BTreeSet<u64>,
    ended: BTreeSet<u64>,
    given: Vec<(u64, LockToken)>,
    limits: BTreeMap<u64, u32>,
    sends: BTreeMap<u64, (usize, usize)>,
    completions: BTreeMap<u64, u64>,
    sets: BTreeMap<u64, (usize, Option<u8>)>,
    states: BTreeMap<usize, Option<u8>>,
    requests: u64,
}

fn id(session: usize) -> Bytes {
    Bytes::from(format!("session {session}"))
}

impl Listener {
    fn new(settings: BrokerSettings) -> Self {
        let queue = QueueSettings {
            lock_duration: 1_000,
            max_delivery_count: 1_000,
            requires_session: true,
            ..QueueSettings::default()
        };
        let world = World::new(settings, queue);
        world.disk.set_automatic(false);
        Self {
            world,
            sent: BTreeMap::new(),
            ending: BTreeSet::new(),
            ended: BTreeSet::new(),
            given: Vec::new(),
            limits: BTreeMap::new(),
            sends: BTreeMap::new(),
            completions: BTreeMap::new(),
            sets: BTreeMap::new(),
            states: BTreeMap::new(),
            requests: 0,
        }
    }

    fn request(&mut self, who: u64) -> broker::RequestId {
        self.requests += 1;
        broker::RequestId {
            connection: receiver(who).connection,
            token: self.requests,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send(session, count) => {
                let messages = (0..count).map(|_| Incoming {
                    payload: Bytes::from_static(b"hello"),
                    session_id: Some(id(session)),
                    ..Incoming::default()
                });
                let messages = messages.collect();
                let request = self.request(99);
                self.sends.insert(request.token, (session, count));
                self.turn(Command::Send {
                    request,
                    entity: QUEUE,
                    messages,
                });
            }
            Op::Accept(who, session) => {
                self.accept(who, SessionFilter::ById(id(session)), ReceiveMode::PeekLock);
            }
            Op::AcceptNext(who) => {
                let next = SessionFilter::Next { timeout_ms: 500 };
                self.accept(who, next, ReceiveMode::PeekLock);
            }
            Op::Credit(who, more) => {
                let limit = self.limits.entry(who).or_default();
                *limit += more;
                let limit = *limit;
                self.turn(Command::Credit {
                    receiver: receiver(who),
                    limit,
                    drain: false,
                });
            }
            Op::Detach(who) => self.turn(Command::Detach {
                receiver: receiver(who),
            }),
            Op::Settle { which, verb } => self.settle(which, verb),
            Op::SetState(who, session, state) => {
                let request = self.request(who);
                self.sets.insert(request.token, (session, state));
                self.turn(Command::SetSessionState {
                    request,
                    entity: QUEUE,
                    session: id(session),
                    state: state.map(|state| Bytes::from(vec![state])),
                });
            }
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(which) {
                    self.turn(command);
                }
            }
            Op::Wait(ms) => {
                let to = self.world.mono + ms;
                while self.world.step_to(to) {
                    self.hear();
                }
            }
            Op::Sync(commits) => {
                let durable = self.world.disk.durable();
                self.world.disk.sync_to(CommitId(durable.0 + commits));
                self.hear();
            }
            Op::Crash => self.crash(),
        }
    }

    fn accept(&mut self, who: u64, session: SessionFilter, mode: ReceiveMode) {
        self.limits.insert(who, 0);
        self.turn(Command::AcceptSession {
            receiver: receiver(who),
            entity: QUEUE,
            mode,
            session,
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
            _ => Outcome::DeadLetter { changes },
        };
        let request = self.request(99);
        if outcome == Outcome::Complete {
            self.ending.insert(number);
            self.completions.insert(request.token, number);
        }
        self.turn(Command::Settle {
            request: Some(request),
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
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
                Output::Sent {
                    request,
                    result: Ok(first),
                    ..
                } => {
                    let (session, count) = self.sends.remove(&request.token).unwrap();
                    let numbers = first.0..first.0 + count as u64;
                    self.sent.extend(numbers.map(|number| (number, session)));
                }
                Output::Deliver { delivery, .. } => {
                    let number = delivery.message.number.0;
                    assert!(self.sent.contains_key(&number), "{number} was accepted");
                    assert!(!self.ended.contains(&number), "{number} was completed");
                    if delivery.lock_ms().is_none() {
                        self.ending.insert(number);
                        self.ended.insert(number);
                    }
                    self.given.push((number, delivery.token));
                }
                Output::Settled {
                    request,
                    result: Ok(()),
                } => {
                    self.ended.extend(self.completions.get(&request.token));
                }
                Output::SessionStateSet {
                    request,
                    result: Ok(()),
                } => {
                    let (session, state) = self.sets[&request.token];
                    self.states.insert(session, state);
                }
                _ => {}
            }
        }
    }

    fn crash(&mut self) {
        self.world.restart();
        self.limits.clear();
        self.world.audit();
        self.world.disk.with_current(|image| {
            let there: BTreeSet<u64> = image.messages.keys().map(|(_, _, n)| n.0).collect();
            for number in self.sent.keys().filter(|n| !self.ending.contains(n)) {
                assert!(there.contains(number), "{number} was accepted");
            }
            for number in &self.ended {
                assert!(!there.contains(number), "{number} was completed");
            }
        });
    }

    fn finish(&mut self) {
        self.world.disk.sync_all();
        self.hear();
        self.crash();
        self.world.disk.set_automatic(true);
        for session in 0..SESSIONS {
            self.accept(
                0,
                SessionFilter::ById(id(session)),
                ReceiveMode::ReceiveAndDelete,
            );
            self.apply(&Op::Credit(0, 1_000));
            let request = self.request(0);
            let mut said = self.world.turn(Command::GetSessionState {
                request,
                entity: QUEUE,
                session: id(session),
            });
            while let Some(command) = self.world.answer(0) {
                said.extend(self.world.turn(command));
            }
            let state = said.iter().find_map(|output| match output {
                Output::SessionState { result, .. } => Some(result.clone().unwrap()),
                _ => None,
            });
            let state = state.unwrap().map(|state| state[0]);
            let expected = self.states.get(&session).copied().flatten();
            assert_eq!(state, expected, "the state of s{session}");
            self.heard(said);
        }
        self.world.disk.with_current(|image| {
            let left = image
                .messages
                .keys()
                .filter(|(_, part, _)| *part == Part::Active);
            assert_eq!(left.count(), 0, "everything comes");
        });
    }
}

fn settings() -> impl Strategy<Value = BrokerSettings> {
    let window = prop_oneof![1..5_usize, Just(1_000)];
    let body_bytes = prop_oneof![Just(0), Just(1 << 20)];
    (window, body_bytes).prop_map(|(window, body_bytes)| BrokerSettings {
        window,
        body_bytes,
        ..BrokerSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_crash_among_sessions_leaves_what_was_said(
        settings in settings(),
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let mut listener = Listener::new(settings);
        for op in &ops {
            listener.apply(op);
        }
        listener.finish();
    }
}
