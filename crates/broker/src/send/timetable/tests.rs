//! The timetable against a model that simply knows what is scheduled.

use std::collections::BTreeMap;

use super::*;

use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Schedule(u64),
    TakeFirst,
    Cancel(usize),
    Ask(usize),
    /// The read sees the disk as it is now.
    Read,
    Answer,
    Fail,
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0..20_u64).prop_map(Op::Schedule),
        5 => Just(Op::TakeFirst),
        3 => any::<usize>().prop_map(Op::Cancel),
        5 => (1..6_usize).prop_map(Op::Ask),
        3 => Just(Op::Read),
        5 => Just(Op::Answer),
        1 => Just(Op::Fail),
        1 => Just(Op::Restart),
    ]
}

struct Asked {
    read: ReadId,
    from: Due,
    limit: usize,
    found: Option<Vec<(Due, Planned)>>,
}

struct Model {
    limit: usize,
    timetable: Timetable,
    live: BTreeMap<Due, Planned>,
    next: u64,
    asked: Option<Asked>,
}

impl Model {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            timetable: Timetable::new(limit, Due::MAX),
            live: BTreeMap::new(),
            next: 1,
            asked: None,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Schedule(at) => self.schedule(at),
            Op::TakeFirst => {
                if let Some((due, planned)) = self.timetable.take_first() {
                    assert_eq!(self.live.pop_first(), Some((due, planned)), "in order");
                }
            }
            Op::Cancel(which) => {
                let index = which.checked_rem(self.live.len()).unwrap_or(0);
                if let Some(due) = self.live.keys().nth(index).copied() {
                    self.live.remove(&due);
                    self.timetable.forget(due);
                }
            }
            Op::Ask(most) => self.ask(most),
            Op::Read => self.read(),
            Op::Answer => {
                self.read();
                if let Some(asked) = self.asked.take() {
                    let found = asked.found.unwrap_or_default().into_iter();
                    let found = found.map(|(due, planned)| (due, Some(planned)));
                    self.timetable.loaded(asked.read, found.collect());
                }
            }
            Op::Fail => {
                if let Some(asked) = self.asked.take() {
                    self.timetable.failed(asked.read);
                }
            }
            Op::Restart => {
                self.timetable = Timetable::new(self.limit, self.timetable.start());
                self.asked = None;
            }
        }
        self.check();
    }

    fn schedule(&mut self, at: u64) {
        let number = SequenceNumber(self.next);
        self.next += 1;
        let planned = planned(number.0);
        let beyond = self.beyond();
        let due = Due { at, number };
        self.live.insert(due, planned.clone());
        self.timetable.insert(due, planned, beyond);
    }

    fn ask(&mut self, most: usize) {
        if let Some((from, limit)) = self.timetable.wants(self.beyond()) {
            let limit = limit.min(most);
            let read = ReadId(self.next);
            self.next += 1;
            self.timetable.asked(read, from, limit);
            let found = None;
            self.asked = Some(Asked {
                read,
                from,
                limit,
                found,
            });
        }
    }

    fn read(&mut self) {
        if let Some(asked) = &mut self.asked
            && asked.found.is_none()
        {
            let found = self.live.range(asked.from..).take(asked.limit);
            asked.found = Some(
                found
                    .map(|(due, planned)| (*due, planned.clone()))
                    .collect(),
            );
        }
    }

    fn beyond(&self) -> u64 {
        (self.live.len() - self.timetable.len()) as u64
    }

    /// What is known is the first part of what is there, within the limit.
    fn check(&self) {
        assert!(self.timetable.len() <= self.limit);
        let known: Vec<_> = self.timetable.known.iter().collect();
        let first: Vec<_> = self.live.iter().take(known.len()).collect();
        assert_eq!(known, first);
        if let Some((due, _)) = self.live.first_key_value() {
            assert!(self.timetable.start() <= *due, "a restart finds it");
        }
        if let Some(refill) = &self.timetable.refill {
            assert!(refill.changed.len() <= self.limit);
        }
    }

    /// In the end everything comes out in order.
    fn finish(&mut self) {
        while !self.live.is_empty() {
            self.apply(&Op::Answer);
            self.apply(&Op::Ask(3));
            self.apply(&Op::Answer);
            let known = self.timetable.len();
            assert!(known > 0, "something is known");
            for _ in 0..known {
                self.apply(&Op::TakeFirst);
            }
        }
    }
}

fn planned(ttl_ms: u64) -> Planned {
    Planned {
        ttl_ms,
        size: 1,
        flags: 0,
        session_hash: 0,
        session: None,
        waiting: None,
        body: None,
    }
}

#[test]
fn what_cannot_be_read_is_passed_over_and_what_has_come_there_since_is_known() {
    let due = |at| Due {
        at,
        number: SequenceNumber(at),
    };
    let mut timetable = Timetable::new(10, due(1));
    let (one, two) = (ReadId(1), ReadId(2));
    timetable.asked(one, due(1), 10);
    timetable.insert(due(5), planned(5), 3);
    assert_eq!(
        timetable.pass_over(two, due(7)),
        None,
        "it is not waited for"
    );
    assert_eq!(timetable.pass_over(one, due(7)), Some(due(1)));
    assert_eq!(timetable.wants(3), Some((due(7), 9)));
    timetable.asked(two, due(7), 2);
    let found = vec![(due(7), None), (due(8), Some(planned(8)))];
    assert_eq!(timetable.loaded(two, found), [due(7)]);
    assert_eq!(timetable.wants(2), Some((due(8).next(), 8)));
    assert_eq!(timetable.take_first(), Some((due(5), planned(5))));
    assert_eq!(timetable.take_first(), Some((due(8), planned(8))));
}

#[test]
fn a_refill_that_met_damage_gets_on_even_if_nothing_was_passed_over() {
    let from = Due {
        at: 4,
        number: SequenceNumber(4),
    };
    let mut timetable = Timetable::new(10, from);
    timetable.asked(ReadId(1), from, 10);
    timetable.pass_over(ReadId(1), from);
    assert_eq!(timetable.wants(1), Some((from.next(), 10)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn everything_comes_out_once_and_in_order(
        limit in 1..6_usize,
        ops in proptest::collection::vec(op(), 1..100),
    ) {
        let mut model = Model::new(limit);
        for op in &ops {
            model.apply(op);
        }
        model.finish();
    }
}
