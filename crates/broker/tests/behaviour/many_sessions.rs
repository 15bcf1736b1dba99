//! A hundred thousand sessions: learnt of and served without a scan of messages.

use broker::{
    BrokerSettings, Command, Incoming, Output, QueueSettings, ReceiveMode, SessionFilter,
};
use bytes::Bytes;
use store::Query;

use crate::world::{QUEUE, World, receiver, request};

const SESSIONS: usize = 100_000;

fn id(session: usize) -> Bytes {
    Bytes::from(format!("session {session:08}"))
}

fn sent() -> World {
    let queue = QueueSettings {
        requires_session: true,
        ..QueueSettings::default()
    };
    let mut world = World::new(BrokerSettings::default(), queue);
    for first in (0..SESSIONS).step_by(1_000) {
        let messages = (first..first + 1_000).map(|session| Incoming {
            payload: id(session),
            session_id: Some(id(session)),
            ..Incoming::default()
        });
        world.turn(Command::Send {
            request: request(0),
            entity: QUEUE,
            messages: messages.collect(),
        });
    }
    world
}

/// Asks for the next session and answers every read; counts the reads of each kind.
fn accept_next(world: &mut World, who: u64) -> (Bytes, usize, usize) {
    let mut said = world.turn(Command::AcceptSession {
        receiver: receiver(who),
        entity: QUEUE,
        mode: ReceiveMode::PeekLock,
        session: SessionFilter::Next { timeout_ms: 1_000 },
    });
    let (mut groups, mut others) = (0, 0);
    while let Some((asked, _)) = world.waiting.first() {
        match asked.query {
            Query::Groups { .. } => groups += 1,
            Query::Range { .. } => panic!("messages are not scanned"),
            _ => others += 1,
        }
        let command = world.answer(0).unwrap();
        said.extend(world.turn(command));
    }
    let accepted = said.iter().find_map(|output| match output {
        Output::SessionAccepted { session_id, .. } => Some(session_id.clone()),
        _ => None,
    });
    (accepted.unwrap(), groups, others)
}

#[test]
fn the_next_of_many_sessions_is_known_without_a_read() {
    let mut world = sent();
    for who in 0..10 {
        let expected = id(usize::try_from(who).unwrap());
        assert_eq!(accept_next(&mut world, who), (expected, 0, 0));
    }
}

#[test]
fn after_a_restart_many_sessions_are_learnt_by_their_groups() {
    let mut world = sent();
    world.restart();
    let groups = SESSIONS.div_ceil(1_024);
    // Besides the session that is accepted, those that were to expire as a whole are looked for,
    // and the age of what is the oldest then.
    assert_eq!(accept_next(&mut world, 0), (id(0), groups, 3));
    assert_eq!(accept_next(&mut world, 1), (id(1), 0, 2));
}
