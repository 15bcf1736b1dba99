//! Temporary queues of connections that name a virtual host. (docs/spec/rabbitmq.md#1, #4)

use amqp::error::condition;
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Source, Symbol, Target, TargetTerminus, Value};
use endpoint::LinkId;
use store::NamespaceId;

use crate::client_frames::{message, receiver, sender};
use crate::consume::{consume, consumer};
use crate::management::ended;
use crate::management_client::open;
use crate::world::{KEY, Login, SEND_KEY, World};

const TEMPORARY: Symbol = Symbol::new("temporary-queue");

/// A client that names the virtual host.
fn world(login: Login) -> World {
    let mut world = World::offline(login, |_| {});
    world.open_with(login, |config| {
        config.hostname = Some("vhost:/".to_owned());
    });
    world.pump();
    world
}

fn root() -> World {
    world(Login::Plain("root", KEY))
}

fn dynamic_source(mode: SenderSettleMode) -> Attach {
    let source = Source {
        dynamic: true,
        capabilities: vec![TEMPORARY],
        ..Source::default()
    };
    Attach {
        source: Some(Box::new(source)),
        ..consumer_in(mode)
    }
}

fn consumer_in(mode: SenderSettleMode) -> Attach {
    Attach {
        snd_settle_mode: Some(mode),
        ..consumer("x")
    }
}

fn dynamic_target() -> Attach {
    let target = Target {
        dynamic: true,
        capabilities: vec![TEMPORARY],
        ..Target::default()
    };
    Attach {
        target: Some(Box::new(TargetTerminus::Node(target))),
        ..sender("x")
    }
}

fn assert_deleted_on_close(properties: Option<&Value>) {
    let Some(Value::Map(properties)) = properties else {
        panic!("no properties");
    };
    let policy = amqp::value::lookup(properties, "lifetime-policy");
    let delete_on_close = Value::described(0x2b, Value::List(Vec::new()));
    assert_eq!(policy, Some(&delete_on_close));
}

/// A consumer with a queue of its own, and the address of that.
fn own_queue(world: &mut World, mode: SenderSettleMode) -> (LinkId, String) {
    let session = world.session();
    let link = world.attach(session, dynamic_source(mode));
    let source = world.reply(link).source.as_deref().expect("a source");
    assert!(source.dynamic);
    assert_eq!(source.capabilities, [TEMPORARY]);
    assert_deleted_on_close(source.dynamic_node_properties.as_ref());
    let address = source.address.as_ref().and_then(Value::as_text);
    let address = address.expect("an address").to_owned();
    assert!(address.starts_with("/queues/amq.dyn-"), "{address}");
    world.credit(link, 10, false);
    (link, address)
}

#[test]
fn a_consumer_gets_a_queue_whose_messages_it_settles() {
    let mut world = root();
    let (link, address) = own_queue(&mut world, SenderSettleMode::Unsettled);
    world.enqueue(&address, &message("a"));
    let received = world.received(link).remove(0);
    assert!(!received.settled);
    world.dispose(&received, DeliveryState::Released, true);
    let again = world.received(link).remove(0);
    world.dispose(&again, DeliveryState::Accepted, true);
    assert_eq!(world.received(link).len(), 0);
}

#[test]
fn a_publisher_gets_a_queue_that_its_connection_reads() {
    let mut world = root();
    let session = world.session();
    let link = world.attach(session, dynamic_target());
    let target = match world.reply(link).target.as_deref() {
        Some(TargetTerminus::Node(target)) => target.clone(),
        other => panic!("{other:?}"),
    };
    assert_deleted_on_close(target.dynamic_node_properties.as_ref());
    let address = target.address.as_ref().and_then(Value::as_text);
    let address = address.expect("an address").to_owned();
    world.send(link, &message("a"));
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
    let reader = consume(&mut world, &address, 5);
    assert_eq!(world.received(reader).len(), 1);
}

#[test]
fn it_goes_with_the_link_that_made_it() {
    let mut world = root();
    let (link, address) = own_queue(&mut world, SenderSettleMode::Settled);
    let session = world.session();
    let publisher = world.attach(session, sender(&address));
    let reader = consume(&mut world, &address, 0);
    world.client.detach(link, true, None);
    world.pump();
    for link in [publisher, reader] {
        let error = world.detach_error(link).expect("it is detached");
        assert_eq!(error.condition, condition::RESOURCE_DELETED);
    }
    for attach in [sender(&address), consumer(&address)] {
        let error = world.refusal(attach);
        assert_eq!(error.condition, condition::NOT_FOUND);
        let text = error.description.expect("a text");
        assert!(text.starts_with("no queue 'amq.dyn-"), "{text}");
    }
}

#[test]
fn another_connection_does_not_read_it() {
    let mut world = root();
    let node = world.node_of_another(NamespaceId::default());
    let token = broker::node_token(node);
    let address = format!("/queues/amq.dyn-{token}");
    let error = world.refusal(consumer(&address));
    assert_eq!(error.condition, condition::RESOURCE_LOCKED);
    world.enqueue(&address, &message("a"));
}

#[test]
fn the_management_pair_does_not_know_it() {
    let mut world = root();
    let (_, address) = own_queue(&mut world, SenderSettleMode::Settled);
    let management = open(&mut world);
    assert_eq!(management.call(&mut world, "GET", &address, None).0, "404");
}

#[test]
fn a_client_without_the_right_loses_its_session() {
    let mut world = world(Login::Plain("sender", SEND_KEY));
    let session = world.session();
    world.attach(session, dynamic_source(SenderSettleMode::Settled));
    assert_eq!(ended(&world), [condition::UNAUTHORIZED_ACCESS]);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let mut world = root();
    let mut named = dynamic_source(SenderSettleMode::Settled);
    named.source.as_mut().expect("a source").address = Some(Value::from("/queues/orders"));
    let second = Attach {
        source: dynamic_source(SenderSettleMode::Unsettled).source,
        ..receiver("x", SenderSettleMode::Unsettled)
    };
    for attach in [named, second] {
        let error = world.refusal(attach);
        assert_eq!(error.condition, condition::NOT_IMPLEMENTED);
    }
}

#[test]
fn a_connection_without_a_virtual_host_gets_the_node_of_service_bus() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(session, dynamic_source(SenderSettleMode::Settled));
    let source = world.reply(link).source.as_deref().expect("a source");
    let address = source.address.as_ref().and_then(Value::as_text);
    assert!(address.is_some_and(|it| it.starts_with("railbus.temporary.")));
}
