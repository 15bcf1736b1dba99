//! Messages: sent, received, settled, and still there after a restart or a death.

use amqp::DeliveryState;
use e2e::{Peer, Setup};

/// SIGKILLs in the loop. The long run with real clients is in `interop/kill`.
const KILLS: usize = 10;
const MESSAGES_PER_LIFE: usize = 20;

fn bodies(peer: &mut Peer, queue: &str) -> Vec<String> {
    let link = peer.receiver(queue, 0);
    let all = peer.drain(link, 1_000);
    all.iter()
        .map(|received| String::from_utf8(received.body()).expect("text"))
        .collect()
}

#[test]
fn a_message_is_sent_received_and_completed() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert_eq!(received.body(), b"hello");
    assert_eq!(
        peer.settle(&received, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
    assert_eq!(bodies(&mut peer, "orders"), [""; 0]);
}

#[test]
fn a_released_message_comes_back() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    let _ = peer.settle(&received, DeliveryState::Released);
    peer.credit(receiver, 1);
    assert_eq!(peer.receive(receiver).body(), b"hello");
}

#[test]
fn a_large_message_goes_through_many_frames() {
    let broker = Setup::new().configure("max-message-size = '1MiB'").start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let body: Vec<u8> = (0..900 * 1024_u32).map(|n| n.to_le_bytes()[0]).collect();
    assert_eq!(peer.send(sender, &body), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    assert_eq!(peer.receive(receiver).body(), body);
}

#[test]
fn a_message_reaches_a_receiver_of_another_connection_that_waits() {
    let broker = Setup::new().start();
    let mut receiving = Peer::connect(broker.address());
    let receiver = receiving.receiver("orders", 1);
    let mut sending = Peer::connect(broker.address());
    let sender = sending.sender("orders");
    assert_eq!(sending.send(sender, b"hello"), DeliveryState::Accepted);
    assert_eq!(receiving.receive(receiver).body(), b"hello");
}

#[test]
fn messages_and_settlements_survive_a_restart() {
    let setup = Setup::new();
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in ["one", "two", "three"] {
        assert_eq!(peer.send(sender, body.as_bytes()), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("orders", 1);
    let first = peer.receive(receiver);
    assert_eq!(
        peer.settle(&first, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
    drop(peer);
    assert!(broker.stop().success());
    let broker = setup.start();
    assert_eq!(
        bodies(&mut Peer::connect(broker.address()), "orders"),
        ["two", "three"]
    );
}

#[test]
fn a_lost_connection_costs_no_message() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("others");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let receiver = peer.receiver("others", 1);
    let _ = peer.receive(receiver);
    drop(peer);
    // The lock runs on until it expires; then the message comes again.
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("others", 1);
    assert_eq!(peer.receive(receiver).body(), b"hello");
}

#[test]
fn what_was_accepted_or_completed_survives_sigkill() {
    let setup = Setup::new();
    let mut expected = Vec::new();
    for life in 0..KILLS {
        let broker = setup.start();
        let mut peer = Peer::connect(broker.address());
        let sender = peer.sender("orders");
        let cookies: Vec<(u128, String)> = (0..MESSAGES_PER_LIFE)
            .map(|number| {
                let body = format!("{life}-{number}");
                (peer.send_only(sender, body.as_bytes()), body)
            })
            .collect();
        for (cookie, body) in cookies {
            assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
            expected.push(body);
        }
        let receiver = peer.receiver("orders", 1);
        let first = peer.receive(receiver);
        assert_eq!(first.body(), expected.remove(0).as_bytes());
        assert_eq!(
            peer.settle(&first, DeliveryState::Accepted),
            Some(DeliveryState::Accepted)
        );
        // These are on their way when it dies: the sender was not told that they arrived.
        peer.send_only(sender, b"unanswered");
        broker.kill();
    }
    let broker = setup.start();
    let mut left = bodies(&mut Peer::connect(broker.address()), "orders");
    left.retain(|body| body != "unanswered");
    assert_eq!(left, expected);
}
