//! Crashes at random: what was said is true afterwards, and what was not said did not happen.
//!
//! The disk becomes durable in steps, and the shard has its say after each. So what has been
//! heard is exactly what a crash leaves, but for what time does silently: locks run out.

use std::collections::BTreeMap;

use broker::{
    BrokerSettings, Command, Incoming, LockToken, Outcome, Output, QueueSettings, ReceiveMode,
    RedrivenMessage, Subqueue, SubqueueId,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CommitId, Part, SequenceNumber};

use crate::world::{QUEUE, World, attach, receiver, request, role};

const RECEIVERS: u64 = 6;
/// The verb of a settlement that is a redrive.
const REDRIVE: usize = 5;

#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    Attach(u64),
    Credit(u64, u32),
    Settle {
        which: usize,
        verb: usize,
    },
    Fetch {
        which: usize,
        delete: bool,
    },
    Answer(usize),
    Wait(u64),
    /// This many more commits become durable.
    Sync(u64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..6_usize).prop_map(Op::Send),
        3 => (0..RECEIVERS).prop_map(Op::Attach),
        8 => (0..RECEIVERS, 0..6_u32).prop_map(|(receiver, more)| Op::Credit(receiver, more)),
        12 => (any::<usize>(), 0..6_usize).prop_map(|(which, verb)| Op::Settle { which, verb }),
        3 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, delete)| Op::Fetch { which, delete }),
        8 => any::<usize>().prop_map(Op::Answer),
        3 => (1..1_500_u64).prop_map(Op::Wait),
        8 => (1..6_u64).prop_map(Op::Sync),
        1 => Just(Op::Crash),
    ]
}

/// What has been heard of a message.
#[derive(Clone, Copy, Debug)]
struct Heard {
    part: Part,
    deliveries: u32,
    abandoned: u32,
}

/// What a request was about.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Send(u64),
    Settle(u64, usize),
    Fetch { delete: bool },
}

struct Listener {
    world: World,
    messages: BTreeMap<u64, Heard>,
    next: u64,
    limits: BTreeMap<u64, u32>,
    given: Vec<(u64, LockToken)>,
    asked: Vec<Asked>,
}

impl Listener {
    fn new(settings: BrokerSettings) -> Self {
        let queue = QueueSettings {
            lock_duration: 1_000,
            max_delivery_count: 1_000,
            ..QueueSettings::default()
        };
        let world = World::new(settings, queue);
        world.disk.set_automatic(false);
        Self {
            world,
            messages: BTreeMap::new(),
            next: 1,
            limits: BTreeMap::new(),
            given: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send(count) => {
                let messages = (0..count).map(|_| Incoming {
                    payload: Bytes::from_static(b"hello"),
                    ..Incoming::default()
                });
                let messages = messages.collect();
                let request = self.ask(Asked::Send(count as u64));
                self.turn(Command::Send {
                    request,
                    entity: QUEUE,
                    messages,
                });
            }
            Op::Attach(index) => {
                self.limits.insert(index, 0);
                self.turn(attach(index));
            }
            Op::Credit(index, more) => {
                let limit = self.limits.entry(index).or_default();
                *limit += more;
                let limit = *limit;
                self.turn(Command::Credit {
                    receiver: receiver(index),
                    limit,
                    drain: false,
                });
            }
            Op::Settle { which, verb } => self.settle(which, verb),
            Op::Fetch { which, delete } => self.fetch(which, delete),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(which) {
                    self.turn(command);
                }
            }
            Op::Wait(ms) => self.wait(ms),
            Op::Sync(commits) => {
                let durable = self.world.disk.durable();
                self.world.disk.sync_to(CommitId(durable.0 + commits));
                self.hear();
            }
            Op::Crash => self.crash(),
        }
    }

    fn ask(&mut self, asked: Asked) -> broker::RequestId {
        self.asked.push(asked);
        request(self.asked.len() as u64 - 1)
    }

    fn settle(&mut self, which: usize, verb: usize) {
        let Some(index) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (number, token) = self.given[index];
        if verb == REDRIVE {
            let request = self.ask(Asked::Settle(number, verb));
            return self.turn(Command::Redrive {
                request,
                subqueue: SubqueueId {
                    entity: QUEUE,
                    subqueue: Subqueue::DeadLetter,
                },
                token,
                message: RedrivenMessage::Unchanged(Bytes::from_static(b"hello")),
            });
        }
        let changes = vec![("key".to_owned(), Bytes::from_static(b"\x40"))];
        let outcome = match verb {
            0 => Outcome::Complete,
            1 => Outcome::abandon(changes),
            2 => Outcome::Defer { changes },
            3 => Outcome::DeadLetter { changes },
            _ => Outcome::Release,
        };
        let request = Some(self.ask(Asked::Settle(number, verb)));
        self.turn(Command::Settle {
            session: None,
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
    }

    fn fetch(&mut self, which: usize, delete: bool) {
        let Some(index) = which.checked_rem(self.messages.len()) else {
            return;
        };
        let (number, heard) = self.messages.iter().nth(index).unwrap();
        let dead = matches!(heard.part, Part::DeadLetter | Part::DeadLetterDeferred);
        let numbers = vec![SequenceNumber(*number)];
        let request = self.ask(Asked::Fetch { delete });
        self.turn(Command::ReceiveDeferred {
            request,
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: if dead {
                    Subqueue::DeadLetter
                } else {
                    Subqueue::Main
                },
            },
            numbers,
            mode: mode(delete),
            max_bytes: 1 << 20,
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
                Output::Sent {
                    request, result, ..
                } => {
                    let Asked::Send(count) = self.about(request) else {
                        panic!("it was a send");
                    };
                    assert_eq!(
                        result,
                        Ok(SequenceNumber(self.next)),
                        "numbers have no gaps"
                    );
                    for _ in 0..count {
                        self.arrived();
                    }
                }
                Output::Deliver { receiver, delivery } => {
                    let (subqueue, mode) = role(receiver.connection.0);
                    let number = delivery.message.number.0;
                    assert_eq!(self.messages[&number].part, subqueue.part());
                    self.taken(number, delivery.token, mode);
                }
                Output::Settled {
                    request,
                    result: Ok(()),
                } => {
                    if let Asked::Settle(number, verb) = self.about(request) {
                        self.settled(number, verb);
                    }
                }
                Output::Deferred {
                    request,
                    result: Ok(deliveries),
                } => {
                    let Asked::Fetch { delete } = self.about(request) else {
                        panic!("it was a fetch");
                    };
                    for delivery in deliveries {
                        self.taken(delivery.message.number.0, delivery.token, mode(delete));
                    }
                }
                _ => {}
            }
        }
    }

    fn about(&self, request: broker::RequestId) -> Asked {
        self.asked[usize::try_from(request.token).unwrap()]
    }

    fn taken(&mut self, number: u64, token: LockToken, mode: ReceiveMode) {
        self.given.push((number, token));
        match mode {
            ReceiveMode::PeekLock | ReceiveMode::LinkLock => self.message(number).deliveries += 1,
            ReceiveMode::ReceiveAndDelete => {
                assert!(self.messages.remove(&number).is_some(), "{number} is there");
            }
        }
    }

    fn message(&mut self, number: u64) -> &mut Heard {
        let message = self.messages.get_mut(&number);
        message.expect("only what is there is delivered and settled")
    }

    fn settled(&mut self, number: u64, verb: usize) {
        let message = self.message(number);
        let dead = matches!(message.part, Part::DeadLetter | Part::DeadLetterDeferred);
        match verb {
            0 => drop(self.messages.remove(&number)),
            1 => message.abandoned += u32::from(!dead),
            2 if dead => message.part = Part::DeadLetterDeferred,
            2 => message.part = Part::Deferred,
            3 => message.part = Part::DeadLetter,
            REDRIVE => {
                self.messages.remove(&number);
                self.arrived();
            }
            _ => {}
        }
    }

    /// The next message is there.
    fn arrived(&mut self) {
        let heard = Heard {
            part: Part::Active,
            deliveries: 0,
            abandoned: 0,
        };
        self.messages.insert(self.next, heard);
        self.next += 1;
    }

    fn crash(&mut self) {
        self.world.restart();
        self.limits.clear();
        self.world.audit();
        self.world.disk.with_current(|image| {
            let rows = image.messages.keys().map(|(_, part, n)| (n.0, *part));
            let rows: Vec<_> = rows.collect::<BTreeMap<_, _>>().into_iter().collect();
            let heard = self.messages.iter().map(|(n, heard)| (*n, heard.part));
            assert_eq!(
                rows,
                heard.collect::<Vec<_>>(),
                "what was said is what is there"
            );
            for (number, heard) in &self.messages {
                let key = (QUEUE, SequenceNumber(*number));
                let count = image.delivery_counts.get(&key).copied().unwrap_or(0);
                let range = heard.abandoned..=heard.deliveries;
                assert!(
                    range.contains(&count),
                    "{number} was delivered {count} times"
                );
            }
            let next = image.heads.get(&QUEUE).map_or(1, |head| head.next_number.0);
            assert_eq!(next, self.next, "numbers go on");
        });
    }

    fn finish(&mut self) {
        self.world.disk.sync_all();
        self.hear();
        self.crash();
        self.world.disk.set_automatic(true);
        for index in [4, 14] {
            assert_eq!(role(index).1, ReceiveMode::ReceiveAndDelete);
            self.apply(&Op::Attach(index));
            self.apply(&Op::Credit(index, 100_000));
            while !self.world.waiting.is_empty() {
                self.apply(&Op::Answer(0));
            }
        }
        let left = self
            .messages
            .values()
            .filter(|m| matches!(m.part, Part::Active | Part::DeadLetter));
        assert_eq!(left.count(), 0, "everything comes");
    }
}

fn mode(delete: bool) -> ReceiveMode {
    if delete {
        ReceiveMode::ReceiveAndDelete
    } else {
        ReceiveMode::PeekLock
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
    fn a_crash_leaves_exactly_what_was_said(
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
