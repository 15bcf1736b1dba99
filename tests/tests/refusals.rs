//! Refusals: each mistake gets its own error, and no other client notices.

use std::io::Write;

use amqp::sasl::Code;
use amqp::{DeliveryState, Error, Role};
use e2e::{Credentials, Peer, Setup};

fn condition(error: Option<Error>) -> String {
    error
        .expect("the broker says why")
        .condition
        .as_str()
        .to_owned()
}

#[test]
fn a_wrong_key_is_refused() {
    let broker = Setup::new().start();
    let mut peer = Peer::begin(
        broker.address(),
        Credentials {
            rule: "RootManageSharedAccessKey",
            key: "not-the-key",
        },
    );
    assert_eq!(peer.sasl_outcome(), Code::Auth);
    let mut peer = Peer::begin(
        broker.address(),
        Credentials {
            rule: "Nobody",
            key: "SAS_KEY_VALUE",
        },
    );
    assert_eq!(peer.sasl_outcome(), Code::Auth);
    assert!(!broker.log().contains("not-the-key"));
}

#[test]
fn a_missing_queue_is_refused_and_the_connection_goes_on() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    for role in [Role::Sender, Role::Receiver] {
        let error = peer.refused(role, "nowhere");
        assert_eq!(error.condition.as_str(), "amqp:not-found");
        let description = error.description.expect("for people");
        assert!(description.contains("nowhere"), "{description}");
    }
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
}

#[test]
fn a_right_that_is_missing_is_refused() {
    let rules = "[[auth.rules]]\nname = 'sender'\nprimary-key = 'key-of-sender'\nrights = ['send']";
    let broker = Setup::new().configure(rules).start();
    let mut peer = Peer::begin(
        broker.address(),
        Credentials {
            rule: "sender",
            key: "key-of-sender",
        },
    );
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let error = peer.refused(Role::Receiver, "orders");
    assert_eq!(error.condition.as_str(), "amqp:unauthorized-access");
}

/// One peer sends `bytes` after its open; the broker closes it with `expected`, and another peer
/// goes on as if nothing had been.
fn check_closed(bytes: &[u8], expected: &str) {
    let broker = Setup::new().start();
    let mut other = Peer::connect(broker.address());
    let sender = other.sender("orders");
    let mut peer = Peer::connect(broker.address());
    peer.stream().write_all(bytes).expect("the broker reads");
    assert_eq!(condition(peer.closed()), expected);
    assert_eq!(other.send(sender, b"hello"), DeliveryState::Accepted);
}

#[test]
fn a_frame_larger_than_agreed_closes_its_connection_only() {
    check_closed(
        &[0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0],
        "amqp:connection:framing-error",
    );
}

#[test]
fn a_frame_smaller_than_its_header_closes_its_connection_only() {
    check_closed(&[0, 0, 0, 7, 2, 0, 0, 0], "amqp:connection:framing-error");
}

#[test]
fn a_frame_that_is_no_performative_closes_its_connection_only() {
    check_closed(
        &[0, 0, 0, 12, 2, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef],
        "amqp:decode-error",
    );
}

#[test]
fn what_is_neither_amqp_nor_http_is_told_the_protocol_and_left() {
    use std::io::Read;
    let broker = Setup::new().start();
    let mut stream = std::net::TcpStream::connect(broker.address()).expect("the broker listens");
    stream
        .set_read_timeout(Some(e2e::PATIENCE))
        .expect("the socket is open");
    stream
        .write_all(b"\x00\x01\x02\x03\x04\x05\x06\x07")
        .expect("the broker reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the broker closes");
    assert_eq!(&answer[..4], b"AMQP");
}

#[test]
fn a_message_larger_than_the_limit_is_refused() {
    let broker = Setup::new().configure("max-message-size = '64KiB'").start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let DeliveryState::Rejected(error) = peer.send(sender, &vec![0; 100 * 1024]) else {
        panic!("not rejected")
    };
    assert_eq!(condition(error), "amqp:link:message-size-exceeded");
    // Its link stays.
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
}

#[test]
fn a_nearly_full_disk_refuses_sends_while_settlements_go_on() {
    let setup = Setup::new();
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"kept"), DeliveryState::Accepted);
    drop(peer);
    assert!(broker.stop().success());
    // No disk has an exbibyte to spare.
    let setup = setup.configure("[limits]\nreserve-bytes = '1EiB'");
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let DeliveryState::Rejected(error) = peer.send(sender, b"more") else {
        panic!("not rejected")
    };
    assert_eq!(condition(error), "com.microsoft:server-busy");
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert_eq!(received.body(), b"kept");
    assert_eq!(
        peer.settle(&received, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
    assert!(peer.drain(receiver, 1).is_empty());
}
