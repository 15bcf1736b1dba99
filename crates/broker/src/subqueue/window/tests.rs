//! The window against a model that simply knows what is on disk and what is locked.

use std::collections::{BTreeMap, BTreeSet};

use store::{BodyPointer, CommitId, EntityId, MessageRow};

use super::*;

use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    /// A message gets the next number.
    Arrive,
    /// Numbers are given out elsewhere.
    Skip(u64),
    /// A message arrives under an older number that was skipped.
    ArriveAt(usize),
    LockFirst,
    /// A lock ends, the count raised.
    Return(usize),
    /// A locked message goes.
    Settle(usize),
    /// Any message that is not locked goes.
    Remove(usize),
    Ask,
    /// The read sees the disk as it is now.
    Read,
    Answer,
    Fail,
    /// All locks are void; this many stragglers are known.
    Restart(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => Just(Op::Arrive),
        2 => (1..4_u64).prop_map(Op::Skip),
        4 => any::<usize>().prop_map(Op::ArriveAt),
        6 => Just(Op::LockFirst),
        4 => any::<usize>().prop_map(Op::Return),
        3 => any::<usize>().prop_map(Op::Settle),
        3 => any::<usize>().prop_map(Op::Remove),
        5 => Just(Op::Ask),
        3 => Just(Op::Read),
        4 => Just(Op::Answer),
        1 => Just(Op::Fail),
        1 => (0..4_usize).prop_map(Op::Restart),
    ]
}

type Snapshot = Vec<(SequenceNumber, Entry)>;

struct Model {
    limit: usize,
    window: Window,
    /// Live messages and their delivery counts.
    live: BTreeMap<SequenceNumber, u32>,
    locked: BTreeSet<SequenceNumber>,
    skipped: BTreeSet<SequenceNumber>,
    next: SequenceNumber,
    reads: u64,
    asked: Option<(ReadId, Ask, SequenceNumber, Option<Snapshot>)>,
}

impl Model {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            window: Window::new(limit, SequenceNumber(0), Vec::new()),
            live: BTreeMap::new(),
            locked: BTreeSet::new(),
            skipped: BTreeSet::new(),
            next: SequenceNumber::FIRST,
            reads: 0,
            asked: None,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Arrive => {
                let number = self.next;
                self.next = number.next();
                self.arrive(number);
            }
            Op::Skip(count) => {
                for _ in 0..count {
                    self.skipped.insert(self.next);
                    self.next = self.next.next();
                }
            }
            Op::ArriveAt(which) => {
                if let Some(number) = pick(&self.skipped, which) {
                    self.skipped.remove(&number);
                    self.arrive(number);
                }
            }
            Op::LockFirst => self.lock_first(),
            Op::Return(which) => {
                if let Some(number) = pick(&self.locked, which) {
                    self.locked.remove(&number);
                    *self.live.get_mut(&number).unwrap() += 1;
                    let beyond = self.beyond() - 1;
                    let entry = entry(self.live[&number]);
                    self.window.insert(number, entry, beyond);
                }
            }
            Op::Settle(which) => {
                if let Some(number) = pick(&self.locked, which) {
                    self.locked.remove(&number);
                    self.live.remove(&number);
                    self.window.forget(number);
                }
            }
            Op::Remove(which) => {
                let free: BTreeSet<_> = self.live.keys().copied().collect();
                let free = &free - &self.locked;
                if let Some(number) = pick(&free, which) {
                    self.live.remove(&number);
                    self.window.take(number);
                    self.window.forget(number);
                }
            }
            Op::Ask => self.ask(),
            Op::Read => self.read(),
            Op::Answer => self.answer(),
            Op::Fail => {
                if let Some((read, ..)) = self.asked.take() {
                    self.window.failed(read);
                }
            }
            Op::Restart(stragglers) => self.restart(stragglers),
        }
    }

    fn arrive(&mut self, number: SequenceNumber) {
        let beyond = self.beyond();
        self.live.insert(number, 0);
        self.window.insert(number, entry(0), beyond);
    }

    fn beyond(&self) -> u64 {
        (self.live.len() - self.window.len() - self.locked.len()) as u64
    }

    fn lock_first(&mut self) {
        if let Some((number, entry)) = self.window.first() {
            assert_eq!(
                Some(number),
                self.least_free(),
                "the least number comes first"
            );
            assert_eq!(entry.delivery_count, self.live[&number]);
            assert_eq!(self.window.take_first().map(|(n, _)| n), Some(number));
            self.locked.insert(number);
        }
    }

    fn least_free(&self) -> Option<SequenceNumber> {
        let mut free = self.live.keys().filter(|n| !self.locked.contains(n));
        free.next().copied()
    }

    fn ask(&mut self) {
        if let Some(ask) = self.window.wants(self.beyond(), self.next) {
            self.reads += 1;
            let read = ReadId(self.reads);
            self.window.asked(read, ask.clone(), self.next);
            // An earlier answer that is no longer waited for is never given.
            self.asked = Some((read, ask, self.next, None));
        }
    }

    fn read(&mut self) {
        if let Some((_, ask, until, snapshot @ None)) = &mut self.asked {
            *snapshot = Some(rows(&self.live, ask, *until));
        }
    }

    fn answer(&mut self) {
        self.read();
        if let Some((read, _, _, Some(rows))) = self.asked.take() {
            let locked = &self.locked;
            self.window
                .loaded(read, rows, |number| locked.contains(&number));
        }
    }

    fn restart(&mut self, stragglers: usize) {
        self.locked.clear();
        self.asked = None;
        let live: Vec<_> = self.live.keys().copied().collect();
        let stragglers = stragglers.min(live.len());
        let resume = live.get(stragglers).copied().unwrap_or(self.next);
        self.window = Window::new(self.limit, resume, live[..stragglers].to_vec());
    }

    fn check(&self) {
        let available = self.window.range(SequenceNumber(0)..SequenceNumber::MAX);
        let available: BTreeMap<_, _> = available.map(|(n, e)| (n, e.delivery_count)).collect();
        assert!(available.len() <= self.limit, "the window keeps its limit");
        for (number, count) in &available {
            assert_eq!(self.live.get(number), Some(count), "{number} is as on disk");
            assert!(!self.locked.contains(number), "{number} is not locked");
        }
        for number in self.live.keys().filter(|n| !self.locked.contains(n)) {
            let known = available.contains_key(number) || self.window.is_straggler(*number);
            assert_eq!(
                known,
                *number < self.window.end(),
                "{number} is known or beyond"
            );
        }
    }

    /// With reads that succeed, everything is handed out in order.
    fn hand_out_all(&mut self) {
        for _ in 0..4 * self.live.len() + 8 {
            self.answer();
            self.ask();
            self.lock_first();
            self.check();
        }
        assert_eq!(
            self.least_free(),
            None,
            "everything is handed out in the end"
        );
    }
}

fn rows(live: &BTreeMap<SequenceNumber, u32>, ask: &Ask, until: SequenceNumber) -> Snapshot {
    let row = |(number, count): (&SequenceNumber, &u32)| (*number, entry(*count));
    match ask {
        Ask::Stragglers(numbers) => {
            let there = live.iter().filter(|(number, _)| numbers.contains(number));
            there.map(row).collect()
        }
        Ask::From(from, limit) => live.range(*from..until).take(*limit).map(row).collect(),
    }
}

fn pick(from: &BTreeSet<SequenceNumber>, which: usize) -> Option<SequenceNumber> {
    let index = which.checked_rem(from.len())?;
    from.iter().nth(index).copied()
}

fn entry(delivery_count: u32) -> Entry {
    let body = BodyPointer {
        home: EntityId(1),
        number: SequenceNumber(0),
    };
    let row = MessageRow {
        enqueued_ms: 0,
        ttl_ms: u64::MAX,
        expires_ms: u64::MAX,
        size: 0,
        flags: 0,
        session_hash: 0,
        enqueued_number: 0,
        body,
    };
    Entry::written(row, delivery_count, CommitId::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_window_hands_out_everything_once_and_in_order(
        limit in 1..6_usize,
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let mut model = Model::new(limit);
        for op in &ops {
            model.apply(op);
            model.check();
        }
        model.hand_out_all();
    }
}
