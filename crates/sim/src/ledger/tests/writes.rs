//! Writes that nothing explains, and writes that contradict each other.

use store::{Part, SequenceNumber, Write};

use super::super::Ask;
use super::fake_broker::{FakeBroker, QUEUE, check};

#[test]
fn a_message_removed_for_no_reason_is_lost() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let writes = fake.erase(id);
    check(fake.turn(&[], writes, &[]), "I1");
}

#[test]
fn a_message_removed_by_a_completion_that_came_too_late_is_lost() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = fake.deliver(id);
    fake.pass(super::fake_broker::LOCK + 1);
    let (_, settle) = fake.settle(id, token, Ask::Complete);
    let writes = fake.erase(id);
    check(fake.turn(&[settle], writes, &[]), "I1");
}

#[test]
fn a_body_removed_under_its_message_is_lost() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let pointer = fake.row(id).body;
    check(
        fake.turn(&[], vec![Write::RemoveBody { pointer }], &[]),
        "I1",
    );
}

#[test]
fn a_message_that_a_restart_would_not_find_is_lost() {
    let mut fake = FakeBroker::new();
    fake.stored();
    fake.head.part_mut(Part::Active).resume = 2;
    check(fake.turn(&[], vec![fake.put_head()], &[]), "I1");
}

#[test]
fn a_body_that_outlives_its_message_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = fake.deliver(id);
    let (_, settle) = fake.settle(id, token, Ask::Complete);
    let mut writes = fake.erase(id);
    writes.retain(|write| !matches!(write, Write::RemoveBody { .. }));
    check(fake.turn(&[settle], writes, &[]), "I9");
}

#[test]
fn a_head_that_counts_one_too_many_is_found_at_once() {
    let mut fake = FakeBroker::new();
    let (_, _, send, mut writes) = fake.send();
    fake.head.part_mut(Part::Active).count += 1;
    writes.pop();
    writes.push(fake.put_head());
    check(fake.turn(&[send], writes, &[]), "I9");
}

#[test]
fn a_set_that_changes_rows_and_no_head_is_found() {
    let mut fake = FakeBroker::new();
    fake.stored();
    let (_, _, send, mut writes) = fake.send();
    writes.pop();
    check(fake.turn(&[send], writes, &[]), "I8");
}

#[test]
fn a_count_that_outlives_its_message_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.pass(super::fake_broker::LOCK + 1);
    let count = fake.count(id, 1);
    fake.turn(&[], vec![count], &[]).unwrap();
    let token = fake.deliver(id);
    check(fake.complete(id, token), "I9");
}

#[test]
fn a_number_that_is_left_out_is_found() {
    let mut fake = FakeBroker::new();
    fake.head.next_number = SequenceNumber(2);
    let (_, _, send, writes) = fake.send();
    check(fake.turn(&[send], writes, &[]), "I8");
}

#[test]
fn a_message_that_nobody_sent_is_found() {
    let mut fake = FakeBroker::new();
    let (_, _, _, writes) = fake.send();
    check(fake.turn(&[], writes, &[]), "I12");
}

#[test]
fn a_message_in_two_parts_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let mut writes = fake.step(id, Part::DeadLetter);
    writes.remove(0);
    check(fake.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_dead_letter_without_a_reason_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let writes = fake.step(id, Part::DeadLetter);
    check(fake.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_dead_letter_with_a_reason_that_does_not_hold_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let mut writes = fake.step(id, Part::DeadLetter);
    writes.push(fake.patch(id, "DeadLetterReason TTLExpiredException"));
    check(fake.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_message_past_its_deadline_is_dead_lettered_with_that_reason() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.pass(super::fake_broker::TTL);
    let mut writes = fake.step(id, Part::DeadLetter);
    writes.push(fake.patch(id, "DeadLetterReason TTLExpiredException"));
    assert_eq!(fake.turn(&[], writes, &[]), Ok(()));
}

#[test]
fn a_message_that_used_up_its_deliveries_does_not_stay() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    for count in 1..3 {
        let write = fake.count(id, count);
        fake.turn(&[], vec![write], &[]).unwrap();
    }
    let write = fake.count(id, 3);
    check(fake.turn(&[], vec![write], &[]), "I6");
}

#[test]
fn a_count_that_jumps_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let write = fake.count(id, 2);
    check(fake.turn(&[], vec![write], &[]), "I5");
}

#[test]
fn a_lock_that_is_ended_before_its_time_is_found() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    fake.pass(super::fake_broker::LOCK - 1);
    let write = fake.count(id, 1);
    check(fake.turn(&[], vec![write], &[]), "I3");
}

#[test]
fn a_deadline_that_nobody_would_look_at_is_found() {
    let mut fake = FakeBroker::new();
    let (_, _, send, mut writes) = fake.send();
    writes.retain(|write| !matches!(write, Write::PutExpiry { .. }));
    check(fake.turn(&[send], writes, &[]), "I6");
    let mut fake = FakeBroker::new();
    fake.stored();
    let forgotten = Write::RemoveExpiry {
        entity: QUEUE,
        part: Part::Active,
        block: 0,
    };
    check(fake.turn(&[], vec![forgotten], &[]), "I6");
}
