//! Things left undone: found after a while, and not while there is a reason to wait.

use broker::{Output, ReadId, ReadRequest};
use store::{CommitId, Part, Query};

use super::fake_broker::{FakeBroker, LOCK, QUEUE, RECEIVER, TTL, check};

/// Long enough for anything to count as forgotten.
const LONG: usize = 100;

fn a_read() -> ReadRequest {
    let query = Query::Points {
        entity: QUEUE,
        part: Part::Active,
        numbers: Vec::new(),
        bodies: true,
        max_bytes: 0,
    };
    ReadRequest {
        read: ReadId(1),
        after: CommitId(1),
        query,
    }
}

#[test]
fn a_free_message_that_a_receiver_waits_for_is_missed() {
    let mut fake = FakeBroker::new();
    fake.stored();
    let credit = fake.credit(false);
    fake.turn(&[credit], vec![], &[]).unwrap();
    check(fake.idle(LONG), "I14");
}

#[test]
fn a_free_message_may_wait_for_credit_for_the_disk_and_for_a_read() {
    let mut fake = FakeBroker::new();
    fake.stored();
    assert_eq!(fake.idle(LONG), Ok(()));
    fake.reads.push(a_read());
    let credit = fake.credit(false);
    fake.turn(&[credit], vec![], &[]).unwrap();
    assert_eq!(fake.idle(LONG), Ok(()));
    // Not for ever.
    check(fake.idle(200 * LONG), "I14");
}

#[test]
fn a_locked_message_may_wait_and_is_missed_when_its_lock_is_over() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    let credit = fake.credit(false);
    fake.turn(&[credit], vec![], &[]).unwrap();
    let written = broker::Command::Written {
        connection: RECEIVER.connection,
        bytes: usize::MAX,
    };
    fake.turn(&[written], vec![], &[]).unwrap();
    assert_eq!(fake.idle(LONG), Ok(()));
    fake.pass(LOCK + 1);
    check(fake.idle(LONG), "I14");
}

#[test]
fn a_lock_that_runs_out_and_is_not_ended_is_found_without_a_receiver() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.pass(LOCK + 1);
    check(fake.idle(LONG), "I14");
}

#[test]
fn a_lock_that_is_ended_when_it_runs_out_is_not_waited_for() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.pass(LOCK + 1);
    let count = fake.count(id, 1);
    fake.turn(&[], vec![count], &[]).unwrap();
    assert_eq!(fake.idle(LONG), Ok(()));
}

#[test]
fn a_drain_that_is_not_answered_is_found() {
    let mut fake = FakeBroker::new();
    let drain = fake.credit(true);
    fake.turn(&[drain], vec![], &[]).unwrap();
    check(fake.idle(LONG), "I14");
}

#[test]
fn a_drain_that_is_answered_is_not_waited_for() {
    let mut fake = FakeBroker::new();
    let drain = fake.credit(true);
    let drained = Output::Drained { receiver: RECEIVER };
    fake.turn(&[drain], vec![], &[drained]).unwrap();
    fake.stored();
    assert_eq!(fake.idle(LONG), Ok(()));
}

#[test]
fn a_message_past_its_deadline_that_stays_is_found() {
    let mut fake = FakeBroker::new();
    fake.stored();
    fake.pass(TTL - 1);
    assert_eq!(fake.idle(LONG), Ok(()));
    fake.pass(1);
    check(fake.idle(LONG), "I6");
}
