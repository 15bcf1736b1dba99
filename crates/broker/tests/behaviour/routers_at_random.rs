//! Routers at random: routing agrees with a simple model, each message is once in each queue that
//! it finds, and routers, bindings and shared bodies survive restarts and the end of queues.

use std::collections::{BTreeMap, BTreeSet};

use amqp::Value;
use amqp::message::encode_map_section;
use broker::{
    Answer, Binding, BindingDestination, BrokerSettings, Command, Ensured, EntityError, Incoming,
    Order, Output, Publication, PublishError, QueueSettings, Routed, RouterAnswer, RouterError,
    RouterKind, RouterOrder, RouterSettings,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use store::NamespaceId;

use crate::world::{World, administer, ensure, remove, request};

const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];
const ROUTERS: [&str; 6] = ["direct", "fanout", "topic", "headers", "going", "amq.topic"];
const KEYS: [&str; 8] = ["a", "a.b", "a.*", "#", "#.b.#", "*.b", "", "b"];

#[derive(Clone, Debug)]
enum Op {
    Queue(usize),
    RemoveQueue(usize),
    Router(usize),
    RemoveRouter(usize),
    Bind(usize, Destination, usize, i32),
    Unbind(usize),
    Publish(usize, Vec<usize>, i32),
    Restart,
}

#[derive(Clone, Copy, Debug)]
enum Destination {
    Queue(usize),
    Router(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let destination = prop_oneof![
        3 => (0..QUEUES.len()).prop_map(Destination::Queue),
        2 => (0..ROUTERS.len()).prop_map(Destination::Router),
    ];
    prop_oneof![
        2 => (0..QUEUES.len()).prop_map(Op::Queue),
        1 => (0..QUEUES.len()).prop_map(Op::RemoveQueue),
        4 => (0..ROUTERS.len()).prop_map(Op::Router),
        1 => (0..ROUTERS.len()).prop_map(Op::RemoveRouter),
        12 => (0..ROUTERS.len(), destination, 0..KEYS.len(), 0..3)
            .prop_map(|(router, to, key, n)| Op::Bind(router, to, key, n)),
        2 => any::<usize>().prop_map(Op::Unbind),
        12 => (0..=ROUTERS.len(), prop::collection::vec(0..KEYS.len(), 1..3), 0..3)
            .prop_map(|(router, keys, n)| Op::Publish(router, keys, n)),
        1 => Just(Op::Restart),
    ]
}

/// How the router of an index is declared.
fn settings(router: usize) -> RouterSettings {
    let kind = match ROUTERS[router] {
        "direct" => RouterKind::Direct,
        "fanout" | "going" => RouterKind::Fanout,
        "topic" | "amq.topic" => RouterKind::Topic,
        _ => RouterKind::Headers,
    };
    RouterSettings {
        auto_delete: ROUTERS[router] == "going",
        internal: ROUTERS[router] == "headers",
        alternate: (ROUTERS[router] == "direct").then(|| "topic".to_owned()),
        ..RouterSettings::new(kind)
    }
}

/// What there is, in the simplest form.
#[derive(Default)]
struct Model {
    queues: BTreeMap<&'static str, u64>,
    routers: BTreeMap<String, RouterSettings>,
    bindings: Vec<Binding>,
}

impl Model {
    fn is_there(&self, destination: &BindingDestination) -> bool {
        match destination {
            BindingDestination::Entity(path) => self.queues.contains_key(path.as_str()),
            BindingDestination::Router(name) => self.routers.contains_key(name),
        }
    }

    /// Routers whose last binding went are gone; so is what names something that is gone.
    fn settle(&mut self, mut had_bindings: BTreeSet<String>) {
        loop {
            let (routers, queues) = (&self.routers, &self.queues);
            self.bindings.retain(|binding| {
                let to = match &binding.destination {
                    BindingDestination::Entity(path) => queues.contains_key(path.as_str()),
                    BindingDestination::Router(name) => routers.contains_key(name),
                };
                to && routers.contains_key(&binding.source)
            });
            let left: BTreeSet<String> = self.bindings.iter().map(|it| it.source.clone()).collect();
            let gone = self.routers.iter().find(|(name, settings)| {
                settings.auto_delete && had_bindings.contains(*name) && !left.contains(*name)
            });
            let Some(gone) = gone.map(|(name, _)| name.clone()) else {
                return;
            };
            had_bindings.remove(&gone);
            self.routers.remove(&gone);
        }
    }

    fn sources(&self) -> BTreeSet<String> {
        self.bindings.iter().map(|it| it.source.clone()).collect()
    }

    fn route(
        &self,
        router: &str,
        keys: &[String],
        n: i32,
        seen: &mut BTreeSet<String>,
    ) -> BTreeSet<&'static str> {
        if !seen.insert(router.to_owned()) {
            return BTreeSet::new();
        }
        let settings = &self.routers[router];
        let matching: Vec<_> = self
            .bindings
            .iter()
            .filter(|binding| binding.source == router)
            .filter(|binding| match settings.kind {
                RouterKind::Direct => keys.contains(&binding.key),
                RouterKind::Fanout => true,
                RouterKind::Topic => keys.iter().any(|key| {
                    let words = |text: &str| -> Vec<String> {
                        let words = text.split('.').filter(|_| !text.is_empty());
                        words.map(str::to_owned).collect()
                    };
                    is_match(&words(&binding.key), &words(key))
                }),
                RouterKind::Headers => binding.arguments == arguments(n),
            })
            .collect();
        let mut found = BTreeSet::new();
        for binding in &matching {
            match &binding.destination {
                BindingDestination::Entity(path) => {
                    found.extend(QUEUES.into_iter().find(|it| it == path));
                }
                BindingDestination::Router(name) => found.extend(self.route(name, keys, n, seen)),
            }
        }
        if let Some(alternate) = settings.alternate.as_ref().filter(|_| matching.is_empty())
            && self.routers.contains_key(alternate)
        {
            found.extend(self.route(alternate, keys, n, seen));
        }
        found
    }
}

fn is_match(pattern: &[String], key: &[String]) -> bool {
    match pattern.split_first() {
        None => key.is_empty(),
        Some((word, rest)) if word == "#" => {
            (0..=key.len()).any(|skipped| is_match(rest, &key[skipped..]))
        }
        Some((word, rest)) => key.split_first().is_some_and(|(first, others)| {
            (word == "*" || word == first) && is_match(rest, others)
        }),
    }
}

fn arguments(n: i32) -> Vec<(String, Value)> {
    vec![("n".to_owned(), Value::Int(n))]
}

fn payload(n: i32) -> Bytes {
    let mut out = BytesMut::new();
    encode_map_section(&mut out, 0x74, &[(Value::from("n"), Value::Long(n.into()))]);
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, b"body");
    out.freeze()
}

struct Routing {
    world: World,
    model: Model,
}

impl Routing {
    fn new() -> Self {
        let amq_topic = (
            "amq.topic".to_owned(),
            RouterSettings::new(RouterKind::Topic),
        );
        let model = Model {
            routers: BTreeMap::from([amq_topic]),
            ..Model::default()
        };
        let world = World::empty(BrokerSettings::default());
        Self { world, model }
    }

    fn order(&mut self, order: RouterOrder) -> Result<RouterAnswer, RouterError> {
        let said = self
            .world
            .turn(administer(request(1), Order::Router(order)));
        let answer = said.into_iter().find_map(|output| match output {
            Output::Administered { result, .. } => Some(*result),
            _ => None,
        });
        match answer.unwrap() {
            Ok(Answer::Router(answer)) => Ok(answer),
            Err(EntityError::Router(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self, op: &Op) {
        let sources = self.model.sources();
        match op {
            Op::Queue(queue) => {
                let path = QUEUES[*queue];
                self.world.turn(ensure(Ensured::Queue {
                    path: path.to_owned(),
                    settings: QueueSettings::default(),
                }));
                self.model.queues.entry(path).or_default();
            }
            Op::RemoveQueue(queue) => {
                self.world.turn(remove(QUEUES[*queue]));
                self.model.queues.remove(QUEUES[*queue]);
                self.model.settle(sources);
            }
            Op::Router(router) => {
                let (name, settings) = (ROUTERS[*router].to_owned(), settings(*router));
                let answer = self.order(RouterOrder::Declare {
                    name: name.clone(),
                    settings: Box::new(settings.clone()),
                });
                assert_eq!(answer, Ok(RouterAnswer::Done));
                self.model.routers.entry(name).or_insert(settings);
            }
            Op::RemoveRouter(router) => {
                let name = ROUTERS[*router].to_owned();
                let answer = self.order(RouterOrder::Remove { name: name.clone() });
                if name.starts_with("amq.") {
                    assert_eq!(answer, Err(RouterError::Reserved(name)));
                } else if self.model.routers.remove(&name).is_some() {
                    assert_eq!(answer, Ok(RouterAnswer::Done));
                    self.model.settle(sources);
                } else {
                    assert_eq!(answer, Err(RouterError::NotFound(name)));
                }
            }
            Op::Bind(router, destination, key, n) => self.bind(*router, *destination, *key, *n),
            Op::Unbind(which) => self.unbind(*which),
            Op::Publish(router, keys, n) => self.publish(*router, keys, *n),
            Op::Restart => self.world.restart(),
        }
        self.check();
    }

    fn bind(&mut self, router: usize, destination: Destination, key: usize, n: i32) {
        let binding = Binding {
            source: ROUTERS[router].to_owned(),
            destination: match destination {
                Destination::Queue(queue) => BindingDestination::Entity(QUEUES[queue].to_owned()),
                Destination::Router(router) => {
                    BindingDestination::Router(ROUTERS[router].to_owned())
                }
            },
            key: KEYS[key].to_owned(),
            arguments: arguments(n),
        };
        let can_be = self.model.routers.contains_key(&binding.source)
            && self.model.is_there(&binding.destination);
        let answer = self.order(RouterOrder::Bind(Box::new(binding.clone())));
        assert_eq!(answer.is_ok(), can_be, "{binding:?}: {answer:?}");
        if can_be && !self.model.bindings.contains(&binding) {
            self.model.bindings.push(binding);
        }
    }

    fn unbind(&mut self, which: usize) {
        let Some(index) = which.checked_rem(self.model.bindings.len()) else {
            return;
        };
        let sources = self.model.sources();
        let binding = self.model.bindings.remove(index);
        let answer = self.order(RouterOrder::Unbind(Box::new(binding)));
        assert_eq!(answer, Ok(RouterAnswer::Done));
        self.model.settle(sources);
    }

    fn publish(&mut self, router: usize, keys: &[usize], n: i32) {
        let name = ROUTERS.get(router).copied().unwrap_or_default().to_owned();
        let mut keys: Vec<_> = keys.iter().map(|key| KEYS[*key].to_owned()).collect();
        if name.is_empty() {
            keys = vec!["q0".to_owned(), "q1".to_owned(), "q1".to_owned()];
        }
        let expected = if name.is_empty() {
            let named = ["q0", "q1"].into_iter();
            Ok(named
                .filter(|it| self.model.queues.contains_key(it))
                .collect())
        } else if !self.model.routers.contains_key(&name) {
            Err(PublishError::NotFound(name.clone()))
        } else if self.model.routers[&name].internal {
            Err(PublishError::Internal(name.clone()))
        } else {
            Ok(self.model.route(&name, &keys, n, &mut BTreeSet::new()))
        };
        let publication = Box::new(Publication {
            namespace: NamespaceId(0),
            router: name,
            keys,
            message: Incoming {
                payload: payload(n),
                ..Incoming::default()
            },
        });
        let said = self.world.turn(Command::Publish {
            request: request(2),
            publication,
        });
        let result = said.into_iter().find_map(|output| match output {
            Output::Published { result, .. } => Some(result),
            _ => None,
        });
        let answer = expected
            .as_ref()
            .map_err(Clone::clone)
            .map(|found| match found.len() {
                0 => Routed::Unmatched,
                destinations => Routed::Stored { destinations },
            });
        assert_eq!(result, Some(answer));
        for queue in expected.into_iter().flatten() {
            *self.model.queues.get_mut(queue).unwrap() += 1;
        }
    }

    /// Queues hold what they should, and bindings are those of the model.
    fn check(&mut self) {
        let queues = self.world.shard.broker.queues();
        let held: BTreeMap<_, _> = queues.map(|queue| (queue.path, queue.active)).collect();
        let expected = self.model.queues.iter();
        let expected = expected.map(|(path, count)| ((*path).to_owned(), *count));
        assert_eq!(held, expected.collect());
        let listed = self.order(RouterOrder::ListBindings {
            source: None,
            destination: None,
            key: None,
            skip: 0,
            top: usize::MAX,
        });
        let Ok(RouterAnswer::Bindings(page)) = listed else {
            panic!("{listed:?}");
        };
        assert_eq!(page.items.len(), self.model.bindings.len());
        for binding in &self.model.bindings {
            assert!(page.items.contains(binding), "{binding:?} is not listed");
        }
        self.world
            .disk
            .with_current(|image| assert_eq!(image.audit(), vec![]));
    }

    /// What is left of removed queues goes.
    fn finish(&mut self) {
        for _ in 0..50 {
            while let Some(command) = self.world.answer(0) {
                self.world.turn(command);
            }
            let to = self.world.mono + 1_000;
            while self.world.step_to(to) {
                self.world.turn(Command::Tick);
            }
        }
        for queue in QUEUES {
            self.world.turn(remove(queue));
        }
        for _ in 0..50 {
            while let Some(command) = self.world.answer(0) {
                self.world.turn(command);
            }
            let to = self.world.mono + 1_000;
            while self.world.step_to(to) {
                self.world.turn(Command::Tick);
            }
        }
        self.world.disk.with_current(|image| {
            assert_eq!((image.messages.len(), image.bodies.len()), (0, 0));
            assert_eq!(image.audit(), vec![]);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_routed_as_a_simple_model_says(ops in prop::collection::vec(op(), 1..60)) {
        let mut routing = Routing::new();
        for op in &ops {
            routing.step(op);
        }
        routing.finish();
    }
}
