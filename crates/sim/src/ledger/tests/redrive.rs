//! Redrives: a dead letter goes back whole, once, by the word of its holder, and begins anew.

use broker::{
    Access, Command, LockToken, Output, ReceiveMode, ReceiverId, RequestId, SettleError, Subqueue,
    SubqueueId,
};
use store::{Part, Write};

use super::desk::{CONNECTION, Desk, LOCK, QUEUE, check};
use crate::ledger::Ask;
use crate::message::MessageId;
use crate::violation::Violation;

/// The receiver of dead letters.
const REJECTER: ReceiverId = ReceiverId {
    connection: CONNECTION,
    link: 1,
};
const TOKEN: LockToken = LockToken(77);

/// A desk with a dead letter that its holder is about to redrive.
struct Scene {
    desk: Desk,
    id: MessageId,
    request: RequestId,
    redrive: Command,
    /// What a sound broker writes.
    writes: Vec<Write>,
}

impl Scene {
    fn new() -> Self {
        let mut desk = Desk::new();
        let id = desk.stored();
        dead_letter(&mut desk, id).unwrap();
        lock(&mut desk, id).unwrap();
        let request = desk.request();
        let row = desk.row(id);
        let payload = desk.ledger.books.body(&row).unwrap().clone();
        let redrive = Command::Redrive {
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::DeadLetter,
            },
            token: TOKEN,
            payload: payload.clone(),
        };
        let number = desk.ledger.books.place(id).unwrap().number;
        let mut writes = desk.erase(id);
        writes.push(Write::RemovePatch {
            entity: QUEUE,
            number,
        });
        writes.extend(desk.arrival(payload));
        Self {
            desk,
            id,
            request,
            redrive,
            writes,
        }
    }

    /// The holder asks, and the broker writes all that it should.
    fn carry_out(&mut self) -> Result<(), Violation> {
        let done = self.answer(Ok(()));
        let (redrive, writes) = (self.redrive.clone(), self.writes.clone());
        self.desk.turn(&[redrive], writes, &[done])
    }

    fn answer(&self, result: Result<(), SettleError>) -> Output {
        let request = self.request;
        Output::Settled { request, result }
    }
}

/// The receiver dead-letters a message.
fn dead_letter(desk: &mut Desk, id: MessageId) -> Result<(), Violation> {
    let token = desk.deliver(id);
    let (request, settle) = desk.settle(id, token, Ask::DeadLetter);
    let mut writes = desk.step(id, Part::DeadLetter);
    writes.push(desk.patch(id, "DeadLetterReason desk"));
    let result = Ok(());
    desk.turn(&[settle], writes, &[Output::Settled { request, result }])
}

/// The dead letter is locked.
fn lock(desk: &mut Desk, id: MessageId) -> Result<(), Violation> {
    let attach = Command::Attach {
        receiver: REJECTER,
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue: Subqueue::DeadLetter,
        },
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: None,
    };
    let Output::Deliver { mut delivery, .. } = desk.delivery(id, TOKEN.0) else {
        return Ok(());
    };
    let reason = ("DeadLetterReason".to_owned(), bytes::Bytes::new());
    delivery.message.changes = vec![reason];
    let receiver = REJECTER;
    desk.turn(&[attach], vec![], &[Output::Deliver { receiver, delivery }])
}

#[test]
fn a_dead_letter_goes_back_begins_anew_and_can_be_taken() {
    let mut scene = Scene::new();
    assert_eq!(scene.carry_out(), Ok(()));
    assert_eq!(scene.desk.ledger.report.redriven, 1);
    let (desk, id) = (&mut scene.desk, scene.id);
    assert_eq!(desk.ledger.books.place(id).unwrap().part, Part::Active);
    let token = LockToken(78);
    let again = desk.delivery(id, token.0);
    assert_eq!(desk.turn(&[], vec![], &[again]), Ok(()));
    assert_eq!(desk.complete(id, token), Ok(()));
}

#[test]
fn one_that_a_crash_has_undone_is_a_dead_letter_as_before() {
    let mut scene = Scene::new();
    let image = scene.desk.image();
    scene.desk.held_back = true;
    let (redrive, writes) = (scene.redrive.clone(), scene.writes.clone());
    assert_eq!(scene.desk.turn(&[redrive], writes, &[]), Ok(()));
    assert_eq!(scene.desk.ledger.crashed(&image), Ok(()));
    let place = scene.desk.ledger.books.place(scene.id).unwrap();
    assert_eq!(place.part, Part::DeadLetter);
}

#[test]
fn a_dead_letter_that_goes_back_unasked_is_found() {
    let mut scene = Scene::new();
    let writes = scene.writes.clone();
    check(scene.desk.turn(&[], writes, &[]), "I6");
}

#[test]
fn one_that_goes_back_although_its_lock_ran_out_is_found() {
    let mut scene = Scene::new();
    scene.desk.pass(LOCK + 1);
    check(scene.carry_out(), "I6");
}

#[test]
fn one_that_still_says_why_it_is_dead_is_found() {
    let mut scene = Scene::new();
    let number = scene.desk.head.next_number.0 - 1;
    scene.writes.push(Write::PutPatch {
        entity: QUEUE,
        number: store::SequenceNumber(number),
        patch: bytes::Bytes::from_static(b"DeadLetterReason desk"),
    });
    check(scene.carry_out(), "I6");
}

#[test]
fn a_redrive_that_is_refused_although_the_lock_is_held_is_found() {
    let mut scene = Scene::new();
    let refused = scene.answer(Err(SettleError::LockLost));
    let redrive = scene.redrive.clone();
    check(scene.desk.turn(&[redrive], vec![], &[refused]), "I3");
}

#[test]
fn a_redrive_that_is_answered_and_not_written_is_found() {
    let mut scene = Scene::new();
    let done = scene.answer(Ok(()));
    let redrive = scene.redrive.clone();
    check(scene.desk.turn(&[redrive], vec![], &[done]), "I2");
}
