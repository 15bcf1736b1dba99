//! Answers that come too early, that are not true, or that never come.

use broker::{Output, SettleError, Subqueue};
use store::SequenceNumber;

use super::super::Ask;
use super::fake_broker::{FakeBroker, LOCK, accepted, check};

#[test]
fn accepted_before_it_is_durable_is_found() {
    let mut fake = FakeBroker::new();
    fake.held_back = true;
    let (_, request, send, writes) = fake.send();
    let said = [accepted(request, SequenceNumber(1))];
    check(fake.turn(&[send], writes, &said), "I1");
}

#[test]
fn accepted_without_being_stored_is_found() {
    let mut fake = FakeBroker::new();
    let (_, request, send, _) = fake.send();
    let said = [accepted(request, SequenceNumber(1))];
    check(fake.turn(&[send], vec![], &said), "I1");
}

#[test]
fn accepted_without_the_shard_having_said_so_is_found() {
    let mut fake = FakeBroker::new();
    let (id, _, send, writes) = fake.send();
    fake.held_back = true;
    fake.turn(&[send], writes, &[]).unwrap();
    check(fake.ledger.send_answered(id, true), "I1");
}

#[test]
fn a_send_that_is_never_answered_is_found() {
    let mut fake = FakeBroker::new();
    let (_, _, send, writes) = fake.send();
    check(fake.turn(&[send], writes, &[]), "I14");
}

#[test]
fn a_send_may_wait_for_the_disk() {
    let mut fake = FakeBroker::new();
    fake.held_back = true;
    let (_, _, send, writes) = fake.send();
    assert_eq!(fake.turn(&[send], writes, &[]), Ok(()));
}

#[test]
fn a_new_message_taken_for_a_duplicate_is_found() {
    let mut fake = FakeBroker::new();
    let (_, request, send, _) = fake.send();
    let said = [Output::Sent {
        request,
        result: Ok(SequenceNumber(1)),
        duplicates: vec![(0, SequenceNumber(1))],
    }];
    check(fake.turn(&[send], vec![], &said), "I11");
}

#[test]
fn completed_and_still_there_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = fake.deliver(id);
    let (request, settle) = fake.settle(id, token, Ask::Complete);
    let result = Ok(());
    let said = [Output::Settled { request, result }];
    check(fake.turn(&[settle], vec![], &said), "I2");
}

#[test]
fn a_client_told_of_a_completion_that_nobody_made_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.ledger.asked(id, Ask::Complete);
    let told = fake
        .ledger
        .answered(id, Subqueue::Main, Ask::Complete, true);
    check(told, "I2");
}

#[test]
fn a_settlement_refused_although_the_lock_is_held_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = fake.deliver(id);
    let (request, settle) = fake.settle(id, token, Ask::Release);
    let result = Err(SettleError::LockLost);
    let said = [Output::Settled { request, result }];
    check(fake.turn(&[settle], vec![], &said), "I3");
}

#[test]
fn a_settlement_done_although_the_lock_ran_out_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = fake.deliver(id);
    fake.pass(LOCK + 1);
    let (request, settle) = fake.settle(id, token, Ask::Release);
    let result = Ok(());
    let said = [Output::Settled { request, result }];
    check(fake.turn(&[settle], vec![], &said), "I3");
}

#[test]
fn a_message_lent_to_a_second_receiver_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.pass(LOCK - 1);
    let second = fake.delivery(id, 99);
    check(fake.turn(&[], vec![], &[second]), "I3");
}
