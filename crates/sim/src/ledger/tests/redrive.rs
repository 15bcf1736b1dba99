//! Redrives: a dead letter goes back whole, once, by the word of its holder, and begins anew.

use broker::{
    Access, Additions, Command, LockToken, Output, ReceiveMode, ReceiverId, RedrivenMessage,
    RequestId, SettleError, Subqueue, SubqueueId,
};
use store::{Part, Write};

use super::fake_broker::{CONNECTION, FakeBroker, LOCK, QUEUE, check};
use crate::ledger::Ask;
use crate::message::MessageId;
use crate::violation::Violation;

/// The receiver of dead letters.
const REJECTER: ReceiverId = ReceiverId {
    connection: CONNECTION,
    link: 1,
};
const TOKEN: LockToken = LockToken(77);

/// A fake broker with a dead letter that its holder is about to redrive.
struct RedriveFixture {
    fake: FakeBroker,
    id: MessageId,
    request: RequestId,
    redrive: Command,
    /// What a sound broker writes.
    writes: Vec<Write>,
}

impl RedriveFixture {
    fn new() -> Self {
        let mut fake = FakeBroker::new();
        let id = fake.stored();
        dead_letter(&mut fake, id).unwrap();
        lock(&mut fake, id).unwrap();
        let request = fake.request();
        let row = fake.row(id);
        let payload = fake.ledger.books.body(&row).unwrap().clone();
        let redrive = Command::Redrive {
            request,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::DeadLetter,
            },
            token: TOKEN,
            message: RedrivenMessage::Unchanged(payload.clone()),
        };
        let number = fake.ledger.books.place(id).unwrap().number;
        let mut writes = fake.erase(id);
        writes.push(Write::RemovePatch {
            entity: QUEUE,
            number,
        });
        writes.extend(fake.arrival(payload));
        Self {
            fake,
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
        self.fake.turn(&[redrive], writes, &[done])
    }

    fn answer(&self, result: Result<(), SettleError>) -> Output {
        let request = self.request;
        Output::Settled { request, result }
    }
}

/// The receiver dead-letters a message.
fn dead_letter(fake: &mut FakeBroker, id: MessageId) -> Result<(), Violation> {
    let token = fake.deliver(id);
    let (request, settle) = fake.settle(id, token, Ask::DeadLetter);
    let mut writes = fake.step(id, Part::DeadLetter);
    writes.push(fake.patch(id, "DeadLetterReason desk"));
    let result = Ok(());
    fake.turn(&[settle], writes, &[Output::Settled { request, result }])
}

/// The dead letter is locked.
fn lock(fake: &mut FakeBroker, id: MessageId) -> Result<(), Violation> {
    let attach = Command::Attach {
        receiver: REJECTER,
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue: Subqueue::DeadLetter,
        },
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: None,
    };
    let Output::Deliver { mut delivery, .. } = fake.delivery(id, TOKEN.0) else {
        return Ok(());
    };
    let reason = ("DeadLetterReason".to_owned(), bytes::Bytes::new());
    delivery.message.additions = Some(Box::new(Additions {
        changes: vec![reason],
        ..Additions::default()
    }));
    let receiver = REJECTER;
    fake.turn(&[attach], vec![], &[Output::Deliver { receiver, delivery }])
}

#[test]
fn a_dead_letter_goes_back_begins_anew_and_can_be_taken() {
    let mut fixture = RedriveFixture::new();
    assert_eq!(fixture.carry_out(), Ok(()));
    assert_eq!(fixture.fake.ledger.report.redriven, 1);
    let (fake, id) = (&mut fixture.fake, fixture.id);
    assert_eq!(fake.ledger.books.place(id).unwrap().part, Part::Active);
    let token = LockToken(78);
    let again = fake.delivery(id, token.0);
    assert_eq!(fake.turn(&[], vec![], &[again]), Ok(()));
    assert_eq!(fake.complete(id, token), Ok(()));
}

#[test]
fn one_that_a_crash_has_undone_is_a_dead_letter_as_before() {
    let mut fixture = RedriveFixture::new();
    let image = fixture.fake.image();
    fixture.fake.held_back = true;
    let (redrive, writes) = (fixture.redrive.clone(), fixture.writes.clone());
    assert_eq!(fixture.fake.turn(&[redrive], writes, &[]), Ok(()));
    assert_eq!(fixture.fake.ledger.crashed(&image), Ok(()));
    let place = fixture.fake.ledger.books.place(fixture.id).unwrap();
    assert_eq!(place.part, Part::DeadLetter);
}

#[test]
fn a_dead_letter_that_goes_back_unasked_is_found() {
    let mut fixture = RedriveFixture::new();
    let writes = fixture.writes.clone();
    check(fixture.fake.turn(&[], writes, &[]), "I6");
}

#[test]
fn one_that_goes_back_although_its_lock_ran_out_is_found() {
    let mut fixture = RedriveFixture::new();
    fixture.fake.pass(LOCK + 1);
    check(fixture.carry_out(), "I6");
}

#[test]
fn one_that_still_says_why_it_is_dead_is_found() {
    let mut fixture = RedriveFixture::new();
    let number = fixture.fake.head.next_number.0 - 1;
    fixture.writes.push(Write::PutPatch {
        entity: QUEUE,
        number: store::SequenceNumber(number),
        patch: bytes::Bytes::from_static(b"DeadLetterReason desk"),
    });
    check(fixture.carry_out(), "I6");
}

#[test]
fn a_redrive_that_is_refused_although_the_lock_is_held_is_found() {
    let mut fixture = RedriveFixture::new();
    let refused = fixture.answer(Err(SettleError::LockLost));
    let redrive = fixture.redrive.clone();
    check(fixture.fake.turn(&[redrive], vec![], &[refused]), "I3");
}

#[test]
fn a_redrive_that_is_answered_and_not_written_is_found() {
    let mut fixture = RedriveFixture::new();
    let done = fixture.answer(Ok(()));
    let redrive = fixture.redrive.clone();
    check(fixture.fake.turn(&[redrive], vec![], &[done]), "I2");
}
