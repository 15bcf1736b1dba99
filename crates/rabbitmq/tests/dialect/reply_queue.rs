//! Direct replies: a requester's reply queue, and those that answer to it.
//! (docs/spec/rabbitmq.md#10.8)

use amqp::error::condition;
use amqp::message::Properties;
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Source, Symbol, Value};
use bytes::BytesMut;
use endpoint::LinkId;
use store::NamespaceId;

use crate::client_frames::{message, receiver, sender, target};
use crate::consume::consumer;
use crate::management::ended;
use crate::world::{KEY, Login, SEND_KEY, World};

/// A requester's link as clients attach it.
fn requester(mode: SenderSettleMode) -> Attach {
    let source = Source {
        dynamic: true,
        expiry_policy: Some(Symbol::new("link-detach")),
        capabilities: vec![Symbol::new("rabbitmq:volatile-queue")],
        ..Source::default()
    };
    Attach {
        source: Some(Box::new(source)),
        ..receiver("x", mode)
    }
}

fn address(world: &World, link: LinkId) -> String {
    let source = world.reply(link).source.as_deref().expect("a source");
    let address = source.address.as_ref().and_then(Value::as_text);
    address.expect("an address").to_owned()
}

fn request(world: &mut World) -> (LinkId, String) {
    let session = world.session();
    let attach = Attach {
        name: format!("requester in {session:?}"),
        ..requester(SenderSettleMode::Settled)
    };
    let link = world.attach(session, attach);
    let address = address(world, link);
    world.credit(link, 10, false);
    (link, address)
}

/// The outcome of a reply over the anonymous terminus.
fn answer(world: &mut World, address: &str) -> DeliveryState {
    let session = world.session();
    let anonymous = Attach {
        target: Some(Box::new(target(None))),
        ..sender("")
    };
    let link = world.attach(session, anonymous);
    let mut reply = BytesMut::new();
    Properties {
        to: Some(Value::from(address)),
        ..Properties::default()
    }
    .encode(&mut reply);
    reply.extend_from_slice(&message("reply"));
    world.send(link, &reply.freeze());
    world.outcomes(link).remove(0)
}

#[test]
fn a_requester_is_told_the_address_of_its_queue() {
    let mut world = World::new();
    let (link, address) = request(&mut world);
    assert!(address.starts_with("/queues/amq.rabbitmq.reply-to."));
    let reply = world.reply(link);
    let source = reply.source.as_deref().expect("a source");
    assert!(source.dynamic);
    assert_eq!(source.capabilities, ["rabbitmq:volatile-queue"]);
    assert_eq!(source.distribution_mode, Some(Symbol::new("move")));
    let Some(Value::Map(properties)) = &source.dynamic_node_properties else {
        panic!("no properties of the node");
    };
    let policy = amqp::value::lookup(properties, "lifetime-policy");
    let delete_on_close = Value::described(0x2b, Value::List(Vec::new()));
    assert_eq!(policy, Some(&delete_on_close));
    assert_eq!(reply.snd_settle_mode, Some(SenderSettleMode::Settled));
}

#[test]
fn a_reply_comes_settled_to_the_requester_alone() {
    let mut world = World::new();
    let (link, address) = request(&mut world);
    let (other, other_address) = request(&mut world);
    assert_ne!(address, other_address);
    assert_eq!(answer(&mut world, &address), DeliveryState::Accepted);
    let received = world.received(link);
    assert_eq!(received.len(), 1);
    assert!(received[0].settled);
    assert!(world.received(other).is_empty());
    let error = world.refusal(consumer(&address));
    assert_eq!(error.condition, condition::NOT_FOUND);
}

#[test]
fn a_reply_to_a_requester_that_is_gone_is_released() {
    let mut world = World::new();
    let (link, address) = request(&mut world);
    let session = world.session();
    let responder = world.attach(session, sender(&address));
    world.send(responder, &message("reply"));
    assert_eq!(world.outcomes(responder), [DeliveryState::Accepted]);
    assert_eq!(world.received(link).len(), 1);
    world.client.detach(link, true, None);
    world.pump();
    let error = world.detach_error(responder).expect("it is detached");
    assert_eq!(error.condition, condition::RESOURCE_DELETED);
    assert_eq!(answer(&mut world, &address), DeliveryState::Released);
    let error = world.refusal(sender(&address));
    assert_eq!(error.condition, condition::NOT_FOUND);
    let text = error.description.expect("a text");
    assert!(text.starts_with("no queue 'amq.rabbitmq.reply-to."));
}

#[test]
fn a_reply_queue_is_shown_as_long_as_its_requester_is_there() {
    let mut world = World::new();
    let management = crate::management_client::open(&mut world);
    let (link, address) = request(&mut world);
    let (status, queue) = management.call(&mut world, "GET", &address, None);
    assert_eq!(status, "200", "{queue:?}");
    let name = address.strip_prefix("/queues/").expect("a queue");
    for (key, expected) in [
        ("name", Value::from(name)),
        ("type", Value::from("rabbit_volatile_queue")),
        ("durable", Value::Bool(false)),
        ("message_count", Value::Ulong(0)),
        ("consumer_count", Value::Uint(1)),
        ("leader", Value::from("node")),
    ] {
        assert_eq!(*crate::management_client::entry(&queue, key), expected);
    }
    world.client.detach(link, true, None);
    world.pump();
    let (status, text) = management.call(&mut world, "GET", &address, None);
    let expected = format!("queue '{name}' in vhost '/' not found");
    assert_eq!((status.as_str(), text), ("404", Value::String(expected)));
    let elsewhere = world.node_of_another(NamespaceId(1));
    let token = broker::node_token(elsewhere);
    let address = format!("/queues/amq.rabbitmq.reply-to.{token}");
    let (status, _) = management.call(&mut world, "GET", &address, None);
    assert_eq!(status, "404");
}

#[test]
fn a_reply_queue_goes_with_the_session_of_its_requester() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(session, requester(SenderSettleMode::Settled));
    let address = address(&world, link);
    world.client.end(session, None);
    world.pump();
    assert_eq!(answer(&mut world, &address), DeliveryState::Released);
}

#[test]
fn a_reply_reaches_no_queue_of_another_namespace() {
    let mut world = World::new();
    for (namespace, expected) in [
        (NamespaceId::default(), DeliveryState::Accepted),
        (NamespaceId(1), DeliveryState::Released),
    ] {
        let node = world.node_of_another(namespace);
        let address = format!("/queues/amq.rabbitmq.reply-to.{}", broker::node_token(node));
        assert_eq!(answer(&mut world, &address), expected);
    }
}

#[test]
fn requesters_may_have_one_name() {
    let mut settings = servicebus::Settings::default();
    settings.endpoint.shares_name = rabbitmq::may_share_name;
    let mut world = World::with(Login::Plain("root", KEY), |it| *it = settings);
    let links = [(); 2].map(|()| {
        // The client's own endpoint keeps names apart within a session.
        let session = world.session();
        world.attach(session, requester(SenderSettleMode::Settled))
    });
    assert!(links.iter().all(|link| world.client.is_attached(*link)));
}

#[test]
fn a_name_that_no_requester_has_is_no_queue() {
    let mut world = World::new();
    let address = "/queues/amq.rabbitmq.reply-to.0123";
    let error = world.refusal(sender(address));
    assert_eq!(error.condition, condition::NOT_FOUND);
    assert_eq!(answer(&mut world, address), DeliveryState::Released);
}

#[test]
fn a_requester_takes_settled_messages_and_has_the_right_to_read() {
    let mut world = World::new();
    let error = world.refusal(requester(SenderSettleMode::Unsettled));
    assert_eq!(error.condition, condition::NOT_IMPLEMENTED);
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let session = world.session();
    world.attach(session, requester(SenderSettleMode::Settled));
    assert_eq!(ended(&world), [condition::UNAUTHORIZED_ACCESS]);
}
