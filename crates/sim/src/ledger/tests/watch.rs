//! Things left undone: found after a while, and not while there is a reason to wait.

use broker::{Output, ReadId, ReadRequest};
use store::{CommitId, Part, Query};

use super::desk::{Desk, LOCK, QUEUE, RECEIVER, TTL, check};

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
    let mut desk = Desk::new();
    desk.stored();
    let credit = desk.credit(false);
    desk.turn(&[credit], vec![], &[]).unwrap();
    check(desk.idle(LONG), "I14");
}

#[test]
fn a_free_message_may_wait_for_credit_for_the_disk_and_for_a_read() {
    let mut desk = Desk::new();
    desk.stored();
    assert_eq!(desk.idle(LONG), Ok(()));
    desk.reads.push(a_read());
    let credit = desk.credit(false);
    desk.turn(&[credit], vec![], &[]).unwrap();
    assert_eq!(desk.idle(LONG), Ok(()));
    // Not for ever.
    check(desk.idle(100 * LONG), "I14");
}

#[test]
fn a_locked_message_may_wait_and_is_missed_when_its_lock_is_over() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    let credit = desk.credit(false);
    desk.turn(&[credit], vec![], &[]).unwrap();
    let written = broker::Command::Written {
        connection: RECEIVER.connection,
        bytes: usize::MAX,
    };
    desk.turn(&[written], vec![], &[]).unwrap();
    assert_eq!(desk.idle(LONG), Ok(()));
    desk.pass(LOCK + 1);
    check(desk.idle(LONG), "I14");
}

#[test]
fn a_lock_that_runs_out_and_is_not_ended_is_found_without_a_receiver() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    desk.pass(LOCK + 1);
    check(desk.idle(LONG), "I14");
}

#[test]
fn a_lock_that_is_ended_when_it_runs_out_is_not_waited_for() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    desk.pass(LOCK + 1);
    let count = desk.count(id, 1);
    desk.turn(&[], vec![count], &[]).unwrap();
    assert_eq!(desk.idle(LONG), Ok(()));
}

#[test]
fn a_drain_that_is_not_answered_is_found() {
    let mut desk = Desk::new();
    let drain = desk.credit(true);
    desk.turn(&[drain], vec![], &[]).unwrap();
    check(desk.idle(LONG), "I14");
}

#[test]
fn a_drain_that_is_answered_is_not_waited_for() {
    let mut desk = Desk::new();
    let drain = desk.credit(true);
    let drained = Output::Drained { receiver: RECEIVER };
    desk.turn(&[drain], vec![], &[drained]).unwrap();
    desk.stored();
    assert_eq!(desk.idle(LONG), Ok(()));
}

#[test]
fn a_message_past_its_deadline_that_stays_is_found() {
    let mut desk = Desk::new();
    desk.stored();
    desk.pass(TTL - 1);
    assert_eq!(desk.idle(LONG), Ok(()));
    desk.pass(1);
    check(desk.idle(LONG), "I6");
}
