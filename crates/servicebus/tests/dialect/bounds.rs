//! Bounds: limits on an unauthenticated client, and on a link without credit.

use access::{AccessRules, Rights};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, Value};
use dialect::Dialect;
use endpoint::{Event, LinkId, SessionId};

use crate::client_frames::transfer;
use crate::transactions::coordinator_attach;
use crate::world::{KEY, Login, Request, World, message, receiver, rules, sender, token};

const STRANGER: Login = Login::Mechanism("ANONYMOUS");
const ROOT: Login = Login::Plain("root", KEY);
const NAMESPACE: &str = "sb://host";

fn push(world: &mut World, handle: u32, id: u32, more: bool, payload: &[u8]) {
    let mut bytes = transfer(handle, id, None, more, payload);
    world.server.handle_input(world.clock_reading(), &mut bytes);
}

fn condition(world: &World, link: LinkId) -> Option<String> {
    let error = world.detach_error(link)?;
    Some(error.condition.as_str().to_owned())
}

/// Puts a token of a key for the whole namespace; whether it is accepted.
fn put_token(world: &mut World, key: &str) -> bool {
    let pair = world.pair("$cbs");
    let token = token(NAMESPACE, "root", key, 60);
    let response = world.call(&pair, &Request::put_token(NAMESPACE, &token));
    response.expect("an answer").code() == 202
}

/// Begins `count` sessions; returns whether the connection is still there.
fn begin_sessions(world: &mut World, count: usize) -> bool {
    for _ in 0..count {
        world.session();
    }
    let is_closed = |event: &Event| matches!(event, Event::Closed { .. });
    !world.events.iter().any(is_closed)
}

/// Attaches `count` links to coordinators in one session, and returns them. They need no right.
fn attach_links(world: &mut World, session: SessionId, count: u32) -> Vec<LinkId> {
    let attach = |index| Attach {
        name: format!("coordinator {index}"),
        ..coordinator_attach(Vec::new())
    };
    (0..count)
        .map(|index| world.attach(session, attach(index)))
        .collect()
}

fn count_attached(world: &World, links: &[LinkId]) -> usize {
    let attached = links.iter().filter(|link| world.client.is_attached(**link));
    attached.count()
}

#[test]
fn an_unauthenticated_client_gets_64_sessions() {
    let mut world = World::with(STRANGER, |_| {});
    assert!(begin_sessions(&mut world, 64));
    assert!(!begin_sessions(&mut world, 1));
}

#[test]
fn who_has_logged_in_gets_more_sessions() {
    let mut world = World::with(ROOT, |_| {});
    assert!(begin_sessions(&mut world, 100));
}

#[test]
fn a_client_counts_as_authenticated_where_everyone_has_rights() {
    let rules = AccessRules {
        anonymous: Rights::ALL,
        ..rules()
    };
    let mut world = World::under(rules, STRANGER);
    assert!(!world.server.is_unauthenticated());
    assert!(begin_sessions(&mut world, 100));
}

#[test]
fn a_token_that_is_accepted_makes_a_client_known() {
    let mut world = World::with(STRANGER, |_| {});
    assert!(put_token(&mut world, KEY));
    assert!(!world.server.is_unauthenticated());
    assert!(begin_sessions(&mut world, 100));
}

#[test]
fn a_token_that_is_refused_leaves_a_client_unauthenticated() {
    let mut world = World::with(STRANGER, |_| {});
    assert!(!put_token(&mut world, "not-the-key"));
    assert!(world.server.is_unauthenticated());
    assert!(!begin_sessions(&mut world, 100));
}

#[test]
fn a_client_stays_known_when_its_token_has_run_out() {
    let mut world = World::with(STRANGER, |_| {});
    assert!(put_token(&mut world, KEY));
    // Past the token's 60 seconds and as long a grace.
    for _ in 0..5 {
        world.advance(30_000);
    }
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
    assert!(begin_sessions(&mut world, 100));
}

#[test]
fn an_unauthenticated_client_gets_64_links() {
    let mut world = World::with(STRANGER, |_| {});
    let session = world.session();
    let links = attach_links(&mut world, session, 65);
    assert_eq!(count_attached(&world, &links), 64);
    let refused = condition(&world, links[64]);
    assert_eq!(refused.as_deref(), Some("amqp:resource-limit-exceeded"));
}

#[test]
fn who_has_logged_in_gets_more_links() {
    let mut world = World::with(ROOT, |_| {});
    let session = world.session();
    let links = attach_links(&mut world, session, 100);
    assert_eq!(count_attached(&world, &links), 100);
}

/// Leaves a delivery of 60,000 bytes unfinished on each of 20 links; the links that were detached.
fn leave_unfinished(login: Login) -> Vec<String> {
    let mut world = World::with(login, |_| {});
    let session = world.session();
    let links = attach_links(&mut world, session, 20);
    for handle in 0..20 {
        push(&mut world, handle, handle, true, &[0; 60_000]);
    }
    assert!(world.server.partial_bytes() > 900_000);
    world.pump();
    let detached = links.iter().filter_map(|link| condition(&world, *link));
    detached.collect()
}

#[test]
fn an_unauthenticated_client_may_leave_a_mebibyte_of_messages_unfinished() {
    // 17 times 60,000 bytes are less than a mebibyte, 18 times are more.
    assert_eq!(
        leave_unfinished(STRANGER),
        ["amqp:resource-limit-exceeded"; 3]
    );
    assert_eq!(leave_unfinished(ROOT), [""; 0]);
}

#[test]
fn unfinished_messages_that_are_given_up_take_their_links_along() {
    let mut world = World::with(ROOT, |_| {});
    let (_, link) = world.sender("orders");
    push(&mut world, 0, 0, true, &[0; 10_000]);
    let unfinished = world.server.partial_bytes();
    assert!(unfinished >= 10_000);
    world.server.shed_partials(world.clock_reading(), 1);
    assert_eq!(world.server.partial_bytes(), 0);
    world.pump();
    let detached = condition(&world, link);
    assert_eq!(detached.as_deref(), Some("amqp:resource-limit-exceeded"));
    world.enqueue("orders", &message("another link goes on"));
}

/// Answers that come once the client takes them, of 60 requests with a message id of 40,000 bytes.
fn answers_that_waited(login: Login) -> usize {
    let mut world = World::with(login, |_| {});
    let session = world.session();
    let response = world.attach(session, receiver("$cbs", SenderSettleMode::Settled));
    let request = world.attach(session, sender("$cbs"));
    let payload = Request {
        message_id: Some(Value::String("x".repeat(40_000))),
        reply_to: None,
        ..Request::operation("what", Vec::new())
    };
    for _ in 0..60 {
        world.send(request, &payload.encode());
    }
    world.credit(response, 1_000, false);
    world.received(response).len()
}

#[test]
fn few_answers_wait_for_an_unauthenticated_client() {
    assert_eq!(answers_that_waited(ROOT), 60);
    assert_eq!(answers_that_waited(STRANGER), 26);
}

#[test]
fn a_sender_that_overruns_its_credit_many_times_is_detached() {
    let mut world = World::with(ROOT, |settings| settings.sender_credit = 2);
    let (_, link) = world.sender("orders");
    world.broker_stalls = true;
    for id in 0..8 {
        push(&mut world, 0, id, false, &message("over"));
    }
    world.pump();
    assert_eq!(condition(&world, link), None);
    push(&mut world, 0, 8, false, &message("one too many"));
    world.pump();
    let detached = condition(&world, link);
    assert_eq!(
        detached.as_deref(),
        Some("amqp:link:transfer-limit-exceeded")
    );
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.server.unanswered_bytes(), 0);
    let receiver = world.receiver("orders", SenderSettleMode::Settled, 10);
    assert_eq!(world.received(receiver).len(), 8);
}

#[test]
fn requests_that_overrun_their_credit_many_times_detach_their_link() {
    let mut world = World::with(STRANGER, |_| {});
    let session = world.session();
    world.attach(session, receiver("$cbs", SenderSettleMode::Settled));
    let link = world.attach(session, sender("$cbs"));
    let request = Request {
        reply_to: None,
        ..Request::operation("what", Vec::new())
    };
    for id in 0..400 {
        push(&mut world, 1, id, false, &request.encode());
    }
    world.pump();
    assert_eq!(condition(&world, link), None);
    push(&mut world, 1, 400, false, &request.encode());
    world.pump();
    let detached = condition(&world, link);
    assert_eq!(
        detached.as_deref(),
        Some("amqp:link:transfer-limit-exceeded")
    );
}
