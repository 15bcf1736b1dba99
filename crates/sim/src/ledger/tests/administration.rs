//! Orders that are not carried out, carried out although they must not be, or answered wrongly.

use broker::{
    Answer, Batch, Command, Ensured, EntityError, Listing, NamespaceInfo, Order, Output, Page,
    QueueSettings, Wall,
};
use store::{EntityId, NamespaceId, Write};

use super::super::Queue;
use super::fake_broker::{FakeBroker, QUEUE, check, defined};
use crate::violation::Violation;

const OTHER: EntityId = EntityId(2);

/// One turn with an order, what is written for it, and its answer.
fn order(
    fake: &mut FakeBroker,
    order: Order,
    writes: Vec<Write>,
    answer: Result<Answer, EntityError>,
) -> Result<(), Violation> {
    let request = fake.request();
    let command = Command::Administer {
        request,
        namespace: NamespaceId(0),
        order: Box::new(order),
    };
    let result = Box::new(answer);
    let said = Output::Administered { request, result };
    fake.turn(&[command], writes, &[said])
}

/// A fake broker whose queue the store knows of, and another queue that may come.
fn fake() -> FakeBroker {
    let mut fake = FakeBroker::new();
    fake.turn(&[], vec![defined(QUEUE, "desk")], &[]).unwrap();
    let other = Queue {
        path: "other",
        ..fake.ledger.queues[0].clone()
    };
    fake.ledger.expect(other);
    fake
}

fn removal() -> Order {
    let path = "Desk".to_owned();
    Order::Remove { path }
}

fn batch(dry_run: bool, version: Option<u64>) -> Order {
    let ensured = vec![Ensured::Queue {
        path: "other".to_owned(),
        settings: QueueSettings::default(),
    }];
    Order::Apply(Box::new(Batch {
        version,
        ensured,
        dry_run,
        ..Batch::default()
    }))
}

fn shown(version: u64) -> Answer {
    Answer::Namespace(NamespaceInfo {
        created: Wall(0),
        modified: Wall(0),
        version,
    })
}

#[test]
fn an_order_that_is_carried_out_and_answered_is_sound() {
    let mut fake = fake();
    let writes = vec![defined(OTHER, "other")];
    let made = order(&mut fake, batch(false, None), writes, Ok(Answer::Done));
    assert_eq!(made, Ok(()));
    let writes = vec![Write::RemoveEntity(QUEUE)];
    let removed = order(&mut fake, removal(), writes, Ok(Answer::Done));
    assert_eq!(removed, Ok(()));
    let again = order(&mut fake, removal(), vec![], Err(EntityError::NotFound));
    assert_eq!(again, Ok(()));
}

#[test]
fn an_order_that_is_answered_and_not_written_is_found() {
    let mut fake = fake();
    check(order(&mut fake, removal(), vec![], Ok(Answer::Done)), "I13");
}

#[test]
fn an_order_that_is_refused_without_reason_is_found() {
    let mut fake = fake();
    let refused = Err(EntityError::NotFound);
    check(order(&mut fake, removal(), vec![], refused), "I13");
}

#[test]
fn an_order_that_is_never_answered_is_found() {
    let mut fake = fake();
    let command = Command::Administer {
        request: fake.request(),
        namespace: NamespaceId(0),
        order: Box::new(removal()),
    };
    let writes = vec![Write::RemoveEntity(QUEUE)];
    check(fake.turn(&[command], writes, &[]), "I14");
}

#[test]
fn what_a_dry_run_makes_is_found() {
    let mut fake = fake();
    let writes = vec![defined(OTHER, "other")];
    let made = order(&mut fake, batch(true, None), writes, Ok(Answer::Done));
    check(made, "I1");
}

#[test]
fn a_batch_for_another_version_of_the_namespace_is_refused_or_found() {
    let mut fake = fake();
    let inquiry = Order::DescribeNamespace;
    order(&mut fake, inquiry, vec![], Ok(shown(7))).unwrap();
    let writes = vec![Write::RemoveEntity(QUEUE)];
    order(&mut fake, removal(), writes, Ok(Answer::Done)).unwrap();
    let refused = Err(EntityError::Changed);
    let refused = order(&mut fake, batch(false, Some(7)), vec![], refused);
    assert_eq!(refused, Ok(()));
    let writes = vec![defined(OTHER, "other")];
    let made = order(&mut fake, batch(false, Some(7)), writes, Ok(Answer::Done));
    check(made, "I1");
}

#[test]
fn a_version_that_comes_back_after_a_change_is_found() {
    let mut fake = fake();
    let inquiry = || Order::DescribeNamespace;
    order(&mut fake, inquiry(), vec![], Ok(shown(7))).unwrap();
    let writes = vec![defined(OTHER, "other")];
    order(&mut fake, batch(false, None), writes, Ok(Answer::Done)).unwrap();
    check(order(&mut fake, inquiry(), vec![], Ok(shown(7))), "I13");
}

#[test]
fn a_list_that_leaves_an_entity_out_is_found() {
    let mut fake = fake();
    let list = Order::List {
        of: Listing::Queues,
        skip: 0,
        top: 10,
    };
    let empty = Answer::Entities(Page {
        items: Vec::new(),
        more: false,
    });
    check(order(&mut fake, list, vec![], Ok(empty)), "I13");
}
