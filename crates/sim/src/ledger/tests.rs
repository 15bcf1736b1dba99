//! The checker itself: a sound run passes, and each wrong write or answer is named.

mod administration;
mod answers;
mod desk;
mod duplicates;
mod forward;
mod redrive;
mod schedule;
mod topics;
mod watch;
mod writes;

use desk::{Desk, check};

#[test]
fn a_sound_life_from_send_to_completion_is_no_violation() {
    let mut desk = Desk::new();
    let id = desk.stored();
    assert_eq!(desk.ledger.send_answered(id, true), Ok(()));
    let token = desk.deliver(id);
    assert_eq!(desk.complete(id, token), Ok(()));
    assert_eq!(desk.ledger.books.len(), 0);
    assert_eq!(desk.ledger.report.deliveries, 1);
}

#[test]
fn a_message_that_came_back_after_a_crash_may_be_delivered_again() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.deliver(id);
    let image = desk.image();
    assert_eq!(desk.ledger.crashed(&image), Ok(()));
    desk.attach();
    let delivery = desk.delivery(id, 2);
    assert_eq!(desk.turn(&[], vec![], &[delivery]), Ok(()));
}

#[test]
fn a_message_missing_after_a_crash_is_lost() {
    let mut desk = Desk::new();
    let id = desk.stored();
    desk.ledger.send_answered(id, true).unwrap();
    check(desk.ledger.crashed(&store::Image::default()), "I1");
}
