//! Messages that go on to another queue, and what may go wrong on the way.

use bytes::Bytes;
use store::{BodyPointer, EntityId, Head, MessageRow, Part, SequenceNumber, Write};

use super::super::Queue;
use super::fake_broker::{FakeBroker, TTL, check, defined};
use crate::message::MessageId;

const THERE: EntityId = EntityId(2);
const FIRST: SequenceNumber = SequenceNumber(1);

impl FakeBroker {
    fn forwarding() -> Self {
        let mut fake = Self::new();
        let there = Queue {
            path: "there",
            id: THERE,
            ..fake.ledger.queues[0].clone()
        };
        fake.ledger.queues[0].forwards_to = Some(1);
        fake.ledger.queues.push(there);
        fake.ledger.last_enqueued.push(0);
        fake.turn(&[], vec![defined(THERE, "there")], &[]).unwrap();
        fake
    }

    fn row_there(&self, id: MessageId) -> MessageRow {
        let enqueued_ms = self.now.wall.0;
        MessageRow {
            enqueued_ms,
            expires_ms: enqueued_ms + TTL,
            enqueued_number: self.ledger.books.place(id).unwrap().number.0,
            body: BodyPointer {
                home: THERE,
                number: FIRST,
            },
            ..self.row(id)
        }
    }

    /// The message leaves, and one with this row and body arrives.
    fn forward(&mut self, id: MessageId, row: MessageRow, body: Bytes) -> Vec<Write> {
        let mut head = Head::empty();
        head.next_number = FIRST.next();
        head.last_enqueued_ms = row.enqueued_ms;
        head.part_mut(Part::Active).count = 1;
        head.part_mut(Part::Active).bytes = u64::from(row.size);
        let mut writes = self.erase(id);
        writes.extend([
            Write::PutBody {
                pointer: row.body,
                body,
            },
            Write::PutExpiry {
                entity: THERE,
                part: Part::Active,
                block: 0,
                due_ms: row.expires_ms,
            },
            Write::PutMessage {
                entity: THERE,
                part: Part::Active,
                number: FIRST,
                row,
            },
            Write::PutHead {
                entity: THERE,
                head,
            },
        ]);
        writes
    }

    fn body(&self, id: MessageId) -> Bytes {
        self.ledger.books.body(&self.row(id)).unwrap().clone()
    }
}

#[test]
fn a_message_that_goes_on_is_no_violation_and_a_crash_may_put_it_back() {
    let mut fake = FakeBroker::forwarding();
    let id = fake.stored();
    fake.ledger.send_answered(id, true).unwrap();
    let before = fake.image();
    let (row, body) = (fake.row_there(id), fake.body(id));
    let writes = fake.forward(id, row, body);
    assert_eq!(fake.turn(&[], writes, &[]), Ok(()));
    assert_eq!(fake.ledger.recount(&fake.image()), Ok(()));
    assert_eq!(fake.ledger.crashed(&before), Ok(()));
}

#[test]
fn a_message_that_leaves_and_does_not_arrive_is_lost() {
    let mut fake = FakeBroker::forwarding();
    let id = fake.stored();
    let writes = fake.erase(id);
    check(fake.turn(&[], writes, &[]), "I1");
}

#[test]
fn a_message_that_goes_where_nothing_leads_is_found() {
    let mut fake = FakeBroker::forwarding();
    fake.ledger.queues[0].forwards_to = None;
    let id = fake.stored();
    let (row, body) = (fake.row_there(id), fake.body(id));
    let writes = fake.forward(id, row, body);
    check(fake.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_message_that_arrives_changed_or_forgets_its_first_number_is_found() {
    let mut fake = FakeBroker::forwarding();
    let id = fake.stored();
    let (row, body) = (fake.row_there(id), fake.body(id));
    let mut changed = body.to_vec();
    changed[0] ^= 1;
    let writes = fake.forward(id, row, changed.into());
    check(fake.turn(&[], writes, &[]), "I12");

    let mut fake = FakeBroker::forwarding();
    let id = fake.stored();
    let row = MessageRow {
        enqueued_number: 0,
        ..fake.row_there(id)
    };
    let writes = fake.forward(id, row, body);
    check(fake.turn(&[], writes, &[]), "I8");
}

#[test]
fn a_message_that_overtakes_another_on_the_way_is_found() {
    let mut fake = FakeBroker::forwarding();
    let id = fake.stored();
    let (_, _, send, mut writes) = fake.send();
    // The block has its least deadline already.
    writes.retain(|write| !matches!(write, Write::PutExpiry { .. }));
    check(fake.turn(&[send], writes, &[]), "I14");
    let (row, body) = (fake.row_there(id + 1), fake.body(id + 1));
    let writes = fake.forward(id + 1, row, body);
    check(fake.turn(&[], writes, &[]), "I4");
}

#[test]
fn a_message_that_does_not_go_on_is_found() {
    let mut fake = FakeBroker::forwarding();
    fake.stored();
    fake.idle(100).unwrap();
    fake.pass(10_000);
    check(fake.idle(100), "I14");
}
