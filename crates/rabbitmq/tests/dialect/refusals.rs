//! What the operator's log is told of a session that ends, and of a message that is rejected: the
//! link, what it is of, and why.

use amqp::error::condition;
use amqp::message::Properties;
use amqp::{Attach, DeliveryState, Symbol, Value};
use broker::QueueSettings;
use bytes::{Bytes, BytesMut};
use dialect::{Dialect, Subject};
use endpoint::Outgoing;

use crate::client_frames::{message, rules, sender, target};
use crate::consume::consumer;
use crate::management::ended;
use crate::world::{KEY, LISTEN_KEY, Login, World};

/// One session has ended for `condition`, and is told with the link `name` and its entity.
fn check(world: &mut World, name: &str, entity: Option<&str>, condition: &Symbol) {
    assert_eq!(ended(world), std::slice::from_ref(condition));
    let refusals = world.server.take_refusals().expect("there is one");
    let [told] = &refusals.first[..] else {
        panic!("{refusals:?}");
    };
    assert_eq!(told.subject, Subject::Session);
    assert_eq!(told.link.as_deref(), Some(name));
    assert_eq!(told.entity.as_deref(), entity);
    assert_eq!(&told.condition, condition);
}

fn transactional() -> DeliveryState {
    DeliveryState::Transactional {
        txn_id: Bytes::from_static(b"t1"),
        outcome: None,
    }
}

#[test]
fn a_publisher_in_a_transaction() {
    let mut world = World::new();
    let (_, link) = world.sender("/queues/orders");
    let outgoing = Outgoing {
        tag: b"t",
        state: Some(transactional()),
        ..Outgoing::default()
    };
    let payload = message("a");
    let sent = world.client.send(link, &outgoing, &[&payload]);
    sent.expect("there is credit");
    world.pump();
    check(
        &mut world,
        "link 1",
        Some("orders"),
        &condition::NOT_IMPLEMENTED,
    );
}

#[test]
fn a_publisher_without_the_right_to_where_its_message_goes() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let session = world.session();
    let anonymous = Attach {
        name: "to anywhere".to_owned(),
        target: Some(Box::new(target(None))),
        ..sender("")
    };
    let link = world.attach(session, anonymous);
    let mut payload = BytesMut::new();
    Properties {
        to: Some(Value::from("/queues/orders")),
        ..Properties::default()
    }
    .encode(&mut payload);
    payload.extend_from_slice(&message("a"));
    world.send(link, &payload);
    check(
        &mut world,
        "to anywhere",
        None,
        &condition::UNAUTHORIZED_ACCESS,
    );
}

#[test]
fn a_consumer_that_settles_in_a_transaction() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let session = world.session();
    let link = world.attach(session, consumer("/queues/orders"));
    world.credit(link, 1, false);
    let received = world.received(link).remove(0);
    world.dispose(&received, transactional(), true);
    let name = "receiver of /queues/orders";
    check(
        &mut world,
        name,
        Some("orders"),
        &condition::NOT_IMPLEMENTED,
    );
}

#[test]
fn a_consumer_whose_key_has_lost_its_right() {
    let mut world = World::with(Login::Plain("root", KEY), |_| {});
    let session = world.session();
    world.attach(session, consumer("/queues/orders"));
    let mut less = rules();
    for rule in &mut less.rules {
        rule.rights.listen = false;
        rule.rights.manage = false;
    }
    world.replace_rules(less);
    let name = "receiver of /queues/orders";
    check(
        &mut world,
        name,
        Some("orders"),
        &condition::UNAUTHORIZED_ACCESS,
    );
}

#[test]
fn a_message_that_a_full_queue_rejects() {
    let mut world = World::new();
    let settings = QueueSettings {
        max_size: 1,
        ..QueueSettings::default()
    };
    world.create("small", settings);
    let (_, link) = world.sender("/queues/small");
    world.send(link, &message("a"));
    let refusals = world.server.take_refusals().expect("there is one");
    let [told] = &refusals.first[..] else {
        panic!("{refusals:?}");
    };
    assert_eq!(told.subject, Subject::Message);
    assert_eq!(told.link.as_deref(), Some("link 1"));
    assert_eq!(told.entity.as_deref(), Some("small"));
    assert_eq!(told.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!(told.text, "queue 'small' exceeded maximum length");
}
