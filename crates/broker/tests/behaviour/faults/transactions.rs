//! Rules for transactions: for what begins and ends one, and for what becomes part of one.

use broker::{
    Command, ConnectionId, DisconnectTime, FaultEffect, FaultMatch, FaultOperation, InjectedEnd,
    InjectedError, LockToken, Operation, Outcome, Output, RefusalReport, RequestId, Requester,
    SendError, SettleError, TransactionError, TransactionId,
};
use store::NamespaceId;

use super::{BUSY, PLACE, World, active, counts, lock, replace, rule, sending, under, world};
use crate::world::{QUEUE, request};

const INJECTED: InjectedError = InjectedError::ServerBusy;

fn of(operation: FaultOperation) -> FaultMatch {
    FaultMatch {
        operations: vec![operation],
        ..FaultMatch::default()
    }
}

fn asking(token: u64) -> RequestId {
    RequestId {
        token,
        ..request(2)
    }
}

fn declare(world: &mut World) -> Vec<Output> {
    world.turn(Command::Declare {
        request: asking(10),
        namespace: NamespaceId(0),
        coordinator: 0,
    })
}

/// A transaction that no rule has to do with.
fn begin(world: &mut World) -> TransactionId {
    match &declare(world)[..] {
        [Output::Declared { result: Ok(id), .. }] => *id,
        other => panic!("{other:?}"),
    }
}

fn enlist(
    world: &mut World,
    transaction: TransactionId,
    operation: Operation,
    refusal: RefusalReport,
) -> Vec<Output> {
    world.turn(Command::Enlist {
        request: asking(11),
        transaction,
        operation: Box::new(operation),
        scope: None,
        refusal,
    })
}

fn a_send() -> Operation {
    match sending(None) {
        Command::Send {
            entity, messages, ..
        } => Operation::Send { entity, messages },
        other => panic!("{other:?}"),
    }
}

fn completion(token: LockToken) -> Operation {
    Operation::Settle {
        subqueue: PLACE,
        session: None,
        tokens: vec![token],
        outcome: Outcome::Complete,
        on_rollback: None,
    }
}

fn discharge(world: &mut World, transaction: TransactionId, fail: bool) -> Vec<Output> {
    let mut said = world.turn(Command::Discharge {
        request: asking(12),
        transaction,
        fail,
    });
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    said
}

fn discharged(said: &[Output]) -> &Result<(), TransactionError> {
    let result = said.iter().find_map(|output| match output {
        Output::Discharged { result, .. } => Some(result),
        _ => None,
    });
    result.expect("a discharge is answered")
}

fn inject(world: &mut World, operation: FaultOperation, effect: FaultEffect) {
    replace(world, "default", vec![rule(of(operation), effect)]).unwrap();
}

#[test]
fn a_transaction_can_be_refused_when_it_begins() {
    let mut world = under(of(FaultOperation::Declare), BUSY);
    let refused = Err(TransactionError::Injected(INJECTED));
    let said = declare(&mut world);
    assert!(
        matches!(&said[..], [Output::Declared { result, .. }] if *result == refused),
        "{said:?}"
    );
    assert_eq!(counts(&mut world), (1, 1));
}

#[test]
fn a_refused_commit_or_rollback_rolls_back() {
    for (operation, fail) in [
        (FaultOperation::Commit, false),
        (FaultOperation::Rollback, true),
    ] {
        let mut world = world();
        let transaction = begin(&mut world);
        enlist(&mut world, transaction, a_send(), RefusalReport::Reported);
        inject(&mut world, operation, BUSY);
        let said = discharge(&mut world, transaction, fail);
        let refused = Err(TransactionError::Injected(INJECTED));
        assert_eq!(*discharged(&said), refused);
        replace(&mut world, "default", Vec::new()).unwrap();
        let said = discharge(&mut world, transaction, false);
        assert_eq!(*discharged(&said), Err(TransactionError::Unknown));
        assert_eq!(active(&world), 0);
        world.audit();
    }
}

#[test]
fn a_rule_for_commits_leaves_rollbacks_and_other_connections_alone() {
    let mut world = world();
    let transaction = begin(&mut world);
    inject(&mut world, FaultOperation::Commit, BUSY);
    // A transaction of this number is another connection's.
    let other = RequestId {
        connection: ConnectionId(98),
        token: 1,
    };
    world.turn(Command::Discharge {
        request: other,
        transaction,
        fail: false,
    });
    assert_eq!(counts(&mut world), (0, 0));
    let said = discharge(&mut world, transaction, true);
    assert_eq!(*discharged(&said), Ok(()));
    assert_eq!(counts(&mut world), (0, 0));
}

#[test]
fn a_commit_whose_answer_is_lost_was_done() {
    for (time, stored) in [(DisconnectTime::Before, 0), (DisconnectTime::After, 1)] {
        let mut world = world();
        let transaction = begin(&mut world);
        enlist(&mut world, transaction, a_send(), RefusalReport::Reported);
        let effect = FaultEffect::Disconnect(time);
        inject(&mut world, FaultOperation::Commit, effect);
        let connection = asking(12).connection;
        let said = discharge(&mut world, transaction, false);
        assert_eq!(said, [Output::Dropped { connection }], "{time:?}");
        world.turn(Command::Disconnect { connection });
        assert_eq!(active(&world), stored, "{time:?}");
        world.audit();
    }
}

#[test]
fn an_operation_of_a_transaction_fails_as_outside_of_it() {
    let mut world = under(of(FaultOperation::Send), BUSY);
    let transaction = begin(&mut world);
    let said = enlist(&mut world, transaction, a_send(), RefusalReport::Reported);
    let refused = Err(SendError::Injected(INJECTED));
    assert!(
        matches!(&said[..], [Output::Sent { result, .. }] if *result == refused),
        "{said:?}"
    );
    replace(&mut world, "default", Vec::new()).unwrap();
    enlist(&mut world, transaction, a_send(), RefusalReport::Reported);
    assert_eq!(
        *discharged(&discharge(&mut world, transaction, false)),
        Ok(())
    );
    assert_eq!(active(&world), 1, "the second send");

    let token = lock(&mut world);
    inject(&mut world, FaultOperation::Complete, BUSY);
    let transaction = begin(&mut world);
    let said = enlist(
        &mut world,
        transaction,
        completion(token),
        RefusalReport::Reported,
    );
    let refused = Err(SettleError::Injected(INJECTED));
    assert!(
        matches!(&said[..], [Output::Settled { result, .. }] if *result == refused),
        "{said:?}"
    );
    world.audit();
}

#[test]
fn a_transaction_fails_with_what_its_client_does_not_know_of() {
    let error = InjectedError::DetachForced;
    for (effect, answers) in [(BUSY, 1), (FaultEffect::Detach(error), 1)] {
        let mut world = under(of(FaultOperation::Send), effect);
        let transaction = begin(&mut world);
        let said = enlist(&mut world, transaction, a_send(), RefusalReport::Unreported);
        assert_eq!(said.len(), answers, "{said:?}");
        replace(&mut world, "default", Vec::new()).unwrap();
        let said = discharge(&mut world, transaction, false);
        let rolled_back = matches!(discharged(&said), Err(TransactionError::RolledBack(_)));
        assert!(rolled_back, "{said:?}");
        assert_eq!(active(&world), 0);
    }
}

#[test]
fn commands_of_a_transaction_are_not_delayed() {
    for matches in [FaultMatch::default(), of(FaultOperation::Send)] {
        let mut world = under(matches, FaultEffect::DelayMs(500));
        let transaction = begin(&mut world);
        for refusal in [RefusalReport::Reported, RefusalReport::Unreported] {
            let said = enlist(&mut world, transaction, a_send(), refusal);
            assert!(matches!(&said[..], [Output::Sent { result: Ok(_), .. }]));
        }
        assert_eq!(
            *discharged(&discharge(&mut world, transaction, false)),
            Ok(())
        );
        assert_eq!(active(&world), 2);
    }
}

#[test]
fn a_detach_ends_the_coordinator_of_a_commit() {
    let mut world = world();
    let transaction = begin(&mut world);
    inject(
        &mut world,
        FaultOperation::Commit,
        FaultEffect::Detach(INJECTED),
    );
    let said = discharge(&mut world, transaction, false);
    let requester = Requester::Request(asking(12));
    let end = InjectedEnd::Link(INJECTED);
    assert_eq!(said, [Output::Ended { requester, end }]);
}

#[test]
fn a_lock_is_lost_before_its_completion_becomes_part_of_a_transaction() {
    let mut world = world();
    assert!(super::send(&mut world).is_some());
    let token = lock(&mut world);
    let before = active(&world);
    inject(&mut world, FaultOperation::Complete, FaultEffect::LoseLock);
    let transaction = begin(&mut world);
    let said = enlist(
        &mut world,
        transaction,
        completion(token),
        RefusalReport::Reported,
    );
    let lost = Err(SettleError::LockLost);
    let is_lost =
        |output: &Output| matches!(output, Output::Settled { result, .. } if *result == lost);
    assert!(said.iter().any(is_lost), "{said:?}");
    assert_eq!(active(&world), before);
    world.audit();
}

#[test]
fn a_message_completed_in_a_transaction_can_come_again() {
    let mut world = world();
    let token = lock(&mut world);
    inject(
        &mut world,
        FaultOperation::Complete,
        FaultEffect::DeliverAgain,
    );
    let transaction = begin(&mut world);
    let said = enlist(
        &mut world,
        transaction,
        completion(token),
        RefusalReport::Reported,
    );
    assert!(matches!(
        &said[..],
        [Output::Settled { result: Ok(()), .. }]
    ));
    assert_eq!(
        *discharged(&discharge(&mut world, transaction, false)),
        Ok(())
    );
    assert_eq!(world.shard.broker.queue(QUEUE).unwrap().active, 1);
    world.audit();
}

#[test]
fn a_lock_that_a_transaction_is_to_end_is_lost_all_the_same() {
    let mut world = world();
    let token = lock(&mut world);
    let transaction = begin(&mut world);
    enlist(
        &mut world,
        transaction,
        completion(token),
        RefusalReport::Reported,
    );
    inject(&mut world, FaultOperation::Renew, FaultEffect::LoseLock);
    let said = world.turn(Command::Renew {
        request: asking(13),
        subqueue: PLACE,
        tokens: vec![token],
    });
    let is_refused =
        |output: &Output| matches!(output, Output::Renewed { result, .. } if result.is_err());
    assert!(said.iter().any(is_refused), "{said:?}");
    let said = discharge(&mut world, transaction, false);
    assert!(
        matches!(discharged(&said), Err(TransactionError::RolledBack(_))),
        "{said:?}"
    );
    assert_eq!(active(&world), 1);
    world.audit();
}

#[test]
fn a_refused_commit_that_comes_too_late_is_told_so_once() {
    let mut world = world();
    let transaction = begin(&mut world);
    enlist(&mut world, transaction, a_send(), RefusalReport::Reported);
    inject(&mut world, FaultOperation::Commit, BUSY);
    world.mono += 10 * 60_000;
    let said = discharge(&mut world, transaction, false);
    assert_eq!(*discharged(&said), Err(TransactionError::TimedOut));
    let said = discharge(&mut world, transaction, false);
    assert_eq!(*discharged(&said), Err(TransactionError::Unknown));
}
