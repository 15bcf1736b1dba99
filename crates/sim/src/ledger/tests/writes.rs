//! Writes that nothing explains, and writes that contradict each other.

use store::{Part, SequenceNumber, Write};

use super::super::Ask;
use super::desk::{Desk, QUEUE, check};

#[test]
fn a_message_removed_for_no_reason_is_lost() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let writes = desk.erase(id);
    check(desk.turn(&[], writes, &[]), "I1");
}

#[test]
fn a_message_removed_by_a_completion_that_came_too_late_is_lost() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let token = desk.deliver(id);
    desk.pass(super::desk::LOCK + 1);
    let (_, settle) = desk.settle(id, token, Ask::Complete);
    let writes = desk.erase(id);
    check(desk.turn(&[settle], writes, &[]), "I1");
}

#[test]
fn a_body_removed_under_its_message_is_lost() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let pointer = desk.row(id).body;
    check(
        desk.turn(&[], vec![Write::RemoveBody { pointer }], &[]),
        "I1",
    );
}

#[test]
fn a_message_that_a_restart_would_not_find_is_lost() {
    let mut desk = Desk::new();
    desk.stored();
    desk.head.part_mut(Part::Active).resume = 2;
    check(desk.turn(&[], vec![desk.put_head()], &[]), "I1");
}

#[test]
fn a_body_that_outlives_its_message_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let token = desk.deliver(id);
    let (_, settle) = desk.settle(id, token, Ask::Complete);
    let mut writes = desk.erase(id);
    writes.retain(|write| !matches!(write, Write::RemoveBody { .. }));
    check(desk.turn(&[settle], writes, &[]), "I9");
}

#[test]
fn a_head_that_counts_one_too_many_is_found_at_once() {
    let mut desk = Desk::new();
    let (_, _, send, mut writes) = desk.send();
    desk.head.part_mut(Part::Active).count += 1;
    writes.pop();
    writes.push(desk.put_head());
    check(desk.turn(&[send], writes, &[]), "I9");
}

#[test]
fn a_set_that_changes_rows_and_no_head_is_found() {
    let mut desk = Desk::new();
    desk.stored();
    let (_, _, send, mut writes) = desk.send();
    writes.pop();
    check(desk.turn(&[send], writes, &[]), "I8");
}

#[test]
fn a_count_that_outlives_its_message_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    desk.pass(super::desk::LOCK + 1);
    let count = desk.count(id, 1);
    desk.turn(&[], vec![count], &[]).unwrap();
    let token = desk.deliver(id);
    check(desk.complete(id, token), "I9");
}

#[test]
fn a_number_that_is_left_out_is_found() {
    let mut desk = Desk::new();
    desk.head.next_number = SequenceNumber(2);
    let (_, _, send, writes) = desk.send();
    check(desk.turn(&[send], writes, &[]), "I8");
}

#[test]
fn a_message_that_nobody_sent_is_found() {
    let mut desk = Desk::new();
    let (_, _, _, writes) = desk.send();
    check(desk.turn(&[], writes, &[]), "I12");
}

#[test]
fn a_message_in_two_parts_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let mut writes = desk.step(id, Part::DeadLetter);
    writes.remove(0);
    check(desk.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_dead_letter_without_a_reason_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let writes = desk.step(id, Part::DeadLetter);
    check(desk.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_dead_letter_with_a_reason_that_does_not_hold_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let mut writes = desk.step(id, Part::DeadLetter);
    writes.push(desk.patch(id, "DeadLetterReason TTLExpiredException"));
    check(desk.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_message_past_its_deadline_is_dead_lettered_with_that_reason() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.pass(super::desk::TTL);
    let mut writes = desk.step(id, Part::DeadLetter);
    writes.push(desk.patch(id, "DeadLetterReason TTLExpiredException"));
    assert_eq!(desk.turn(&[], writes, &[]), Ok(()));
}

#[test]
fn a_message_that_used_up_its_deliveries_does_not_stay() {
    let mut desk = Desk::new();
    let id = desk.stored();
    for count in 1..3 {
        let write = desk.count(id, count);
        desk.turn(&[], vec![write], &[]).unwrap();
    }
    let write = desk.count(id, 3);
    check(desk.turn(&[], vec![write], &[]), "I6");
}

#[test]
fn a_count_that_jumps_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    let write = desk.count(id, 2);
    check(desk.turn(&[], vec![write], &[]), "I5");
}

#[test]
fn a_lock_that_is_ended_before_its_time_is_found() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    desk.pass(super::desk::LOCK - 1);
    let write = desk.count(id, 1);
    check(desk.turn(&[], vec![write], &[]), "I3");
}

#[test]
fn a_deadline_that_nobody_would_look_at_is_found() {
    let mut desk = Desk::new();
    let (_, _, send, mut writes) = desk.send();
    writes.retain(|write| !matches!(write, Write::PutExpiry { .. }));
    check(desk.turn(&[send], writes, &[]), "I6");
    let mut desk = Desk::new();
    desk.stored();
    let forgotten = Write::RemoveExpiry {
        entity: QUEUE,
        part: Part::Active,
        block: 0,
    };
    check(desk.turn(&[], vec![forgotten], &[]), "I6");
}
