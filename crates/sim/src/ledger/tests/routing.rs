//! What is published to a router: one copy in each queue that is bound, all in one write set.

use amqp::DeliveryState;
use broker::{
    Binding, BindingDestination, Command, ConnectionId, Incoming, Mono, Now, Order, Output,
    Overflow, Publication, RequestId, Routed, RouterOrder, Status, Wall,
};
use bytes::Bytes;
use store::{
    BodyPointer, CommitId, EntityId, EntityRow, Head, MessageRow, NamespaceId, Part,
    SequenceNumber, Write, WriteSet,
};

use super::super::{Ledger, Queue};
use super::fake_broker::check;
use crate::message::{self, SendOptions};
use crate::rng::Rng;
use crate::server::administer;
use crate::violation::Violation;

const FIRST: EntityId = EntityId(1);
const SECOND: EntityId = EntityId(2);
const OTHER: EntityId = EntityId(3);
const ROUTER: EntityId = EntityId(4);
const NUMBER: SequenceNumber = SequenceNumber(1);
const BODY: BodyPointer = BodyPointer {
    home: ROUTER,
    number: NUMBER,
};

/// A ledger of three queues, two of which are bound, and a message that is about to be published.
struct Fixture {
    ledger: Ledger,
    commit: CommitId,
    payload: Bytes,
}

fn queue(path: &'static str, id: EntityId) -> Queue {
    Queue {
        path,
        id,
        lock_duration: 1_000,
        max_delivery_count: 3,
        default_ttl: u64::MAX,
        dead_letters_expired: false,
        drops_dead_letters: false,
        sessions: false,
        cloud: false,
        duplicate_window: None,
        forwards_to: None,
        forwards_dead_letters_to: None,
        receive_and_delete: false,
        is_topic: false,
        topic: None,
        dead_letters_failures: true,
        auto_delete_on_idle: u64::MAX,
        status: Status::Active,
        going: false,
        gone: false,
        unsteady: false,
        used: Mono(0),
        began: Mono(0),
        expires: u64::MAX,
        max_length: None,
        overflow: Overflow::default(),
        retry_backoff: None,
        priorities: None,
    }
}

fn now() -> Now {
    Now {
        wall: Wall(1_000),
        mono: Mono(1_000),
    }
}

fn request(token: u64) -> RequestId {
    RequestId {
        connection: ConnectionId(1),
        token,
    }
}

fn bind(token: u64, path: &str) -> Command {
    let binding = Box::new(Binding {
        source: "amq.fanout".to_owned(),
        destination: BindingDestination::Entity(path.to_owned()),
        key: String::new(),
        arguments: Vec::new(),
    });
    administer(request(token), 0, Order::Router(RouterOrder::Bind(binding)))
}

impl Fixture {
    fn new() -> Self {
        let queues = vec![
            queue("first", FIRST),
            queue("second", SECOND),
            queue("other", OTHER),
        ];
        let mut ledger = Ledger::new(queues, false, now());
        let id = ledger.next_id(None);
        let payload = message::build(&mut Rng::new(1), id, SendOptions::default(), 10);
        let commit = CommitId(0);
        let mut fixture = Self {
            ledger,
            commit,
            payload,
        };
        let row = |id, path: &str, definition: &'static [u8]| {
            Write::PutEntity(EntityRow {
                id,
                namespace: NamespaceId(0),
                path: path.to_owned(),
                definition: Bytes::from_static(definition),
            })
        };
        let writes = vec![
            row(FIRST, "first", b""),
            row(SECOND, "second", b""),
            row(OTHER, "other", b""),
            row(ROUTER, "", b"{\"router\":{}}"),
        ];
        fixture.write(&[], writes).unwrap();
        let binds = [bind(1, "first"), bind(2, "second")];
        fixture.write(&binds, Vec::new()).unwrap();
        fixture
    }

    fn write(&mut self, told: &[Command], writes: Vec<Write>) -> Result<(), Violation> {
        self.commit = self.commit.next();
        self.ledger.begin_turn(told, now());
        let mut set = WriteSet::default();
        writes.into_iter().for_each(|write| set.push(write));
        let sets = [(self.commit, set)];
        self.ledger.verify_writes(&sets, self.commit).map(drop)
    }

    /// The message is published, and arrives with this body in these queues.
    fn publish(&mut self, body: Bytes, to: &[EntityId]) -> Result<(), Violation> {
        let publication = Box::new(Publication {
            namespace: NamespaceId(0),
            router: "amq.fanout".to_owned(),
            keys: vec![String::new()],
            message: Incoming {
                payload: self.payload.clone(),
                ..Incoming::default()
            },
        });
        let publish = Command::Publish {
            request: request(3),
            publication,
        };
        let size = body.len();
        let mut writes = vec![Write::PutBody {
            pointer: BODY,
            body,
        }];
        if let Some(copies) = u32::try_from(to.len()).ok().filter(|copies| *copies > 1) {
            let pointer = BODY;
            writes.push(Write::ShareBody { pointer, copies });
        }
        for entity in to.iter().copied() {
            let mut head = Head::empty();
            head.next_number = NUMBER.next();
            head.last_enqueued_ms = now().wall.0;
            head.part_mut(Part::Active).count = 1;
            head.part_mut(Part::Active).bytes = size as u64;
            let row = MessageRow {
                enqueued_ms: now().wall.0,
                ttl_ms: u64::MAX,
                expires_ms: u64::MAX,
                size: u32::try_from(size).unwrap(),
                flags: 0,
                session_hash: 0,
                enqueued_number: 0,
                body: BODY,
            };
            writes.push(Write::PutMessage {
                entity,
                part: Part::Active,
                number: NUMBER,
                row,
            });
            writes.push(Write::PutHead { entity, head });
        }
        self.write(&[publish], writes)
    }

    fn answer(&mut self, result: Routed) -> Result<(), Violation> {
        let output = Output::Published {
            request: request(3),
            result: Ok(result),
        };
        self.ledger.verify_output(&output, self.commit)
    }
}

#[test]
fn a_copy_in_each_bound_queue_is_no_violation() {
    let mut fixture = Fixture::new();
    let body = fixture.payload.clone();
    assert_eq!(fixture.publish(body, &[FIRST, SECOND]), Ok(()));
    assert_eq!(fixture.ledger.report.routed, 2);
    assert_eq!(fixture.answer(Routed::Stored { destinations: 2 }), Ok(()));
}

#[test]
fn a_copy_that_is_missing_or_elsewhere_is_a_violation() {
    for to in [&[FIRST][..], &[FIRST, OTHER], &[FIRST, SECOND, OTHER]] {
        let mut fixture = Fixture::new();
        let body = fixture.payload.clone();
        check(fixture.publish(body, to), "I13");
    }
}

#[test]
fn another_body_is_a_violation() {
    let mut fixture = Fixture::new();
    let mut body = fixture.payload.to_vec();
    body[0] ^= 1;
    let to = [FIRST, SECOND];
    check(fixture.publish(Bytes::from(body), &to), "I12");
}

#[test]
fn an_answer_that_is_not_what_happened_is_a_violation() {
    for wrong in [Routed::Stored { destinations: 1 }, Routed::Unmatched] {
        let mut fixture = Fixture::new();
        let body = fixture.payload.clone();
        fixture.publish(body, &[FIRST, SECOND]).unwrap();
        check(fixture.answer(wrong), "I13");
    }
}

#[test]
fn a_publisher_that_is_told_otherwise_than_the_shard_has_said_is_found() {
    let mut fixture = Fixture::new();
    let body = fixture.payload.clone();
    let id = message::id_of(&body).unwrap();
    fixture.publish(body, &[FIRST, SECOND]).unwrap();
    let accepted = Some(&DeliveryState::Accepted);
    check(fixture.ledger.publish_answered(id, accepted), "I13");
    fixture.answer(Routed::Stored { destinations: 2 }).unwrap();
    let released = Some(&DeliveryState::Released);
    check(fixture.ledger.publish_answered(id, released), "I13");
    assert_eq!(fixture.ledger.publish_answered(id, accepted), Ok(()));
    assert_eq!(fixture.ledger.report.publications, 1);
}
