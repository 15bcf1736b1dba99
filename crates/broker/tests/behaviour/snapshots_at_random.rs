//! Snapshots at random: whatever happens to a namespace, to its snapshots and to those made of it,
//! with restarts and crashes between that lose what was not durable, a restore brings back exactly
//! what there was, the store stays in good order, and in the end nothing is left.

use std::collections::BTreeMap;

use broker::{
    Access, Answer, BrokerSettings, Command, Ensured, FilterDescription, Incoming, LockToken,
    NamespaceAnswer, NamespaceDefinition, NamespaceOrder, Operation, Order, Outcome, Output,
    Priorities, QueueSettings, ReceiveMode, RedrivenMessage, RefusalReport, RuleDescription,
    Subqueue, SubqueueId, SubscriptionSettings, TransactionId, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CommitId, EntityId, NamespaceId, Part};

use crate::world::{World, receiver, request};

const NAME: &str = "a";
/// What messages are sent to.
const PATHS: [&str; 4] = ["q", "sessions", "t", "levels"];

mod loads;

/// The flag of a row whose body belongs to several messages.
const SHARED: u32 = 0b10_0000;

struct Run {
    world: World,
    /// What each snapshot has.
    snapshots: BTreeMap<String, Vec<String>>,
    /// Namespaces that were made of the first one.
    forks: Vec<String>,
    /// Whether what is submitted becomes durable.
    syncs: bool,
    locks: Vec<(SubqueueId, LockToken, Bytes)>,
    /// Those that hold messages which are scheduled at the commit.
    transactions: Vec<TransactionId>,
    sent: u64,
    count: u64,
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            world: World::empty(BrokerSettings::default()),
            snapshots: BTreeMap::new(),
            forks: Vec::new(),
            syncs: true,
            locks: Vec::new(),
            transactions: Vec::new(),
            sent: 0,
            count: 0,
        };
        run.order(NamespaceOrder::Create {
            definition: named(NAME),
            like: None,
        });
        let settings = QueueSettings {
            requires_duplicate_detection: true,
            ..QueueSettings::default()
        };
        let sessions = QueueSettings {
            requires_session: true,
            ..QueueSettings::default()
        };
        let levels = QueueSettings {
            priorities: Some(Priorities {
                highest: 4,
                default: 1,
            }),
            ..QueueSettings::default()
        };
        let subscription = |name: &str, rules| Ensured::Subscription {
            topic: "t".to_owned(),
            name: name.to_owned(),
            settings: Box::new(SubscriptionSettings::default()),
            rules,
        };
        // Its messages have bodies of their own.
        let changing = RuleDescription {
            name: "changing".to_owned(),
            filter: FilterDescription::Sql("1 = 1".to_owned()),
            action: Some("SET x = 1".to_owned()),
            ..RuleDescription::default()
        };
        let batch = Order::ensure(vec![
            queue("q", settings),
            queue("sessions", sessions),
            queue("levels", levels),
            Ensured::Topic {
                path: "t".to_owned(),
                settings: QueueSettings::default(),
            },
            subscription("s", None),
            subscription("other", Some(vec![changing])),
        ]);
        let namespace = run.namespace(NAME);
        run.administer(namespace, batch);
        run
    }

    /// An order that can be carried out. While nothing becomes durable it is not answered.
    fn administer(&mut self, namespace: NamespaceId, order: Order) {
        let said = self.world.turn(Command::Administer {
            request: request(1),
            namespace,
            order: Box::new(order),
        });
        let mut answers = said.into_iter().filter_map(|output| match output {
            Output::Administered { result, .. } => Some(*result),
            _ => None,
        });
        match answers.next() {
            Some(answer) => assert!(answer.is_ok(), "{answer:?}"),
            None => assert!(!self.syncs, "it is answered"),
        }
    }

    fn order(&mut self, order: NamespaceOrder) {
        self.administer(NamespaceId(0), Order::Namespaces(order));
    }

    fn namespace(&self, name: &str) -> NamespaceId {
        let mut all = self.world.shard.broker.namespaces();
        let found = all.find(|change| {
            let definition = change.definition.as_ref();
            definition.is_some_and(|definition| definition.name == name)
        });
        found.expect("it was made").id
    }

    /// One of the namespaces.
    fn any_namespace(&self, choice: u64) -> NamespaceId {
        let index = usize::try_from(choice).unwrap() % (self.forks.len() + 1);
        let name = match index.checked_sub(1) {
            None => NAME.to_owned(),
            Some(fork) => self.forks[fork].clone(),
        };
        self.namespace(&name)
    }

    fn entity(&self, namespace: NamespaceId, path: &str) -> EntityId {
        let mut all = self.world.shard.broker.queues();
        let found = all.find(|queue| queue.namespace == namespace && queue.path == path);
        found.unwrap().id
    }

    /// All that the store has of a namespace's entities, without what only a restore changes.
    fn content(&self, name: &str) -> Vec<String> {
        let namespace = self.namespace(name);
        let all = self.world.shard.broker.queues();
        let of_it = all.filter(|queue| queue.namespace == namespace);
        let paths: BTreeMap<_, _> = of_it.map(|queue| (queue.id, queue.path)).collect();
        self.world.disk.with_current(|image| {
            let mut content = Vec::new();
            for (entity, path) in &paths {
                let (from, to) = (Part::Active, Part::TransferDeferred);
                let (first, last) = (store::SequenceNumber(0), store::SequenceNumber::MAX);
                let rows = image
                    .messages
                    .range((*entity, from, first)..=(*entity, to, last));
                for ((_, part, number), row) in rows {
                    let body = &image.bodies[&(row.body.home, row.body.number)];
                    let count = image.delivery_counts.get(&(*entity, *number));
                    let patch = image.patches.get(&(*entity, *number));
                    let row = store::MessageRow {
                        body: store::BodyPointer {
                            home: EntityId(0),
                            number: first,
                        },
                        // What is loaded shares no body.
                        flags: row.flags & !SHARED,
                        ..*row
                    };
                    content.push(format!(
                        "{path} {part:?} {number} {row:?} {body:?} {count:?} {patch:?}"
                    ));
                }
                let entries = image.entries.iter().filter(|((of, ..), _)| of == entity);
                // The place of a scheduled message's body is in its entry.
                let keys = entries.map(|((_, index, key), _)| format!("{path} {index:?} {key:?}"));
                content.extend(keys);
            }
            content
        })
    }

    fn step(&mut self, kind: u8, choice: u64) {
        match kind % 20 {
            0..=4 => self.send(choice),
            5..=7 => self.receive(choice),
            8 | 9 => self.settle(choice),
            10 => self.take(),
            11 => self.restore(choice),
            12 => self.drop_one(choice),
            13 => self.fork(choice),
            14 => self.end_fork(choice),
            15 => self.schedule_in_transaction(choice),
            16 => self.commit(choice),
            17 | 18 => self.load(choice),
            _ if choice.is_multiple_of(3) => self.crash(),
            _ if choice % 3 == 1 => self.stop_syncing(),
            _ => self.pass_time(choice % 20_000),
        }
        self.world.audit();
    }

    /// From now on nothing becomes durable, until the next crash.
    fn stop_syncing(&mut self) {
        self.world.disk.set_automatic(false);
        self.syncs = false;
    }

    /// The process ends, and what was not durable is lost, or all but the last of it is not.
    fn crash(&mut self) {
        let disk = self.world.disk.clone();
        if self.sent.is_multiple_of(2) {
            let CommitId(submitted) = disk.submitted();
            disk.sync_to(CommitId(submitted.saturating_sub(1)));
        }
        self.locks.clear();
        self.transactions.clear();
        self.world.restart();
        disk.set_automatic(true);
        self.syncs = true;
        let all = self.world.shard.broker.namespaces();
        let forks = all.filter_map(|change| Some(change.definition?.name.clone()));
        self.forks = forks.filter(|name| name != NAME).collect();
        let listed = self.listed();
        // Those that were removed and are there again cannot be checked.
        self.snapshots.retain(|name, _| listed.contains(name));
    }

    /// The names of the snapshots.
    fn listed(&mut self) -> Vec<String> {
        let order = NamespaceOrder::ListSnapshots(NAME.to_owned());
        let said = self.world.turn(Command::Administer {
            request: request(4),
            namespace: NamespaceId(0),
            order: Box::new(Order::Namespaces(order)),
        });
        let mut found = said.into_iter().filter_map(|output| match output {
            Output::Administered { result, .. } => Some(*result),
            _ => None,
        });
        match found.next() {
            Some(Ok(Answer::Namespaces(NamespaceAnswer::Snapshots(all)))) => {
                all.into_iter().map(|snapshot| snapshot.name).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, choice: u64) {
        let namespace = self.any_namespace(choice);
        let path = PATHS[usize::try_from(choice / 8 % 4).unwrap()];
        let entity = self.entity(namespace, path);
        self.sent += 1;
        let scheduled = (choice % 5 == 1).then(|| {
            let Wall(now) = self.world.now().wall;
            Wall(now + choice / 100 % 10_000)
        });
        let payload = self.payload();
        self.world.turn(Command::Send {
            request: request(2),
            entity,
            messages: vec![Incoming {
                payload,
                message_id: Some(Bytes::from((choice / 64 % 40).to_string())),
                session_id: (path == "sessions").then(|| Bytes::from_static(b"one")),
                priority: (!choice.is_multiple_of(3))
                    .then(|| u8::try_from(choice / 64 % 6).unwrap()),
                ttl_ms: (choice % 7 == 2).then_some(8_000),
                scheduled,
                ..Incoming::default()
            }],
        });
    }

    /// That of the message which is sent last.
    fn payload(&self) -> Bytes {
        let mut payload = b"\x00\x53\x75\xa0\x08".to_vec();
        payload.extend_from_slice(&self.sent.to_be_bytes());
        Bytes::from(payload)
    }

    fn schedule_in_transaction(&mut self, choice: u64) {
        let namespace = self.any_namespace(choice);
        let path = PATHS[usize::try_from(choice / 8 % 4).unwrap()];
        let entity = self.entity(namespace, path);
        let said = self.world.turn(Command::Declare {
            request: request(5),
            namespace,
            coordinator: 0,
        });
        let transaction = said.into_iter().find_map(|output| match output {
            Output::Declared { result, .. } => result.ok(),
            _ => None,
        });
        let Some(transaction) = transaction else {
            assert!(!self.syncs, "there is room for one");
            return;
        };
        self.sent += 1;
        let Wall(now) = self.world.now().wall;
        let message = Incoming {
            payload: self.payload(),
            session_id: (path == "sessions").then(|| Bytes::from_static(b"one")),
            scheduled: Some(Wall(now + choice / 100 % 10_000)),
            ..Incoming::default()
        };
        self.world.turn(Command::Enlist {
            request: request(6),
            transaction,
            operation: Box::new(Operation::Send {
                entity,
                messages: vec![message; 2],
            }),
            scope: None,
            refusal: RefusalReport::Reported,
        });
        self.transactions.push(transaction);
    }

    fn commit(&mut self, choice: u64) {
        let index = usize::try_from(choice).unwrap();
        let Some(index) = index.checked_rem(self.transactions.len()) else {
            return;
        };
        self.world.turn(Command::Discharge {
            request: request(7),
            transaction: self.transactions.swap_remove(index),
            fail: false,
        });
        self.answer();
    }

    fn receive(&mut self, choice: u64) {
        let namespace = self.any_namespace(choice);
        let paths = ["q", "t/Subscriptions/s", "t/Subscriptions/other", "levels"];
        let path = paths[usize::try_from(choice / 8 % 4).unwrap()];
        let subqueue = SubqueueId {
            entity: self.entity(namespace, path),
            subqueue: [Subqueue::Main, Subqueue::DeadLetter][usize::from(choice / 16 % 4 == 1)],
        };
        self.count += 1;
        let receiver = receiver(1_000 + self.count);
        let mode = ReceiveMode::PeekLock;
        let mut said = self.world.turn(Command::Attach {
            receiver,
            subqueue,
            access: Access::Consume(mode),
            selector: None,
        });
        said.extend(self.world.turn(Command::Credit {
            receiver,
            limit: 3,
            drain: false,
        }));
        said.extend(self.answer());
        said.extend(self.world.turn(Command::Detach { receiver }));
        for output in said {
            if let Output::Deliver { delivery, .. } = output {
                let payload = delivery.message.payload.clone();
                self.locks.push((subqueue, delivery.token, payload));
            }
        }
    }

    fn settle(&mut self, choice: u64) {
        let Some(index) = usize::try_from(choice)
            .unwrap()
            .checked_rem(self.locks.len())
        else {
            return;
        };
        let (subqueue, token, payload) = self.locks.swap_remove(index);
        if subqueue.subqueue == Subqueue::DeadLetter && !choice.is_multiple_of(3) {
            self.world.turn(Command::Redrive {
                request: request(3),
                subqueue,
                token,
                message: RedrivenMessage::Unchanged(payload),
            });
            return;
        }
        let outcome = match choice / 16 % 4 {
            0 | 1 => Outcome::Complete,
            2 => Outcome::Defer {
                changes: Vec::new(),
            },
            _ => Outcome::DeadLetter {
                changes: Vec::new(),
            },
        };
        self.world.turn(Command::Settle {
            request: Some(request(3)),
            subqueue,
            session: None,
            token,
            outcome,
        });
    }

    fn take(&mut self) {
        if self.snapshots.len() >= 4 {
            return;
        }
        self.count += 1;
        let snapshot = format!("s{}", self.count);
        let content = self.content(NAME);
        self.order(NamespaceOrder::TakeSnapshot {
            name: NAME.to_owned(),
            snapshot: snapshot.clone(),
        });
        assert_eq!(self.content(NAME), content, "it changes nothing");
        self.snapshots.insert(snapshot, content);
    }

    fn any_snapshot(&self, choice: u64) -> Option<String> {
        let index = usize::try_from(choice).unwrap();
        let index = index.checked_rem(self.snapshots.len())?;
        self.snapshots.keys().nth(index).cloned()
    }

    fn restore(&mut self, choice: u64) {
        let Some(snapshot) = self.any_snapshot(choice) else {
            return;
        };
        self.order(NamespaceOrder::Restore {
            name: NAME.to_owned(),
            snapshot: snapshot.clone(),
        });
        assert_eq!(self.content(NAME), self.snapshots[&snapshot]);
    }

    fn drop_one(&mut self, choice: u64) {
        if let Some(snapshot) = self.any_snapshot(choice) {
            self.snapshots.remove(&snapshot);
            self.order(NamespaceOrder::RemoveSnapshot {
                name: NAME.to_owned(),
                snapshot,
            });
        }
    }

    fn fork(&mut self, choice: u64) {
        if self.forks.len() >= 2 {
            return;
        }
        self.count += 1;
        let fork = format!("f{}", self.count);
        let snapshot = self
            .any_snapshot(choice)
            .filter(|_| !choice.is_multiple_of(3));
        let content = match &snapshot {
            Some(snapshot) => self.snapshots[snapshot].clone(),
            None => self.content(NAME),
        };
        self.order(NamespaceOrder::Fork {
            name: NAME.to_owned(),
            snapshot,
            definition: named(&fork),
        });
        assert_eq!(self.content(&fork), content);
        self.forks.push(fork);
    }

    fn end_fork(&mut self, choice: u64) {
        let Some(index) = usize::try_from(choice)
            .unwrap()
            .checked_rem(self.forks.len())
        else {
            return;
        };
        let fork = self.forks.swap_remove(index);
        self.order(NamespaceOrder::Remove(fork));
    }

    /// The reads that wait are answered.
    fn answer(&mut self) -> Vec<Output> {
        let mut said = Vec::new();
        while let Some(command) = self.world.answer(0) {
            said.extend(self.world.turn(command));
        }
        said
    }

    fn pass_time(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.world.turn_with(vec![]);
            self.answer();
        }
    }

    /// Everything goes, and nothing is left.
    fn finish(mut self) {
        if !self.syncs {
            self.crash();
        }
        for fork in std::mem::take(&mut self.forks) {
            self.order(NamespaceOrder::Remove(fork));
        }
        self.order(NamespaceOrder::Remove(NAME.to_owned()));
        for restarts in [true, false] {
            for _ in 0..60 {
                self.answer();
                self.pass_time(1_000);
                self.world.turn_with(vec![]);
            }
            self.world.audit();
            if restarts {
                self.world.restart();
            }
        }
        self.world.disk.with_current(|image| {
            let left: Vec<_> = image.entities.values().map(|row| &row.path).collect();
            assert_eq!(left, [""; 0]);
            assert_eq!((image.messages.len(), image.bodies.len()), (0, 0));
            assert_eq!((image.entries.len(), image.shares.len()), (0, 0));
        });
    }
}

fn named(name: &str) -> Box<NamespaceDefinition> {
    Box::new(NamespaceDefinition {
        name: name.to_owned(),
        ..NamespaceDefinition::default()
    })
}

fn queue(path: &str, settings: QueueSettings) -> Ensured {
    Ensured::Queue {
        path: path.to_owned(),
        settings,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_restore_brings_back_what_there_was_and_nothing_is_left_in_the_end(
        steps in prop::collection::vec((any::<u8>(), any::<u64>()), 1..120),
    ) {
        let mut run = Run::new();
        for (kind, choice) in steps {
            run.step(kind, choice);
        }
        run.finish();
    }
}
