//! Copies of one message that share no body: what they may take together.
//! (docs/spec/rabbitmq.md#8.1)

use broker::{
    Binding, BindingDestination, BrokerSettings, Command, Ensured, Incoming, MAX_COPIED_BYTES,
    Order, Output, Publication, PublishError, QueueSettings, Routed, RouterOrder, Wall,
};
use bytes::Bytes;
use store::NamespaceId;

use crate::world::{World, administer, ensure, request};

const QUEUES: usize = 4;

#[test]
fn a_message_is_refused_if_its_copies_take_too_much_and_share_no_body() {
    let mut world = World::empty(BrokerSettings::default());
    for index in 0..QUEUES {
        bind_queue(&mut world, &format!("q{index}"));
    }
    let stored = Routed::Stored {
        destinations: QUEUES,
    };
    let most = MAX_COPIED_BYTES / QUEUES;
    let due = Some(Wall(world.now().wall.0 + 60_000));
    let refusal = PublishError::TooLarge { copies: QUEUES };
    assert_eq!(publish(&mut world, most + 1, due), Err(refusal));
    assert_eq!(publish(&mut world, most, due), Ok(stored));
    assert_eq!(publish(&mut world, most + 1, None), Ok(stored), "one body");
    let queues = world.shard.broker.queues();
    let counts: Vec<_> = queues.map(|it| (it.scheduled, it.active)).collect();
    assert_eq!(counts, [(1, 1); QUEUES]);
}

fn bind_queue(world: &mut World, path: &str) {
    let path = path.to_owned();
    world.turn(ensure(Ensured::Queue {
        path: path.clone(),
        settings: QueueSettings::default(),
    }));
    let binding = Binding {
        source: "amq.fanout".to_owned(),
        destination: BindingDestination::Entity(path),
        key: String::new(),
        arguments: Vec::new(),
    };
    let order = Order::Router(RouterOrder::Bind(Box::new(binding)));
    world.turn(administer(request(1), order));
}

fn publish(
    world: &mut World,
    bytes: usize,
    scheduled: Option<Wall>,
) -> Result<Routed, PublishError> {
    let publication = Box::new(Publication {
        namespace: NamespaceId(0),
        router: "amq.fanout".to_owned(),
        keys: vec![String::new()],
        message: Incoming {
            payload: Bytes::from(vec![b'x'; bytes]),
            scheduled,
            ..Incoming::default()
        },
    });
    let request = request(2);
    let said = world.turn(Command::Publish {
        request,
        publication,
    });
    let result = said.into_iter().find_map(|output| match output {
        Output::Published { result, .. } => Some(result),
        _ => None,
    });
    result.expect("a message that waits for nothing is answered")
}
