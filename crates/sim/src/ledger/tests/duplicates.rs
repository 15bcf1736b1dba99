//! Duplicates that are kept, and messages that are dropped though they are none.

use broker::{Command, Output, RequestId};
use store::{EntryKey, Index, SequenceNumber, Write};

use super::fake_broker::{FakeBroker, QUEUE, accepted, check};
use crate::message::{MessageId, SendOptions};
use crate::violation::Violation;

/// Milliseconds.
const WINDOW: u64 = 20_000;
/// Behind the beginning of its period.
const ID: &[u8] = b"hash of this id!";

fn key(period: u64) -> EntryKey {
    let group = [&period.to_be_bytes(), ID].concat();
    EntryKey::new(group, SequenceNumber(0))
}

impl FakeBroker {
    fn detecting() -> Self {
        let mut fake = Self::new();
        fake.ledger.queues[0].duplicate_window = Some(WINDOW);
        fake
    }

    /// Another message with the id of all of these tests: what a broker writes that keeps it.
    fn again(&mut self) -> (MessageId, RequestId, Command, Vec<Write>) {
        let options = SendOptions {
            key: Some(7),
            ..SendOptions::default()
        };
        let (id, request, command, payload) = self.ask(options);
        let number = self.head.next_number;
        let at = self.now.wall.0;
        if self.head.periods.is_empty() {
            self.head.periods.push(at);
        }
        let mut writes = self.arrival(payload);
        let mut value = at.to_be_bytes().to_vec();
        value.extend_from_slice(&number.0.to_be_bytes());
        writes.push(Write::PutEntry {
            entity: QUEUE,
            index: Index::DuplicateId,
            key: key(self.head.periods[0]),
            value: value.into(),
        });
        (id, request, command, writes)
    }

    fn first(&mut self) -> MessageId {
        let (id, request, command, writes) = self.again();
        let answer = accepted(request, SequenceNumber(1));
        self.turn(&[command], writes, &[answer]).unwrap();
        id
    }

    /// The id leaves the store, and its period the head.
    fn forget(&mut self) -> Vec<Write> {
        let period = self.head.periods.remove(0);
        let keys = Box::new(key(period)..key(period + 1));
        vec![
            Write::RemoveEntries {
                entity: QUEUE,
                index: Index::DuplicateId,
                keys,
            },
            Write::PutHead {
                entity: QUEUE,
                head: self.head.clone(),
            },
        ]
    }

    /// The next message is dropped as a duplicate of that one.
    fn drop_next(&mut self, of: u64) -> Result<(), Violation> {
        let (next, head) = (self.head.next_number, self.head.clone());
        let (_, request, command, _) = self.again();
        self.head = head;
        let answer = Output::Sent {
            request,
            result: Ok(next),
            duplicates: vec![(0, SequenceNumber(of))],
        };
        self.turn(&[command], vec![], &[answer])
    }
}

#[test]
fn a_duplicate_that_is_dropped_is_no_violation_and_is_not_missed() {
    let mut fake = FakeBroker::detecting();
    fake.first();
    fake.pass(WINDOW - 1);
    assert_eq!(fake.drop_next(1), Ok(()));
    assert_eq!(fake.ledger.send_answered(2, true), Ok(()));
    assert_eq!(fake.ledger.crashed(&fake.image()), Ok(()));
}

#[test]
fn a_duplicate_that_is_kept_is_found() {
    let mut fake = FakeBroker::detecting();
    fake.first();
    fake.pass(WINDOW - 1);
    let (_, _, command, mut writes) = fake.again();
    // The block has its least deadline already.
    writes.retain(|write| !matches!(write, Write::PutExpiry { .. }));
    check(fake.turn(&[command], writes, &[]), "I11");
}

#[test]
fn a_message_that_is_dropped_for_nothing_or_after_the_window_is_found() {
    let mut fake = FakeBroker::detecting();
    check(fake.drop_next(1), "I11");

    let mut fake = FakeBroker::detecting();
    fake.first();
    fake.pass(WINDOW);
    check(fake.drop_next(1), "I11");
}

#[test]
fn an_id_that_is_forgotten_in_its_window_or_not_remembered_is_found() {
    let mut fake = FakeBroker::detecting();
    fake.first();
    fake.pass(WINDOW - 1);
    let writes = fake.forget();
    check(fake.turn(&[], writes.clone(), &[]), "I11");

    let mut fake = FakeBroker::detecting();
    let (_, _, command, mut writes) = fake.again();
    writes.pop();
    check(fake.turn(&[command], writes, &[]), "I11");
}

#[test]
fn eras_without_ids_and_ids_without_their_eras_are_found() {
    for kept in 0..2 {
        let mut fake = FakeBroker::detecting();
        fake.first();
        fake.pass(WINDOW);
        let mut writes = fake.forget();
        writes.remove(kept);
        check(fake.turn(&[], writes, &[]), "I11");
    }
}

#[test]
fn an_id_in_a_later_era_than_its_own_is_found() {
    let mut fake = FakeBroker::detecting();
    fake.head.periods.push(fake.now.wall.0 + 1);
    let (_, _, command, writes) = fake.again();
    check(fake.turn(&[command], writes, &[]), "I11");
}

#[test]
fn what_was_dropped_for_the_sake_of_another_lets_it_not_be_lost() {
    let mut fake = FakeBroker::detecting();
    let first = fake.first();
    fake.ledger.send_lost(first);
    fake.drop_next(1).unwrap();
    check(fake.ledger.crashed(&store::Image::default()), "I1");
}
