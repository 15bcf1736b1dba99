//! Random command logs against a model that simply knows what every message should be.
//!
//! Everything is durable at once here, so what the shard says is said in the turn in which it was
//! decided, and the model can follow exactly; reads are late and come back in any order.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    BrokerSettings, Browsed, Command, Delivery, Incoming, LockToken, MessageState, Outcome, Output,
    QueueSettings, ReceiveMode, SettleError, Subqueue, SubqueueId, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{Part, SequenceNumber};

use crate::world::{QUEUE, World, attach, receiver, request, role};

const LOCK_MS: u64 = 1_000;
const MAX_DELIVERIES: u32 = 3;
const RECEIVERS: u64 = 6;

#[derive(Clone, Debug)]
enum Op {
    Send {
        count: usize,
        ttl_ms: Option<u64>,
    },
    Attach(u64),
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
    Renew(usize),
    Fetch {
        which: usize,
        delete: bool,
    },
    Answer(usize),
    AnswerAll,
    Wait(u64),
    Peek(u64),
    /// Deletes up to `count` messages that were enqueued at least `ago` before.
    Delete {
        count: usize,
        dead: bool,
        ago: u64,
    },
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let ttl = prop_oneof![3 => Just(None), 1 => (1..3_000_u64).prop_map(Some)];
    prop_oneof![
        8 => (1..6_usize, ttl).prop_map(|(count, ttl_ms)| Op::Send { count, ttl_ms }),
        3 => (0..RECEIVERS).prop_map(Op::Attach),
        8 => (0..RECEIVERS, 0..6_u32, any::<bool>())
            .prop_map(|(receiver, more, drain)| Op::Credit { receiver, more, drain }),
        1 => (0..RECEIVERS).prop_map(Op::Detach),
        1 => (0..RECEIVERS).prop_map(Op::Disconnect),
        12 => (any::<usize>(), 0..6_usize).prop_map(|(which, verb)| Op::Settle { which, verb }),
        2 => any::<usize>().prop_map(Op::Renew),
        3 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, delete)| Op::Fetch { which, delete }),
        8 => any::<usize>().prop_map(Op::Answer),
        3 => Just(Op::AnswerAll),
        4 => (1..1_500_u64).prop_map(Op::Wait),
        2 => (0..20_u64).prop_map(Op::Peek),
        4 => (1..12_usize, any::<bool>(), prop_oneof![Just(0), 0..1_500_u64])
            .prop_map(|(count, dead, ago)| Op::Delete { count, dead, ago }),
        1 => Just(Op::Restart),
    ]
}

#[derive(Clone, Debug)]
struct Message {
    payload: Bytes,
    part: Part,
    count: u32,
    expires: u64,
    lock: Option<(LockToken, u64)>,
    changes: BTreeMap<String, Bytes>,
}

/// A receiver's limit, what it got, and whether it is there.
#[derive(Clone, Copy, Debug, Default)]
struct Taker {
    attached: bool,
    limit: u32,
    delivered: u32,
}

struct Model {
    world: World,
    in_order: bool,
    dead_letter_expired: bool,
    messages: BTreeMap<u64, Message>,
    next: u64,
    takers: Vec<Taker>,
    given: Vec<(u64, LockToken)>,
    tokens: u64,
    /// Deletions that were not answered yet.
    deleting: usize,
    /// Messages that went by deletions, and how many of them were told.
    deleted: usize,
    told: usize,
}

impl Model {
    fn new(settings: BrokerSettings, dead_letter_expired: bool) -> Self {
        let in_order = settings.turn_work > 100;
        let queue = QueueSettings {
            lock_duration: LOCK_MS,
            max_delivery_count: MAX_DELIVERIES,
            dead_lettering_on_message_expiration: dead_letter_expired,
            ..QueueSettings::default()
        };
        Self {
            world: World::new(settings, queue),
            in_order,
            dead_letter_expired,
            messages: BTreeMap::new(),
            next: 1,
            takers: vec![Taker::default(); usize::try_from(RECEIVERS).unwrap()],
            given: Vec::new(),
            tokens: 0,
            deleting: 0,
            deleted: 0,
            told: 0,
        }
    }

    fn now(&self) -> u64 {
        self.world.mono
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send { count, ttl_ms } => self.send(count, ttl_ms),
            Op::Attach(index) => {
                self.hear_turn(attach(index));
                *self.taker(index) = Taker {
                    attached: true,
                    ..Taker::default()
                };
            }
            Op::Credit {
                receiver,
                more,
                drain,
            } => self.credit(receiver, more, drain),
            Op::Detach(index) => {
                self.taker(index).attached = false;
                self.hear_turn(Command::Detach {
                    receiver: receiver(index),
                });
            }
            Op::Disconnect(index) => {
                self.taker(index).attached = false;
                self.hear_turn(Command::Disconnect {
                    connection: receiver(index).connection,
                });
            }
            Op::Settle { which, verb } => self.settle(which, verb),
            Op::Renew(which) => self.renew(which),
            Op::Fetch { which, delete } => self.fetch(which, delete),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(which) {
                    self.hear_turn(command);
                }
            }
            Op::AnswerAll => self.answer_all(),
            Op::Wait(ms) => self.wait(ms),
            Op::Peek(from) => self.peek(from),
            Op::Delete { count, dead, ago } => self.delete(count, dead, ago),
            Op::Restart => {
                self.world.restart();
                (self.deleting, self.told) = (0, self.deleted);
                self.messages.values_mut().for_each(|m| m.lock = None);
                self.takers.fill(Taker::default());
            }
        }
    }

    fn taker(&mut self, index: u64) -> &mut Taker {
        &mut self.takers[usize::try_from(index).unwrap()]
    }

    fn send(&mut self, count: usize, ttl_ms: Option<u64>) {
        let messages: Vec<_> = (0..count as u64)
            .map(|i| Incoming {
                payload: Bytes::from(format!("message {}", self.next + i)),
                ttl_ms,
                ..Incoming::default()
            })
            .collect();
        for message in &messages {
            let message = Message {
                payload: message.payload.clone(),
                part: Part::Active,
                count: 0,
                expires: ttl_ms.map_or(u64::MAX, |ttl| self.now() + ttl),
                lock: None,
                changes: BTreeMap::new(),
            };
            self.messages.insert(self.next, message);
            self.next += 1;
        }
        let first = self.next - count as u64;
        let said = self.world.turn(Command::Send {
            request: request(0),
            entity: QUEUE,
            messages,
        });
        let sent = said.iter().find_map(|output| match output {
            Output::Sent { result, .. } => Some(result.clone()),
            _ => None,
        });
        assert_eq!(
            sent,
            Some(Ok(SequenceNumber(first))),
            "numbers have no gaps"
        );
        self.hear(said);
    }

    fn credit(&mut self, index: u64, more: u32, drain: bool) {
        let taker = self.taker(index);
        taker.limit = taker.delivered + more;
        let limit = taker.limit;
        self.hear_turn(Command::Credit {
            receiver: receiver(index),
            limit,
            drain,
        });
    }

    fn settle(&mut self, which: usize, verb: usize) {
        let Some(index) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (number, token) = self.given[index];
        self.tokens += 1;
        let key = format!("k{}", self.tokens % 3);
        let changes = vec![(key, Bytes::from(self.tokens.to_string()))];
        let outcome = match verb {
            0 => Outcome::Complete,
            1 => Outcome::abandon(changes),
            2 => Outcome::Defer { changes },
            3 => Outcome::DeadLetter { changes },
            4 => Outcome::Release,
            _ => Outcome::abandon(Vec::new()),
        };
        let expected = self.settled(number, token, &outcome);
        let said = self.world.turn(Command::Settle {
            request: Some(request(1)),
            session: None,
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

    /// What settling does and answers.
    fn settled(
        &mut self,
        number: u64,
        token: LockToken,
        outcome: &Outcome,
    ) -> Result<(), SettleError> {
        let now = self.now();
        let held = self.messages.get_mut(&number);
        let held = held.filter(|m| m.lock.is_some_and(|(t, until)| t == token && now < until));
        let message = held.ok_or(SettleError::LockLost)?;
        let dead = is_dead(message.part);
        if dead && matches!(outcome, Outcome::DeadLetter { .. }) {
            return Err(SettleError::NotAllowed);
        }
        message.lock = None;
        match outcome {
            Outcome::Complete => drop(self.messages.remove(&number)),
            Outcome::Abandon { changes, .. } => {
                message.changes.extend(changes.iter().cloned());
                self.failed(number);
            }
            Outcome::Defer { changes } => {
                message.changes.extend(changes.iter().cloned());
                message.count += u32::from(!dead);
                message.part = if dead {
                    Part::DeadLetterDeferred
                } else {
                    Part::Deferred
                };
            }
            Outcome::DeadLetter { changes } => {
                message.changes.extend(changes.iter().cloned());
                message.part = Part::DeadLetter;
            }
            Outcome::Release | Outcome::Undelivered => self.expire_if_due(number),
            Outcome::Annotated { .. } | Outcome::Reported { .. } | Outcome::ReleaseLater(_) => {
                unreachable!("no client of this test annotates, delays or wants a report")
            }
        }
        Ok(())
    }

    /// A delivery has failed: its lock is gone already.
    fn failed(&mut self, number: u64) {
        let message = self.messages.get_mut(&number).unwrap();
        if is_dead(message.part) {
            return;
        }
        message.count += 1;
        let (count, part) = (message.count, message.part);
        if part == Part::Active && self.now() >= self.messages[&number].expires {
            self.expire_if_due(number);
        } else if count >= MAX_DELIVERIES {
            self.dead_letter(number);
        }
    }

    fn expire_if_due(&mut self, number: u64) {
        let message = &self.messages[&number];
        let free = message.part == Part::Active && message.lock.is_none();
        if !free || self.now() < message.expires {
            return;
        }
        if self.dead_letter_expired {
            self.dead_letter(number);
        } else {
            self.messages.remove(&number);
        }
    }

    fn dead_letter(&mut self, number: u64) {
        let message = self.messages.get_mut(&number).unwrap();
        message.part = Part::DeadLetter;
        message
            .changes
            .insert("DeadLetterReason".into(), Bytes::new());
    }

    fn renew(&mut self, which: usize) {
        let Some(index) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (number, token) = self.given[index];
        let now = self.now();
        let lock = self.messages.get_mut(&number).and_then(|m| m.lock.as_mut());
        let lock = lock.filter(|(t, until)| *t == token && now < *until);
        let expected = lock.is_some();
        if let Some((_, until)) = lock {
            *until = now + LOCK_MS;
        }
        let said = self.world.turn(Command::Renew {
            request: request(2),
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            tokens: vec![token],
        });
        let renewed = said
            .iter()
            .any(|output| matches!(output, Output::Renewed { result: Ok(_), .. }));
        assert_eq!(renewed, expected, "renewing {number}");
        self.hear(said);
    }

    /// Asks for two numbers that may be deferred.
    fn fetch(&mut self, which: usize, delete: bool) {
        let Some(index) = which.checked_rem(self.messages.len()) else {
            return;
        };
        let (&number, message) = self.messages.iter().nth(index).unwrap();
        let subqueue = if is_dead(message.part) {
            Subqueue::DeadLetter
        } else {
            Subqueue::Main
        };
        let part = subqueue.deferred_part();
        let others = self
            .messages
            .iter()
            .filter(|(n, m)| m.part == part && **n > number);
        let mut numbers = vec![SequenceNumber(number)];
        numbers.extend(others.map(|(n, _)| SequenceNumber(*n)).next());
        let mode = if delete {
            ReceiveMode::ReceiveAndDelete
        } else {
            ReceiveMode::PeekLock
        };
        self.hear_turn(Command::ReceiveDeferred {
            request: request(u64::from(delete)),
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue,
            },
            numbers,
            mode,
            max_bytes: usize::MAX,
        });
    }

    fn peek(&mut self, from: u64) {
        self.hear_turn(Command::Peek {
            request: request(3),
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            state: None,
            from: SequenceNumber(from),
            count: 5,
            max_bytes: 1 << 20,
        });
    }

    fn delete(&mut self, count: usize, dead: bool, ago: u64) {
        self.deleting += 1;
        let now = self.world.now().wall.0;
        let subqueue = if dead {
            Subqueue::DeadLetter
        } else {
            Subqueue::Main
        };
        self.hear_turn(Command::DeleteMessages {
            request: request(4),
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue,
            },
            session: None,
            enqueued_before: Wall(now - ago + 1),
            count,
        });
    }

    /// What has left the store without being handed out was deleted, or has expired.
    fn take_deleted(&mut self, handed_out: &BTreeSet<u64>) {
        let there: BTreeSet<u64> = self.world.disk.with_current(|image| {
            let numbers = image.messages.keys().map(|(_, _, number)| number.0);
            numbers.collect()
        });
        let gone = self.messages.keys();
        let gone = gone.filter(|n| !there.contains(n) && !handed_out.contains(n));
        for number in gone.copied().collect::<Vec<_>>() {
            let message = self.messages.remove(&number).unwrap();
            assert_eq!(message.lock, None, "{number} is held by somebody");
            let available = matches!(message.part, Part::Active | Part::DeadLetter);
            assert!(available, "{number} was put aside");
            let expired = message.part == Part::Active && message.expires <= self.now();
            // One that has expired has gone before, unless it went on as a dead letter.
            self.deleted += usize::from(!expired || self.dead_letter_expired);
        }
    }

    fn count_deleted(&self) {
        assert!(self.told <= self.deleted);
        if self.deleting == 0 {
            assert_eq!(self.told, self.deleted, "all that went was told");
        }
    }

    fn answer_all(&mut self) {
        while let Some(command) = self.world.answer(0) {
            self.hear_turn(command);
        }
    }

    fn wait(&mut self, ms: u64) {
        let to = self.now() + ms;
        while self.world.step_to(to) {
            self.expire_locks();
            let said = self.world.turn_with(Vec::new());
            self.hear(said);
        }
        self.expire_locks();
    }

    fn expire_locks(&mut self) {
        let now = self.now();
        let expired = |m: &Message| m.lock.is_some_and(|(_, until)| until <= now);
        let numbers: Vec<_> = self
            .messages
            .iter()
            .filter(|(_, m)| expired(m))
            .map(|(n, _)| *n)
            .collect();
        for number in numbers {
            self.messages.get_mut(&number).unwrap().lock = None;
            self.failed(number);
        }
    }

    fn hear_turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.hear(said);
    }

    fn hear(&mut self, said: Vec<Output>) {
        self.take_deleted(&handed_out(&said));
        for output in said {
            match output {
                Output::Deliver { receiver, delivery } => {
                    self.delivered(receiver.connection.0, &delivery);
                }
                Output::Deferred {
                    request,
                    result: Ok(deliveries),
                } => {
                    for delivery in &deliveries {
                        self.fetched(request.token == 1, delivery);
                    }
                }
                Output::Drained { receiver } => self.drained(receiver.connection.0),
                Output::Browsed { result, .. } => self.browsed(&result.unwrap()),
                Output::Deleted { result, .. } => {
                    self.deleting -= 1;
                    self.told += result.unwrap();
                }
                _ => {}
            }
        }
        self.count_deleted();
        self.world.audit();
    }

    fn delivered(&mut self, index: u64, delivery: &Delivery) {
        let (subqueue, mode) = role(index);
        let number = delivery.message.number.0;
        let taker = self.taker(index);
        taker.delivered += 1;
        assert!(taker.attached, "r{index} is there");
        assert!(
            taker.delivered <= taker.limit,
            "r{index} is given no more than it asked for"
        );
        if subqueue == Subqueue::DeadLetter {
            // It may have expired without a word.
            self.expire_if_due(number);
        }
        if self.in_order {
            assert_eq!(
                self.least(subqueue),
                Some(number),
                "the least number comes first"
            );
        }
        let message = &self.messages[&number];
        assert_eq!(message.part, subqueue.part());
        assert!(
            subqueue != Subqueue::Main || self.now() < message.expires,
            "{number} has expired"
        );
        assert_eq!(delivery.message.state, MessageState::Active);
        self.taken(mode, delivery);
    }

    fn fetched(&mut self, delete: bool, delivery: &Delivery) {
        let part = self.messages[&delivery.message.number.0].part;
        assert!(matches!(part, Part::Deferred | Part::DeadLetterDeferred));
        assert_eq!(delivery.message.state, MessageState::Deferred);
        let mode = if delete {
            ReceiveMode::ReceiveAndDelete
        } else {
            ReceiveMode::PeekLock
        };
        self.taken(mode, delivery);
    }

    fn taken(&mut self, mode: ReceiveMode, delivery: &Delivery) {
        let number = delivery.message.number.0;
        let until = self.now() + LOCK_MS;
        let message = self.messages.get_mut(&number).unwrap();
        assert_eq!(message.lock, None, "{number} has one holder at a time");
        assert_eq!(delivery.message.payload, message.payload);
        assert_eq!(delivery.message.delivery_count, message.count);
        assert_eq!(
            keys(&delivery.message),
            message.changes.keys().cloned().collect::<Vec<_>>()
        );
        match mode {
            ReceiveMode::PeekLock | ReceiveMode::LinkLock => {
                assert_eq!(delivery.lock_ms(), Some(LOCK_MS));
                message.lock = Some((delivery.token, until));
            }
            ReceiveMode::ReceiveAndDelete => drop(self.messages.remove(&number)),
        }
        self.given.push((number, delivery.token));
    }

    /// The first message that can be had.
    fn least(&self, subqueue: Subqueue) -> Option<u64> {
        let now = self.now();
        let available = |m: &Message| {
            let expired = subqueue == Subqueue::Main && m.expires <= now;
            m.part == subqueue.part() && m.lock.is_none() && !expired
        };
        self.messages
            .iter()
            .find(|(_, m)| available(m))
            .map(|(n, _)| *n)
    }

    fn drained(&mut self, index: u64) {
        let least = self.least(role(index).0);
        let taker = self.taker(index);
        let exhausted = taker.delivered == taker.limit || least.is_none();
        assert!(exhausted, "r{index} could have had {least:?}");
        taker.delivered = taker.limit;
    }

    /// A peek may be a little old, so only what it shows of each message is looked at.
    fn browsed(&self, shown: &[Browsed]) {
        assert!(shown.is_sorted_by(|a, b| a.number < b.number));
        for browsed in shown {
            assert!(browsed.number.0 < self.next);
            let expected = format!("message {}", browsed.number.0);
            assert_eq!(browsed.payload, expected.as_bytes());
        }
    }

    /// Once all reads have come back, the store holds what the model does.
    fn finish(&mut self) {
        self.answer_all();
        self.wait(0);
        while !self.world.waiting.is_empty() {
            self.answer_all();
            self.wait(0);
        }
        assert_eq!(self.deleting, 0, "every deletion is answered");
        let numbers: Vec<_> = self.messages.keys().copied().collect();
        numbers
            .into_iter()
            .for_each(|number| self.expire_if_due(number));
        self.compare_with_store();
        self.take_everything();
    }

    fn compare_with_store(&self) {
        self.world.disk.with_current(|image| {
            let rows: Vec<_> = image
                .messages
                .keys()
                .map(|(_, part, n)| (n.0, *part))
                .collect();
            let rows: BTreeMap<_, _> = rows.into_iter().collect();
            let expected: BTreeMap<_, _> =
                self.messages.iter().map(|(n, m)| (*n, m.part)).collect();
            assert_eq!(rows, expected, "every message is where it should be");
            for (number, message) in &self.messages {
                let key = (QUEUE, SequenceNumber(*number));
                let count = image.delivery_counts.get(&key).copied().unwrap_or(0);
                assert_eq!(count, message.count, "the delivery count of {number}");
                assert_eq!(image.bodies[&key], message.payload);
                assert_eq!(
                    image.patches.contains_key(&key),
                    !message.changes.is_empty()
                );
            }
        });
    }

    /// With a receiver that takes all, everything comes.
    fn take_everything(&mut self) {
        for index in [14, 4] {
            assert_eq!(role(index).1, ReceiveMode::ReceiveAndDelete);
            self.takers.resize(15, Taker::default());
            self.apply(&Op::Attach(index));
            // Locks run out and messages return to the receivers.
            for _ in 0..3 {
                self.apply(&Op::Credit {
                    receiver: index,
                    more: 1_000,
                    drain: false,
                });
                self.answer_all();
                self.wait(LOCK_MS);
                self.answer_all();
            }
        }
        for subqueue in [Subqueue::Main, Subqueue::DeadLetter] {
            assert_eq!(
                self.least(subqueue),
                None,
                "nothing is left in {subqueue:?}"
            );
        }
    }
}

/// The messages that were delivered.
pub fn handed_out(said: &[Output]) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for output in said {
        match output {
            Output::Deliver { delivery, .. } => drop(numbers.insert(delivery.message.number.0)),
            Output::Deferred {
                result: Ok(deliveries),
                ..
            } => numbers.extend(deliveries.iter().map(|d| d.message.number.0)),
            _ => {}
        }
    }
    numbers
}

fn is_dead(part: Part) -> bool {
    matches!(part, Part::DeadLetter | Part::DeadLetterDeferred)
}

fn keys(message: &Browsed) -> Vec<String> {
    let mut keys: Vec<_> = message
        .changes()
        .iter()
        .map(|(key, _)| key.clone())
        .collect();
    keys.retain(|key| key != "DeadLetterErrorDescription");
    keys.sort();
    keys
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
            lineage: true,
            lineage_bytes: 4_096,
            ..BrokerSettings::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_message_is_where_it_should_be(
        settings in settings(),
        dead_letter_expired in any::<bool>(),
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        let mut model = Model::new(settings, dead_letter_expired);
        for op in &ops {
            model.apply(op);
        }
        model.finish();
    }
}
