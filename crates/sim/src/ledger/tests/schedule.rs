//! Scheduled messages that come early, late, in a wrong order, or back.

use broker::{Command, Output, RequestError, RequestId};
use bytes::Bytes;
use store::{BodyPointer, EntryKey, Index, MessageRow, Part, SequenceNumber, Write};

use super::fake_broker::{FakeBroker, QUEUE, TTL, accepted, check};
use crate::message::{MessageId, SendOptions};
use crate::violation::Violation;

/// Milliseconds until the messages of these tests are due.
const AHEAD: u64 = 1_000;

fn key(fake: &FakeBroker, id: MessageId) -> EntryKey {
    let number = fake.ledger.books.place(id).unwrap().number;
    EntryKey::by_u64(fake.row(id).enqueued_ms, number)
}

impl FakeBroker {
    /// A message that was accepted for later: its id and what a sound broker writes.
    fn planned(&mut self, ahead: u64) -> (MessageId, RequestId, Command, Vec<Write>) {
        let due = self.now.wall.0 + ahead;
        let options = SendOptions {
            due: Some(due),
            ..SendOptions::default()
        };
        let (id, request, command, body) = self.ask(options);
        let number = self.head.next_number;
        self.head.next_number = number.next();
        let pointer = BodyPointer {
            home: QUEUE,
            number,
        };
        let row = MessageRow {
            enqueued_ms: due,
            ttl_ms: TTL,
            expires_ms: u64::MAX,
            size: u32::try_from(body.len()).unwrap(),
            flags: 0,
            session_hash: 0,
            enqueued_number: 0,
            body: pointer,
        };
        let writes = vec![
            Write::PutBody { pointer, body },
            Write::PutEntry {
                entity: QUEUE,
                index: Index::Schedule,
                key: EntryKey::by_u64(due, number),
                value: Bytes::new(),
            },
            self.put(Part::Scheduled, number, row),
            self.put_head(),
        ];
        (id, request, command, writes)
    }

    fn scheduled(&mut self, ahead: u64) -> MessageId {
        let (id, request, command, writes) = self.planned(ahead);
        let number = self.head.next_number;
        let answer = accepted(request, SequenceNumber(number.0 - 1));
        self.turn(&[command], writes, &[answer]).unwrap();
        id
    }

    /// Out of the schedule, the head not included.
    fn unschedule(&mut self, id: MessageId) -> Vec<Write> {
        let place = self.ledger.books.place(id).unwrap();
        let entry = Write::RemoveEntry {
            entity: QUEUE,
            index: Index::Schedule,
            key: key(self, id),
        };
        vec![self.remove(Part::Scheduled, place.number), entry]
    }

    fn activation(&mut self, id: MessageId) -> Vec<Write> {
        let mut writes = self.unschedule(id);
        let number = self.head.next_number;
        self.head.next_number = number.next();
        let enqueued_ms = self.now.wall.0;
        let row = MessageRow {
            enqueued_ms,
            expires_ms: enqueued_ms + TTL,
            ..self.row(id)
        };
        writes.push(Write::PutExpiry {
            entity: QUEUE,
            part: Part::Active,
            block: 0,
            due_ms: row.expires_ms,
        });
        writes.push(self.put(Part::Active, number, row));
        writes.push(self.put_head());
        writes
    }

    fn cancellation(&mut self, ids: &[MessageId]) -> (RequestId, Command, Vec<Write>) {
        let places = ids.iter().map(|id| self.ledger.books.place(*id).unwrap());
        let numbers: Vec<_> = places.map(|place| place.number).collect();
        let request = self.request();
        let command = Command::CancelScheduled {
            request,
            entity: QUEUE,
            numbers,
        };
        let mut writes = Vec::new();
        for id in ids {
            let pointer = self.row(*id).body;
            writes.extend(self.unschedule(*id));
            writes.push(Write::RemoveBody { pointer });
        }
        writes.push(self.put_head());
        (request, command, writes)
    }

    fn answer_cancelled(&mut self, request: RequestId, done: bool) -> Result<(), Violation> {
        let missing = RequestError::MessageNotFound(SequenceNumber(1));
        let result = if done { Ok(()) } else { Err(missing) };
        self.turn(&[], vec![], &[Output::Cancelled { request, result }])
    }
}

#[test]
fn a_message_that_becomes_available_at_its_time_is_no_violation() {
    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    fake.pass(AHEAD);
    let writes = fake.activation(id);
    assert_eq!(fake.turn(&[], writes, &[]), Ok(()));
    let token = fake.deliver(id);
    assert_eq!(fake.complete(id, token), Ok(()));
}

#[test]
fn a_message_that_becomes_available_before_its_time_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    fake.pass(AHEAD - 1);
    let writes = fake.activation(id);
    check(fake.turn(&[], writes, &[]), "I10");
}

#[test]
fn a_message_that_is_available_at_once_though_it_is_scheduled_is_found() {
    let mut fake = FakeBroker::new();
    let (_, _, command, mut writes) = fake.planned(AHEAD);
    *fake.head.parts = Default::default();
    let Some(Write::PutMessage { number, row, .. }) = writes.get(2).cloned() else {
        panic!("the third write puts the row");
    };
    writes.truncate(1);
    writes.push(fake.put(Part::Active, number, row));
    writes.push(fake.put_head());
    check(fake.turn(&[command], writes, &[]), "I6");
}

#[test]
fn a_message_that_overtakes_one_that_is_due_before_it_is_found() {
    let mut fake = FakeBroker::new();
    let late = fake.scheduled(AHEAD);
    let early = fake.scheduled(AHEAD - 1);
    fake.pass(AHEAD);
    let mut writes = fake.activation(late);
    check(fake.turn(&[], writes.clone(), &[]), "I10");

    let mut fake = FakeBroker::new();
    assert_eq!(fake.scheduled(AHEAD), late);
    assert_eq!(fake.scheduled(AHEAD - 1), early);
    fake.pass(AHEAD);
    writes = fake.activation(late);
    writes.extend(fake.activation(early));
    check(fake.turn(&[], writes, &[]), "I10");
}

#[test]
fn a_row_without_its_entry_and_an_entry_without_its_row_are_found() {
    let mut fake = FakeBroker::new();
    let (_, _, command, mut writes) = fake.planned(AHEAD);
    writes.remove(1);
    check(fake.turn(&[command], writes, &[]), "I10");

    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    fake.pass(AHEAD);
    let mut writes = fake.activation(id);
    writes.retain(|write| !matches!(write, Write::RemoveEntry { .. }));
    check(fake.turn(&[], writes, &[]), "I10");
}

#[test]
fn a_message_whose_time_is_forgotten_is_found() {
    let mut fake = FakeBroker::new();
    fake.scheduled(AHEAD);
    fake.idle(100).unwrap();
    fake.pass(AHEAD);
    check(fake.idle(100), "I10");
}

#[test]
fn a_start_behind_the_first_scheduled_message_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    fake.head.schedule_from = (fake.row(id).enqueued_ms + 1, SequenceNumber(0));
    check(fake.turn(&[], vec![fake.put_head()], &[]), "I10");
}

#[test]
fn messages_that_are_taken_back_together_are_no_violation() {
    let mut fake = FakeBroker::new();
    let ids = [fake.scheduled(AHEAD), fake.scheduled(AHEAD)];
    let (request, command, writes) = fake.cancellation(&ids);
    let done = Output::Cancelled {
        request,
        result: Ok(()),
    };
    assert_eq!(fake.turn(&[command], writes, &[done]), Ok(()));
}

#[test]
fn a_message_that_is_taken_back_without_the_others_is_found() {
    let mut fake = FakeBroker::new();
    let ids = [fake.scheduled(AHEAD), fake.scheduled(AHEAD)];
    let numbers = ids.map(|id| fake.ledger.books.place(id).unwrap().number);
    let (request, _, writes) = fake.cancellation(&ids[..1]);
    let command = Command::CancelScheduled {
        request,
        entity: QUEUE,
        numbers: numbers.to_vec(),
    };
    check(fake.turn(&[command], writes, &[]), "I10");
}

#[test]
fn a_message_that_nobody_wants_back_and_that_goes_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    let (_, _, writes) = fake.cancellation(&[id]);
    check(fake.turn(&[], writes, &[]), "I10");
}

#[test]
fn a_cancellation_that_is_answered_and_not_done_or_done_and_refused_is_found() {
    for done in [false, true] {
        let mut fake = FakeBroker::new();
        let id = fake.scheduled(AHEAD);
        let (request, command, writes) = fake.cancellation(&[id]);
        let writes = if done { writes } else { Vec::new() };
        // Its answer is missing so far, which is all that may be wrong.
        check(fake.turn(&[command], writes, &[]), "I14");
        check(fake.answer_cancelled(request, !done), "I10");
    }
}

#[test]
fn a_message_that_was_taken_back_and_is_there_after_a_crash_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.scheduled(AHEAD);
    let image = fake.image();
    let number = fake.ledger.books.place(id).unwrap().number;
    fake.ledger.cancel_asked(&[(number, id)]);
    let (request, command, writes) = fake.cancellation(&[id]);
    let done = Output::Cancelled {
        request,
        result: Ok(()),
    };
    fake.turn(&[command], writes, &[done]).unwrap();
    fake.ledger
        .cancel_answered(0, &[(number, id)], true)
        .unwrap();
    check(fake.ledger.crashed(&image), "I2");
}
