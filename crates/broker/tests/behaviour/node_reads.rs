//! Reads of dynamic nodes: a body that memory has dropped comes back within the turn that needs it.
//! (docs/spec/amqp.md#3.7)

use broker::{
    BrokerSettings, Command, ConnectionId, Incoming, LifetimePolicy, NodeKind, NodeLinkId,
    NodeRequest, NodeUse, Output,
};
use bytes::Bytes;
use store::{EntityId, NamespaceId};

use crate::world::{World, request};

/// Far more turns than the topic needs for its messages.
const TURNS: usize = 100;

#[test]
fn a_topic_without_memory_for_bodies_hands_on_each_message_in_its_smallest_turns() {
    let mut world = World::empty(BrokerSettings {
        body_bytes: 0,
        turn_work: 2,
        ..BrokerSettings::default()
    });
    let topic = opened(&mut world, make_topic(link(1)));
    let subscription = opened(&mut world, receive(link(2), topic));
    world.turn(Command::Send {
        request: request(1),
        entity: topic,
        messages: vec![message(), message(), message()],
    });
    for _ in 0..TURNS {
        if world.step_to(world.mono) {
            world.turn_with(Vec::new());
        }
    }
    let active = |entity| world.shard.broker.queue(entity).unwrap().active;
    assert_eq!((active(topic), active(subscription)), (0, 3));
    assert!(!world.step_to(world.mono), "nothing is left to do");
}

fn link(link: u32) -> NodeLinkId {
    NodeLinkId {
        connection: ConnectionId(1),
        link,
    }
}

fn make_topic(link: NodeLinkId) -> Command {
    Command::CreateNode {
        link,
        namespace: NamespaceId(0),
        node: NodeRequest {
            kind: NodeKind::Topic,
            lifetime: LifetimePolicy::DeleteOnClose,
            exclusive: false,
        },
    }
}

fn receive(link: NodeLinkId, node: EntityId) -> Command {
    Command::OpenNode {
        link,
        namespace: NamespaceId(0),
        node,
        used: NodeUse::Receive,
    }
}

/// The node that a link is given.
fn opened(world: &mut World, command: Command) -> EntityId {
    let said = world.turn(command);
    let [Output::NodeOpened { result, .. }] = said.as_slice() else {
        panic!("{said:?}");
    };
    result.expect("there is room").entity
}

fn message() -> Incoming {
    Incoming {
        payload: Bytes::from_static(b"\0Su\xa0\x01a"),
        ..Incoming::default()
    }
}
