//! Lost receivers: which count the message of a session comes back with when the connection of its
//! receiver was cut, and when its AMQP session ended in good order. (docs/spec/entities.md#10)

use amqp::DeliveryState;
use amqp::message::{Header, Sections};
use e2e::peer::Received;
use e2e::{Broker, Peer, Setup};
use endpoint::LinkId;

/// Message properties with the group-id `a`, and a body.
const OF_SESSION: &[u8] = b"\x00\x53\x73\xc0\x0e\x0b@@@@@@@@@@\xa1\x01a\x00\x53\x75\xa0\x01x";
const RAISE: &str = "session-count-on-disconnect = 'raise'";

/// A broker with a message of session `a`, which is dead-lettered after two failed deliveries.
fn broker(setting: &str) -> Broker {
    let setup = Setup::new().configure(&format!(
        "{setting}\n[[queues]]\nname = 'sessions'\nrequires-session = true\nmax-delivery-count = 2"
    ));
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("sessions");
    let cookie = peer.send_encoded(sender, OF_SESSION);
    assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
    broker
}

/// Failed deliveries, as the message says.
fn delivery_count(received: &Received) -> u32 {
    let sections = Sections::scan(&received.payload).expect("a message");
    let header = received.payload.slice(sections.header);
    let header = Header::decode(&header).expect("a header");
    header.delivery_count.unwrap_or_default()
}

/// Holds the session with its message, as soon as it is free.
fn hold(broker: &Broker) -> (Peer, LinkId, Received) {
    let mut peer = Peer::connect(broker.address());
    let link = peer.next_session_receiver("sessions", 1);
    let received = peer.receive(link);
    (peer, link, received)
}

#[test]
fn a_cut_connection_counts_if_the_setting_says_so() {
    for (setting, counts) in [("", [0, 0, 0]), (RAISE, [0, 1, 2])] {
        let broker = broker(setting);
        for count in &counts[..2] {
            let (peer, _, received) = hold(&broker);
            assert_eq!(delivery_count(&received), *count, "{setting}");
            // Not a word of AMQP: the socket is closed.
            drop(peer);
        }
        if setting.is_empty() {
            let (_, _, received) = hold(&broker);
            assert_eq!(delivery_count(&received), counts[2]);
        } else {
            let mut peer = Peer::connect(broker.address());
            let dead = peer.receiver("sessions/$DeadLetterQueue", 1);
            assert_eq!(delivery_count(&peer.receive(dead)), counts[2]);
        }
    }
}

#[test]
fn an_end_in_good_order_does_not_count() {
    for setting in ["", RAISE] {
        let broker = broker(setting);
        for _ in 0..3 {
            let (mut peer, _, received) = hold(&broker);
            assert_eq!(delivery_count(&received), 0, "{setting}");
            peer.end_session(received.session);
            // What is cut after that held nothing any more.
            drop(peer);
        }
    }
}
