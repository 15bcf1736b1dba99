//! Latencies: which deliveries and settlements count in the histograms of waiting times.

use broker::{
    BrokerSettings, Command, Incoming, Latency, Outcome, Output, QueueSettings, Subqueue,
    SubqueueId, Traffic,
};
use bytes::Bytes;

use crate::world::{QUEUE, World, attach, receiver, request};

/// A world where a message was sent two seconds ago to a queue, whose main receiver takes it.
fn delivered() -> (World, Vec<Output>) {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    world.turn(Command::Send {
        request: request(0),
        entity: QUEUE,
        messages: vec![Incoming {
            payload: Bytes::from_static(b"x"),
            ..Incoming::default()
        }],
    });
    world.mono = 2_000;
    world.turn(attach(0));
    let said = credit(&mut world, 0, 1);
    (world, said)
}

/// Gives a receiver credit, and all that it is sent then.
fn credit(world: &mut World, index: u64, limit: u32) -> Vec<Output> {
    let mut said = world.turn(Command::Credit {
        receiver: receiver(index),
        limit,
        drain: false,
    });
    while let Some(read) = world.answer(0) {
        said.extend(world.turn_with(vec![read]));
    }
    said
}

fn settle(world: &mut World, subqueue: Subqueue, said: &[Output], outcome: Outcome) {
    let [Output::Deliver { delivery, .. }] = said else {
        panic!("one delivery, not {said:?}");
    };
    world.turn(Command::Settle {
        request: None,
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue,
        },
        session: None,
        token: delivery.token,
        outcome,
    });
}

fn traffic(world: &World) -> Traffic {
    world.shard.broker.queue(QUEUE).unwrap().traffic
}

/// How many, and how long together.
fn sums(latency: &Latency) -> (u64, u64) {
    (latency.counts.iter().sum(), latency.sum_ms)
}

#[test]
fn the_first_delivery_and_the_completion_count_from_the_enqueued_time() {
    let (mut world, said) = delivered();
    assert_eq!(sums(&traffic(&world).delivery_time), (1, 2_000));
    world.mono = 3_000;
    let abandon = Outcome::abandon(Vec::new());
    settle(&mut world, Subqueue::Main, &said, abandon);
    let said = credit(&mut world, 0, 2);
    assert_eq!(traffic(&world).delivered, 2);
    assert_eq!(sums(&traffic(&world).delivery_time), (1, 2_000));
    world.mono = 5_000;
    settle(&mut world, Subqueue::Main, &said, Outcome::Complete);
    assert_eq!(sums(&traffic(&world).settlement_time), (1, 5_000));
}

#[test]
fn a_message_counts_until_its_receiver_dead_letters_it_and_not_after() {
    let (mut world, said) = delivered();
    world.mono = 3_000;
    let reject = Outcome::DeadLetter {
        changes: Vec::new(),
    };
    settle(&mut world, Subqueue::Main, &said, reject);
    assert_eq!(sums(&traffic(&world).settlement_time), (1, 3_000));
    world.mono = 9_000;
    world.turn(Command::Attach {
        receiver: receiver(1),
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue: Subqueue::DeadLetter,
        },
        access: broker::Access::Consume(broker::ReceiveMode::PeekLock),
        selector: None,
    });
    let said = credit(&mut world, 1, 1);
    settle(&mut world, Subqueue::DeadLetter, &said, Outcome::Complete);
    let traffic = traffic(&world);
    assert_eq!((traffic.delivered, traffic.completed), (2, 1));
    assert_eq!(sums(&traffic.delivery_time), (1, 2_000));
    assert_eq!(sums(&traffic.settlement_time), (1, 3_000));
}
