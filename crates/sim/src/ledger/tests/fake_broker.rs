//! Fake broker: a ledger with one queue, and methods that tell it what a broker would do.

use broker::{
    Access, Browsed, Command, ConnectionId, Delivery, Incoming, LockToken, MessageState, Mono, Now,
    Outcome, Output, Overflow, ReadRequest, ReceiveMode, ReceiverId, RequestId, Status, Subqueue,
    SubqueueId, Wall,
};
use bytes::Bytes;
use store::{
    BodyPointer, CommitId, EntityId, EntityRow, Head, Image, MessageRow, NamespaceId, Part,
    SequenceNumber, Write, WriteSet,
};

use super::super::{Ask, Ledger, Queue, TurnEnd};
use crate::message::{self, MessageId, SendOptions};
use crate::rng::Rng;
use crate::violation::Violation;

pub(super) const QUEUE: EntityId = EntityId(1);
pub(super) const CONNECTION: ConnectionId = ConnectionId(1);
pub(super) const RECEIVER: ReceiverId = ReceiverId {
    connection: CONNECTION,
    link: 0,
};
/// Of every lock, in milliseconds.
pub(super) const LOCK: u64 = 5_000;
/// Of every message, in milliseconds.
pub(super) const TTL: u64 = 60_000;

/// The result names that invariant.
pub(super) fn check(result: Result<(), Violation>, invariant: &str) {
    let found = result.map_err(|violation| violation.invariant);
    assert_eq!(found, Err(invariant));
}

/// An entity is made.
pub(super) fn defined(id: EntityId, path: &str) -> Write {
    Write::PutEntity(EntityRow {
        id,
        namespace: NamespaceId(0),
        path: path.to_owned(),
        definition: Bytes::new(),
    })
}

/// The answer to a send.
pub(super) fn accepted(request: RequestId, number: SequenceNumber) -> Output {
    Output::Sent {
        request,
        result: Ok(number),
        duplicates: Vec::new(),
    }
}

pub(super) struct FakeBroker {
    pub ledger: Ledger,
    pub now: Now,
    /// What a sound broker would write next.
    pub head: Head,
    /// Nothing becomes durable while it is set.
    pub held_back: bool,
    pub reads: Vec<ReadRequest>,
    submitted: CommitId,
    durable: CommitId,
    image: Image,
    requests: u64,
}

impl FakeBroker {
    /// Three deliveries at most; what expires is dead-lettered.
    pub(super) fn new() -> Self {
        let now = Now {
            wall: Wall(1_000_000),
            mono: Mono(1_000),
        };
        let queue = Queue {
            path: "desk",
            id: QUEUE,
            lock_duration: LOCK,
            max_delivery_count: 3,
            default_ttl: TTL,
            dead_letters_expired: true,
            drops_dead_letters: false,
            sessions: false,
            cloud: false,
            duplicate_window: None,
            forwards_to: None,
            forwards_dead_letters_to: None,
            receive_and_delete: false,
            is_topic: false,
            topic: None,
            dead_letters_failures: false,
            auto_delete_on_idle: u64::MAX,
            expires: u64::MAX,
            max_length: None,
            overflow: Overflow::default(),
            retry_backoff: None,
            priorities: None,
            status: Status::Active,
            going: false,
            gone: false,
            unsteady: false,
            used: now.mono,
            began: now.mono,
        };
        let mut fake = Self {
            ledger: Ledger::new(vec![queue], false, now),
            now,
            head: Head::empty(),
            held_back: false,
            reads: Vec::new(),
            submitted: CommitId(0),
            durable: CommitId(0),
            image: Image::default(),
            requests: 0,
        };
        fake.image.apply(&defined(QUEUE, "desk")).unwrap();
        fake.attach();
        fake
    }

    /// One turn of a broker that was told, wrote and said this.
    pub(super) fn turn(
        &mut self,
        told: &[Command],
        writes: Vec<Write>,
        said: &[Output],
    ) -> Result<(), Violation> {
        self.ledger.begin_turn(told, self.now);
        let mut sets = Vec::new();
        if !writes.is_empty() {
            self.submitted = self.submitted.next();
            let mut set = WriteSet::default();
            for write in writes {
                let _breach = self.image.apply(&write);
                set.push(write);
            }
            sets.push((self.submitted, set));
        }
        if !self.held_back {
            self.durable = self.submitted;
        }
        self.ledger.verify_writes(&sets, self.submitted)?;
        for output in said {
            self.ledger.verify_output(output, self.durable)?;
        }
        self.ledger.end_turn(TurnEnd {
            is_busy_elsewhere: false,
            durable: self.durable,
            submitted: self.submitted,
            nearly_full: false,
            has_failed: false,
            reads: &self.reads,
        })
    }

    /// Has `turns` turns in which nothing happens.
    pub(super) fn idle(&mut self, turns: usize) -> Result<(), Violation> {
        (0..turns).try_for_each(|_| self.turn(&[], vec![], &[]))
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now.mono.0 += milliseconds;
        self.now.wall.0 += milliseconds;
        self.ledger.clock(self.now.wall, false);
    }

    pub(super) fn image(&self) -> Image {
        self.image.clone()
    }

    pub(super) fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId {
            connection: CONNECTION,
            token: self.requests,
        }
    }

    /// A receiver without credit, as all of these tests have one.
    pub(super) fn attach(&mut self) {
        let attach = Command::Attach {
            receiver: RECEIVER,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        };
        self.turn(&[attach], vec![], &[]).unwrap();
    }

    pub(super) fn credit(&mut self, drain: bool) -> Command {
        Command::Credit {
            receiver: RECEIVER,
            limit: 10,
            drain,
        }
    }

    /// A client sends: the command, and what a sound broker writes.
    pub(super) fn send(&mut self) -> (MessageId, RequestId, Command, Vec<Write>) {
        let (id, request, command, payload) = self.ask(SendOptions::default());
        let writes = self.arrival(payload);
        (id, request, command, writes)
    }

    /// A client sends something with options.
    pub(super) fn ask(&mut self, options: SendOptions) -> (MessageId, RequestId, Command, Bytes) {
        let id = self.ledger.fresh_id(&mut Rng::new(0), 0);
        let payload = message::build(&mut Rng::new(id), id, options, 10);
        let now = self.now;
        self.ledger.send_asked(id, 0, payload.clone(), options, now);
        let request = self.request();
        let command = Command::Send {
            request,
            entity: QUEUE,
            messages: vec![Incoming {
                payload: payload.clone(),
                ..Incoming::default()
            }],
        };
        (id, request, command, payload)
    }

    pub(super) fn arrival(&mut self, body: Bytes) -> Vec<Write> {
        let number = self.head.next_number;
        self.head.next_number = number.next();
        self.head.last_enqueued_ms = self.now.wall.0;
        let row = MessageRow {
            enqueued_ms: self.now.wall.0,
            ttl_ms: TTL,
            expires_ms: self.now.wall.0 + TTL,
            size: u32::try_from(body.len()).unwrap(),
            flags: 0,
            session_hash: 0,
            enqueued_number: 0,
            body: BodyPointer {
                home: QUEUE,
                number,
            },
        };
        let pointer = row.body;
        let due = Write::PutExpiry {
            entity: QUEUE,
            part: Part::Active,
            block: 0,
            due_ms: row.expires_ms,
        };
        vec![
            Write::PutBody { pointer, body },
            due,
            self.put(Part::Active, number, row),
            self.put_head(),
        ]
    }

    pub(super) fn put(&mut self, part: Part, number: SequenceNumber, row: MessageRow) -> Write {
        let head = self.head.part_mut(part);
        head.count += 1;
        head.bytes += u64::from(row.size);
        Write::PutMessage {
            entity: QUEUE,
            part,
            number,
            row,
        }
    }

    pub(super) fn remove(&mut self, part: Part, number: SequenceNumber) -> Write {
        let row = self.image.messages[&(QUEUE, part, number)];
        let head = self.head.part_mut(part);
        head.count -= 1;
        head.bytes -= u64::from(row.size);
        Write::RemoveMessage {
            entity: QUEUE,
            part,
            number,
        }
    }

    /// From one part to another, the head included.
    pub(super) fn step(&mut self, id: MessageId, to: Part) -> Vec<Write> {
        let place = self.ledger.books.place(id).unwrap();
        let row = self.row(id);
        vec![
            self.remove(place.part, place.number),
            self.put(to, place.number, row),
            self.put_head(),
        ]
    }

    /// All that a sound broker writes when a message goes.
    pub(super) fn erase(&mut self, id: MessageId) -> Vec<Write> {
        let place = self.ledger.books.place(id).unwrap();
        let pointer = self.row(id).body;
        vec![
            self.remove(place.part, place.number),
            Write::RemoveBody { pointer },
            self.put_head(),
        ]
    }

    pub(super) fn count(&self, id: MessageId, count: u32) -> Write {
        let number = self.ledger.books.place(id).unwrap().number;
        Write::PutDeliveryCount {
            entity: QUEUE,
            number,
            count,
        }
    }

    pub(super) fn patch(&self, id: MessageId, text: &'static str) -> Write {
        let number = self.ledger.books.place(id).unwrap().number;
        Write::PutPatch {
            entity: QUEUE,
            number,
            patch: Bytes::from_static(text.as_bytes()),
        }
    }

    pub(super) fn put_head(&self) -> Write {
        let head = self.head.clone();
        Write::PutHead {
            entity: QUEUE,
            head,
        }
    }

    pub(super) fn row(&self, id: MessageId) -> MessageRow {
        let place = self.ledger.books.place(id).unwrap();
        self.image.messages[&(QUEUE, place.part, place.number)]
    }

    /// A message that was sent, stored and answered.
    pub(super) fn stored(&mut self) -> MessageId {
        let (id, request, send, writes) = self.send();
        self.turn(&[send], writes, &[]).unwrap_or_else(|violation| {
            // Its answer is missing so far, which is all that may be wrong.
            assert_eq!(violation.invariant, "I14", "{violation}");
        });
        let number = self.ledger.books.place(id).unwrap().number;
        self.turn(&[], vec![], &[accepted(request, number)])
            .unwrap();
        id
    }

    /// A delivery of a message that is there.
    pub(super) fn delivery(&self, id: MessageId, token: u128) -> Output {
        let row = self.row(id);
        let payload = self.ledger.books.body(&row).unwrap().clone();
        let place = self.ledger.books.place(id).unwrap();
        let message = Browsed {
            entity: store::EntityId(0),
            number: place.number,
            enqueued_number: place.number,
            was_forwarded: false,
            was_scheduled: false,
            lock: Some(broker::LockTime::Own(LOCK)),
            enqueued: Wall(row.enqueued_ms),
            ttl_ms: Some(row.ttl_ms),
            expires: Some(Wall(row.expires_ms)),
            delivery_count: self.ledger.books.count(place),
            acquired_count: 0,
            state: MessageState::Active,
            payload,
            additions: None,
        };
        let delivery = Box::new(Delivery {
            message,
            token: LockToken(token),
            rests_on: store::CommitId::default(),
        });
        Output::Deliver {
            receiver: RECEIVER,
            delivery,
        }
    }

    /// Lends a message to the receiver.
    pub(super) fn deliver(&mut self, id: MessageId) -> LockToken {
        let token = LockToken(u128::from(id));
        let delivery = self.delivery(id, token.0);
        self.turn(&[], vec![], &[delivery]).unwrap();
        token
    }

    /// A client settles: the question, and the command.
    pub(super) fn settle(
        &mut self,
        id: MessageId,
        token: LockToken,
        ask: Ask,
    ) -> (RequestId, Command) {
        self.ledger.asked(id, ask);
        let request = self.request();
        let changes = Vec::new();
        let outcome = match ask {
            Ask::Complete => Outcome::Complete,
            Ask::Abandon => Outcome::abandon(changes),
            Ask::Release => Outcome::Release,
            Ask::DeadLetter => Outcome::DeadLetter { changes },
            Ask::Defer => Outcome::Defer { changes },
        };
        let command = Command::Settle {
            request: Some(request),
            session: None,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        };
        (request, command)
    }

    /// A completion as it should be.
    pub(super) fn complete(&mut self, id: MessageId, token: LockToken) -> Result<(), Violation> {
        let (request, settle) = self.settle(id, token, Ask::Complete);
        let writes = self.erase(id);
        let done = Output::Settled {
            request,
            result: Ok(()),
        };
        self.turn(&[settle], writes, &[done])?;
        self.ledger
            .answered(id, Subqueue::Main, Ask::Complete, true)
    }
}
