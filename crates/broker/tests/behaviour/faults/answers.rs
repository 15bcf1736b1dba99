//! Answers that are late: the operation is carried out at once.

use broker::{Command, FaultEffect, FaultMatch, FaultOperation, LockToken, Outcome, Output};
use store::{NamespaceId, SequenceNumber};

use super::{PLACE, World, active, clear, lock, sending, settle, under};
use crate::world::request;

const LATE: FaultEffect = FaultEffect::DelayAnswerMs(500);

fn completing(token: LockToken) -> Command {
    Command::Settle {
        request: Some(request(3)),
        subqueue: PLACE,
        session: None,
        token,
        outcome: Outcome::Complete,
    }
}

/// Some time passes. Returns what is said at the end of it.
fn wait(world: &mut World, ms: u64) -> Vec<Output> {
    world.mono += ms;
    world.turn(Command::Tick)
}

#[test]
fn an_operation_is_carried_out_at_once_and_answered_late() {
    let mut world = under(FaultMatch::default(), LATE);
    assert_eq!(world.turn(sending(None)), []);
    assert_eq!(active(&world), 1);
    let due = world.mono + 500;
    assert_eq!(world.shard.deadline().unwrap().mono.unwrap().0, due);
    assert_eq!(wait(&mut world, 499), []);
    let said = wait(&mut world, 1);
    assert!(
        matches!(&said[..], [Output::Sent { result: Ok(_), .. }]),
        "{said:?}"
    );
    assert_eq!(active(&world), 1);
    world.audit();
}

#[test]
fn a_message_is_gone_before_its_completion_is_answered() {
    let matches = FaultMatch {
        operations: vec![FaultOperation::Complete],
        times: Some(1),
        ..FaultMatch::default()
    };
    let mut world = under(matches, LATE);
    let token = lock(&mut world);
    assert_eq!(world.turn(completing(token)), []);
    assert_eq!(active(&world), 0);
    // The client tries again before it has heard.
    let again = settle(&mut world, token, Outcome::Complete);
    assert!(again.is_err());
    let said = wait(&mut world, 500);
    assert!(
        matches!(&said[..], [Output::Settled { result: Ok(()), .. }]),
        "{said:?}"
    );
}

#[test]
fn an_answer_that_waits_for_the_store_is_late_from_then_on() {
    let matches = FaultMatch {
        operations: vec![FaultOperation::Peek],
        ..FaultMatch::default()
    };
    let mut world = under(matches, LATE);
    world.turn(sending(None));
    let peek = Command::Peek {
        request: request(4),
        subqueue: PLACE,
        state: None,
        from: SequenceNumber(0),
        count: 1,
        max_bytes: 1_000,
    };
    assert_eq!(world.turn(peek), []);
    world.mono += 700;
    while let Some(answer) = world.answer(0) {
        assert_eq!(world.turn(answer), []);
    }
    assert_eq!(wait(&mut world, 499), []);
    let said = wait(&mut world, 1);
    assert!(
        matches!(&said[..], [Output::Browsed { result: Ok(found), .. }] if found.len() == 1),
        "{said:?}"
    );
}

#[test]
fn a_late_answer_goes_by_the_clock_of_its_namespace() {
    let mut world = under(FaultMatch::default(), LATE);
    world.turn(sending(None));
    let (namespace, ms) = (NamespaceId(0), 500);
    let said = world.turn(Command::AdvanceClock { namespace, ms });
    assert!(matches!(&said[..], [Output::Sent { .. }]), "{said:?}");
}

#[test]
fn a_late_answer_goes_with_its_connection() {
    let mut world = under(FaultMatch::default(), LATE);
    world.turn(sending(None));
    let connection = request(2).connection;
    world.turn(Command::Disconnect { connection });
    assert_eq!(wait(&mut world, 500), []);
    assert_eq!(active(&world), 1);
}

#[test]
fn an_answer_is_late_no_longer_than_its_rule_is_there() {
    let mut world = under(FaultMatch::default(), LATE);
    world.turn(sending(None));
    let said = clear(&mut world);
    let sent = |output: &Output| matches!(output, Output::Sent { .. });
    assert!(said.iter().any(sent), "{said:?}");
    let said = world.turn(sending(None));
    assert!(said.iter().any(sent), "{said:?}");
}

#[test]
fn an_answer_that_is_not_there_yet_when_its_rule_goes_is_not_late() {
    let mut world = under(FaultMatch::default(), LATE);
    world.turn(sending(None));
    let peek = Command::Peek {
        request: request(4),
        subqueue: PLACE,
        state: None,
        from: SequenceNumber(0),
        count: 1,
        max_bytes: 1_000,
    };
    assert_eq!(world.turn(peek), []);
    clear(&mut world);
    let answer = world.answer(0).expect("it reads");
    let said = world.turn(answer);
    assert!(matches!(&said[..], [Output::Browsed { .. }]), "{said:?}");
}
