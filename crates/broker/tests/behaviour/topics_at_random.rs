//! Topics at random: with crashes at any commit, late reads and small windows, a message is in all
//! subscriptions that select it or in none, and what is left always points to a body.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Access, BrokerSettings, Command, Ensured, FilterDescription, Incoming, LockToken, Outcome,
    Output, QueueSettings, ReceiveMode, RuleDescription, RuleSnapshot, Subqueue, SubqueueId,
    SubscriptionSettings,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use store::{CommitId, EntityId, Image, Part};

use crate::world::{World, ensure, receiver, remove, request};

/// Selects everything.
const ALL: &str = "t/Subscriptions/all";
/// Selects what has `n > 1`.
const SOME: &str = "t/Subscriptions/some";
/// Selects what has `n = 0`, twice, and changes one of its copies.
const CHANGED: &str = "t/Subscriptions/changed";
/// Selects everything, which goes on to a queue.
const FORWARDED: &str = "t/Subscriptions/forwarded";
/// Selects what has `n = 3`, once it has a number.
const LATE: &str = "t/Subscriptions/late";
const QUEUE: &str = "q";
/// Where receivers are.
const PLACES: [&str; 4] = [ALL, SOME, CHANGED, QUEUE];

#[derive(Clone, Debug)]
enum Op {
    /// A count of messages, with what one of the generations of rules so far says of them, if any.
    Publish(usize, Option<usize>),
    Credit(usize, u32),
    Settle(usize, bool),
    /// The subscription that selects everything goes, and comes again.
    Replace,
    Answer(usize),
    Wait(u64),
    Sync(u64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..5_usize, any::<Option<usize>>())
            .prop_map(|(count, rules)| Op::Publish(count, rules)),
        6 => (0..PLACES.len(), 1..5_u32).prop_map(|(place, more)| Op::Credit(place, more)),
        10 => (any::<usize>(), any::<bool>()).prop_map(|(which, done)| Op::Settle(which, done)),
        1 => Just(Op::Replace),
        10 => any::<usize>().prop_map(Op::Answer),
        3 => (1..1_500_u64).prop_map(Op::Wait),
        8 => (1..6_u64).prop_map(Op::Sync),
        1 => Just(Op::Crash),
    ]
}

/// What a message selects by: its number modulo four.
fn selecting(id: u64) -> Vec<(&'static str, usize)> {
    let mut selecting = vec![(ALL, 1), (FORWARDED, 1)];
    match id % 4 {
        0 => selecting.push((CHANGED, 2)),
        2 => selecting.push((SOME, 1)),
        3 => selecting.extend([(SOME, 1), (LATE, 1)]),
        _ => {}
    }
    selecting
}

struct Topics {
    world: World,
    next: u64,
    /// Messages whose sends were answered.
    accepted: BTreeSet<u64>,
    asked: BTreeMap<u64, Vec<u64>>,
    /// Copies that may be gone: a client was told to complete one, or their subscription went.
    maybe_gone: BTreeSet<(u64, &'static str)>,
    given: Vec<(&'static str, LockToken, u64)>,
    limits: BTreeMap<u64, u32>,
    token: u64,
    /// The rules as they were at times since the last crash.
    rules: Vec<RuleSnapshot>,
}

impl Topics {
    fn new(settings: BrokerSettings) -> Self {
        let world = World::empty(settings);
        let mut topics = Self {
            world,
            next: 1,
            accepted: BTreeSet::new(),
            asked: BTreeMap::new(),
            maybe_gone: BTreeSet::new(),
            given: Vec::new(),
            limits: BTreeMap::new(),
            token: 1,
            rules: Vec::new(),
        };
        topics.create();
        topics.world.disk.set_automatic(false);
        topics.attach();
        topics
    }

    fn create(&mut self) {
        let settings = QueueSettings {
            lock_duration: 1_000,
            max_delivery_count: 1_000,
            ..QueueSettings::default()
        };
        self.world.turn(ensure(Ensured::Queue {
            path: QUEUE.to_owned(),
            settings: settings.clone(),
        }));
        self.world.turn(ensure(Ensured::Topic {
            path: "t".to_owned(),
            settings,
        }));
        let sql = |name: &str, text: &str, action: Option<&str>| RuleDescription {
            name: name.to_owned(),
            filter: FilterDescription::Sql(text.to_owned()),
            action: action.map(str::to_owned),
            ..RuleDescription::default()
        };
        let changed = vec![
            sql("plain", "n = 0", None),
            sql("acting", "n < 1", Some("SET seen = TRUE")),
        ];
        self.subscribe("all", None, None);
        self.subscribe("some", Some(vec![sql("some", "n > 1", None)]), None);
        self.subscribe("changed", Some(changed), None);
        let late = sql("late", "n = 3 AND sys.SequenceNumber > 0", None);
        self.subscribe("late", Some(vec![late]), None);
        self.subscribe("forwarded", None, Some(QUEUE));
    }

    fn subscribe(&mut self, name: &str, rules: Option<Vec<RuleDescription>>, to: Option<&str>) {
        let queue = QueueSettings {
            lock_duration: 1_000,
            max_delivery_count: 1_000,
            forward_to: to.map(str::to_owned),
            ..QueueSettings::default()
        };
        let settings = SubscriptionSettings {
            queue,
            ..SubscriptionSettings::default()
        };
        self.world.turn(ensure(Ensured::Subscription {
            topic: "t".to_owned(),
            name: name.to_owned(),
            settings: Box::new(settings),
            rules,
        }));
    }

    fn entity(&self, path: &str) -> EntityId {
        let mut queues = self.world.shard.broker.queues();
        let found = queues.find(|queue| queue.path == path);
        found.map_or(EntityId(u64::MAX), |queue| queue.id)
    }

    fn attach(&mut self) {
        self.limits.clear();
        for (index, place) in (0..).zip(PLACES) {
            let entity = self.entity(place);
            self.turn(Command::Attach {
                receiver: receiver(index),
                subqueue: SubqueueId {
                    entity,
                    subqueue: Subqueue::Main,
                },
                access: Access::Consume(ReceiveMode::PeekLock),
                selector: None,
            });
        }
    }

    fn turn(&mut self, command: Command) {
        let said = self.world.turn(command);
        self.hear(said);
    }

    fn hear(&mut self, said: Vec<Output>) {
        for output in said {
            match output {
                Output::Sent {
                    request, result, ..
                } => {
                    let sent = self.asked.remove(&request.token).unwrap_or_default();
                    result.expect("there is room");
                    self.accepted.extend(sent);
                }
                Output::Deliver { receiver, delivery } => {
                    let place = usize::try_from(receiver.connection.0).unwrap();
                    let id = id_of(&delivery.message.payload);
                    self.given.push((PLACES[place], delivery.token, id));
                }
                _ => {}
            }
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Publish(count, rules) => self.publish(*count, *rules),
            Op::Credit(place, more) => {
                let index = *place as u64;
                let limit = self.limits.entry(index).or_default();
                *limit += more;
                let command = Command::Credit {
                    receiver: receiver(index),
                    limit: *limit,
                    drain: false,
                };
                self.turn(command);
            }
            Op::Settle(which, done) => self.settle(*which, *done),
            Op::Replace => self.replace(),
            Op::Answer(which) => {
                if let Some(command) = self.world.answer(*which) {
                    self.turn(command);
                }
            }
            Op::Wait(ms) => self.wait(*ms),
            Op::Sync(commits) => {
                let durable = self.world.disk.durable();
                self.world.disk.sync_to(CommitId(durable.0 + commits));
                self.turn(Command::Tick);
            }
            Op::Crash => {
                self.world.restart();
                self.given.clear();
                self.asked.clear();
                self.rules.clear();
                self.world.disk.with_current(|image| self.check(image));
                // Its removal may be durable, and its return not.
                self.subscribe("all", None, None);
                self.attach();
            }
        }
    }

    fn publish(&mut self, count: usize, rules: Option<usize>) {
        let published = self.world.shard.broker.rules();
        self.rules.extend(published.map(|(_, rules)| rules));
        let rules = rules.map(|which| self.rules[which % self.rules.len()].clone());
        let ids: Vec<u64> = (self.next..).take(count).collect();
        self.next += count as u64;
        self.token += 1;
        self.asked.insert(self.token, ids.clone());
        let (entity, request) = (self.entity("t"), request(self.token));
        let messages = ids.into_iter().map(|id| Incoming {
            payload: payload(id),
            distribution: rules
                .as_ref()
                .and_then(|rules| rules.distribute(&payload(id), &mut 0).map(Box::new)),
            ..Incoming::default()
        });
        let messages = messages.collect();
        self.turn(Command::Send {
            request,
            entity,
            messages,
        });
    }

    fn settle(&mut self, which: usize, done: bool) {
        let Some(index) = which.checked_rem(self.given.len()) else {
            return;
        };
        let (place, token, id) = self.given.swap_remove(index);
        let outcome = if done {
            let copy_of = if place == QUEUE { FORWARDED } else { place };
            self.maybe_gone.insert((id, copy_of));
            Outcome::Complete
        } else {
            Outcome::abandon(Vec::new())
        };
        let entity = self.entity(place);
        self.turn(Command::Settle {
            request: None,
            session: None,
            subqueue: SubqueueId {
                entity,
                subqueue: Subqueue::Main,
            },
            token,
            outcome,
        });
    }

    fn replace(&mut self) {
        self.maybe_gone.extend((1..self.next).map(|id| (id, ALL)));
        self.turn(remove(ALL));
        self.subscribe("all", None, None);
        let entity = self.entity(ALL);
        self.limits.remove(&0);
        self.turn(Command::Attach {
            receiver: receiver(0),
            subqueue: SubqueueId {
                entity,
                subqueue: Subqueue::Main,
            },
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
    }

    fn wait(&mut self, ms: u64) {
        let to = self.world.mono + ms;
        while self.world.step_to(to) {
            self.turn(Command::Tick);
        }
    }

    /// Every message is in all subscriptions that select it, or in none.
    fn check(&self, image: &Image) {
        assert_eq!(image.audit(), vec![]);
        let places = copies(image);
        for id in 1..self.next {
            let copies = |path: &str| places.get(&(id, path)).copied().unwrap_or(0);
            let waits = copies("t") > 0;
            let on_its_way = |path: &'static str| {
                let forwarded = if path == FORWARDED { copies(QUEUE) } else { 0 };
                copies(path) + forwarded
            };
            let selecting = selecting(id);
            let any = selecting.iter().any(|(path, _)| on_its_way(path) > 0);
            assert!(!(waits && any), "message {id} is at its topic and beyond");
            let there = any || self.accepted.contains(&id);
            if waits || !there {
                continue;
            }
            for (path, wanted) in selecting {
                let found = on_its_way(path);
                let gone = self.maybe_gone.contains(&(id, path));
                assert!(
                    found == wanted || gone && found < wanted,
                    "message {id} has {found} copies of {wanted} in {path}"
                );
            }
        }
    }

    /// All reads are answered and everything is durable.
    fn finish(mut self) {
        for _ in 0..200 {
            self.world.disk.sync_all();
            self.turn(Command::Tick);
            while let Some(command) = self.world.answer(0) {
                self.turn(command);
            }
            self.wait(1_000);
        }
        self.world.disk.with_current(|image| {
            self.check(image);
            let waiting = copies(image).into_keys().filter(|(_, path)| *path == "t");
            assert_eq!(waiting.count(), 0, "nothing stays at the topic");
            let deleted = image.entities.values().filter(|row| row.path == ALL);
            assert_eq!(deleted.count(), 1, "what was deleted is gone");
        });
        assert_eq!(self.world.disk.violations(), vec![]);
    }
}

/// How many copies of each message there are where.
fn copies(image: &Image) -> BTreeMap<(u64, &'static str), usize> {
    let known = [ALL, SOME, CHANGED, LATE, FORWARDED, QUEUE, "t"];
    let mut copies = BTreeMap::new();
    for ((entity, part, _), row) in &image.messages {
        assert_eq!(*part, Part::Active);
        let definition = &image.entities[entity];
        // What is left of a deleted subscription belongs to no entity of the model.
        if String::from_utf8_lossy(&definition.definition).contains("\"grave\"") {
            continue;
        }
        let body = &image.bodies[&(row.body.home, row.body.number)];
        let path = known.into_iter().find(|path| *path == definition.path);
        *copies.entry((id_of(body), path.unwrap())).or_default() += 1;
    }
    copies
}

/// An application property `n` and six digits of text.
fn payload(id: u64) -> Bytes {
    let mut out = BytesMut::new();
    let n = amqp::Value::Long(i64::try_from(id % 4).unwrap());
    amqp::message::encode_map_section(&mut out, 0x74, &[(amqp::Value::from("n"), n)]);
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, format!("{id:06}").as_bytes());
    out.freeze()
}

fn id_of(payload: &Bytes) -> u64 {
    let text = &payload[payload.len() - 6..];
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_message_is_in_all_subscriptions_that_select_it_or_in_none(
        ops in prop::collection::vec(op(), 1..120),
        window in 2..8_usize,
        turn_work in 2..40_usize,
    ) {
        let mut topics = Topics::new(BrokerSettings {
            window,
            turn_work,
            body_bytes: 200,
            ..BrokerSettings::default()
        });
        for op in &ops {
            topics.step(op);
        }
        topics.finish();
    }
}
