//! Load: many connections, and one that does not read.

use amqp::DeliveryState;
use e2e::{Peer, Setup};

const IDLE: usize = 1_000;
/// What an idle connection may cost, in KiB.
const KIB_PER_CONNECTION: u64 = 24;

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
