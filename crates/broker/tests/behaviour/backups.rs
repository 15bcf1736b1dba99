//! Backups of a namespace: what it had is there again with its order and its numbers, and what
//! cannot have been a namespace's is refused and leaves nothing.

use broker::{
    Access, BrokerSettings, Command, Contents, DEFAULT_NAMESPACE, EntityError, Incoming,
    LoadTarget, MAX_SNAPSHOTS, NamespaceAnswer, NamespaceDefinition, NamespaceLimits,
    NamespaceOrder, Output, Piece, Priorities, QueueSettings, ReceiveMode, Subqueue, SubqueueId,
    Wall,
};
use bytes::Bytes;
use store::{EntityId, Entry, EntryKey, Index, NamespaceId, SequenceNumber};

use crate::contents::{ask, pieces};
use crate::world::{World, ensure, receiver, request};

/// The levels of a queue that is declared with `x-max-priority = 9`.
const LEVELS: Priorities = Priorities {
    highest: 9,
    default: 0,
};

fn world(priorities: Option<Priorities>) -> World {
    let queue = QueueSettings {
        priorities,
        ..QueueSettings::default()
    };
    World::new(BrokerSettings::default(), queue)
}

fn queue_of(world: &World, namespace: NamespaceId) -> EntityId {
    let mut all = world.shard.broker.queues();
    let found = all.find(|queue| queue.namespace == namespace && queue.path == "q");
    found.expect("it is there").id
}

fn payload(number: u64) -> Bytes {
    let bytes = [&b"\x00\x53\x75\xa0\x08"[..], &number.to_be_bytes()].concat();
    bytes.into()
}

/// Sends the message of a number to the queue of the default namespace.
fn send(world: &mut World, number: u64, priority: Option<u8>, scheduled: Option<Wall>) {
    let said = world.turn(Command::Send {
        request: request(1),
        entity: queue_of(world, NamespaceId(0)),
        messages: vec![Incoming {
            payload: payload(number),
            priority,
            scheduled,
            ..Incoming::default()
        }],
    });
    let is_sent = |output: &Output| matches!(output, Output::Sent { result: Ok(_), .. });
    assert!(said.iter().any(is_sent), "{said:?}");
}

/// The numbers of all available messages of a queue and of what was sent, as they are handed out.
fn received(world: &mut World, entity: EntityId) -> Vec<(SequenceNumber, Bytes)> {
    let receiver = receiver(1_000 + entity.0);
    let subqueue = Subqueue::Main;
    let mut said = world.turn(Command::Attach {
        receiver,
        subqueue: SubqueueId { entity, subqueue },
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: None,
    });
    said.extend(world.turn(Command::Credit {
        receiver,
        limit: 100,
        drain: false,
    }));
    said.extend(answer(world));
    let handed = said.into_iter().filter_map(|output| match output {
        Output::Deliver { delivery, .. } => {
            let message = delivery.message;
            Some((message.number, message.payload))
        }
        _ => None,
    });
    handed.collect()
}

fn answer(world: &mut World) -> Vec<Output> {
    let mut said = Vec::new();
    while let Some(command) = world.answer(0) {
        said.extend(world.turn(command));
    }
    said
}

fn pass_time(world: &mut World, ms: u64) {
    let to = world.mono + ms;
    while world.step_to(to) {
        world.turn_with(vec![]);
        answer(world);
    }
}

/// What the default namespace has at this moment.
fn export(world: &mut World) -> (Contents, Vec<Piece>) {
    let exported = ask(world, NamespaceOrder::Export(DEFAULT_NAMESPACE.to_owned()));
    let Ok(NamespaceAnswer::Contents(contents)) = exported else {
        panic!("{exported:?}");
    };
    let pieces = pieces(world, &contents);
    let released = ask(world, NamespaceOrder::Release(contents.id));
    assert_eq!(released, Ok(NamespaceAnswer::Done));
    (*contents, pieces)
}

fn begin(world: &mut World, contents: &Contents) -> Result<EntityId, EntityError> {
    let entities = contents.entities.iter().map(|(_, entity)| entity.clone());
    match ask(world, NamespaceOrder::BeginLoad(entities.collect()))? {
        NamespaceAnswer::Loading(load) => Ok(load),
        other => panic!("{other:?}"),
    }
}

fn add(world: &mut World, load: EntityId, piece: &Piece) -> Result<NamespaceAnswer, EntityError> {
    let piece = Box::new(piece.clone());
    ask(world, NamespaceOrder::Load { load, piece })
}

/// Loads all of it.
fn load(
    world: &mut World,
    (contents, pieces): &(Contents, Vec<Piece>),
    target: LoadTarget,
) -> Result<NamespaceAnswer, EntityError> {
    let load = begin(world, contents)?;
    let added = pieces
        .iter()
        .try_for_each(|piece| add(world, load, piece).map(drop));
    let ended = match added {
        Ok(()) => ask(world, NamespaceOrder::EndLoad { load, target }),
        Err(error) => Err(error),
    };
    if ended.is_err() {
        let released = ask(world, NamespaceOrder::Release(load));
        assert_eq!(released, Ok(NamespaceAnswer::Done));
    }
    ended
}

fn existing() -> LoadTarget {
    LoadTarget::Existing(DEFAULT_NAMESPACE.to_owned())
}

fn new(name: &str) -> LoadTarget {
    LoadTarget::New(Box::new(definition(name)))
}

fn definition(name: &str) -> NamespaceDefinition {
    NamespaceDefinition {
        name: name.to_owned(),
        ..NamespaceDefinition::default()
    }
}

fn is_unusable(result: &Result<impl Sized, EntityError>) -> bool {
    matches!(result, Err(EntityError::Invalid(text)) if text.contains("the backup cannot be used"))
}

/// How many rows of entities and messages, and bodies, the store has once nothing is to be done.
fn sizes(world: &mut World) -> (usize, usize, usize) {
    for _ in 0..20 {
        pass_time(world, 100);
        world.turn_with(vec![]);
        answer(world);
    }
    world.audit();
    let sizes = |image: &store::image::Image| {
        (
            image.entities.len(),
            image.messages.len(),
            image.bodies.len(),
        )
    };
    world.disk.with_current(sizes)
}

#[test]
fn a_queue_with_levels_has_its_order_and_its_numbers_again() {
    let mut world = world(Some(LEVELS));
    for (number, priority) in [
        (1, None),
        (2, Some(3)),
        (3, Some(9)),
        (4, Some(200)),
        (5, Some(3)),
    ] {
        send(&mut world, number, priority, None);
    }
    let Wall(now) = world.now().wall;
    send(&mut world, 6, Some(5), Some(Wall(now + 60_000)));
    let backup = export(&mut world);
    // What comes and goes afterwards is not in it.
    send(&mut world, 7, Some(9), None);
    let queue = queue_of(&world, NamespaceId(0));
    let gone = received(&mut world, queue);
    assert_eq!(gone.len(), 6);
    assert_eq!(load(&mut world, &backup, new("copy")).map(drop), Ok(()));
    assert_eq!(load(&mut world, &backup, existing()).map(drop), Ok(()));
    world.audit();
    world.restart();
    let at = |arrival, level| SequenceNumber(arrival).at_level(level);
    let expected = [(3, 9), (4, 9), (2, 3), (5, 3), (1, 0)];
    let expected = expected.map(|(number, level)| (at(number, level), payload(number)));
    let namespaces = world.shard.broker.namespaces().map(|change| change.id);
    let namespaces: Vec<_> = namespaces.collect();
    let copy = *namespaces.last().expect("it was made");
    for namespace in [NamespaceId(0), copy] {
        let queue = queue_of(&world, namespace);
        assert_eq!(received(&mut world, queue), expected, "{namespace:?}");
    }
    // Arrivals go on: after seven in the place of the queue, after six in a copy of the backup.
    pass_time(&mut world, 61_000);
    world.restart();
    for (namespace, next) in [(NamespaceId(0), 8), (copy, 7)] {
        let queue = queue_of(&world, namespace);
        let all = received(&mut world, queue);
        let activated = [&expected[..2], &[(at(next, 5), payload(6))], &expected[2..]].concat();
        assert_eq!(all, activated, "{namespace:?}");
    }
    world.audit();
}

#[test]
fn what_no_queue_can_have_had_is_refused_and_leaves_nothing() {
    for levels in [Some(LEVELS), None] {
        let mut world = world(levels);
        send(&mut world, 1, Some(3), None);
        send(&mut world, 2, Some(3), None);
        let (contents, pieces) = export(&mut world);
        let before = sizes(&mut world);
        let number = pieces[0].messages[1].number;
        let wrong = [
            // It was not given out yet, not in that order, or lies outside all levels.
            SequenceNumber(number.0 + 1),
            SequenceNumber(number.0 - 1),
            SequenceNumber(number.0 | 1 << 53),
            SequenceNumber::MAX,
        ];
        // A level in a queue that has none.
        let wrong = wrong
            .into_iter()
            .chain(levels.is_none().then(|| number.at_level(3)));
        for number in wrong {
            let mut pieces = pieces.clone();
            pieces[0].messages[1].number = number;
            let result = load(&mut world, &(contents.clone(), pieces), existing());
            assert!(is_unusable(&result), "{number} {result:?}");
        }
        let mut lacking = pieces.clone();
        lacking[0].messages.pop();
        let result = load(&mut world, &(contents.clone(), lacking), existing());
        assert!(is_unusable(&result), "{result:?}");
        let twice = [&pieces[..], &pieces[..1]].concat();
        let result = load(&mut world, &(contents.clone(), twice), existing());
        assert!(is_unusable(&result), "{result:?}");
        let keys = [
            EntryKey::new(Bytes::new(), SequenceNumber::MAX),
            EntryKey::new(vec![0; EntryKey::MAX_GROUP + 1], SequenceNumber(1)),
        ];
        let same = EntryKey::new(Bytes::new(), SequenceNumber(1));
        let keys = keys.map(|key| vec![key]).into_iter();
        for keys in keys.chain([vec![same.clone(), same]]) {
            let mut pieces = pieces.clone();
            let value = Bytes::from_static(b"x");
            let entry = |key| {
                let value = value.clone();
                (Index::SessionState, Entry { key, value })
            };
            let last = pieces.last_mut().expect("there is one of entries");
            last.entries.extend(keys.into_iter().map(entry));
            let result = load(&mut world, &(contents.clone(), pieces), existing());
            assert!(is_unusable(&result), "{result:?}");
        }
        let changes: [fn(&mut Contents); 5] = [
            |it| it.entities[0].1.head.next_number = SequenceNumber(0),
            |it| it.entities[0].1.head.next_number = SequenceNumber(1 << 45),
            |it| it.entities[0].1.path = "$namespace x".to_owned(),
            |it| it.entities[0].1.definition = Bytes::from_static(b"{}"),
            |it| it.entities.push(it.entities[0].clone()),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut contents = contents.clone();
            change(&mut contents);
            let result = begin(&mut world, &contents);
            assert!(is_unusable(&result), "{index} {result:?}");
        }
        assert_eq!(sizes(&mut world), before);
        let queue = queue_of(&world, NamespaceId(0));
        assert_eq!(received(&mut world, queue).len(), 2);
    }
}

#[test]
fn a_subscription_is_below_its_topic_and_states_of_sessions_are_counted_anew() {
    let mut world = world(None);
    for path in ["one", "two"] {
        world.turn(ensure(broker::Ensured::Topic {
            path: path.to_owned(),
            settings: QueueSettings::default(),
        }));
    }
    world.turn(ensure(broker::Ensured::Subscription {
        topic: "one".to_owned(),
        name: "s".to_owned(),
        settings: Box::default(),
        rules: None,
    }));
    let (mut contents, pieces) = export(&mut world);
    for (_, entity) in &mut contents.entities {
        entity.head.session_state_bytes = u64::MAX;
    }
    let backup = (contents, pieces);
    assert!(load(&mut world, &backup, existing()).is_ok());
    let heads = world.shard.broker.queues().map(|queue| queue.size());
    assert_eq!(heads.max(), Some(0));
    let (mut contents, pieces) = backup;
    let mut entities = contents.entities.iter_mut();
    let found = entities.find(|(_, entity)| entity.path == "one/Subscriptions/s");
    found.expect("it is there").1.path = "two/Subscriptions/s".to_owned();
    let result = load(&mut world, &(contents, pieces), existing());
    assert!(is_unusable(&result), "{result:?}");
}

#[test]
fn a_load_replaces_no_namespace_that_was_to_be_made_and_keeps_to_limits() {
    let mut world = world(None);
    world.turn(ensure(broker::Ensured::Queue {
        path: "second".to_owned(),
        settings: QueueSettings::default(),
    }));
    send(&mut world, 1, None, None);
    let small = NamespaceDefinition {
        limits: NamespaceLimits {
            max_entities: Some(1),
            ..NamespaceLimits::default()
        },
        ..definition("small")
    };
    let made = NamespaceOrder::Create {
        definition: Box::new(small),
        like: None,
    };
    assert!(ask(&mut world, made).is_ok());
    let backup = export(&mut world);
    let before = sizes(&mut world);
    let target = LoadTarget::Existing("small".to_owned());
    let result = load(&mut world, &backup, target);
    let limited = EntityError::TooMany {
        limit: 1,
        what: "queues and topics",
    };
    assert_eq!(result, Err(limited));
    let result = load(&mut world, &backup, new("small"));
    assert_eq!(
        result,
        Err(EntityError::NamespaceExists("small".to_owned()))
    );
    let target = LoadTarget::Existing("none".to_owned());
    let result = load(&mut world, &backup, target);
    assert_eq!(result, Err(EntityError::NoNamespace("none".to_owned())));
    assert_eq!(sizes(&mut world), before);
}

#[test]
fn a_namespace_with_all_its_snapshots_in_use_takes_no_backup() {
    let mut world = world(None);
    send(&mut world, 1, None, None);
    let backup = export(&mut world);
    let take = |world: &mut World, number: usize| {
        let (name, snapshot) = (DEFAULT_NAMESPACE.to_owned(), format!("s{number}"));
        ask(world, NamespaceOrder::TakeSnapshot { name, snapshot })
    };
    (1..MAX_SNAPSHOTS).for_each(|number| drop(take(&mut world, number).expect("there is room")));
    // The export was the first, and its message is still there.
    let refused = load(&mut world, &backup, existing());
    let what = "snapshots of a namespace, with those that were removed or forked and are needed";
    let limit = MAX_SNAPSHOTS;
    assert_eq!(refused, Err(EntityError::TooMany { limit, what }));
    let (name, snapshot) = (DEFAULT_NAMESPACE.to_owned(), "s9".to_owned());
    let removed = ask(
        &mut world,
        NamespaceOrder::RemoveSnapshot { name, snapshot },
    );
    assert!(removed.is_ok(), "{removed:?}");
    assert!(load(&mut world, &backup, new("other")).is_ok());
}

#[test]
fn a_load_that_meets_a_full_disk_or_the_end_of_the_process_leaves_nothing() {
    let mut world = world(Some(LEVELS));
    (1..=7).for_each(|number| send(&mut world, number, Some(1), None));
    let (contents, pieces) = export(&mut world);
    let before = sizes(&mut world);
    let full = Err(EntityError::DiskNearlyFull);
    let begun = begin(&mut world, &contents).expect("there is room");
    assert!(add(&mut world, begun, &pieces[0]).is_ok());
    world.disk.set_nearly_full(true);
    assert_eq!(add(&mut world, begun, &pieces[1]), full);
    assert_eq!(
        begin(&mut world, &contents),
        Err(EntityError::DiskNearlyFull)
    );
    let end = NamespaceOrder::EndLoad {
        load: begun,
        target: existing(),
    };
    assert_eq!(ask(&mut world, end), full);
    // What is there can be let go of.
    let released = ask(&mut world, NamespaceOrder::Release(begun));
    assert_eq!(released, Ok(NamespaceAnswer::Done));
    world.disk.set_nearly_full(false);
    assert_eq!(sizes(&mut world), before);
    let begun = begin(&mut world, &contents).expect("there is room");
    assert!(add(&mut world, begun, &pieces[0]).is_ok());
    world.restart();
    assert!(is_unusable(&add(&mut world, begun, &pieces[1])));
    assert_eq!(sizes(&mut world), before);
    let queue = queue_of(&world, NamespaceId(0));
    assert_eq!(received(&mut world, queue).len(), 7);
}

#[test]
fn what_a_client_reads_or_loads_is_let_go_of_with_its_connection() {
    let mut world = world(None);
    (1..=3).for_each(|number| send(&mut world, number, None, None));
    let (contents, pieces) = export(&mut world);
    let before = sizes(&mut world);
    let begun = begin(&mut world, &contents).expect("there is room");
    assert!(add(&mut world, begun, &pieces[0]).is_ok());
    for _ in 1..broker::MAX_SNAPSHOTS {
        begin(&mut world, &contents).expect("there is room");
    }
    assert!(matches!(
        begin(&mut world, &contents),
        Err(EntityError::TooMany { .. })
    ));
    let connection = request(1).connection;
    world.turn(Command::Leave { connection });
    assert_eq!(sizes(&mut world), before);
    assert!(is_unusable(&add(&mut world, begun, &pieces[0])));
    let restored = load(&mut world, &(contents, pieces), new("copy"));
    assert!(restored.is_ok(), "{restored:?}");
}
