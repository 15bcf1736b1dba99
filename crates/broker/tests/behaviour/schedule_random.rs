//! Schedules at random, with crashes, late and failing reads and a wall clock that jumps.
//!
//! The disk becomes durable in steps, and the shard has its say after each, so what has been heard
//! is exactly what a crash leaves. Each message is known by its text, since activation renames it.

use std::collections::BTreeMap;

use broker::{BrokerSettings, Command, Incoming, Output, QueueSettings, SubqueueId, Wall};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CommitId, Part, SequenceNumber, StoreError};

use crate::world::{QUEUE, World, attach, receiver, request};

/// A receiver of the main queue that takes without locks.
const TAKER: u64 = 4;

#[derive(Clone, Debug)]
enum Op {
    /// For each message how long after now it is due, in steps that make equal times likely.
    Send(Vec<Option<u64>>),
    /// Cancels one that was heard of, and perhaps another.
    Cancel(usize, Option<usize>),
    Peek(u64),
    Answer(usize),
    Break(usize),
    Wait(u64),
    Jump(i64),
    /// This many more commits become durable.
    Sync(u64),
    Crash,
    /// Everything is done that can be done now.
    Calm,
}

fn op() -> impl Strategy<Value = Op> {
    let due = prop_oneof![1 => Just(None), 5 => (1..20_u64).prop_map(|n| Some(n * 100)),
        1 => Just(Some(200_000))];
    prop_oneof![
        10 => proptest::collection::vec(due, 1..5).prop_map(Op::Send),
        6 => (any::<usize>(), proptest::option::of(any::<usize>()))
            .prop_map(|(which, other)| Op::Cancel(which, other)),
        2 => (0..30_u64).prop_map(Op::Peek),
        10 => any::<usize>().prop_map(Op::Answer),
        1 => any::<usize>().prop_map(Op::Break),
        8 => (1..1_000_u64).prop_map(Op::Wait),
        1 => (-100_000..100_000_i64).prop_map(Op::Jump),
        8 => (1..6_u64).prop_map(Op::Sync),
        1 => Just(Op::Crash),
        2 => Just(Op::Calm),
    ]
}

/// What was sent and heard to be accepted.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    /// The wall clock's time, if it was later than that of sending.
    due: Option<u64>,
    cancelled: bool,
}

enum Asked {
    Send(Vec<Option<u64>>),
    Cancel(Vec<u64>),
    Peek(u64),
}

struct Listener {
    world: World,
    /// By text.
    sent: BTreeMap<u64, Sent>,
    texts: u64,
    asked: Vec<(u64, Asked)>,
    went_back: bool,
    /// In the order in which they came.
    came: Vec<u64>,
}

impl Listener {
    fn new(settings: BrokerSettings) -> Self {
        let world = World::new(settings, QueueSettings::default());
        world.disk.set_automatic(false);
        Self {
            world,
            sent: BTreeMap::new(),
            texts: 0,
            asked: Vec::new(),
            went_back: false,
            came: Vec::new(),
        }
    }

    fn wall(&self) -> u64 {
        self.world.now().wall.0
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Send(due) => self.send(due),
            Op::Cancel(which, other) => self.cancel(*which, *other),
            Op::Peek(from) => {
                let request = self.ask(Asked::Peek(*from));
                self.turn(Command::Peek {
                    request,
                    subqueue: SubqueueId {
                        entity: QUEUE,
                        subqueue: broker::Subqueue::Main,
                    },
                    state: None,
                    from: SequenceNumber(*from),
                    count: 4,
                    max_bytes: 1 << 20,
                });
            }
            Op::Answer(which) => self.answer(*which),
            Op::Break(which) => {
                if let Some(Command::Loaded { read, .. }) = self.world.answer(*which) {
                    let found = Err(StoreError::Io("no answer".to_owned()));
                    self.turn(Command::Loaded { read, found });
                }
            }
            Op::Wait(ms) => self.wait(*ms),
            Op::Jump(by) => {
                self.world.jumped += by;
                self.went_back |= *by < 0;
                self.hear();
            }
            Op::Sync(commits) => {
                let durable = self.world.disk.durable();
                self.world.disk.sync_to(CommitId(durable.0 + commits));
                self.hear();
            }
            Op::Crash => self.crash(),
            Op::Calm => self.calm(),
        }
    }

    fn ask(&mut self, asked: Asked) -> broker::RequestId {
        self.asked.push((self.texts, asked));
        request(self.asked.len() as u64 - 1)
    }

    fn send(&mut self, after: &[Option<u64>]) {
        let due = |after: &Option<u64>| after.map(|after| self.wall() / 100 * 100 + after);
        let due: Vec<_> = after.iter().map(due).collect();
        let due = due.iter().map(|due| due.filter(|due| *due > self.wall()));
        let due: Vec<_> = due.collect();
        let messages = (self.texts..).zip(&due).map(|(text, due)| Incoming {
            payload: Bytes::from(text.to_string()),
            scheduled: due.map(Wall),
            ..Incoming::default()
        });
        let messages = messages.collect();
        let count = due.len() as u64;
        let request = self.ask(Asked::Send(due));
        self.texts += count;
        self.turn(Command::Send {
            request,
            entity: QUEUE,
            messages,
        });
    }

    fn cancel(&mut self, which: usize, other: Option<usize>) {
        let Some(index) = which.checked_rem(self.sent.len()) else {
            return;
        };
        let of = |index: usize| self.sent.values().nth(index % self.sent.len());
        let mut numbers: Vec<_> = of(index).iter().map(|sent| sent.number).collect();
        numbers.extend(other.and_then(of).map(|sent| sent.number));
        let request = self.ask(Asked::Cancel(numbers.clone()));
        self.turn(Command::CancelScheduled {
            request,
            entity: QUEUE,
            numbers: numbers.into_iter().map(SequenceNumber).collect(),
        });
    }

    fn answer(&mut self, which: usize) {
        if let Some(command) = self.world.answer(which) {
            self.turn(command);
        }
    }

    fn wait(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.hear();
        }
    }

    fn crash(&mut self) {
        self.world.restart();
        self.check();
    }

    fn turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.heard(said);
    }

    fn hear(&mut self) {
        let said = self.world.turn_with(Vec::new());
        self.heard(said);
    }

    fn heard(&mut self, said: Vec<Output>) {
        for output in said {
            match output {
                Output::Sent {
                    request, result, ..
                } => self.accepted(request.token, result.unwrap()),
                Output::Cancelled {
                    request,
                    result: Ok(()),
                } => self.cancelled(request.token),
                Output::Deliver { delivery, .. } => {
                    self.came.push(text_of(&delivery.message.payload));
                }
                Output::Browsed { request, result } => {
                    let (_, Asked::Peek(from)) = self.about(request.token) else {
                        panic!("it was a peek");
                    };
                    // A read of it may have failed.
                    let messages = result.unwrap_or_default();
                    let numbers = messages.iter().map(|message| message.number.0);
                    assert!(numbers.clone().all(|number| number >= *from));
                    assert!(numbers.is_sorted_by(|one, other| one < other));
                }
                _ => {}
            }
        }
        self.check();
    }

    fn about(&self, token: u64) -> &(u64, Asked) {
        &self.asked[usize::try_from(token).unwrap()]
    }

    fn accepted(&mut self, token: u64, first: SequenceNumber) {
        let (text, Asked::Send(due)) = self.about(token) else {
            panic!("it was a send");
        };
        let sent = (*text..).zip(first.0..).zip(due.clone());
        let sent = sent.map(|((text, number), due)| {
            let cancelled = false;
            let sent = Sent {
                number,
                due,
                cancelled,
            };
            (text, sent)
        });
        let sent: Vec<_> = sent.collect();
        self.sent.extend(sent);
    }

    fn cancelled(&mut self, token: u64) {
        let (_, Asked::Cancel(numbers)) = self.about(token) else {
            panic!("it was a cancellation");
        };
        for number in numbers.clone() {
            let sent = self.sent.values_mut().find(|sent| sent.number == number);
            let sent = sent.unwrap();
            assert!(sent.due.is_some(), "only what is scheduled is cancelled");
            sent.cancelled = true;
        }
    }

    /// Nothing is active before its time, and the store is in good order.
    fn check(&self) {
        self.world.audit();
        self.world.disk.with_current(|image| {
            for ((_, part, number), row) in &image.messages {
                let body = &image.bodies[&(row.body.home, row.body.number)];
                let Some(sent) = self.sent.get(&text_of(body)) else {
                    continue;
                };
                let due = sent.due.unwrap_or(0);
                match part {
                    Part::Scheduled => assert_eq!((number.0, row.enqueued_ms), (sent.number, due)),
                    _ => assert!(row.enqueued_ms >= due, "{number} is early"),
                }
            }
        });
    }

    /// Lets everything happen that is due, with reads that succeed: then nothing is late.
    fn calm(&mut self) {
        self.wait(1_001);
        loop {
            let waiting = !self.world.waiting.is_empty();
            let due = self.world.shard.broker.is_due(self.world.now());
            if !waiting && !due {
                break;
            }
            self.answer(0);
            self.hear();
        }
        let wall = self.wall();
        self.world.disk.with_current(|image| {
            for ((_, part, number), row) in &image.messages {
                let late = *part == Part::Scheduled && row.enqueued_ms <= wall;
                assert!(!late, "{number} is late");
            }
        });
        // The lag is told by the clock of the last step, which may have jumped since.
        self.turn(Command::Tick);
        let info = self.world.shard.broker.queue(QUEUE).unwrap();
        assert_eq!(info.schedule_lag_ms, 0);
    }

    /// In the end each message comes that was accepted and not cancelled, once.
    fn finish(&mut self) {
        self.world.disk.sync_all();
        self.hear();
        self.crash();
        self.world.disk.set_automatic(true);
        self.world.jumped = self.world.jumped.max(0) + 1_000_000;
        self.turn(attach(TAKER));
        self.turn(Command::Credit {
            receiver: receiver(TAKER),
            limit: 100_000,
            drain: false,
        });
        self.calm();
        let mut came = self.came.clone();
        came.sort_unstable();
        let expected = self.sent.iter().filter(|(_, sent)| !sent.cancelled);
        assert_eq!(came, expected.map(|(text, _)| *text).collect::<Vec<_>>());
        let order = self.came.iter().filter_map(|text| {
            let sent = self.sent[text];
            Some((sent.due?, sent.number))
        });
        assert!(self.went_back || order.is_sorted(), "in order of due time");
    }
}

fn text_of(payload: &Bytes) -> u64 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

fn settings() -> impl Strategy<Value = BrokerSettings> {
    let window = prop_oneof![1..5_usize, Just(1_000)];
    let turn_work = prop_oneof![Just(2_usize), Just(9), Just(1_024)];
    (window, turn_work).prop_map(|(window, turn_work)| BrokerSettings {
        window,
        turn_work,
        ..BrokerSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn everything_comes_once_at_its_time_and_in_order(
        settings in settings(),
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        let mut listener = Listener::new(settings);
        for op in &ops {
            listener.apply(op);
        }
        listener.finish();
    }
}
