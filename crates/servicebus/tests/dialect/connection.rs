//! The connection's life: open, idle, shut down, cut.

use amqp::DeliveryState;
use amqp::performative::SenderSettleMode;
use broker::Command;
use bytes::BytesMut;
use dialect::{Dialect, ForcedClose, RefusedCredentials};
use endpoint::Event;

use crate::cbs::{anonymous, put};
use crate::client_frames::transfer;
use crate::tracking::text;
use crate::world::{KEY, Login, Request, World, message, token};

fn disconnects(world: &World) -> usize {
    world
        .commands
        .iter()
        .filter(|command| matches!(command, Command::Disconnect { .. }))
        .count()
}

fn closed(world: &World) -> Option<String> {
    world.events.iter().find_map(|event| match event {
        Event::Closed { error, .. } => Some(
            error
                .as_ref()
                .map_or_else(String::new, |e| e.condition.to_string()),
        ),
        _ => None,
    })
}

#[test]
fn a_connection_that_is_closed_disconnects_last_and_once() {
    let mut world = World::new();
    world.receiver("orders", SenderSettleMode::Unsettled, 1);
    world.client.close(None);
    world.pump();
    assert!(world.server.is_finished());
    world.server.handle_eof(world.clock_reading());
    world.advance(100_000);
    assert_eq!(disconnects(&world), 1);
    assert!(matches!(
        world.commands.last(),
        Some(Command::Disconnect { .. })
    ));
}

#[test]
fn a_connection_that_is_cut_disconnects() {
    let mut world = World::new();
    world.receiver("orders", SenderSettleMode::Unsettled, 1);
    world.server.handle_eof(world.clock_reading());
    world.pump();
    assert_eq!(disconnects(&world), 1);
    assert!(matches!(
        world.commands.last(),
        Some(Command::Disconnect { .. })
    ));
}

#[test]
fn a_protocol_error_disconnects() {
    let mut world = World::new();
    world.server.handle_input(
        world.clock_reading(),
        &mut bytes::BytesMut::from(&b"\x00\x00\x00\x01garbage"[..]),
    );
    world.pump();
    assert_eq!(disconnects(&world), 1);
    assert!(closed(&world).is_some());
}

#[test]
fn a_refused_login_disconnects_once_the_socket_is_gone() {
    let mut world = World::with(Login::Plain("root", "wrong"), |_| {});
    world.server.handle_eof(world.clock_reading());
    world.pump();
    assert!(world.server.is_finished());
    assert_eq!(disconnects(&world), 1);
}

#[test]
fn an_operator_sees_a_connection_with_its_links_and_closes_it() {
    let mut world = World::new();
    world.sender("orders");
    world.receiver("orders/$deadletterqueue", SenderSettleMode::Unsettled, 5);
    let waiting = world.receiver("orders", SenderSettleMode::Unsettled, 7);
    world.enqueue("orders", &message("x"));
    assert_eq!(world.received(waiting).len(), 1);
    let state = world.server.state(100);
    assert_eq!(state.client_names, ["root"]);
    let links = state.links.iter().map(|(link, address)| {
        let address = address.as_deref().unwrap_or_default();
        format!(
            "{:?} {address} {} {}",
            link.peer_role, link.credit, link.unsettled
        )
    });
    let links: Vec<_> = links.collect();
    assert_eq!(
        links,
        [
            "Sender orders 1000 0",
            "Receiver orders/$DeadLetterQueue 5 0",
            "Receiver orders 6 1",
            "Sender orders 999 0"
        ]
    );
    let state = world.server.state(1);
    assert_eq!((state.links.len(), state.link_count), (1, 4));
    world
        .server
        .force_close(world.clock_reading(), ForcedClose::Operator);
    world.pump();
    assert_eq!(closed(&world).as_deref(), Some("amqp:connection:forced"));
    assert_eq!(disconnects(&world), 1);
}

#[test]
fn a_broker_that_shuts_down_says_so_and_takes_nothing_more() {
    let (mut world, pair) = anonymous();
    let audience = "amqps://host/orders";
    put(
        &mut world,
        &pair,
        audience,
        &token(audience, "root", KEY, 60),
    );
    let receiver = world.receiver("orders", SenderSettleMode::Unsettled, 5);
    let (_, sender) = world.sender("orders");
    world.enqueue("orders", &message("x"));
    assert_eq!(world.received(receiver).len(), 1);
    world
        .server
        .force_close(world.clock_reading(), ForcedClose::ShutDown);
    world.pump();
    let [one, other] = [receiver, sender].map(|link| {
        let error = world.detach_error(link).cloned();
        error.expect("links are detached first")
    });
    assert_eq!(one.condition, "amqp:link:detach-forced");
    assert_eq!(text(&one), text(&other));
    assert_ne!(one.description, other.description);
    assert_eq!(closed(&world).as_deref(), Some("amqp:connection:forced"));
    assert_eq!(disconnects(&world), 1);
}

#[test]
fn a_client_without_tokens_is_sent_the_close_alone() {
    let mut world = World::new();
    let receiver = world.receiver("orders", SenderSettleMode::Unsettled, 5);
    let (_, sender) = world.sender("orders");
    world
        .server
        .force_close(world.clock_reading(), ForcedClose::ShutDown);
    world.pump();
    for link in [receiver, sender] {
        assert!(world.detach_error(link).is_none());
    }
    assert_eq!(closed(&world).as_deref(), Some("amqp:connection:forced"));
    assert_eq!(disconnects(&world), 1);
    let detached = |command: &Command| matches!(command, Command::Detach { .. });
    assert!(world.commands.iter().any(detached));
}

#[test]
fn a_connection_without_links_is_closed_after_its_time() {
    let mut world = World::with(Login::Plain("root", KEY), |settings| {
        settings.idle_connection = Some(60_000);
    });
    world.advance(59_999);
    assert_eq!(closed(&world), None);
    let (_, link) = world.sender("orders");
    world.advance(30_000);
    world.advance(40_000);
    assert_eq!(closed(&world), None, "a link keeps it");
    world.client.detach(link, true, None);
    world.pump();
    world.advance(59_999);
    assert_eq!(closed(&world), None);
    world.advance(1);
    assert_eq!(closed(&world).as_deref(), Some("amqp:connection:forced"));
    assert_eq!(disconnects(&world), 1);
}

#[test]
fn a_connection_is_kept_when_no_idle_time_is_set() {
    let mut world = World::new();
    for _ in 0..50 {
        world.advance(50_000);
    }
    assert_eq!(closed(&world), None);
}

#[test]
fn rule_20_nothing_is_sent_on_a_session_that_ended() {
    let mut world = World::new();
    let receiver = world.receiver("orders", SenderSettleMode::Unsettled, 5);
    let session = world.client.session_of(receiver).expect("attached");
    let before = closed(&world);
    world.client.end(session, None);
    world.pump();
    world.enqueue("orders", &message("x"));
    assert!(world.received(receiver).is_empty());
    assert_eq!(
        closed(&world),
        before,
        "and the client has nothing to complain about"
    );
    let other = world.receiver("orders", SenderSettleMode::Unsettled, 5);
    assert_eq!(world.received(other).len(), 1);
}

#[test]
fn everything_pipelined_in_one_burst_is_served() {
    let mut world = World::offline(Login::Plain("root", KEY), |_| {});
    let session = world.client.begin();
    let link = world.client.attach(
        session,
        crate::world::receiver("orders", SenderSettleMode::Unsettled),
    );
    world.client.set_credit(link, 3, false);
    world.pump();
    world.enqueue("orders", &message("x"));
    assert_eq!(world.received(link).len(), 1);
}

#[test]
fn a_connection_that_shows_no_right_is_closed_after_its_time() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |settings| {
        settings.authentication_time_out = 60_000;
    });
    world.advance(59_999);
    assert_eq!(closed(&world), None);
    world.advance(1);
    assert_eq!(closed(&world).as_deref(), Some("amqp:unauthorized-access"));
    assert_eq!(disconnects(&world), 1);
}

#[test]
fn a_connection_that_has_shown_a_right_is_kept() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let pair = world.pair("$cbs");
    let audience = "amqps://host/orders";
    let request = Request::put_token(audience, &token(audience, "root", KEY, 3_600));
    assert_eq!(world.call(&pair, &request).expect("an answer").code(), 202);
    for _ in 0..3 {
        world.advance(59_999);
    }
    assert_eq!(closed(&world), None);
}

#[test]
fn refused_credentials_are_counted_and_guesses_among_them() {
    let refused = |all, guesses| RefusedCredentials { all, guesses };
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let pair = world.pair("$cbs");
    let audience = "amqps://host/orders";
    for key in ["wrong", KEY] {
        let request = Request::put_token(audience, &token(audience, "root", key, 3_600));
        world.call(&pair, &request).expect("an answer");
        assert_eq!(world.server.refused_credentials(), refused(1, 1));
    }
    let mut request = Request::put_token(audience, "abc.def.ghi");
    request.properties[1].1 = amqp::Value::from("jwt");
    world.call(&pair, &request).expect("an answer");
    assert_eq!(world.server.refused_credentials(), refused(2, 2));
    // A right key has made it, so it is no guess.
    let late = Request::put_token(audience, &token(audience, "root", KEY, 0));
    world.call(&pair, &late).expect("an answer");
    assert_eq!(world.server.refused_credentials(), refused(3, 2));
}

/// A message whose acceptance does not arrive is sent again.
#[test]
fn what_came_before_a_broken_frame_is_accepted_before_the_close() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    world.broker_stalls = true;
    for _ in 0..3 {
        world.send(link, &message("x"));
    }
    let mut broken = BytesMut::from(&[0, 0, 0, 7, 2, 0, 0, 0][..]);
    world
        .server
        .handle_input(world.clock_reading(), &mut broken);
    world.pump();
    assert_eq!(closed(&world), None);
    assert_eq!(disconnects(&world), 0);
    world.broker_stalls = false;
    world.pump();
    let accepted = vec![DeliveryState::Accepted; 3];
    assert_eq!(world.outcomes(link), accepted);
    let framing_error = "amqp:connection:framing-error";
    assert_eq!(closed(&world).as_deref(), Some(framing_error));
    assert_eq!(disconnects(&world), 1);
}

/// The same where a frame ends a session or a link only.
#[test]
fn what_came_before_a_wrong_frame_is_accepted_before_its_link_or_session_ends() {
    for ends_session in [true, false] {
        let mut world = World::new();
        let (_, link) = world.sender("orders");
        world.broker_stalls = true;
        for _ in 0..3 {
            world.send(link, &message("x"));
        }
        // On a handle that is not attached, or a delivery before the end of another.
        let mut wrong = transfer(if ends_session { 9 } else { 0 }, 3, None, true, b"");
        wrong.unsplit(transfer(0, 4, None, false, &message("y")));
        world.server.handle_input(world.clock_reading(), &mut wrong);
        world.pump();
        assert!(world.client.is_attached(link));
        world.broker_stalls = false;
        world.pump();
        assert_eq!(world.outcomes(link), vec![DeliveryState::Accepted; 3]);
        assert!(!world.client.is_attached(link), "{ends_session}");
        assert_eq!(closed(&world), None);
    }
}
