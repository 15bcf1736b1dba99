//! Many scheduled messages that are due at once: bounded turns, and other queues still move.

use broker::{
    BrokerSettings, Command, Ensured, Incoming, Output, QueueInfo, QueueSettings, SubqueueId, Wall,
};
use bytes::Bytes;
use store::EntityId;

use crate::script::START;
use crate::world::{QUEUE, World, attach, ensure, receiver, request};

const OTHER: EntityId = EntityId(2);
const DUE: u64 = START + 1_000;

fn schedule(world: &mut World, entity: EntityId, count: usize, due: u64) {
    let message = Incoming {
        payload: Bytes::from_static(b"x"),
        scheduled: Some(Wall(due)),
        ..Incoming::default()
    };
    world.turn(Command::Send {
        request: request(0),
        entity,
        messages: vec![message; count],
    });
}

fn info(world: &World, entity: EntityId) -> QueueInfo {
    world.shard.broker.queue(entity).unwrap()
}

/// One turn, and what it activated in the first queue.
fn turn(world: &mut World) -> u64 {
    let before = info(world, QUEUE).scheduled;
    let read = world.answer(0);
    world.turn_with(read.into_iter().collect());
    before - info(world, QUEUE).scheduled
}

#[test]
fn fifty_thousand_that_are_due_at_once_come_in_bounded_turns() {
    let settings = BrokerSettings {
        window: 5_000,
        ..BrokerSettings::default()
    };
    let turn_work = settings.turn_work as u64;
    let mut world = World::new(settings, QueueSettings::default());
    for _ in 0..50 {
        schedule(&mut world, QUEUE, 1_000, DUE);
    }
    world.mono = 1_000;
    let mut turns = 0;
    while info(&world, QUEUE).scheduled > 0 {
        let activated = turn(&mut world);
        assert!(activated <= turn_work, "{activated} in one turn");
        turns += 1;
        assert!(turns < 1_000, "no turn is wasted");
    }
    assert_eq!(info(&world, QUEUE).active, 50_000);
    world.audit();
}

#[test]
fn what_lags_behind_is_told_and_leaves_others_their_turns() {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    world.turn(ensure(Ensured::Queue {
        path: "other".to_owned(),
        settings: QueueSettings::default(),
    }));
    for _ in 0..20 {
        schedule(&mut world, QUEUE, 1_000, DUE);
    }
    schedule(&mut world, OTHER, 3, DUE + 2);
    world.mono = 1_000;
    for lag in 0..3 {
        assert!(turn(&mut world) > 0, "it goes on");
        assert_eq!(info(&world, QUEUE).schedule_lag_ms, lag);
        world.mono += 1;
    }
    turn(&mut world);
    assert_eq!(info(&world, OTHER).scheduled, 0, "the other was not late");
    assert!(info(&world, QUEUE).scheduled > 10_000);
}

#[test]
fn messages_are_sent_and_delivered_while_thousands_become_due() {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    for _ in 0..20 {
        schedule(&mut world, QUEUE, 1_000, DUE);
    }
    world.turn(ensure(Ensured::Queue {
        path: "other".to_owned(),
        settings: QueueSettings::default(),
    }));
    let Command::Attach {
        receiver: taker,
        subqueue: SubqueueId { subqueue, .. },
        access,
        selector,
        ..
    } = attach(4)
    else {
        panic!("it attaches");
    };
    world.turn(Command::Attach {
        receiver: taker,
        subqueue: SubqueueId {
            entity: OTHER,
            subqueue,
        },
        access,
        selector,
    });
    world.turn(Command::Credit {
        receiver: receiver(4),
        limit: 100,
        drain: false,
    });
    world.mono = 1_000;
    for _ in 0..10 {
        let said = world.turn(Command::Send {
            request: request(0),
            entity: OTHER,
            messages: vec![Incoming::default()],
        });
        let delivered = |output: &Output| matches!(output, Output::Deliver { .. });
        assert!(said.iter().any(delivered), "in the same turn");
    }
    assert!(info(&world, QUEUE).scheduled > 0, "they are still at it");
}

#[test]
fn a_clock_that_goes_back_in_the_midst_of_it_freezes_nothing() {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    schedule(&mut world, QUEUE, 5_000, DUE);
    world.mono = 1_000;
    world.jumped = 3_600_000;
    assert!(turn(&mut world) > 0, "they are due");
    world.jumped = 0;
    assert!(turn(&mut world) > 0, "and still are");
}
