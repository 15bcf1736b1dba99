//! Controls: a broker that does otherwise than its ledgers were told is found.

use broker::{Command, Overflow, RequestId};

use super::*;
use crate::message::{self, SendOptions};

/// A message that gets from a client of one namespace into an entity of another is found by the
/// ledger of the other one.
#[test]
fn what_crosses_from_one_namespace_to_another_is_found() {
    let mut world = World::new(Plan {
        seed: 1,
        operations: 0,
        faults: Faults::NONE,
        storage: StorageKind::Memory,
    });
    let entity = world.namespaces[0].ledger.live("plain");
    let entity = entity.expect("every namespace has it");
    let client = &mut world.namespaces[1];
    let id = client.ledger.next_id(None);
    let options = SendOptions::default();
    let payload = message::build(&mut world.rng, id, options, 20);
    let request = RequestId {
        connection: client.next_connection(),
        token: 1,
    };
    let send = Command::Send {
        request,
        entity,
        messages: vec![script::incoming(id, payload, options)],
    };
    world.server.inbox.push(1, send);
    let violation = world.turn().expect_err("it is found");
    assert_eq!(violation.invariant, "I12", "{violation}");
}

/// A queue that loses what it refuses, or takes it and drops another message, is found.
#[test]
fn a_queue_that_makes_no_dead_letter_of_what_it_refuses_is_found() {
    for (overflow, invariant) in [(Overflow::RejectPublish, "I1"), (Overflow::DropHead, "I6")] {
        let mut world = World::new(Plan {
            seed: 1,
            operations: 100_000,
            faults: Faults::ALL,
            storage: StorageKind::Memory,
        });
        world.governed.overflow = overflow;
        let violation = world.run().expect_err("it is found");
        assert_eq!(violation.invariant, invariant, "{violation}");
    }
}

/// A queue that refuses what it has room for is found, and so is one that drops a message where
/// it should refuse another.
#[test]
fn a_queue_that_refuses_too_much_or_not_at_all_is_found() {
    for (path, length, invariant) in [(queues::LIMITED, 7, "I14"), ("short", 6, "I6")] {
        let mut world = World::new(Plan {
            seed: 1,
            operations: 200_000,
            faults: Faults::ALL,
            storage: StorageKind::Memory,
        });
        for namespace in &mut world.namespaces {
            let queue = &mut namespace.ledger.queues[queues::index_of(path)];
            (queue.max_length, queue.overflow) = (Some(length), Overflow::RejectPublish);
        }
        let violation = world.run().expect_err("it is found");
        assert_eq!(violation.invariant, invariant, "{violation}");
    }
}

/// Counts that are not what the ledger was told are found, whichever they are: by themselves,
/// or by a message that has become a dead letter too early.
#[test]
fn a_broker_that_counts_lost_sessions_otherwise_is_found() {
    for (seed, other) in [
        (1, SessionCountOnDisconnect::Raise),
        (3, SessionCountOnDisconnect::Keep),
    ] {
        let mut world = World::new(Plan {
            seed,
            operations: 200_000,
            faults: Faults::ALL,
            storage: StorageKind::Memory,
        });
        assert_ne!(world.session_counts, other);
        for namespace in &mut world.namespaces {
            namespace.ledger.count_lost_sessions(other);
        }
        let violation = world.run().expect_err("it is found");
        assert!(matches!(violation.invariant, "I5" | "I6"), "{violation}");
    }
}
