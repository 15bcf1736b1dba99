//! What is published, and the copies of it: all in one write set, or none.

use broker::{Command, ConnectionId, Incoming, Mono, Now, Overflow, RequestId, Status, Wall};
use bytes::Bytes;
use store::{
    BodyPointer, CommitId, EntityId, EntityRow, EntryKey, Head, Image, Index, MessageRow,
    NamespaceId, Part, SequenceNumber, Write, WriteSet,
};

use super::super::{Ledger, Queue};
use super::fake_broker::check;
use crate::message::{self, MessageId, SendOptions};
use crate::rng::Rng;
use crate::violation::Violation;

const TOPIC: EntityId = EntityId(1);
/// Select everything.
const FIRST: EntityId = EntityId(2);
const SECOND: EntityId = EntityId(3);
const NUMBER: SequenceNumber = SequenceNumber(1);

/// A ledger with a topic in front of it, and a message that is about to be stored.
struct TopicFixture {
    ledger: Ledger,
    image: Image,
    commit: CommitId,
    payload: Bytes,
    id: MessageId,
}

fn queue(path: &'static str, id: EntityId, topic: Option<usize>) -> Queue {
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
        is_topic: topic.is_none(),
        topic,
        dead_letters_failures: true,
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
        used: Mono(0),
        began: Mono(0),
    }
}

fn now() -> Now {
    Now {
        wall: Wall(1_000),
        mono: Mono(1_000),
    }
}

impl TopicFixture {
    fn new() -> Self {
        let queues = vec![
            queue("topic", TOPIC, None),
            queue("first", FIRST, Some(0)),
            queue("second", SECOND, Some(0)),
        ];
        let mut ledger = Ledger::new(queues, false, now());
        let id = ledger.fresh_id(&mut Rng::new(0), 0);
        let payload = message::build(&mut Rng::new(1), id, SendOptions::default(), 10);
        ledger.send_asked(id, 0, payload.clone(), SendOptions::default(), now());
        let mut fixture = Self {
            ledger,
            image: Image::default(),
            commit: CommitId(0),
            payload,
            id,
        };
        let mut writes = Vec::new();
        for (entity, path) in [(TOPIC, "topic"), (FIRST, "first"), (SECOND, "second")] {
            writes.push(Write::PutEntity(EntityRow {
                id: entity,
                namespace: NamespaceId(0),
                path: path.to_owned(),
                definition: Bytes::new(),
            }));
            if entity != TOPIC {
                writes.push(Write::PutEntry {
                    entity,
                    index: Index::Rule,
                    key: EntryKey::new(b"$default".to_vec(), SequenceNumber(0)),
                    value: Bytes::new(),
                });
            }
        }
        fixture.write(&[], writes).unwrap();
        fixture
    }

    fn write(&mut self, told: &[Command], writes: Vec<Write>) -> Result<(), Violation> {
        self.commit = self.commit.next();
        self.ledger.begin_turn(told, now());
        let mut set = WriteSet::default();
        for write in writes {
            let _breach = self.image.apply(&write);
            set.push(write);
        }
        self.ledger
            .verify_writes(&[(self.commit, set)], self.commit)
            .map(drop)
    }

    fn send(&self) -> Command {
        Command::Send {
            request: RequestId {
                connection: ConnectionId(1),
                token: 1,
            },
            entity: TOPIC,
            messages: vec![Incoming {
                payload: self.payload.clone(),
                ..Incoming::default()
            }],
        }
    }

    fn row(&self, first: u64) -> MessageRow {
        MessageRow {
            enqueued_ms: now().wall.0,
            ttl_ms: u64::MAX,
            expires_ms: u64::MAX,
            size: u32::try_from(self.payload.len()).unwrap(),
            flags: 0,
            session_hash: 0,
            enqueued_number: first,
            body: BodyPointer {
                home: TOPIC,
                number: NUMBER,
            },
        }
    }

    fn head(&self, entity: EntityId, count: u64) -> Write {
        let mut head = Head::empty();
        head.next_number = NUMBER.next();
        head.last_enqueued_ms = now().wall.0;
        head.part_mut(Part::Active).count = count;
        head.part_mut(Part::Active).bytes = count * self.payload.len() as u64;
        Write::PutHead { entity, head }
    }

    fn put(&self, entity: EntityId, first: u64) -> Write {
        Write::PutMessage {
            entity,
            part: Part::Active,
            number: NUMBER,
            row: self.row(first),
        }
    }

    /// The message arrives and stays at the topic.
    fn arrive(&self) -> Vec<Write> {
        let body = self.payload.clone();
        let pointer = self.row(0).body;
        vec![
            Write::PutBody { pointer, body },
            self.put(TOPIC, 0),
            self.head(TOPIC, 1),
        ]
    }

    /// It goes on to those.
    fn publish(&self, to: &[EntityId], shares: Option<u32>) -> Vec<Write> {
        let pointer = self.row(0).body;
        let mut writes = vec![
            Write::RemoveMessage {
                entity: TOPIC,
                part: Part::Active,
                number: NUMBER,
            },
            self.head(TOPIC, 0),
        ];
        writes.extend(shares.map(|copies| Write::ShareBody { pointer, copies }));
        for entity in to {
            writes.push(self.put(*entity, NUMBER.0));
            writes.push(self.head(*entity, 1));
        }
        writes
    }

    fn arrived() -> Self {
        let mut fixture = Self::new();
        let (told, writes) = (fixture.send(), fixture.arrive());
        fixture.write(&[told], writes).unwrap();
        fixture
    }
}

#[test]
fn a_message_in_all_subscriptions_that_select_it_is_no_violation() {
    let mut fixture = TopicFixture::arrived();
    let writes = fixture.publish(&[FIRST, SECOND], Some(2));
    assert_eq!(fixture.write(&[], writes), Ok(()));
    let report = fixture.ledger.report;
    assert_eq!((report.published, report.copies), (1, 2));
    let copy = fixture.ledger.books.named(FIRST, NUMBER).unwrap();
    assert_ne!(copy, fixture.id);
    assert_eq!(message::root_of(copy), fixture.id);
}

#[test]
fn a_message_that_one_of_them_did_not_get_is_a_violation() {
    let mut fixture = TopicFixture::arrived();
    let writes = fixture.publish(&[FIRST], None);
    check(fixture.write(&[], writes), "I13");
}

#[test]
fn a_copy_that_comes_later_is_a_violation() {
    let mut fixture = TopicFixture::arrived();
    let mut writes = fixture.publish(&[FIRST, SECOND], Some(2));
    let later = writes.split_off(writes.len() - 2);
    let broken = fixture.write(&[], writes);
    // The body is there for more than there are.
    check(broken, "I9");
    assert!(fixture.write(&[], later).is_err());
}

/// The rules of the second subscription go after the message was accepted.
fn publish_without_rules(copies: &[EntityId], shared: Option<u32>) -> Result<(), &'static str> {
    let mut fixture = TopicFixture::arrived();
    let mut writes = vec![Write::RemoveEntry {
        entity: SECOND,
        index: Index::Rule,
        key: EntryKey::new(b"$default".to_vec(), SequenceNumber(0)),
    }];
    writes.extend(fixture.publish(copies, shared));
    let written = fixture.write(&[], writes);
    written.map_err(|violation| violation.invariant)
}

#[test]
fn copies_by_the_rules_of_the_acceptance_or_of_now_are_no_violation() {
    assert_eq!(publish_without_rules(&[FIRST, SECOND], Some(2)), Ok(()));
    assert_eq!(publish_without_rules(&[FIRST], None), Ok(()));
}

#[test]
fn a_copy_for_somebody_whose_rules_are_gone_instead_of_another_is_a_violation() {
    assert_eq!(publish_without_rules(&[SECOND], None), Err("I13"));
}

#[test]
fn a_body_that_is_shared_by_more_than_there_are_is_a_violation() {
    let mut fixture = TopicFixture::arrived();
    let writes = fixture.publish(&[FIRST, SECOND], Some(3));
    check(fixture.write(&[], writes), "I9");
}

#[test]
fn copies_that_a_crash_takes_are_published_anew() {
    let mut fixture = TopicFixture::arrived();
    let image = fixture.image.clone();
    let writes = fixture.publish(&[FIRST, SECOND], Some(2));
    fixture.write(&[], writes.clone()).unwrap();
    assert_eq!(fixture.ledger.crashed(&image), Ok(()));
    assert_eq!(fixture.write(&[], writes), Ok(()));
    assert_eq!(fixture.ledger.report.published, 2);
}

#[test]
fn a_crash_that_takes_one_copy_and_leaves_another_is_a_violation() {
    let mut fixture = TopicFixture::arrived();
    let writes = fixture.publish(&[FIRST, SECOND], Some(2));
    fixture.write(&[], writes).unwrap();
    let mut image = fixture.image.clone();
    let second = image.messages.keys().find(|key| key.0 == SECOND).copied();
    image.messages.remove(&second.unwrap());
    image.heads.remove(&SECOND);
    image.shares.clear();
    check(fixture.ledger.crashed(&image), "I13");
}
