//! Conversation: two engines from header to close, cut at arbitrary byte boundaries.

use amqp::DeliveryState;
use amqp::performative::Role;
use bytes::Bytes;
use endpoint::{Config, Event, LinkId, Outgoing, SessionId};
use proptest::prelude::*;

use super::support::Pair;
use super::support::pair::attach;
use super::support::script::config;

fn small_frames() -> Config {
    Config {
        max_frame_size: 512,
        incoming_window: 10,
        ..config()
    }
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

fn outgoing(cookie: u128, settled: bool) -> Outgoing<'static> {
    Outgoing {
        tag: b"0123456789abcdef",
        message_format: 0,
        settled,
        cookie,
        state: None,
        owner: None,
    }
}

/// All that both sides are told in a conversation that uses everything.
fn conversation(cuts: &[usize]) -> Vec<String> {
    let mut pair = Pair::opened(small_frames(), small_frames(), cuts);
    let (client, server) = pair.begin();
    let (to_server, at_server) = pair.attach(client, "up", Role::Sender);
    let (to_client, from_server) = pair.attach(client, "down", Role::Receiver);
    pair.server.set_credit(at_server, 20, false);
    pair.client.set_credit(to_client, 5, false);
    pair.run();
    send_up(&mut pair, to_server);
    settle_up(&mut pair, server);
    send_down(&mut pair, from_server);
    settle_down(&mut pair, server);
    pair.client.set_credit(to_client, 9, true);
    pair.run();
    pair.server.drained(from_server);
    pair.run();
    pair.client.detach(to_client, true, None);
    pair.run();
    pair.client.end(client, None);
    pair.run();
    pair.client.close(None);
    pair.run();
    assert!(pair.client.is_finished() && pair.server.is_finished());
    let server = pair.take_server_events().into_iter();
    let client = pair.take_client_events().into_iter();
    server
        .map(|event| format!("server {event:?}"))
        .chain(client.map(|event| format!("client {event:?}")))
        .collect()
}

fn send_up(pair: &mut Pair, link: LinkId) {
    for (cookie, size) in [(1, 0), (2, 100), (3, 5_000), (4, 512), (5, 470), (6, 490)] {
        let payload = body(size);
        let (front, back) = payload.split_at(size / 3);
        let outgoing = outgoing(cookie, cookie == 4);
        let sent = pair.client.send(link, &outgoing, &[front, back]);
        assert_eq!(sent, Ok(()));
    }
    pair.run();
}

fn settle_up(pair: &mut Pair, session: SessionId) {
    let deliveries: Vec<_> = pair.server_events.iter().filter_map(delivery).collect();
    assert_eq!(deliveries.len(), 6);
    for (id, settled) in deliveries {
        if !settled {
            pair.server
                .dispose_received(session, id, DeliveryState::Accepted, true);
        }
    }
    pair.run();
}

fn delivery(event: &Event) -> Option<(u32, bool)> {
    match event {
        Event::Delivery {
            delivery_id,
            settled,
            payload,
            ..
        } => {
            assert_eq!(payload[..], body(payload.len())[..]);
            Some((*delivery_id, *settled))
        }
        _ => None,
    }
}

fn send_down(pair: &mut Pair, link: LinkId) {
    for (cookie, size) in [(11, 3_000), (12, 1), (13, 10_000)] {
        let payload = body(size);
        let sent = pair
            .server
            .send(link, &outgoing(cookie, false), &[&payload]);
        assert_eq!(sent, Ok(()));
    }
    pair.run();
}

/// The client tells its outcome, the server answers settled, as Service Bus does.
fn settle_down(pair: &mut Pair, session: SessionId) {
    let received: Vec<_> = pair.client_events.iter().filter_map(delivery).collect();
    assert_eq!(received.len(), 3);
    for (id, _) in received {
        pair.client
            .dispose_received(SessionId(0), id, DeliveryState::Released, false);
    }
    pair.run();
    let disposed: Vec<_> = pair
        .server_events
        .iter()
        .filter_map(|event| match event {
            Event::Disposed {
                delivery_id,
                cookie,
                settled: false,
                ..
            } => Some((*delivery_id, *cookie)),
            _ => None,
        })
        .collect();
    assert_eq!(
        disposed.iter().map(|d| d.1).collect::<Vec<_>>(),
        [11, 12, 13]
    );
    for (id, _) in disposed {
        pair.server
            .settle_sent(session, id, DeliveryState::Released, true);
    }
    pair.run();
}

#[test]
fn a_conversation_is_the_same_byte_by_byte() {
    assert_eq!(conversation(&[1]), conversation(&[usize::MAX]));
}

#[test]
fn a_conversation_ends_with_nothing_unsettled() {
    let told = conversation(&[usize::MAX]);
    let updated = told.iter().filter(|line| line.contains("Updated"));
    assert_eq!(updated.count(), 3, "{told:#?}");
    assert!(told.iter().all(|line| !line.contains("unsettled: [1")));
    assert!(told.iter().any(|line| line.contains("client Drained")));
    assert!(told.last().is_some_and(|line| line.contains("Closed")));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_is_the_same_however_it_is_cut(
        cuts in proptest::collection::vec(1_usize..700, 1..40)
    ) {
        prop_assert_eq!(conversation(&cuts), conversation(&[usize::MAX]));
    }
}

#[test]
fn heartbeats_keep_an_idle_connection_alive() {
    let idle = Config {
        idle_time_out: Some(60_000),
        ..config()
    };
    let mut pair = Pair::opened(idle.clone(), idle, &[usize::MAX]);
    for _ in 0..3_600 {
        pair.advance(1_000);
    }
    assert!(pair.take_client_events().is_empty());
    assert!(pair.take_server_events().is_empty());
}

#[test]
fn a_peer_that_vanished_is_noticed() {
    let idle = Config {
        idle_time_out: Some(60_000),
        ..config()
    };
    let mut pair = Pair::opened(config(), idle, &[usize::MAX]);
    let vanished = endpoint::Mono(60_000);
    pair.server.handle_timeout(vanished);
    assert!(matches!(
        pair.server.poll_event(),
        Some(Event::Closed { error: Some(_), .. })
    ));
    assert!(pair.server.is_finished());
}

#[test]
fn transfers_keep_flowing_through_a_window_of_one() {
    let narrow = Config {
        incoming_window: 1,
        max_frame_size: 512,
        ..config()
    };
    let mut pair = Pair::opened(narrow.clone(), narrow, &[7]);
    let (client, _) = pair.begin();
    let (up, at_server) = pair.attach(client, "up", Role::Sender);
    let (at_client, down) = pair.attach(client, "down", Role::Receiver);
    pair.server.set_credit(at_server, 100, false);
    pair.client.set_credit(at_client, 100, false);
    pair.run();
    for cookie in 0..100 {
        let payload = body(cookie as usize * 37);
        let outgoing = outgoing(cookie, false);
        assert_eq!(pair.client.send(up, &outgoing, &[&payload]), Ok(()));
        assert_eq!(pair.server.send(down, &outgoing, &[&payload]), Ok(()));
    }
    pair.run();
    assert_eq!(pair.client.buffered(), 0);
    assert_eq!(pair.server.buffered(), 0);
    for events in [pair.take_client_events(), pair.take_server_events()] {
        let sizes: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Delivery { payload, .. } => Some(payload.len()),
                _ => None,
            })
            .collect();
        let sent: Vec<_> = (0..100).map(|index| index * 37).collect();
        assert_eq!(sizes, sent);
    }
}

/// What a receiver gets of large messages that come in pieces, of which the long ones may be
/// shared.
fn large_messages(shared: bool, max_frame_size: u32, incoming_window: u32) -> Vec<Bytes> {
    let config = Config {
        incoming_window,
        max_frame_size,
        ..config()
    };
    let mut pair = Pair::opened(config.clone(), config, &[1_000]);
    let (client, _) = pair.begin();
    let (at_client, down) = pair.attach(client, "down", Role::Receiver);
    pair.client.set_credit(at_client, 20, false);
    pair.run();
    for index in 0..20 {
        let owner = Bytes::from(body(index * 2_500));
        let (front, back) = owner.split_at(owner.len() / 3);
        let outgoing = Outgoing {
            owner: shared.then_some(&owner),
            ..outgoing(0, true)
        };
        let pieces = [&b"head"[..], front, b"between", back, b""];
        assert_eq!(pair.server.send(down, &outgoing, &pieces), Ok(()));
    }
    pair.run();
    assert_eq!(pair.server.buffered(), 0);
    let events = pair.take_client_events().into_iter();
    let payload = |event| match event {
        Event::Delivery { payload, .. } => Some(payload),
        _ => None,
    };
    events.filter_map(payload).collect()
}

#[test]
fn a_message_arrives_the_same_whether_it_was_copied_or_shared() {
    for max_frame_size in [512, 6_000, 65_536] {
        for incoming_window in [1, 3, 100] {
            let copied = large_messages(false, max_frame_size, incoming_window);
            assert_eq!(copied.len(), 20);
            assert!(copied == large_messages(true, max_frame_size, incoming_window));
        }
    }
}

#[test]
fn credit_is_used_to_the_last_and_no_further() {
    let mut pair = Pair::default_opened();
    let (client, _) = pair.begin();
    let (at_client, down) = pair.attach(client, "down", Role::Receiver);
    let mut sent = 0_u32;
    for round in 1..50 {
        pair.client.set_credit(at_client, round % 7, false);
        pair.run();
        while pair.server.send(down, &outgoing(0, true), &[b"x"]).is_ok() {
            sent += 1;
        }
        pair.run();
        assert_eq!(pair.client.credit_left(at_client), 0);
    }
    let granted: u32 = (1..50).map(|round| round % 7).sum();
    assert_eq!(sent, granted);
}

#[test]
fn an_attach_may_be_answered_much_later() {
    let mut pair = Pair::default_opened();
    let (client, _) = pair.begin();
    let link = pair.client.attach(client, attach("down", Role::Receiver));
    pair.client.set_credit(link, 3, false);
    pair.advance(65_000);
    assert!(!pair.client.is_attached(link));
    let at_server = pair.accept_next();
    pair.run();
    assert!(pair.client.is_attached(link));
    assert!(
        pair.server
            .send(at_server, &outgoing(1, true), &[b"x"])
            .is_ok()
    );
    pair.run();
    let arrived = pair.client_events.iter().any(delivery_of_x);
    assert!(arrived);
}

fn delivery_of_x(event: &Event) -> bool {
    matches!(event, Event::Delivery { payload, .. } if payload == "x")
}

#[test]
fn a_refused_link_gets_null_termini_and_the_error() {
    let mut pair = Pair::default_opened();
    let (client, _) = pair.begin();
    let link = pair.client.attach(client, attach("up", Role::Sender));
    pair.run();
    let requested = pair
        .server_events
        .iter()
        .find_map(|event| match event {
            Event::AttachRequested { link, .. } => Some(*link),
            _ => None,
        })
        .expect("the client has asked");
    let error = amqp::Error::new(amqp::error::condition::NOT_FOUND, "nothing here");
    pair.server.refuse(requested, error.clone());
    pair.run();
    let events = pair.take_client_events();
    let [.., Event::Attached { attach, .. }, detached] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(attach.source.is_none() && attach.target.is_none());
    let expected = Event::Detached {
        link,
        closed: true,
        error: Some(error),
        with_session: false,
        unsettled: Vec::new(),
    };
    assert_eq!(*detached, expected);
    assert_eq!(pair.client.session_of(link), None);
    assert_eq!(pair.server.session_of(requested), None);
}
