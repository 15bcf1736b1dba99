//! Load: many connections, and one that does not read.

use std::io::Write;

use amqp::{DeliveryState, Performative, Transfer, frame};
use bytes::{Bytes, BytesMut};
use e2e::{Peer, Setup};

const IDLE: usize = 1_000;
/// What an idle connection may cost, in KiB.
const KIB_PER_CONNECTION: u64 = 20;

#[test]
fn a_thousand_idle_connections_cost_little_and_hinder_nobody() {
    let broker = Setup::new().start();
    let before = broker.memory("VmRSS");
    let idle: Vec<Peer> = (0..IDLE).map(|_| Peer::connect(broker.address())).collect();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let grown = broker.memory("VmRSS").saturating_sub(before);
    println!("{IDLE} idle connections cost {grown} KiB");
    assert!(grown < KIB_PER_CONNECTION * IDLE as u64, "{grown} KiB");
    drop(idle);
}

#[test]
fn more_connections_than_allowed_are_refused() {
    let broker = Setup::new()
        .configure("[limits]\nconnections = 3\nconnections-per-address = 2")
        .start();
    let first = Peer::connect(broker.address());
    let _second = Peer::connect(broker.address());
    let mut third = Peer::begin(broker.address(), e2e::Credentials::DEVELOPMENT);
    assert!(third.closed().is_none(), "it is just closed");
    drop(first);
    // The place is free as soon as the broker has seen the goodbye.
    loop {
        let mut again = Peer::begin(broker.address(), e2e::Credentials::DEVELOPMENT);
        if again.try_open() {
            break;
        }
    }
}

#[test]
fn a_client_that_does_not_read_costs_a_bounded_amount() {
    const MESSAGES: usize = 400;
    const BODY: usize = 200 * 1024;
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for _ in 0..MESSAGES {
        assert_eq!(peer.send(sender, &vec![7; BODY]), DeliveryState::Accepted);
    }
    let before = broker.memory("VmRSS");
    let mut slow = Peer::connect(broker.address());
    let receiver = slow.receiver("orders", u32::try_from(MESSAGES).expect("it is small"));
    // A second client gets an answer after the first was given all that it will be given.
    let mut other = Peer::connect(broker.address());
    let sender = other.sender("others");
    for _ in 0..100 {
        assert_eq!(other.send(sender, b"hello"), DeliveryState::Accepted);
    }
    let grown = broker.memory("VmRSS").saturating_sub(before);
    assert!(
        grown < 40 * 1024,
        "{grown} KiB for a client that does not read"
    );
    // Once it reads, it gets everything.
    for _ in 0..MESSAGES {
        assert_eq!(slow.receive(receiver).body().len(), BODY);
    }
}

/// A broker that may keep next to nothing, so that unfinished messages have the least room there
/// is.
fn frugal() -> Setup {
    Setup::new()
        .configure("max-message-size = '4MiB'")
        .configure("[limits]\nunanswered-bytes = '64KiB'")
}

/// Begins a message on a peer's first link and writes `frames` frames of 50,000 bytes, but not the
/// last.
fn begin_message(peer: &mut Peer, frames: usize) {
    let mut bytes = BytesMut::new();
    for _ in 0..frames {
        let start = frame::begin(&mut bytes, frame::FrameType::Amqp, 0);
        let transfer = Transfer {
            delivery_id: Some(0),
            delivery_tag: Some(Bytes::from_static(b"unfinished")),
            more: true,
            ..Transfer::default()
        };
        Performative::Transfer(transfer).encode(&mut bytes);
        bytes.extend_from_slice(&[7; 50_000]);
        frame::finish(&mut bytes, start);
    }
    peer.stream()
        .write_all(&bytes)
        .expect("the broker reads on");
}

#[test]
fn a_message_larger_than_the_budget_is_not_left_unread() {
    let broker = frugal().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, &[7; 900_000]), DeliveryState::Accepted);
}

#[test]
fn an_unfinished_message_that_fills_the_budget_is_given_up() {
    let broker = frugal().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    begin_message(&mut peer, 30);
    let error = peer.detached(sender).expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:resource-limit-exceeded");
    let again = peer.sender("orders");
    assert_eq!(peer.send(again, b"hello"), DeliveryState::Accepted);
}

#[test]
fn unfinished_messages_of_others_hinder_only_large_messages_and_only_while_they_last() {
    let broker = frugal().start();
    let mut dawdler = Peer::connect(broker.address());
    let _unfinished = dawdler.sender("orders");
    let other = dawdler.sender("orders");
    begin_message(&mut dawdler, 18);
    // By the answer to this the broker has seen what came before.
    assert_eq!(dawdler.send(other, b"hello"), DeliveryState::Accepted);
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let large = peer.send_only(sender, &[7; 500_000]);
    assert_eq!(peer.outcome_or_end(large), None);
    drop(dawdler);
    // There is room as soon as the broker has seen the goodbye.
    loop {
        let sender = peer.sender("orders");
        let large = peer.send_only(sender, &[7; 500_000]);
        if let Some(outcome) = peer.outcome_or_end(large) {
            assert_eq!(outcome, DeliveryState::Accepted);
            break;
        }
    }
}
