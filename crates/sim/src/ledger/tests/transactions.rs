//! Transactions: what is taken in is about one entity, and a commit lacks nothing.

use broker::{
    Command, Incoming, Operation, Output, RefusalReport, RequestId, SendError, TransactionError,
    TransactionId,
};
use store::{EntityId, SequenceNumber};

use super::fake_broker::{CONNECTION, FakeBroker, QUEUE, check};
use crate::message::{self, SendOptions};
use crate::rng::Rng;
use crate::violation::Violation;

const ONE: TransactionId = TransactionId(1);

fn declared() -> FakeBroker {
    let mut fake = FakeBroker::new();
    let request = fake.request();
    let declare = Command::Declare {
        request,
        namespace: store::NamespaceId(0),
        coordinator: 0,
    };
    let result = Ok(ONE);
    let said = Output::Declared { request, result };
    fake.turn(&[declare], vec![], &[said]).unwrap();
    fake
}

/// A client sends within the transaction, which has to be about `scope`.
fn enlist(fake: &mut FakeBroker, scope: u64) -> (RequestId, Command) {
    let id = fake.ledger.fresh_id(&mut Rng::new(0), 0);
    let options = SendOptions::default();
    let payload = message::build(&mut Rng::new(id), id, options, 10);
    let now = fake.now;
    fake.ledger.send_asked(id, 0, payload.clone(), options, now);
    let request = fake.request();
    let messages = vec![Incoming {
        payload,
        ..Incoming::default()
    }];
    let enlist = Command::Enlist {
        request,
        transaction: ONE,
        operation: Box::new(Operation::Send {
            entity: QUEUE,
            messages,
        }),
        scope: Some(EntityId(scope)),
        refusal: RefusalReport::Reported,
    };
    (request, enlist)
}

fn taken(request: RequestId) -> Output {
    Output::Sent {
        request,
        result: Ok(SequenceNumber(0)),
        duplicates: Vec::new(),
    }
}

#[test]
fn a_transaction_about_two_entities_is_found() {
    let mut fake = declared();
    let (request, first) = enlist(&mut fake, 1);
    fake.turn(&[first], vec![], &[taken(request)]).unwrap();
    let (request, second) = enlist(&mut fake, 2);
    check(fake.turn(&[second], vec![], &[taken(request)]), "I7");
}

#[test]
fn an_operation_about_another_entity_may_be_refused_and_its_transaction_goes_on() {
    let mut fake = declared();
    let (request, first) = enlist(&mut fake, 1);
    fake.turn(&[first], vec![], &[taken(request)]).unwrap();
    let (request, second) = enlist(&mut fake, 2);
    let refused = Output::Sent {
        request,
        result: Err(SendError::Transaction(TransactionError::OtherEntity)),
        duplicates: Vec::new(),
    };
    fake.turn(&[second], vec![], &[refused]).unwrap();
    let (request, third) = enlist(&mut fake, 1);
    fake.turn(&[third], vec![], &[taken(request)]).unwrap();
}

/// A transaction without anything, or with what its client is missing, is discharged.
fn commit(failed: bool, result: Result<(), TransactionError>) -> Result<(), Violation> {
    let mut fake = declared();
    let request = fake.request();
    let discharge = Command::Discharge {
        request,
        transaction: ONE,
        fail: false,
    };
    let failure = failed.then(|| Command::FailTransaction {
        connection: CONNECTION,
        transaction: ONE,
        reason: String::new(),
    });
    let told: Vec<_> = failure.into_iter().chain([discharge]).collect();
    fake.turn(&told, vec![], &[Output::Discharged { request, result }])
}

#[test]
fn only_a_transaction_that_lacks_something_is_refused_and_it_has_to_be() {
    let refused = || Err(TransactionError::RolledBack(String::new()));
    commit(false, Ok(())).unwrap();
    check(commit(false, refused()), "I7");
    commit(true, refused()).unwrap();
    check(commit(true, Ok(())), "I7");
}
