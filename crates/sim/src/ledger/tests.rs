//! The checker itself: a sound run passes, and each wrong write or answer is named.

mod administration;
mod answers;
mod consumers;
mod duplicates;
mod fake_broker;
mod forward;
mod redrive;
mod routing;
mod schedule;
mod topics;
mod topology;
mod transactions;
mod watch;
mod writes;

use fake_broker::{FakeBroker, check};

#[test]
fn a_sound_life_from_send_to_completion_is_no_violation() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    assert_eq!(fake.ledger.send_answered(id, true), Ok(()));
    let token = fake.deliver(id);
    assert_eq!(fake.complete(id, token), Ok(()));
    assert_eq!(fake.ledger.books.len(), 0);
    assert_eq!(fake.ledger.report.deliveries, 1);
}

#[test]
fn a_message_that_came_back_after_a_crash_may_be_delivered_again() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.deliver(id);
    let image = fake.image();
    assert_eq!(fake.ledger.crashed(&image), Ok(()));
    fake.attach();
    let delivery = fake.delivery(id, 2);
    assert_eq!(fake.turn(&[], vec![], &[delivery]), Ok(()));
}

#[test]
fn a_message_missing_after_a_crash_is_lost() {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    fake.ledger.send_answered(id, true).unwrap();
    check(fake.ledger.crashed(&store::Image::default()), "I1");
}
