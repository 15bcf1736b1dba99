//! One connection with links of both dialects. (docs/spec/rabbitmq.md#1, #16)

use amqp::DeliveryState;
use amqp::performative::SenderSettleMode;

use crate::client_frames::message;
use crate::consume::consumer;
use crate::world::World;

#[test]
fn each_link_settles_by_its_own_dialect() {
    let mut world = World::new();
    world.enqueue("orders", &message("a"));
    world.enqueue("/queues/orders", &message("b"));
    let azure = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let session = world.session();
    let rabbit = world.attach(session, consumer("/queues/orders"));
    world.credit(rabbit, 1, false);
    let (first, second) = (
        world.received(azure).remove(0),
        world.received(rabbit).remove(0),
    );
    assert!(first.payload.ends_with(&message("a")));
    assert!(second.payload.ends_with(&message("b")));
    let undeliverable = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: None,
    };
    // Service Bus defers the message, RabbitMQ dead-letters it.
    world.dispose(&first, undeliverable.clone(), true);
    world.dispose(&second, undeliverable, true);
    let dead = world.receiver("orders/$DeadLetterQueue", SenderSettleMode::Unsettled, 5);
    let dead = world.received(dead);
    assert_eq!(dead.len(), 1);
    assert!(dead[0].payload.ends_with(&message("b")));
}

#[test]
fn the_end_of_the_client_ends_links_of_both() {
    let mut world = World::new();
    world.enqueue("orders2", &message("a"));
    let session = world.session();
    let link = world.attach(session, consumer("/queues/orders2"));
    world.credit(link, 1, false);
    assert_eq!(world.received(link).len(), 1);
    world.client.close(None);
    world.pump();
    let disconnects = world.commands.iter();
    let disconnects = disconnects.filter(|it| matches!(it, broker::Command::Disconnect { .. }));
    assert_eq!(disconnects.count(), 1);
    assert!(matches!(
        world.commands.last(),
        Some(broker::Command::Disconnect { .. })
    ));
}
