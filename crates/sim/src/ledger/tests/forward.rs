//! Messages that go on to another queue, and what may go wrong on the way.

use bytes::Bytes;
use store::{BodyPointer, EntityId, Head, MessageRow, Part, SequenceNumber, Write};

use super::super::Queue;
use super::desk::{Desk, TTL, check, defined};
use crate::message::MessageId;

const THERE: EntityId = EntityId(2);
const FIRST: SequenceNumber = SequenceNumber(1);

impl Desk {
    fn forwarding() -> Self {
        let mut desk = Self::new();
        let there = Queue {
            path: "there",
            id: THERE,
            ..desk.ledger.queues[0].clone()
        };
        desk.ledger.queues[0].forwards_to = Some(1);
        desk.ledger.queues.push(there);
        desk.ledger.last_enqueued.push(0);
        desk.turn(&[], vec![defined(THERE, "there")], &[]).unwrap();
        desk
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
    let mut desk = Desk::forwarding();
    let id = desk.stored();
    desk.ledger.send_answered(id, true).unwrap();
    let before = desk.image();
    let (row, body) = (desk.row_there(id), desk.body(id));
    let writes = desk.forward(id, row, body);
    assert_eq!(desk.turn(&[], writes, &[]), Ok(()));
    assert_eq!(desk.ledger.recount(&desk.image()), Ok(()));
    assert_eq!(desk.ledger.crashed(&before), Ok(()));
}

#[test]
fn a_message_that_leaves_and_does_not_arrive_is_lost() {
    let mut desk = Desk::forwarding();
    let id = desk.stored();
    let writes = desk.erase(id);
    check(desk.turn(&[], writes, &[]), "I1");
}

#[test]
fn a_message_that_goes_where_nothing_leads_is_found() {
    let mut desk = Desk::forwarding();
    desk.ledger.queues[0].forwards_to = None;
    let id = desk.stored();
    let (row, body) = (desk.row_there(id), desk.body(id));
    let writes = desk.forward(id, row, body);
    check(desk.turn(&[], writes, &[]), "I6");
}

#[test]
fn a_message_that_arrives_changed_or_forgets_its_first_number_is_found() {
    let mut desk = Desk::forwarding();
    let id = desk.stored();
    let (row, body) = (desk.row_there(id), desk.body(id));
    let mut changed = body.to_vec();
    changed[0] ^= 1;
    let writes = desk.forward(id, row, changed.into());
    check(desk.turn(&[], writes, &[]), "I12");

    let mut desk = Desk::forwarding();
    let id = desk.stored();
    let row = MessageRow {
        enqueued_number: 0,
        ..desk.row_there(id)
    };
    let writes = desk.forward(id, row, body);
    check(desk.turn(&[], writes, &[]), "I8");
}

#[test]
fn a_message_that_overtakes_another_on_the_way_is_found() {
    let mut desk = Desk::forwarding();
    let id = desk.stored();
    let (_, _, send, mut writes) = desk.send();
    // The block has its least deadline already.
    writes.retain(|write| !matches!(write, Write::PutExpiry { .. }));
    check(desk.turn(&[send], writes, &[]), "I14");
    let (row, body) = (desk.row_there(id + 1), desk.body(id + 1));
    let writes = desk.forward(id + 1, row, body);
    check(desk.turn(&[], writes, &[]), "I4");
}

#[test]
fn a_message_that_does_not_go_on_is_found() {
    let mut desk = Desk::forwarding();
    desk.stored();
    desk.idle(50).unwrap();
    desk.pass(10_000);
    check(desk.idle(50), "I14");
}
