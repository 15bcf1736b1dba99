//! Room: a description says that an entity is full exactly when it refuses the next forward.

use broker::{
    Answer, BrokerSettings, Command, EntityDescription, EntityInfo, EntityPath, Incoming, Order,
    Output, Overflow, QueueSettings,
};
use bytes::Bytes;

use crate::world::{World, administer, request};

fn ask(world: &mut World, order: Order) -> EntityInfo {
    let said = world.turn(administer(request(1), order));
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    match answers.next() {
        Some(Ok(Answer::Entity(info))) => *info,
        other => panic!("{other:?}"),
    }
}

fn create(world: &mut World, path: EntityPath, settings: QueueSettings) -> EntityInfo {
    let description = EntityDescription {
        settings,
        ..EntityDescription::default()
    };
    let order = Order::Create {
        path,
        description: Box::new(description),
        rules: None,
    };
    ask(world, order)
}

fn describe(world: &mut World, path: &str) -> EntityInfo {
    let path = path.to_owned();
    ask(world, Order::Describe { path })
}

/// A message with a body alone, which has `size` bytes.
fn message(size: usize) -> Bytes {
    let body = u8::try_from(size - 5).unwrap();
    let mut bytes = vec![0, 0x53, 0x75, 0xa0, body];
    bytes.resize(size, b'a');
    Bytes::from(bytes)
}

/// Messages of `size` bytes go on to a target of these settings until it is full.
fn check(target: &EntityPath, settings: QueueSettings, size: usize, expected: u64) {
    let mut world = World::empty(BrokerSettings::default());
    create(&mut world, target.clone(), settings);
    if let EntityPath::Topic(topic) = target {
        let (topic, name) = (topic.clone(), "s".to_owned());
        let path = EntityPath::Subscription { topic, name };
        create(&mut world, path, QueueSettings::default());
    }
    let via = QueueSettings {
        forward_to: Some("target".to_owned()),
        ..QueueSettings::default()
    };
    let via = create(&mut world, EntityPath::Queue("via".to_owned()), via);
    for forwarded in 0..=expected {
        let is_full = describe(&mut world, "target").is_full_for(size as u64);
        assert_eq!(is_full, forwarded == expected, "{forwarded}");
        world.turn(Command::Send {
            request: request(1),
            entity: via.queue.id,
            messages: vec![Incoming {
                payload: message(size),
                ..Incoming::default()
            }],
        });
        let waits = describe(&mut world, "via").queue.active;
        assert_eq!(waits, u64::from(is_full), "{forwarded}");
    }
    world.audit();
}

#[test]
fn an_entity_is_full_for_what_its_size_has_no_room_for() {
    let settings = || QueueSettings {
        max_size: 100,
        ..QueueSettings::default()
    };
    let queue = || EntityPath::Queue("target".to_owned());
    check(&queue(), settings(), 30, 3);
    check(&queue(), settings(), 50, 2);
    check(&queue(), settings(), 101, 0);
    check(&EntityPath::Topic("target".to_owned()), settings(), 40, 2);
}

#[test]
fn a_queue_is_full_at_the_limit_of_its_length_if_it_rejects() {
    let settings = QueueSettings {
        max_length: Some(2),
        overflow: Overflow::RejectPublish,
        ..QueueSettings::default()
    };
    let queue = || EntityPath::Queue("target".to_owned());
    check(&queue(), settings.clone(), 30, 2);
    let settings = QueueSettings {
        max_length: None,
        max_length_bytes: Some(70),
        ..settings
    };
    check(&queue(), settings, 30, 2);
}
