//! Script: a world in which nothing is left to chance: each step says what a single client asks,
//! and is over when the broker has nothing left to do. The world may end after any of its commits.

use broker::{
    Access, Command, ConnectionId, Incoming, LockToken, Operation, ReceiveMode, ReceiverId,
    RefusalReport, RequestId, SessionFilter, Subqueue, SubqueueId, TransactionId, Wall,
};
use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use super::{Plan, World, queues};
use crate::faults::Faults;
use crate::ledger::{Ask, Ledger};
use crate::message::{self, MessageId, SendOptions};
use crate::session::Session;
use crate::storage::StorageKind;
use crate::violation::Violation;

mod answers;
mod asks;

pub(in crate::world) use asks::incoming;
use asks::{credit, outcome};

/// The only client.
const CONNECTION: ConnectionId = ConnectionId(1 << 32);

/// How a world ends with one of its commits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// The commit is lost.
    Lost,
    /// It is durable, and no client was told.
    Unannounced,
    /// It is durable, and everything it held back was said.
    Announced,
}

/// Why a script does not go on.
pub(super) enum Stop {
    Ended,
    Violated(Violation),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Violated(violation)
    }
}

/// A message that the client was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub entity: EntityId,
    pub subqueue: Subqueue,
    pub token: LockToken,
    pub id: MessageId,
}

/// A request of the client's that has not been answered.
enum Asked {
    Send(Vec<MessageId>),
    Settle(Given, Ask),
    Cancel(usize, Vec<(SequenceNumber, MessageId)>),
}

/// A world, and what the client knows.
pub(super) struct Script {
    pub world: World,
    ending: Option<(u64, Ending)>,
    pub commits: u64,
    next: u64,
    links: u32,
    asked: Vec<(RequestId, Asked)>,
    given: Vec<Given>,
    transaction: Option<TransactionId>,
    /// It is to be rolled back.
    fails: bool,
}

impl Script {
    /// A world at its beginning, which ends with that commit of the script.
    pub(super) fn new(ending: Option<(u64, Ending)>) -> Result<Self, Violation> {
        let plan = Plan {
            seed: 1,
            operations: 0,
            faults: Faults::NONE,
            storage: StorageKind::Memory,
        };
        let mut world = World::new(plan);
        world
            .namespaces
            .iter_mut()
            .for_each(|it| it.clients.clear());
        world.check_start()?;
        Ok(Self {
            world,
            ending,
            commits: 0,
            next: 0,
            links: 0,
            asked: Vec::new(),
            given: Vec::new(),
            transaction: None,
            fails: false,
        })
    }

    /// The end: after a crash or without one, everything can be taken and nothing is missing.
    pub(super) fn finish(mut self) -> Result<(), Violation> {
        if let Some((_, ending)) = self.ending {
            self.end(ending)?;
        }
        self.world.drain()
    }

    fn end(&mut self, ending: Ending) -> Result<(), Violation> {
        if ending != Ending::Lost {
            self.world.disk.sync_all();
        }
        if ending == Ending::Announced {
            self.world.turn()?;
            self.handle_outputs()?;
        }
        for (_, asked) in std::mem::take(&mut self.asked) {
            let ledger = self.ledger();
            match asked {
                Asked::Send(ids) => ids.into_iter().for_each(|id| ledger.send_lost(id)),
                Asked::Settle(given, ask) => ledger.answer_lost(given.id, ask),
                Asked::Cancel(_, messages) => ledger.cancel_lost(&messages),
            }
        }
        self.world.restart()
    }

    /// Asks something and turns the broker until it has nothing left to do.
    pub(super) fn play(&mut self, mut commands: Vec<Command>) -> Result<(), Stop> {
        self.world.server.inbox.append(0, &mut commands);
        loop {
            let before = self.world.disk.submitted();
            self.world.turn()?;
            self.handle_outputs()?;
            let new = self.world.disk.submitted().0 - before.0;
            self.commits += new;
            if new > 0 && self.ending.is_some_and(|(at, _)| at == self.commits) {
                return Err(Stop::Ended);
            }
            self.world.disk.sync_all();
            self.world.server.answer_read(&mut self.world.rng);
            let server = &self.world.server;
            let deadline = server.shard.deadline().unwrap_or_default();
            let now = self.world.now;
            let due = deadline.mono.is_some_and(|at| at <= now.mono)
                || deadline.wall.is_some_and(|at| at <= now.wall);
            let said = self.world.disk.submitted() == server.shard.released();
            if !due && said && server.inbox.is_empty() && server.reads.is_empty() {
                return Ok(());
            }
        }
    }

    /// Time passes, a second at a time.
    pub(super) fn wait(&mut self, seconds: u64) -> Result<(), Stop> {
        for _ in 0..seconds {
            self.world.advance(1_000);
            self.play(Vec::new())?;
        }
        Ok(())
    }

    /// The ledger of the namespace that the story is about.
    pub(super) fn ledger(&mut self) -> &mut Ledger {
        &mut self.world.namespaces[0].ledger
    }

    pub(super) fn request(&mut self) -> RequestId {
        self.next += 1;
        RequestId {
            connection: CONNECTION,
            token: self.next,
        }
    }

    /// The entity at a path that is there.
    pub(super) fn entity(&mut self, path: &str) -> EntityId {
        let live = self.ledger().live(path);
        live.expect("a script names entities that are there")
    }

    /// Sends messages to a path, all at once, and returns their names.
    pub(super) fn send(
        &mut self,
        path: &str,
        sends: &[SendOptions],
    ) -> Result<Vec<MessageId>, Stop> {
        let (ids, entity, messages) = self.write(path, sends, None);
        let request = self.request();
        self.asked.push((request, Asked::Send(ids.clone())));
        let send = Command::Send {
            request,
            entity,
            messages,
        };
        self.play(vec![send])?;
        Ok(ids)
    }

    /// Sends messages of a session.
    pub(super) fn send_within(
        &mut self,
        path: &str,
        session: Session,
        sends: &[SendOptions],
    ) -> Result<(), Stop> {
        let (ids, entity, messages) = self.write(path, sends, Some(session));
        let request = self.request();
        self.asked.push((request, Asked::Send(ids)));
        let send = Command::Send {
            request,
            entity,
            messages,
        };
        self.play(vec![send])
    }

    fn write(
        &mut self,
        path: &str,
        sends: &[SendOptions],
        session: Option<Session>,
    ) -> (Vec<MessageId>, EntityId, Vec<Incoming>) {
        let World {
            namespaces,
            rng,
            now,
            ..
        } = &mut self.world;
        let ledger = &mut namespaces[0].ledger;
        let queue = ledger.index_of(path);
        let queue = queue.expect("a script names entities that are there");
        let mut ids = Vec::new();
        let mut messages = Vec::new();
        for options in sends {
            let id = ledger.next_id(session);
            let payload = message::build(rng, id, *options, 20);
            ledger.send_asked(id, queue, payload.clone(), *options, *now);
            messages.push(incoming(id, payload, *options));
            ids.push(id);
        }
        (ids, ledger.queues[queue].id, messages)
    }

    /// Takes up to `count` messages from a path, and leaves.
    pub(super) fn take(
        &mut self,
        path: &str,
        subqueue: Subqueue,
        count: u32,
        mode: ReceiveMode,
    ) -> Result<Vec<Given>, Stop> {
        let receiver = self.receiver();
        let entity = self.entity(path);
        let attach = Command::Attach {
            receiver,
            subqueue: SubqueueId { entity, subqueue },
            access: Access::Consume(mode),
            selector: None,
        };
        self.take_by(receiver, attach, count)
    }

    /// Takes a session, with up to `count` messages of it, and stays.
    pub(super) fn take_session(
        &mut self,
        path: &str,
        session: Session,
        count: u32,
    ) -> Result<(ReceiverId, Vec<Given>), Stop> {
        let receiver = self.receiver();
        let entity = self.entity(path);
        let accept = Command::AcceptSession {
            receiver,
            entity,
            mode: ReceiveMode::PeekLock,
            session: SessionFilter::ById(Bytes::from(session.name())),
        };
        self.play(vec![accept, credit(receiver, count)])?;
        Ok((receiver, std::mem::take(&mut self.given)))
    }

    fn take_by(
        &mut self,
        receiver: ReceiverId,
        attach: Command,
        count: u32,
    ) -> Result<Vec<Given>, Stop> {
        self.play(vec![attach, credit(receiver, count)])?;
        self.play(vec![Command::Detach { receiver }])?;
        Ok(std::mem::take(&mut self.given))
    }

    fn receiver(&mut self) -> ReceiverId {
        self.links += 1;
        ReceiverId {
            connection: CONNECTION,
            link: self.links,
        }
    }

    /// Settles one message.
    pub(super) fn settle(&mut self, given: Given, ask: Ask) -> Result<(), Stop> {
        let request = self.request();
        self.ledger().asked(given.id, ask);
        self.asked.push((request, Asked::Settle(given, ask)));
        self.play(vec![Command::Settle {
            request: Some(request),
            session: None,
            subqueue: SubqueueId {
                entity: given.entity,
                subqueue: given.subqueue,
            },
            token: given.token,
            outcome: outcome(ask),
        }])
    }

    /// Takes scheduled messages back.
    pub(super) fn cancel(&mut self, path: &str, ids: &[MessageId]) -> Result<(), Stop> {
        let entity = self.entity(path);
        let places = ids.iter().filter_map(|id| self.ledger().books.place(*id));
        let numbers: Vec<_> = places.map(|place| place.number).collect();
        let messages: Vec<_> = numbers.iter().copied().zip(ids.iter().copied()).collect();
        self.ledger().cancel_asked(&messages);
        let request = self.request();
        let queue = queues::index_of(path);
        self.asked.push((request, Asked::Cancel(queue, messages)));
        self.play(vec![Command::CancelScheduled {
            request,
            entity,
            numbers,
        }])
    }

    /// Begins a transaction.
    pub(super) fn declare(&mut self) -> Result<(), Stop> {
        let request = self.request();
        self.play(vec![Command::Declare {
            request,
            namespace: store::NamespaceId(0),
            coordinator: 0,
        }])
    }

    /// Sends within the transaction.
    pub(super) fn enlist_send(&mut self, path: &str, sends: &[SendOptions]) -> Result<(), Stop> {
        let (ids, entity, messages) = self.write(path, sends, None);
        let operation = Operation::Send { entity, messages };
        self.enlist(operation, Asked::Send(ids))
    }

    /// Settles within the transaction.
    pub(super) fn enlist_settle(&mut self, given: Given, ask: Ask) -> Result<(), Stop> {
        self.ledger().asked(given.id, ask);
        let operation = Operation::Settle {
            subqueue: SubqueueId {
                entity: given.entity,
                subqueue: given.subqueue,
            },
            session: None,
            tokens: vec![given.token],
            outcome: outcome(ask),
            on_rollback: None,
        };
        self.enlist(operation, Asked::Settle(given, ask))
    }

    fn enlist(&mut self, operation: Operation, asked: Asked) -> Result<(), Stop> {
        let request = self.request();
        self.asked.push((request, asked));
        let transaction = self.transaction.expect("it was declared");
        self.play(vec![Command::Enlist {
            request,
            transaction,
            operation: Box::new(operation),
            scope: None,
            refusal: RefusalReport::Reported,
        }])
    }

    /// Ends the transaction.
    pub(super) fn discharge(&mut self, fail: bool) -> Result<(), Stop> {
        let request = self.request();
        self.fails = fail;
        let transaction = self.transaction.expect("it was declared");
        self.play(vec![Command::Discharge {
            request,
            transaction,
            fail,
        }])
    }

    /// Deletes the oldest messages of a queue.
    pub(super) fn delete(&mut self, path: &str, count: usize) -> Result<(), Stop> {
        let request = self.request();
        let entity = self.entity(path);
        let enqueued_before = Wall(self.world.now.wall.0 + 1);
        self.play(vec![Command::DeleteMessages {
            request,
            subqueue: SubqueueId {
                entity,
                subqueue: Subqueue::Main,
            },
            session: None,
            enqueued_before,
            count,
        }])
    }
}
