//! Notices of the active consumer. (docs/spec/rabbitmq.md#10.1)

use amqp::{Performative, Value};
use bytes::Bytes;
use dialect::Dialect;
use endpoint::LinkId;

use crate::client_frames::message;
use crate::consume::consumer;
use crate::management_client::open;
use crate::world::World;

/// The properties of a link's state that are on their way to the client, frame by frame. The client
/// gets the frames afterwards.
fn told(world: &mut World, act: impl FnOnce(&mut World)) -> Vec<bool> {
    world.client_stalls = true;
    act(world);
    world.pump();
    let mut bytes = world.server.output(world.clock_reading()).split();
    world.server.written();
    let notices = notices(&bytes.clone().freeze());
    world.client.handle_input(endpoint::Mono(0), &mut bytes);
    world.client_stalls = false;
    world.pump();
    notices
}

/// The notices of whole frames, each in a flow of a link.
fn notices(bytes: &Bytes) -> Vec<bool> {
    let mut rest = bytes.clone();
    let mut notices = Vec::new();
    while !rest.is_empty() {
        let size = u32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        let frame = rest.split_to(size as usize);
        let mut body = frame.slice(usize::from(frame[4]) * 4..);
        if body.is_empty() {
            continue;
        }
        let Ok(Performative::Flow(flow)) = Performative::decode(&mut body) else {
            continue;
        };
        let properties = flow.properties.unwrap_or_default();
        if let Some(Value::Bool(active)) = amqp::value::lookup(&properties, "rabbitmq:active") {
            assert!(flow.handle.is_some() && flow.link_credit.is_some());
            notices.push(*active);
        }
    }
    notices
}

fn attach(world: &mut World, queue: &str) -> LinkId {
    let session = world.session();
    let attach = amqp::Attach {
        name: format!("consumer in {session:?}"),
        ..consumer(queue)
    };
    world.attach(session, attach)
}

#[test]
fn a_consumer_of_a_queue_for_all_is_active_from_its_first_credit_on() {
    let mut world = World::new();
    let link = attach(&mut world, "/queues/orders");
    let first = told(&mut world, |world| world.client.set_credit(link, 5, false));
    assert_eq!(first, [true]);
    let more = told(&mut world, |world| world.client.set_credit(link, 9, false));
    assert!(more.is_empty());
    world.enqueue("/queues/orders", &message("a"));
    assert_eq!(world.received(link).len(), 1);
}

#[test]
fn a_single_active_consumer_and_its_successors_are_told() {
    let mut world = World::new();
    let management = open(&mut world);
    let arguments = [
        ("x-queue-type", Value::from("quorum")),
        ("x-single-active-consumer", Value::Bool(true)),
    ];
    let (status, _) = management.declare(&mut world, "one", &arguments);
    assert_eq!(status, "201");
    let links = [(); 3].map(|()| attach(&mut world, "/queues/one"));
    for (link, expected) in [(links[0], true), (links[1], false)] {
        let said = told(&mut world, |world| world.client.set_credit(link, 5, false));
        assert_eq!(said, [expected]);
    }
    let said = told(&mut world, |world| {
        world.client.detach(links[0], true, None);
    });
    assert_eq!(said, [true]);
    // It has had no credit, and is told with the first.
    let said = told(&mut world, |world| {
        world.client.detach(links[1], true, None);
    });
    assert!(said.is_empty());
    let said = told(&mut world, |world| {
        world.client.set_credit(links[2], 5, false);
    });
    assert_eq!(said, [true]);
    world.enqueue("/queues/one", &message("a"));
    assert_eq!(world.received(links[2]).len(), 1);
}

#[test]
fn rule_02_the_version_is_that_of_notices_of_active_consumers() {
    let properties = rabbitmq::open_properties("node", "0.0.0");
    let version = amqp::value::lookup(&properties, "version").and_then(Value::as_text);
    assert_eq!(version, Some("4.3.0"));
}
