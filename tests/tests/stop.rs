//! Stopping: announced to all clients, clean, and quick if need be.

use amqp::DeliveryState;
use e2e::{Peer, Setup};
use rustix::process::Signal;

fn check(signal: Signal) {
    let broker = Setup::new().start();
    let mut sending = Peer::connect(broker.address());
    let sender = sending.sender("orders");
    assert_eq!(sending.send(sender, b"hello"), DeliveryState::Accepted);
    let mut idle = Peer::connect(broker.address());
    broker.signal(signal);
    for peer in [&mut sending, &mut idle] {
        let error = peer.closed().expect("the broker says why");
        assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    }
    drop((sending, idle));
    assert_eq!(broker.wait().code(), Some(0));
}

#[test]
fn sigterm_closes_connections_by_force_and_exits_with_0() {
    check(Signal::TERM);
}

#[test]
fn sigint_does_the_same() {
    check(Signal::INT);
}

#[test]
fn a_client_that_does_not_say_goodbye_does_not_hold_up_the_end() {
    let broker = Setup::new().start();
    let _silent = Peer::connect(broker.address());
    assert_eq!(broker.stop().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let broker = Setup::new().start();
    let mut silent = Peer::connect(broker.address());
    broker.signal(Signal::TERM);
    // It waits for this client's goodbye, which does not come.
    let _ = silent.closed_without_answer();
    broker.signal(Signal::TERM);
    assert_eq!(broker.wait().code(), Some(0));
}

#[test]
fn nobody_is_let_in_any_more() {
    let broker = Setup::new().start();
    let address = broker.address();
    let mut peer = Peer::connect(address);
    broker.signal(Signal::TERM);
    let _ = peer.closed();
    drop(peer);
    assert_eq!(broker.wait().code(), Some(0));
    assert!(std::net::TcpStream::connect(address).is_err());
}
