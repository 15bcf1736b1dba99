//! The limit of bytes of a namespace: all that its entities hold together, whatever happens to it.

use broker::{
    Access, DEFAULT_ROUTER, Operation, Outcome, ReceiveMode, RefusalReport, Subqueue, SubqueueId,
    TransactionId,
};

use super::*;
use crate::world::receiver;

/// Of a message.
const SIZE: u64 = 6;

fn limited(messages: Option<u64>) -> Box<NamespaceDefinition> {
    Box::new(NamespaceDefinition {
        limits: NamespaceLimits {
            max_bytes: messages.map(|messages| messages * SIZE),
            ..NamespaceLimits::default()
        },
        ..*named("small")
    })
}

/// A namespace with this limit, in messages, and the queues `a` and `b`.
fn small(world: &mut World, messages: Option<u64>) -> (NamespaceId, EntityId, EntityId) {
    let create = NamespaceOrder::Create {
        definition: limited(messages),
        like: None,
    };
    let Ok(NamespaceAnswer::One(made)) = about(world, create) else {
        panic!("it is made");
    };
    ensure(world, made.id, vec![queue("a"), queue("b")]);
    (made.id, id(world, made.id, "a"), id(world, made.id, "b"))
}

fn refusal(world: &mut World, entity: EntityId) -> String {
    let said = world.turn(Command::Send {
        request: request(2),
        entity,
        messages: vec![message()],
    });
    let mut refusals = said.into_iter().filter_map(|output| match output {
        Output::Sent { result, .. } => result.err(),
        _ => None,
    });
    refusals.next().expect("it is refused").to_string()
}

/// Receives a message and settles it.
fn take(world: &mut World, entity: EntityId, outcome: Outcome) {
    let (receiver, subqueue) = (
        receiver(7),
        SubqueueId {
            entity,
            subqueue: Subqueue::Main,
        },
    );
    let mut said = world.turn(Command::Attach {
        receiver,
        subqueue,
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: None,
    });
    said.extend(world.turn(Command::Credit {
        receiver,
        limit: 1,
        drain: false,
    }));
    while let Some(command) = world.answer(0) {
        said.extend(world.turn(command));
    }
    let mut tokens = said.into_iter().filter_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    });
    let token = tokens.next().expect("there is a message");
    world.turn(Command::Detach { receiver });
    world.turn(Command::Settle {
        request: Some(request(3)),
        subqueue,
        session: None,
        token,
        outcome,
    });
}

#[test]
fn all_entities_of_a_namespace_have_its_bytes_together() {
    let mut world = world();
    let (namespace, a, b) = small(&mut world, Some(3));
    ensure(&mut world, DEFAULT, vec![queue("a")]);
    let other = id(&world, DEFAULT, "a");
    assert!(send(&mut world, a) && send(&mut world, a) && send(&mut world, b));
    let full = "the namespace holds 18 bytes, and 18 are allowed";
    assert_eq!(refusal(&mut world, a), full);
    assert_eq!(refusal(&mut world, b), full);
    assert!((0..9).all(|_| send(&mut world, other)));

    // What is settled makes room; what is dead-lettered does not, and neither does a restart.
    let dead = Outcome::DeadLetter {
        changes: Vec::new(),
    };
    take(&mut world, a, dead);
    assert_eq!(refusal(&mut world, b), full);
    take(&mut world, a, Outcome::Complete);
    assert!(send(&mut world, b));
    world.restart();
    assert_eq!(refusal(&mut world, b), full);

    // An entity takes what it holds with it.
    let path = "b".to_owned();
    let removed = order(&mut world, namespace, Order::Remove { path });
    assert_eq!(removed, Ok(Answer::Done));
    assert!(send(&mut world, a) && send(&mut world, a));
    assert_eq!(refusal(&mut world, a), full);
    reset(&mut world, "small");
    ensure(&mut world, namespace, vec![queue("a")]);
    let a = id(&world, namespace, "a");
    assert!((0..3).all(|_| send(&mut world, a)));
    assert_eq!(refusal(&mut world, a), full);
}

#[test]
fn a_limit_may_come_change_and_go() {
    let mut world = world();
    let (_, a, b) = small(&mut world, None);
    assert!(send(&mut world, a) && send(&mut world, b));
    let set = |world: &mut World, messages| {
        let replace = NamespaceOrder::Replace(limited(messages));
        assert!(about(world, replace).is_ok());
    };
    // What was there before counts, and stays when it is more than is allowed.
    set(&mut world, Some(3));
    assert!(send(&mut world, a));
    set(&mut world, Some(2));
    let full = "the namespace holds 18 bytes, and 12 are allowed";
    assert_eq!(refusal(&mut world, a), full);
    take(&mut world, a, Outcome::Complete);
    take(&mut world, a, Outcome::Complete);
    assert!(send(&mut world, b));
    set(&mut world, None);
    assert!((0..9).all(|_| send(&mut world, a)));
    let nothing = NamespaceOrder::Replace(limited(Some(0)));
    let refused = about(&mut world, nothing).unwrap_err().to_string();
    assert_eq!(refused, "max-bytes: 0 is below the minimum of 1");
}

#[test]
fn a_restore_counts_what_is_there_again() {
    let mut world = world();
    let (namespace, a, b) = small(&mut world, Some(3));
    assert!(send(&mut world, a) && send(&mut world, b));
    let (name, snapshot) = ("small".to_owned(), "base".to_owned());
    let taken = about(
        &mut world,
        NamespaceOrder::TakeSnapshot {
            name: name.clone(),
            snapshot: snapshot.clone(),
        },
    );
    assert!(taken.is_ok(), "{taken:?}");
    assert!(send(&mut world, a));
    done(&mut world, NamespaceOrder::Restore { name, snapshot });
    let a = id(&world, namespace, "a");
    assert!(send(&mut world, a));
    let full = "the namespace holds 18 bytes, and 18 are allowed";
    assert_eq!(refusal(&mut world, a), full);
}

#[test]
fn a_transaction_needs_room_for_all_that_it_sends() {
    let mut world = world();
    let (namespace, a, b) = small(&mut world, Some(3));
    assert!(send(&mut world, a));
    let begin = |world: &mut World| {
        let said = world.turn(Command::Declare {
            request: request(4),
            namespace,
            coordinator: 0,
        });
        let declared = said.into_iter().find_map(|output| match output {
            Output::Declared { result, .. } => result.ok(),
            _ => None,
        });
        declared.expect("there is room for one")
    };
    let enlist = |world: &mut World, transaction: TransactionId, entity, count| {
        world.turn(Command::Enlist {
            request: request(5),
            transaction,
            operation: Box::new(Operation::Send {
                entity,
                messages: vec![message(); count],
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
    };
    let commit = |world: &mut World, transaction: TransactionId| {
        let mut said = world.turn(Command::Discharge {
            request: request(6),
            transaction,
            fail: false,
        });
        while let Some(command) = world.answer(0) {
            said.extend(world.turn(command));
        }
        let result = said.into_iter().find_map(|output| match output {
            Output::Discharged { result, .. } => Some(result),
            _ => None,
        });
        result
            .expect("it is answered")
            .map_err(|error| error.to_string())
    };
    let first = begin(&mut world);
    enlist(&mut world, first, a, 2);
    enlist(&mut world, first, b, 2);
    let refused = commit(&mut world, first).unwrap_err();
    let full = "the namespace holds 6 bytes, and 18 are allowed";
    assert!(refused.contains(full), "{refused}");
    let second = begin(&mut world);
    enlist(&mut world, second, a, 1);
    enlist(&mut world, second, b, 1);
    assert_eq!(commit(&mut world, second), Ok(()));
    assert_eq!(
        (
            active(&world, namespace, "a"),
            active(&world, namespace, "b")
        ),
        (2, 1)
    );
    // The namespace is full; a dynamic node does not count.
    assert!(!send(&mut world, a));
    let made = world.turn(Command::CreateNode {
        link: NodeLinkId {
            connection: ConnectionId(1),
            link: 1,
        },
        namespace,
        node: NodeRequest {
            kind: NodeKind::Queue,
            lifetime: LifetimePolicy::DeleteOnClose,
            exclusive: false,
        },
    });
    let node = made.into_iter().find_map(|output| match output {
        Output::NodeOpened { result, .. } => result.ok(),
        _ => None,
    });
    let node = node.expect("it is made").entity;
    let third = begin(&mut world);
    enlist(&mut world, third, node, 1);
    assert_eq!(commit(&mut world, third), Ok(()));
}

#[test]
fn a_message_needs_room_in_all_queues_that_it_is_routed_to() {
    let mut world = world();
    let (namespace, ..) = small(&mut world, Some(3));
    let publish = |world: &mut World, keys: &[&str]| {
        let said = world.turn(Command::Publish {
            request: request(2),
            publication: Box::new(Publication {
                namespace,
                router: DEFAULT_ROUTER.to_owned(),
                keys: keys.iter().map(|&key| key.to_owned()).collect(),
                message: message(),
            }),
        });
        let result = said.into_iter().find_map(|output| match output {
            Output::Published { result, .. } => Some(result),
            _ => None,
        });
        let result = result.expect("it waits for nothing");
        result.map_err(|error| error.to_string())
    };
    let both = Ok(Routed::Stored { destinations: 2 });
    assert_eq!(publish(&mut world, &["a", "b"]), both);
    let refused = publish(&mut world, &["a", "b"]).unwrap_err();
    let full = "the namespace holds 12 bytes, and 18 are allowed";
    assert!(refused.contains(full), "{refused}");
    let counts = |world: &World| (active(world, namespace, "a"), active(world, namespace, "b"));
    assert_eq!(counts(&world), (1, 1));
    let one = Ok(Routed::Stored { destinations: 1 });
    assert_eq!(publish(&mut world, &["b"]), one);
    assert_eq!(counts(&world), (1, 2));
}
