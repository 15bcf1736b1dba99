//! Sessions that expire as a whole, with a crash behind every commit of it.
//!
//! What was sent before a session began to expire goes, and what was sent after that stays,
//! whether or not a client receives after the crash.

use broker::{
    BrokerSettings, Command, Expiry, Incoming, QueueSettings, ReceiveMode, SessionFilter,
};
use bytes::Bytes;
use store::{CommitId, Index, Part};

use crate::world::{QUEUE, World, receiver, request};

/// More than is read at once, twice.
const LONG: usize = 150;
const TTL: u64 = 5_000;

fn world() -> World {
    let queue = QueueSettings {
        requires_session: true,
        expiry: Some(Expiry::Cloud),
        dead_lettering_on_message_expiration: true,
        ..QueueSettings::default()
    };
    World::new(BrokerSettings::default(), queue)
}

fn send(world: &mut World, session: &'static str, count: usize, ttl_ms: Option<u64>) {
    let message = Incoming {
        payload: Bytes::from_static(b"hello"),
        session_id: Some(Bytes::from_static(session.as_bytes())),
        ttl_ms,
        ..Incoming::default()
    };
    world.turn(Command::Send {
        request: request(0),
        entity: QUEUE,
        messages: vec![message; count],
    });
}

/// A receiver is there, although of another session.
fn accept_another(world: &mut World) {
    send(world, "other", 1, None);
    let session = SessionFilter::ById(Bytes::from_static(b"other"));
    world.turn(Command::AcceptSession {
        receiver: receiver(1),
        entity: QUEUE,
        mode: ReceiveMode::PeekLock,
        session,
    });
}

/// Lets everything happen that happens by itself up to `to`.
fn settle(world: &mut World, to: u64) {
    loop {
        if let Some(answer) = world.answer(0) {
            world.turn(answer);
        } else if world.step_to(to) {
            world.turn_with(Vec::new());
        } else {
            break;
        }
        world.audit();
    }
}

fn count(world: &World, part: Part) -> u64 {
    let head = |image: &store::Image| image.heads.get(&QUEUE).map(|head| head.part(part).count);
    world.disk.with_current(head).unwrap_or(0)
}

fn stored_expiries(world: &World) -> usize {
    let expiries = |image: &store::Image| {
        let entries = image.entries.keys();
        entries
            .filter(|(_, index, _)| *index == Index::SessionExpiry)
            .count()
    };
    world.disk.with_current(expiries)
}

/// A life in which a long session begins to expire at 5 s and gets 3 messages more at 6 s.
/// Returns the commits that were made meanwhile.
fn long_life(late: bool) -> (World, std::ops::RangeInclusive<u64>) {
    let mut world = world();
    world.disk.set_automatic(false);
    send(&mut world, "long", 1, Some(TTL));
    send(&mut world, "long", LONG - 1, None);
    accept_another(&mut world);
    settle(&mut world, TTL - 1);
    let before = world.disk.submitted();
    // Only the reads of the sweep are answered, so the others wait.
    world.step_to(TTL);
    world.turn_with(Vec::new());
    while stored_expiries(&world) == 0 {
        let answer = world.answer(0).expect("the sweep reads");
        world.turn(answer);
    }
    if late {
        send(&mut world, "long", 3, None);
    }
    settle(&mut world, 2 * TTL);
    let after = world.disk.submitted();
    (world, before.0..=after.0)
}

#[test]
fn a_session_that_began_to_expire_is_gone_whatever_crash_comes_between() {
    let (_, commits) = long_life(true);
    let mut unfinished = 0;
    for commit in commits.clone() {
        let (mut world, _) = long_life(true);
        world.disk.sync_to(CommitId(commit));
        world.restart();
        world.disk.set_automatic(true);
        unfinished += stored_expiries(&world);
        settle(&mut world, 4 * TTL);
        let dead = count(&world, Part::DeadLetter);
        let began = commit > *commits.start();
        let expected = if began { LONG as u64 } else { 0 };
        assert_eq!(dead, expected, "commit {commit} of {commits:?}");
        assert_eq!(stored_expiries(&world), 0, "commit {commit} of {commits:?}");
        let late = if commit > commits.start() + 1 { 3 } else { 0 };
        let active = count(&world, Part::Active);
        assert_eq!(active, 1 + LONG as u64 - dead + late, "commit {commit}");
    }
    assert!(unfinished > 2, "the crashes came too early or too late");
}

#[test]
fn crashes_in_a_row_keep_nothing_of_a_session_that_began_to_expire() {
    let (mut world, commits) = long_life(false);
    world.disk.sync_to(CommitId(commits.start() + 1));
    let mut crashes = 0;
    while stored_expiries(&world) > 0 || crashes == 0 {
        world.restart();
        world.disk.set_automatic(true);
        let before = world.disk.submitted();
        while world.disk.submitted() == before {
            match world.answer(0) {
                Some(answer) => drop(world.turn(answer)),
                None => {
                    assert!(world.step_to(4 * TTL), "something is left to do");
                    world.turn_with(Vec::new());
                }
            }
        }
        crashes += 1;
        assert!(crashes < 10, "every life gets further");
    }
    assert!(crashes > 1);
    assert_eq!(count(&world, Part::DeadLetter), LONG as u64);
}

#[test]
fn what_expires_in_one_turn_writes_nothing_but_that() {
    let mut world = world();
    send(&mut world, "short", 20, Some(TTL));
    accept_another(&mut world);
    settle(&mut world, TTL - 1);
    world.step_to(TTL);
    let before = world.disk.submitted();
    world.turn_with(Vec::new());
    while let Some(answer) = world.answer(0) {
        world.turn(answer);
        assert_eq!(stored_expiries(&world), 0);
    }
    settle(&mut world, 2 * TTL);
    assert_eq!(count(&world, Part::DeadLetter), 20);
    assert_eq!(world.disk.submitted().0, before.0 + 1);
}
