//! Senders without a target address: each message names its node. (docs/spec/amqp.md#3.9)

use amqp::message::Properties;
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Symbol, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Event, LinkId};
use store::NamespaceId;

use crate::tracking::text;
use crate::world::{Login, SEND_KEY, World, receiver, sender, target};

const SETTLED: SenderSettleMode = SenderSettleMode::Settled;

fn world() -> World {
    world_of(Login::Plain("root", crate::world::KEY))
}

fn world_of(login: Login) -> World {
    World::with(login, |settings| settings.anonymous_relay = true)
}

fn anonymous() -> Attach {
    Attach {
        target: Some(Box::new(target(None))),
        ..sender("anonymous")
    }
}

fn relay(world: &mut World) -> LinkId {
    let session = world.session();
    let link = world.attach(session, anonymous());
    assert!(world.client.is_attached(link), "the relay is accepted");
    link
}

/// A message for an address.
fn message_to(to: Option<Value>) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        to,
        ..Properties::default()
    };
    properties.encode(&mut out);
    amqp::encode::descriptor(&mut out, 0x77);
    amqp::encode::value(&mut out, &Value::from("body"));
    out.freeze()
}

fn to(address: &str) -> Bytes {
    message_to(Some(Value::from(address)))
}

/// The condition that the only outcome names.
fn condition(world: &mut World, link: LinkId) -> String {
    match world.outcomes(link).as_slice() {
        [DeliveryState::Rejected(Some(error))] => error.condition.as_str().to_owned(),
        other => panic!("one rejection is expected, not {other:?}"),
    }
}

#[test]
fn each_message_goes_to_the_node_that_it_names() {
    let mut world = world();
    let orders = world.receiver("orders", SETTLED, 10);
    let others = world.receiver("orders2", SETTLED, 10);
    let link = relay(&mut world);
    for address in ["orders", "orders2", "/ORDERS", "amqps://host/orders"] {
        world.send(link, &to(address));
    }
    assert_eq!(world.outcomes(link), vec![DeliveryState::Accepted; 4]);
    assert_eq!(world.received(orders).len(), 3);
    assert_eq!(world.received(others).len(), 1);
}

#[test]
fn a_message_without_an_address_is_rejected() {
    let mut world = world();
    let link = relay(&mut world);
    world.send(link, &message_to(None));
    assert_eq!(condition(&mut world, link), "amqp:precondition-failed");
    world.send(link, &crate::world::message("no properties at all"));
    assert_eq!(condition(&mut world, link), "amqp:precondition-failed");
    world.send(link, &message_to(Some(Value::Ulong(1))));
    assert_eq!(condition(&mut world, link), "amqp:decode-error");
    assert!(world.client.is_attached(link));
}

#[test]
fn a_message_to_what_is_missing_or_takes_none_is_rejected() {
    let mut world = world();
    let link = relay(&mut world);
    let gone = "railbus.temporary.00000000000000000000000000000000";
    let table = [
        ("nowhere", "amqp:not-found"),
        (gone, "amqp:not-found"),
        ("orders/$DeadLetterQueue", "amqp:not-allowed"),
        ("orders/$management", "amqp:not-allowed"),
        ("$cbs", "amqp:not-allowed"),
    ];
    for (address, expected) in table {
        world.send(link, &to(address));
        assert_eq!(condition(&mut world, link), expected, "{address}");
    }
}

#[test]
fn the_right_to_send_is_checked_for_each_message() {
    let mut world = world_of(Login::Plain("listener", crate::world::LISTEN_KEY));
    let link = relay(&mut world);
    for address in ["orders", "nowhere"] {
        world.send(link, &to(address));
        assert_eq!(condition(&mut world, link), "amqp:unauthorized-access");
    }
    let mut world = world_of(Login::Plain("sender", SEND_KEY));
    let link = relay(&mut world);
    world.send(link, &to("orders"));
    assert_eq!(world.outcomes(link), vec![DeliveryState::Accepted]);
}

#[test]
fn a_reply_reaches_no_node_of_another_namespace() {
    let mut world = world();
    let here = world.node_of_another(NamespaceId::default());
    let there = world.node_of_another(NamespaceId(1));
    let link = relay(&mut world);
    world.send(link, &to(&broker::node_path(here)));
    assert_eq!(world.outcomes(link), vec![DeliveryState::Accepted]);
    world.send(link, &to(&broker::node_path(there)));
    assert_eq!(condition(&mut world, link), "amqp:not-found");
    let count = |node| world.shard.broker.queue(node).expect("it is there").active;
    assert_eq!([here, there].map(count), [1, 0]);
}

#[test]
fn a_settled_message_with_a_fault_detaches_the_link() {
    let node = "railbus.temporary.00000000000000000000000000000000";
    for missing in ["nowhere", node] {
        let mut world = world();
        let link = relay(&mut world);
        world.send_as(link, 0, true, &to(missing));
        let error = world.detach_error(link).expect("nobody would hear of it");
        assert_eq!(error.condition, "amqp:not-found");
        assert!(text(error).contains(missing), "{error:?}");
    }
}

#[test]
fn without_the_setting_a_sender_needs_a_target() {
    let mut world = World::new();
    assert_eq!(world.refusal(anonymous()).condition, "amqp:invalid-field");
    let mut nothing = anonymous();
    nothing.target = None;
    let mut world = self::world();
    assert_eq!(world.refusal(nothing).condition, "amqp:invalid-field");
    let nameless = Attach {
        source: Some(Box::default()),
        ..receiver("x", SETTLED)
    };
    assert_eq!(world.refusal(nameless).condition, "amqp:invalid-field");
}

#[test]
fn the_relay_is_offered_to_clients_that_desire_it() {
    let relay = Symbol::new("ANONYMOUS-RELAY");
    let offered = |is_on: bool, desired: Vec<Symbol>| {
        let login = Login::Plain("root", crate::world::KEY);
        let mut world = World::offline(login, |settings| settings.anonymous_relay = is_on);
        world.desire(login, desired);
        world.pump();
        let open = world.events.iter().find_map(|event| match event {
            Event::Opened(open) => Some(open.offered_capabilities.clone()),
            _ => None,
        });
        open.expect("the connection is open")
    };
    let desired = || {
        vec![
            Symbol::new("SOMETHING-ELSE"),
            Symbol::new("ANONYMOUS-RELAY"),
        ]
    };
    assert_eq!(offered(true, desired()), vec![relay]);
    assert!(offered(true, Vec::new()).is_empty());
    assert!(offered(false, desired()).is_empty());
}

#[test]
fn a_transfer_destination_is_refused() {
    let mut world = world();
    let attach = Attach {
        target: Some(Box::new(target(None))),
        ..crate::send_via::via("anonymous", "orders2")
    };
    let error = world.refusal(attach);
    assert_eq!(error.condition, "com.microsoft:argument-error");
}
