//! Random command logs with selectors and browsers against a model that knows every message.
//!
//! Everything is durable at once here, so what the shard says is said in the turn in which it was
//! decided, and the model can follow exactly; reads are late and come back in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broker::{
    Access, BrokerSettings, Command, Delivery, Incoming, LockToken, Outcome, Output, QueueSettings,
    ReceiveMode, Selector, Subqueue, SubqueueId,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use store::{Part, SequenceNumber};

use crate::world::{QUEUE, World, receiver, request};

const LOCK_MS: u64 = 1_000;
const MAX_DELIVERIES: u32 = 3;
const RECEIVERS: u64 = 9;

#[derive(Clone, Debug)]
enum Op {
    Send {
        count: usize,
        n: i64,
    },
    Attach(u64),
    Credit {
        receiver: u64,
        more: u32,
        drain: bool,
    },
    Detach(u64),
    /// Settles one of the tokens ever given out.
    Settle {
        which: usize,
        verb: usize,
    },
    Answer(usize),
    AnswerAll,
    Wait(u64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..6_usize, 0..4_i64).prop_map(|(count, n)| Op::Send { count, n }),
        4 => (0..RECEIVERS).prop_map(Op::Attach),
        10 => (0..RECEIVERS, 0..6_u32, any::<bool>())
            .prop_map(|(receiver, more, drain)| Op::Credit { receiver, more, drain }),
        1 => (0..RECEIVERS).prop_map(Op::Detach),
        12 => (any::<usize>(), 0..6_usize).prop_map(|(which, verb)| Op::Settle { which, verb }),
        8 => any::<usize>().prop_map(Op::Answer),
        3 => Just(Op::AnswerAll),
        4 => (1..1_500_u64).prop_map(Op::Wait),
        1 => Just(Op::Restart),
    ]
}

/// What a receiver is, by its index.
#[derive(Clone, Copy, Debug)]
struct Role {
    subqueue: Subqueue,
    mode: ReceiveMode,
    selector: Option<&'static str>,
    browses: bool,
    selects: fn(i64) -> bool,
}

fn role(index: u64) -> Role {
    let role = Role {
        subqueue: Subqueue::Main,
        mode: ReceiveMode::PeekLock,
        selector: None,
        browses: false,
        selects: |_| true,
    };
    let (selector, selects): (_, fn(i64) -> bool) = match index {
        0 | 1 => ("n = 1", |n| n == 1),
        2 => ("n <= 1", |n| n <= 1),
        3 | 6 | 8 => ("n > 1", |n| n > 1),
        _ => {
            return Role {
                browses: index == 5,
                ..role
            };
        }
    };
    Role {
        selector: Some(selector),
        selects,
        mode: if index == 3 {
            ReceiveMode::ReceiveAndDelete
        } else {
            ReceiveMode::PeekLock
        },
        browses: index == 8,
        subqueue: if index == 6 {
            Subqueue::DeadLetter
        } else {
            Subqueue::Main
        },
    }
}

fn attach(index: u64) -> Command {
    let Role { subqueue, mode, .. } = role(index);
    let selector = role(index)
        .selector
        .map(|text| Selector::parse(text).unwrap());
    let access = match role(index).browses {
        true => Access::Browse,
        false => Access::Consume(mode),
    };
    Command::Attach {
        receiver: receiver(index),
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue,
        },
        access,
        selector: selector.map(Arc::new),
    }
}

fn payload(n: i64) -> Bytes {
    let mut out = BytesMut::new();
    let properties = [(amqp::Value::from("n"), amqp::Value::Long(n))];
    amqp::message::encode_map_section(&mut out, 0x74, &properties);
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, b"body");
    out.freeze()
}

#[derive(Clone, Debug)]
struct Message {
    n: i64,
    part: Part,
    count: u32,
    lock: Option<(LockToken, u64)>,
}

/// A receiver's limit, what it got, and whether it is there.
#[derive(Clone, Debug, Default)]
struct Taker {
    attached: bool,
    limit: u32,
    delivered: u32,
    shown: BTreeSet<u64>,
}

struct Model {
    world: World,
    messages: BTreeMap<u64, Message>,
    next: u64,
    takers: Vec<Taker>,
    given: Vec<(u64, LockToken)>,
}

impl Model {
    fn new(settings: BrokerSettings) -> Self {
        let queue = QueueSettings {
            lock_duration: LOCK_MS,
            max_delivery_count: MAX_DELIVERIES,
            ..QueueSettings::default()
        };
        Self {
            world: World::new(settings, queue),
            messages: BTreeMap::new(),
            next: 1,
            takers: vec![Taker::default(); usize::try_from(RECEIVERS).unwrap()],
            given: Vec::new(),
        }
    }

    fn taker(&mut self, index: u64) -> &mut Taker {
        &mut self.takers[usize::try_from(index).unwrap()]
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send { count, n } => self.send(count, n),
            Op::Attach(index) => {
                *self.taker(index) = Taker {
                    attached: true,
                    ..Taker::default()
                };
                self.hear_turn(attach(index));
            }
            Op::Credit {
                receiver: index,
                more,
                drain,
            } => {
                let taker = self.taker(index);
                taker.limit = taker.delivered + more;
                let limit = taker.limit;
                self.hear_turn(Command::Credit {
                    receiver: receiver(index),
                    limit,
                    drain,
                });
            }
            Op::Detach(index) => {
                self.taker(index).attached = false;
                self.hear_turn(Command::Detach {
                    receiver: receiver(index),
                });
            }
            Op::Settle { which, verb } => self.settle(which, verb),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(which) {
                    self.hear_turn(command);
                }
            }
            Op::AnswerAll => self.answer_all(),
            Op::Wait(ms) => self.wait(ms),
            Op::Restart => {
                self.world.restart();
                self.messages.values_mut().for_each(|m| m.lock = None);
                self.takers.fill(Taker::default());
            }
        }
    }

    fn send(&mut self, count: usize, n: i64) {
        for _ in 0..count {
            let message = Message {
                n,
                part: Part::Active,
                count: 0,
                lock: None,
            };
            self.messages.insert(self.next, message);
            self.next += 1;
        }
        let message = Incoming {
            payload: payload(n),
            ..Incoming::default()
        };
        self.hear_turn(Command::Send {
            request: request(0),
            entity: QUEUE,
            messages: vec![message; count],
        });
    }

    fn settle(&mut self, which: usize, verb: usize) {
        let Some(index) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (number, token) = self.given[index];
        let changes = vec![];
        let outcome = match verb {
            0 => Outcome::Complete,
            1 | 2 => Outcome::abandon(changes),
            3 => Outcome::Defer { changes },
            4 => Outcome::DeadLetter { changes },
            _ => Outcome::Release,
        };
        self.settled(number, token, &outcome);
        self.hear_turn(Command::Settle {
            request: Some(request(1)),
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
    }

    fn settled(&mut self, number: u64, token: LockToken, outcome: &Outcome) {
        let now = self.world.mono;
        let held = self.messages.get_mut(&number);
        let held = held.filter(|m| m.lock.is_some_and(|(t, until)| t == token && now < until));
        let Some(message) = held else {
            return;
        };
        let dead = message.part == Part::DeadLetter;
        match outcome {
            Outcome::DeadLetter { .. } if dead => return,
            Outcome::Complete => drop(self.messages.remove(&number)),
            Outcome::Abandon { .. } => self.failed(number),
            Outcome::Defer { .. } => {
                message.count += u32::from(!dead);
                message.part = if dead {
                    Part::DeadLetterDeferred
                } else {
                    Part::Deferred
                };
            }
            Outcome::DeadLetter { .. } => message.part = Part::DeadLetter,
            Outcome::Release | Outcome::Undelivered => {}
            Outcome::Annotated { .. } | Outcome::Reported { .. } | Outcome::ReleaseLater(_) => {
                unreachable!("no client of this test annotates, delays or wants a report")
            }
        }
        if let Some(message) = self.messages.get_mut(&number) {
            message.lock = None;
        }
    }

    fn failed(&mut self, number: u64) {
        let message = self.messages.get_mut(&number).unwrap();
        message.lock = None;
        if message.part == Part::Active {
            message.count += 1;
            if message.count >= MAX_DELIVERIES {
                message.part = Part::DeadLetter;
            }
        }
    }

    fn answer_all(&mut self) {
        while let Some(command) = self.world.answer(0) {
            self.hear_turn(command);
        }
    }

    fn wait(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.expire_locks();
            let said = self.world.turn_with(Vec::new());
            self.hear(said);
        }
        self.expire_locks();
    }

    fn expire_locks(&mut self) {
        let now = self.world.mono;
        let expired = |m: &Message| m.lock.is_some_and(|(_, until)| until <= now);
        let numbers: Vec<_> = self
            .messages
            .iter()
            .filter(|(_, m)| expired(m))
            .map(|(n, _)| *n)
            .collect();
        numbers.into_iter().for_each(|number| self.failed(number));
    }

    fn hear_turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.hear(said);
    }

    fn hear(&mut self, said: Vec<Output>) {
        for output in said {
            match output {
                Output::Deliver { receiver, delivery } => {
                    self.delivered(receiver.connection.0, &delivery);
                }
                Output::Drained { receiver } => self.drained(receiver.connection.0),
                Output::Evicted { .. } => panic!("nobody is evicted"),
                _ => {}
            }
        }
        self.world.audit();
    }

    fn delivered(&mut self, index: u64, delivery: &Delivery) {
        let role = role(index);
        let number = delivery.message.number.0;
        let taker = self.taker(index);
        taker.delivered += 1;
        assert!(taker.attached, "r{index} is there");
        assert!(taker.delivered <= taker.limit, "r{index} has credit");
        if role.browses {
            let last = taker.shown.last().copied().unwrap_or(0);
            assert!(number > last, "r{index} is shown {number} after {last}");
            taker.shown.insert(number);
            assert_eq!(delivery.lock_ms(), None);
            return;
        }
        assert_eq!(
            self.least(role),
            Some(number),
            "r{index} gets the first one of its own"
        );
        let until = self.world.mono + LOCK_MS;
        let message = self.messages.get_mut(&number).unwrap();
        assert_eq!(delivery.message.delivery_count, message.count);
        assert_eq!(delivery.message.payload, payload(message.n));
        match role.mode {
            ReceiveMode::PeekLock | ReceiveMode::LinkLock => {
                message.lock = Some((delivery.token, until));
            }
            ReceiveMode::ReceiveAndDelete => drop(self.messages.remove(&number)),
        }
        self.given.push((number, delivery.token));
    }

    /// The first message that a receiver could have.
    fn least(&self, role: Role) -> Option<u64> {
        let fits =
            |m: &Message| m.part == role.subqueue.part() && m.lock.is_none() && (role.selects)(m.n);
        let mut messages = self.messages.iter();
        messages.find(|(_, m)| fits(m)).map(|(n, _)| *n)
    }

    fn drained(&mut self, index: u64) {
        let role = role(index);
        let taker = &self.takers[usize::try_from(index).unwrap()];
        if taker.delivered < taker.limit {
            if role.browses {
                self.has_seen_all(index);
            } else {
                assert_eq!(self.least(role), None, "r{index} could have had more");
            }
        }
        let taker = self.taker(index);
        taker.delivered = taker.limit;
    }

    /// What stands in the queue now has been shown.
    fn has_seen_all(&self, index: u64) {
        let shown = &self.takers[usize::try_from(index).unwrap()].shown;
        for (number, message) in &self.messages {
            let there = message.part == Part::Active && (role(index).selects)(message.n);
            assert!(
                !there || shown.contains(number),
                "r{index} was not shown {number}"
            );
        }
    }

    /// Once all reads have come back, no receiver waits for a message that is there.
    fn rest(&mut self) {
        for _ in 0..20 {
            self.wait(1);
            self.answer_all();
        }
        for index in 0..RECEIVERS {
            let taker = &self.takers[usize::try_from(index).unwrap()];
            if !taker.attached || taker.delivered >= taker.limit {
                continue;
            }
            if role(index).browses {
                self.has_seen_all(index);
            } else {
                assert_eq!(self.least(role(index)), None, "r{index} waits in vain");
            }
        }
    }

    fn finish(&mut self) {
        self.rest();
        self.world.disk.with_current(|image| {
            let rows: BTreeMap<_, _> = image
                .messages
                .keys()
                .map(|(_, part, n)| (n.0, *part))
                .collect();
            let expected: BTreeMap<_, _> =
                self.messages.iter().map(|(n, m)| (*n, m.part)).collect();
            assert_eq!(rows, expected, "every message is where it should be");
            for (number, message) in &self.messages {
                let key = (QUEUE, SequenceNumber(*number));
                let count = image.delivery_counts.get(&key).copied().unwrap_or(0);
                assert_eq!(count, message.count, "the delivery count of {number}");
            }
        });
        // With credit for all messages, the receivers have all that they select.
        for index in [1, 3, 5, 6, 8, 4] {
            self.apply(&Op::Attach(index));
            self.apply(&Op::Credit {
                receiver: index,
                more: 1_000,
                drain: index % 2 == 0,
            });
            self.rest();
        }
    }
}

fn settings() -> impl Strategy<Value = BrokerSettings> {
    let window = prop_oneof![1..5_usize, Just(1_000)];
    let body_bytes = prop_oneof![Just(0), Just(400), Just(1 << 20)];
    let turn_work = prop_oneof![Just(3_usize), Just(1_024)];
    let output_buffer_bytes = Just(1 << 20);
    (window, body_bytes, turn_work, output_buffer_bytes).prop_map(
        |(window, body_bytes, turn_work, output_buffer_bytes)| BrokerSettings {
            window,
            body_bytes,
            turn_work,
            output_buffer_bytes,
            ..BrokerSettings::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everybody_gets_what_is_selected_and_nothing_else(
        settings in settings(),
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        let mut model = Model::new(settings);
        for op in &ops {
            model.apply(op);
        }
        model.finish();
    }
}
