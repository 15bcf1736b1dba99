//! Consumers of RabbitMQ's dialect: their locks last as long as their link, and what they get is
//! what was sent.

use broker::{Command, LockTime, LockToken, Output};
use bytes::Bytes;

use super::fake_broker::{CONNECTION, FakeBroker, LOCK, RECEIVER, check};
use crate::message::MessageId;

/// Long after all locks with a time of their own.
const LONG: u64 = 10 * LOCK;

/// A message that is lent to a consumer.
fn lent() -> (FakeBroker, MessageId, LockToken) {
    let mut fake = FakeBroker::new();
    let id = fake.stored();
    let token = LockToken(u128::from(id));
    let delivery = delivery(&fake, id, token.0);
    fake.turn(&[], vec![], &[delivery]).unwrap();
    (fake, id, token)
}

fn delivery(fake: &FakeBroker, id: MessageId, token: u128) -> Output {
    let mut output = fake.delivery(id, token);
    if let Output::Deliver { delivery, .. } = &mut output {
        delivery.message.lock = Some(LockTime::WithReceiver);
    }
    output
}

fn payload(fake: &FakeBroker, id: MessageId) -> Bytes {
    let row = fake.row(id);
    fake.ledger.books.body(&row).unwrap().clone()
}

#[test]
fn a_consumer_gets_what_was_sent_under_the_tag_of_its_lock() {
    let (mut fake, id, token) = lent();
    let payload = payload(&fake, id);
    let got = fake.ledger.consumed(&token.0.to_be_bytes(), &payload);
    assert_eq!(got, Ok(id));
    assert_eq!(fake.ledger.report.rabbitmq_deliveries, 1);
}

#[test]
fn a_tag_of_no_lock_is_found() {
    let (mut fake, id, _) = lent();
    let payload = payload(&fake, id);
    for tag in [&99_u128.to_be_bytes()[..], b"tag"] {
        check(fake.ledger.consumed(tag, &payload).map(drop), "I12");
    }
}

#[test]
fn a_message_that_comes_to_a_consumer_changed_is_found() {
    let (mut fake, id, token) = lent();
    let mut changed = payload(&fake, id).to_vec();
    // Its id is its end.
    let before_id = changed.len() - 9;
    changed[before_id] ^= 1;
    let got = fake
        .ledger
        .consumed(&token.0.to_be_bytes(), &changed.into());
    check(got.map(drop), "I12");
}

#[test]
fn a_message_taken_from_a_consumer_by_time_is_found() {
    let (mut fake, id, _) = lent();
    fake.pass(LONG);
    let second = delivery(&fake, id, 99);
    check(fake.turn(&[], vec![], &[second]), "I3");
}

#[test]
fn a_message_of_a_consumer_that_is_gone_may_be_delivered_again() {
    let (mut fake, id, _) = lent();
    let detach = Command::Detach { receiver: RECEIVER };
    assert_eq!(fake.turn(&[detach], vec![], &[]), Ok(()));
    fake.attach();
    let second = delivery(&fake, id, 99);
    assert_eq!(fake.turn(&[], vec![], &[second]), Ok(()));
    assert_eq!(fake.ledger.report.rabbitmq_returns, 1);
}

#[test]
fn a_detach_that_counts_as_a_failed_delivery_is_found() {
    let (mut fake, id, _) = lent();
    let detach = Command::Detach { receiver: RECEIVER };
    let raised = fake.count(id, 1);
    check(fake.turn(&[detach], vec![raised], &[]), "I5");
}

#[test]
fn a_lost_session_or_connection_that_counts_nothing_is_found() {
    let lose = Command::LoseReceiver { receiver: RECEIVER };
    let disconnect = Command::Disconnect {
        connection: CONNECTION,
    };
    for command in [lose, disconnect] {
        let (mut fake, _, _) = lent();
        check(fake.turn(&[command], vec![], &[]), "I5");
    }
}
