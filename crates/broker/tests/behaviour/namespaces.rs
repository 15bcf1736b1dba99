//! Namespaces: worlds of one broker that have nothing in common, made like each other, reset and
//! deleted, with what is left of them after a restart.

mod byte_limit;

use std::collections::BTreeMap;

use broker::{
    Answer, ApplyTo, AuthorizationRule, Batch, Binding, BindingDestination, BrokerSettings,
    Command, ConnectionId, Ensured, EntityDescription, EntityError, EntityPath, FilterDescription,
    Incoming, LifetimePolicy, Listing, MAX_NAMESPACES, NamespaceAnswer, NamespaceDefinition,
    NamespaceDescription, NamespaceLimits, NamespaceOrder, NodeKind, NodeLinkId, NodeRequest,
    NodeUse, Order, Output, Policy, PolicyLayer, Publication, QueueInfo, QueueSettings, Routed,
    RouterKind, RouterOrder, RouterSettings, RuleDescription, StoreOnlyProperties,
    SubscriptionSettings, Wall,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{EntityId, NamespaceId};

use crate::world::{World, request};

const DEFAULT: NamespaceId = NamespaceId(0);

fn order(world: &mut World, namespace: NamespaceId, order: Order) -> Result<Answer, EntityError> {
    let said = world.turn(Command::Administer {
        request: request(1),
        namespace,
        order: Box::new(order),
    });
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    answers.next().expect("an order is answered")
}

fn about(world: &mut World, asked: NamespaceOrder) -> Result<NamespaceAnswer, EntityError> {
    match order(world, DEFAULT, Order::Namespaces(asked))? {
        Answer::Namespaces(answer) => Ok(answer),
        other => panic!("{other:?}"),
    }
}

fn named(name: &str) -> Box<NamespaceDefinition> {
    Box::new(NamespaceDefinition {
        name: name.to_owned(),
        ..NamespaceDefinition::default()
    })
}

fn create_like(world: &mut World, name: &str, like: Option<&str>) -> NamespaceId {
    let like = like.map(str::to_owned);
    let definition = named(name);
    match about(world, NamespaceOrder::Create { definition, like }) {
        Ok(NamespaceAnswer::One(description)) => description.id,
        other => panic!("{other:?}"),
    }
}

fn create(world: &mut World, name: &str) -> NamespaceId {
    create_like(world, name, None)
}

fn describe(world: &mut World, name: &str) -> NamespaceDescription {
    match about(world, NamespaceOrder::Describe(name.to_owned())) {
        Ok(NamespaceAnswer::One(description)) => *description,
        other => panic!("{other:?}"),
    }
}

fn done(world: &mut World, asked: NamespaceOrder) {
    assert_eq!(about(world, asked), Ok(NamespaceAnswer::Done));
}

fn reset(world: &mut World, name: &str) {
    done(world, NamespaceOrder::Reset(name.to_owned()));
}

fn delete(world: &mut World, name: &str) {
    done(world, NamespaceOrder::Remove(name.to_owned()));
}

fn queue(path: &str) -> Ensured {
    Ensured::Queue {
        path: path.to_owned(),
        settings: QueueSettings::default(),
    }
}

fn ensure(world: &mut World, namespace: NamespaceId, ensured: Vec<Ensured>) {
    let answer = order(world, namespace, Order::ensure(ensured));
    assert_eq!(answer, Ok(Answer::Done));
}

fn entities(world: &World, namespace: NamespaceId) -> BTreeMap<String, QueueInfo> {
    let all = world.shard.broker.queues();
    let of_it = all.filter(|queue| queue.namespace == namespace);
    of_it.map(|queue| (queue.path.clone(), queue)).collect()
}

fn paths(world: &World, namespace: NamespaceId) -> Vec<String> {
    entities(world, namespace).into_keys().collect()
}

fn id(world: &World, namespace: NamespaceId, path: &str) -> EntityId {
    entities(world, namespace)[path].id
}

fn active(world: &World, namespace: NamespaceId, path: &str) -> u64 {
    entities(world, namespace)[path].active
}

fn send(world: &mut World, entity: EntityId) -> bool {
    let said = world.turn(Command::Send {
        request: request(2),
        entity,
        messages: vec![message()],
    });
    said.iter()
        .any(|output| matches!(output, Output::Sent { result: Ok(_), .. }))
}

fn message() -> Incoming {
    Incoming {
        payload: Bytes::from_static(b"\x00\x53\x75\xa0\x01x"),
        ..Incoming::default()
    }
}

fn publish(world: &mut World, namespace: NamespaceId, router: &str) -> Routed {
    let said = world.turn(Command::Publish {
        request: request(3),
        publication: Box::new(Publication {
            namespace,
            router: router.to_owned(),
            keys: vec!["key".to_owned()],
            message: message(),
        }),
    });
    let mut results = said.into_iter().filter_map(|output| match output {
        Output::Published { result, .. } => Some(result),
        _ => None,
    });
    results
        .next()
        .expect("it is answered")
        .expect("it is routed")
}

fn bind(world: &mut World, namespace: NamespaceId, source: &str, path: &str) {
    let binding = Binding {
        source: source.to_owned(),
        destination: BindingDestination::Entity(path.to_owned()),
        key: "key".to_owned(),
        arguments: Vec::new(),
    };
    let bound = RouterOrder::Bind(Box::new(binding));
    assert!(order(world, namespace, Order::Router(bound)).is_ok());
}

/// Everything in the background is done.
fn settle(world: &mut World) {
    for _ in 0..100 {
        while let Some(command) = world.answer(0) {
            world.turn(command);
        }
        let to = world.mono + 1_000;
        world.step_to(to);
        world.turn_with(vec![]);
    }
}

fn world() -> World {
    World::empty(BrokerSettings::default())
}

/// When a namespace was made and last changed.
fn times(world: &mut World, namespace: NamespaceId) -> (Wall, Wall) {
    match order(world, namespace, Order::DescribeNamespace) {
        Ok(Answer::Namespace(info)) => (info.created, info.modified),
        other => panic!("{other:?}"),
    }
}

fn world_since(first_start: Option<Wall>) -> World {
    let mut world = World::empty(BrokerSettings {
        first_start,
        ..BrokerSettings::default()
    });
    while world.step_to(1_000) {}
    world
}

#[test]
fn the_default_namespace_was_made_with_its_data_directory_and_others_when_they_were() {
    let first_start = Wall(7_000);
    let mut world = world_since(Some(first_start));
    assert_eq!(times(&mut world, DEFAULT), (first_start, first_start));
    let now = world.now().wall;
    ensure(&mut world, DEFAULT, vec![queue("q")]);
    let other = create(&mut world, "other");
    while world.step_to(2_000) {}
    world.restart();
    assert_eq!(times(&mut world, DEFAULT), (first_start, now));
    assert_eq!(times(&mut world, other), (now, now));
}

#[test]
fn a_namespace_is_no_younger_than_what_is_in_it() {
    for first_start in [None, Some(Wall(u64::MAX))] {
        let mut world = world_since(first_start);
        let now = world.now().wall;
        ensure(&mut world, DEFAULT, vec![queue("q")]);
        while world.step_to(2_000) {}
        assert_eq!(times(&mut world, DEFAULT), (now, now));
    }
}

#[test]
fn the_same_path_is_another_entity_in_each_namespace() {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| create(&mut world, name));
    for namespace in [DEFAULT, a, b] {
        ensure(&mut world, namespace, vec![queue("orders")]);
    }
    let of_a = id(&world, a, "orders");
    assert!(send(&mut world, of_a));
    assert_eq!(
        [DEFAULT, a, b].map(|namespace| active(&world, namespace, "orders")),
        [0, 1, 0]
    );
    let removed = order(
        &mut world,
        b,
        Order::Remove {
            path: "orders".to_owned(),
        },
    );
    assert_eq!(removed, Ok(Answer::Done));
    assert_eq!(paths(&world, b), [""; 0]);
    assert_eq!(active(&world, a, "orders"), 1);
    for (namespace, expected) in [(DEFAULT, 1), (a, 1), (b, 0)] {
        let listed = order(
            &mut world,
            namespace,
            Order::List {
                of: Listing::Queues,
                skip: 0,
                top: 10,
            },
        );
        let Ok(Answer::Entities(page)) = listed else {
            panic!("{listed:?}");
        };
        assert_eq!(page.items.len(), expected);
    }
}

#[test]
fn a_destination_is_in_the_namespace_of_what_forwards_there() {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| create(&mut world, name));
    let forwards = || EntityDescription {
        settings: QueueSettings {
            forward_to: Some("target".to_owned()),
            ..QueueSettings::default()
        },
        ..EntityDescription::default()
    };
    let make = |path: &str, description| Order::Create {
        path: EntityPath::Queue(path.to_owned()),
        description: Box::new(description),
        rules: None,
    };
    ensure(&mut world, b, vec![queue("target")]);
    assert_eq!(
        order(&mut world, a, make("source", forwards())),
        Err(EntityError::Destination("target".to_owned()))
    );
    ensure(&mut world, a, vec![queue("target")]);
    assert!(order(&mut world, a, make("source", forwards())).is_ok());
    let source = id(&world, a, "source");
    assert!(send(&mut world, source));
    settle(&mut world);
    assert_eq!(active(&world, a, "target"), 1);
    assert_eq!(active(&world, b, "target"), 0);
}

#[test]
fn exchanges_of_a_name_have_bindings_of_their_own() {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| create(&mut world, name));
    for namespace in [a, b] {
        ensure(&mut world, namespace, vec![queue("one"), queue("two")]);
    }
    bind(&mut world, a, "amq.fanout", "one");
    bind(&mut world, a, "amq.fanout", "two");
    assert_eq!(publish(&mut world, b, "amq.fanout"), Routed::Unmatched);
    assert_eq!(
        publish(&mut world, a, "amq.fanout"),
        Routed::Stored { destinations: 2 }
    );
    assert_eq!(active(&world, a, "one"), 1);
    assert_eq!(active(&world, b, "one"), 0);
}

#[test]
fn a_dynamic_node_is_of_the_namespace_of_its_maker() {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| create(&mut world, name));
    let link = |number| NodeLinkId {
        connection: ConnectionId(number),
        link: 1,
    };
    let opened = |said: Vec<Output>| {
        let mut opened = said.into_iter().filter_map(|output| match output {
            Output::NodeOpened { result, .. } => Some(result),
            _ => None,
        });
        opened.next().expect("it is answered")
    };
    let made = world.turn(Command::CreateNode {
        link: link(1),
        namespace: a,
        node: NodeRequest {
            kind: NodeKind::Queue,
            lifetime: LifetimePolicy::DeleteOnClose,
            exclusive: false,
        },
    });
    let node = opened(made).expect("it is made").entity;
    for (number, namespace, is_there) in [(2, a, true), (3, b, false), (4, DEFAULT, false)] {
        let said = world.turn(Command::OpenNode {
            link: link(number),
            namespace,
            node,
            used: NodeUse::Send,
        });
        assert_eq!(opened(said).is_ok(), is_there, "{namespace:?}");
    }
}

#[test]
fn a_change_of_one_namespace_is_none_of_another() {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| create(&mut world, name));
    let version =
        |world: &mut World, namespace| match order(world, namespace, Order::DescribeNamespace) {
            Ok(Answer::Namespace(info)) => info.version,
            other => panic!("{other:?}"),
        };
    let before = [a, b].map(|namespace| version(&mut world, namespace));
    ensure(&mut world, b, vec![queue("orders")]);
    let after = [a, b].map(|namespace| version(&mut world, namespace));
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

/// A namespace with something of each kind.
fn full(world: &mut World, name: &str) -> NamespaceId {
    let namespace = create(world, name);
    let description = EntityDescription {
        store_only: StoreOnlyProperties {
            user_metadata: Some("mine".to_owned()),
            authorization_rules: vec![key("sender")],
            ..StoreOnlyProperties::default()
        },
        ..EntityDescription::default()
    };
    let made = order(
        world,
        namespace,
        Order::Create {
            path: EntityPath::Queue("Orders".to_owned()),
            description: Box::new(description),
            rules: None,
        },
    );
    assert!(made.is_ok());
    let rule = RuleDescription {
        name: "red".to_owned(),
        filter: FilterDescription::Sql("sys.Label = 'red'".to_owned()),
        action: Some("SET seen = 1".to_owned()),
        ..RuleDescription::default()
    };
    ensure(
        world,
        namespace,
        vec![
            Ensured::Topic {
                path: "events".to_owned(),
                settings: QueueSettings::default(),
            },
            Ensured::Subscription {
                topic: "events".to_owned(),
                name: "all".to_owned(),
                settings: Box::new(SubscriptionSettings::default()),
                rules: None,
            },
            Ensured::Subscription {
                topic: "events".to_owned(),
                name: "red".to_owned(),
                settings: Box::new(SubscriptionSettings::default()),
                rules: Some(vec![rule]),
            },
        ],
    );
    let policy = Policy {
        name: "short".to_owned(),
        layer: PolicyLayer::User,
        pattern: "^Orders$".to_owned(),
        apply_to: ApplyTo::default(),
        priority: 0.into(),
        definition: serde_json::from_str(r#"{"message-ttl": 60000}"#).unwrap(),
    };
    let put = order(world, namespace, Order::PutPolicy(Box::new(policy)));
    assert_eq!(put, Ok(Answer::Put { is_new: true }));
    namespace
}

fn key(name: &str) -> AuthorizationRule {
    AuthorizationRule::of_key(name.to_owned(), "secret".to_owned())
}

/// What a namespace has, without messages, ids and times.
fn shape(world: &mut World, namespace: NamespaceId) -> String {
    use std::fmt::Write as _;

    let mut shape = String::new();
    for (path, info) in entities(world, namespace) {
        let described = order(world, namespace, Order::Describe { path: path.clone() });
        let Ok(Answer::Entity(described)) = described else {
            panic!("{described:?}");
        };
        writeln!(
            shape,
            "{path} {:?} {:?} {:?} {:?} {:?}",
            info.kind,
            info.settings,
            info.policy.map(|policy| policy.user.clone()),
            described.store_only.user_metadata,
            described.store_only.authorization_rules,
        )
        .unwrap();
        let rules = Order::ListRules {
            subscription: path,
            skip: 0,
            top: 10,
        };
        if let Ok(Answer::Rules(page)) = order(world, namespace, rules) {
            for rule in page.items {
                writeln!(shape, "  {} {:?} {:?}", rule.name, rule.filter, rule.action).unwrap();
            }
        }
    }
    shape
}

#[test]
fn a_namespace_like_another_has_its_entities_and_none_of_its_messages() {
    let mut world = world();
    let a = full(&mut world, "a");
    let orders = id(&world, a, "Orders");
    assert!(send(&mut world, orders));
    let b = create_like(&mut world, "b", Some("a"));
    assert_eq!(shape(&mut world, a), shape(&mut world, b));
    assert!(
        shape(&mut world, b).contains(r#"Some(Some("short"))"#),
        "its policies apply"
    );
    assert_eq!(active(&world, a, "Orders"), 1);
    assert_eq!(active(&world, b, "Orders"), 0);
    assert_eq!(describe(&mut world, "b").entities, 4);
    let missing = NamespaceOrder::Create {
        definition: named("c"),
        like: Some("nobody".to_owned()),
    };
    assert_eq!(
        about(&mut world, missing),
        Err(EntityError::NoNamespace("nobody".to_owned()))
    );
    assert_eq!(
        about(&mut world, NamespaceOrder::Describe("c".to_owned())),
        Err(EntityError::NoNamespace("c".to_owned())),
        "nothing was made"
    );
}

#[test]
fn a_reset_goes_back_to_what_a_namespace_was_made_with() {
    let mut world = world();
    full(&mut world, "a");
    let b = create_like(&mut world, "b", Some("a"));
    let before = shape(&mut world, b);
    let orders = id(&world, b, "Orders");
    assert!(send(&mut world, orders));
    let events = id(&world, b, "events");
    assert!(send(&mut world, events));
    ensure(&mut world, b, vec![queue("late")]);
    bind(&mut world, b, "amq.fanout", "late");
    let removed = Order::Remove {
        path: "events/Subscriptions/red".to_owned(),
    };
    assert_eq!(order(&mut world, b, removed), Ok(Answer::Done));
    let untouched = shape(&mut world, NamespaceId(1));
    world.restart();
    reset(&mut world, "b");
    assert_eq!(shape(&mut world, b), before);
    assert_eq!(active(&world, b, "Orders"), 0);
    assert_ne!(id(&world, b, "Orders"), orders, "it is another queue");
    assert!(!send(&mut world, orders), "the one before is gone");
    assert_eq!(publish(&mut world, b, "amq.fanout"), Routed::Unmatched);
    assert_eq!(shape(&mut world, NamespaceId(1)), untouched);
    settle(&mut world);
    world.audit();
}

#[test]
fn a_reset_of_the_default_namespace_goes_back_to_the_configuration() {
    let mut world = world();
    let batch = Batch {
        ensured: vec![queue("configured")],
        is_template: true,
        ..Batch::default()
    };
    let applied = order(&mut world, DEFAULT, Order::Apply(Box::new(batch)));
    assert_eq!(applied, Ok(Answer::Done));
    ensure(&mut world, DEFAULT, vec![queue("late")]);
    let configured = id(&world, DEFAULT, "configured");
    assert!(send(&mut world, configured));
    reset(&mut world, "default");
    assert_eq!(paths(&world, DEFAULT), ["configured"]);
    assert_eq!(active(&world, DEFAULT, "configured"), 0);
}

#[test]
fn a_reset_leaves_no_binding_between_exchanges() {
    let mut world = world();
    let a = create(&mut world, "a");
    let binding = Binding {
        source: "amq.topic".to_owned(),
        destination: BindingDestination::Router("amq.fanout".to_owned()),
        key: "#".to_owned(),
        arguments: Vec::new(),
    };
    let bound = RouterOrder::Bind(Box::new(binding));
    assert!(order(&mut world, a, Order::Router(bound)).is_ok());
    reset(&mut world, "a");
    ensure(&mut world, a, vec![queue("late")]);
    bind(&mut world, a, "amq.fanout", "late");
    assert_eq!(publish(&mut world, a, "amq.topic"), Routed::Unmatched);
    world.audit();
}

#[test]
fn a_deleted_namespace_leaves_nothing_behind() {
    let mut world = world();
    let a = full(&mut world, "a");
    let b = create(&mut world, "b");
    ensure(&mut world, b, vec![queue("orders")]);
    ensure(&mut world, a, vec![queue("one"), queue("two")]);
    // Queues that share a body, and subscriptions.
    bind(&mut world, a, "amq.fanout", "one");
    bind(&mut world, a, "amq.fanout", "two");
    for _ in 0..5 {
        let routed = publish(&mut world, a, "amq.fanout");
        assert_eq!(routed, Routed::Stored { destinations: 2 });
        let events = id(&world, a, "events");
        assert!(send(&mut world, events));
        let orders = id(&world, a, "Orders");
        assert!(send(&mut world, orders));
    }
    delete(&mut world, "a");
    assert_eq!(paths(&world, a), [""; 0]);
    assert_eq!(
        about(&mut world, NamespaceOrder::Describe("a".to_owned())),
        Err(EntityError::NoNamespace("a".to_owned()))
    );
    // The rows of the queues that shared bodies are still there: a crash changes nothing of that.
    world.restart();
    settle(&mut world);
    world.audit();
    world.disk.with_current(|image| {
        let rows = image.entities.values();
        let left: Vec<_> = rows
            .filter(|row| row.namespace == a)
            .map(|row| &row.path)
            .collect();
        assert_eq!(left, [""; 0]);
    });
    assert_eq!(paths(&world, b), ["orders"]);
    let again = create(&mut world, "a");
    assert_eq!(paths(&world, again), [""; 0]);
}

#[test]
fn an_order_for_a_namespace_that_is_gone_makes_nothing() {
    let mut world = world();
    let a = create(&mut world, "a");
    delete(&mut world, "a");
    let refused = order(&mut world, a, Order::ensure(vec![queue("orders")]));
    assert!(
        matches!(refused, Err(EntityError::NoNamespace(_))),
        "{refused:?}"
    );
    assert_eq!(paths(&world, a), [""; 0]);
    assert_ne!(create(&mut world, "a"), a, "an id is not used again");
}

#[test]
fn names_and_hosts_are_those_of_one_namespace() {
    let mut world = world();
    let with_hosts = |name: &str, hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| (*host).to_owned());
        Box::new(NamespaceDefinition {
            hosts: hosts.collect(),
            ..*named(name)
        })
    };
    let make = |world: &mut World, definition| {
        let like = None;
        about(world, NamespaceOrder::Create { definition, like })
    };
    assert!(
        make(
            &mut world,
            with_hosts("a", &["shop.example.com", "c.localhost"])
        )
        .is_ok()
    );
    for (definition, text) in [
        (named("a"), "a namespace 'a' exists already"),
        (
            with_hosts("b", &["shop.example.com"]),
            "host 'shop.example.com': it is that of namespace 'a'",
        ),
        (
            with_hosts("b", &["a.servicebus.windows.net"]),
            "host 'a.servicebus.windows.net': it is that of namespace 'a'",
        ),
        (
            named("c"),
            "host 'c.localhost': it is that of namespace 'a'",
        ),
        (
            with_hosts("b", &["default.localhost"]),
            "host 'default.localhost': it is that of the default namespace",
        ),
        (named("a/b"), "namespace 'a/b': a name has 1 to 63"),
        (
            named("default"),
            "this name is that of the default namespace",
        ),
    ] {
        let refused = make(&mut world, definition).unwrap_err().to_string();
        assert!(refused.contains(text), "{refused}");
    }
    let listed = about(&mut world, NamespaceOrder::List { skip: 0, top: 10 });
    let Ok(NamespaceAnswer::Some(page)) = listed else {
        panic!("{listed:?}");
    };
    assert_eq!(page.items.len(), 1, "nothing else was made");
    let replaced = about(&mut world, NamespaceOrder::Replace(with_hosts("a", &[])));
    assert!(replaced.is_ok());
    assert!(make(&mut world, named("c")).is_ok(), "its host is free");
    let unknown = about(&mut world, NamespaceOrder::Replace(named("x")));
    assert_eq!(unknown, Err(EntityError::NoNamespace("x".to_owned())));
    let default = about(&mut world, NamespaceOrder::Remove("default".to_owned()));
    let text = default.unwrap_err().to_string();
    assert_eq!(text, "the default namespace cannot be deleted; reset it");
}

#[test]
fn there_are_ten_thousand_namespaces_at_most() {
    let mut world = world();
    for number in 0..MAX_NAMESPACES {
        create(&mut world, &format!("n{number}"));
    }
    let definition = named("one-more");
    let like = None;
    let refused = about(&mut world, NamespaceOrder::Create { definition, like });
    let text = "there can be 10000 namespaces besides the default one";
    assert_eq!(refused.unwrap_err().to_string(), text);
    world.restart();
    delete(&mut world, "n7");
    create(&mut world, "one-more");
}

#[test]
fn definitions_survive_a_restart() {
    let mut world = world();
    let definition = Box::new(NamespaceDefinition {
        hosts: vec!["shop.example.com".to_owned()],
        keys: vec![key("shop")],
        ..*named("shop")
    });
    let like = None;
    about(&mut world, NamespaceOrder::Create { definition, like }).unwrap();
    let before = describe(&mut world, "shop");
    world.restart();
    assert_eq!(describe(&mut world, "shop"), before);
    let told: Vec<_> = world.shard.broker.namespaces().collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].definition, Some(before.definition.into()));
}

/// One thing done to one of three namespaces.
#[derive(Clone, Copy, Debug)]
enum Act {
    Ensure(usize),
    Remove(usize),
    Send(usize),
    Publish,
    Bind(usize),
    Reset,
    DeleteAndCreate,
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Act::Ensure),
        1 => (0..3_usize).prop_map(Act::Remove),
        6 => (0..3_usize).prop_map(Act::Send),
        4 => Just(Act::Publish),
        2 => (0..3_usize).prop_map(Act::Bind),
        1 => Just(Act::Reset),
        1 => Just(Act::DeleteAndCreate),
        1 => Just(Act::Restart),
    ]
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const PATHS: [&str; 3] = ["q0", "q1", "q2"];

/// Counts of messages of one namespace, by path, and which queues are bound.
type Model = BTreeMap<&'static str, (u64, bool)>;

fn carry_out(
    world: &mut World,
    ids: &mut [NamespaceId; 3],
    model: &mut Model,
    at: usize,
    act: Act,
) {
    let namespace = ids[at];
    match act {
        Act::Ensure(which) => {
            ensure(world, namespace, vec![queue(PATHS[which])]);
            model.entry(PATHS[which]).or_default();
        }
        Act::Remove(which) => {
            let path = PATHS[which].to_owned();
            let removed = order(world, namespace, Order::Remove { path });
            assert_eq!(removed.is_ok(), model.remove(PATHS[which]).is_some());
        }
        Act::Send(which) => {
            if let Some((count, _)) = model.get_mut(PATHS[which]) {
                let entity = id(world, namespace, PATHS[which]);
                assert!(send(world, entity));
                *count += 1;
            }
        }
        Act::Publish => {
            let bound = model.values_mut().filter(|(_, bound)| *bound);
            let destinations = bound.map(|(count, _)| *count += 1).count();
            let expected = match destinations {
                0 => Routed::Unmatched,
                destinations => Routed::Stored { destinations },
            };
            assert_eq!(publish(world, namespace, "amq.fanout"), expected);
        }
        Act::Bind(which) => {
            if let Some((_, bound)) = model.get_mut(PATHS[which]) {
                bind(world, namespace, "amq.fanout", PATHS[which]);
                *bound = true;
            }
        }
        Act::Reset => {
            reset(world, NAMES[at]);
            model.clear();
        }
        Act::DeleteAndCreate => {
            delete(world, NAMES[at]);
            ids[at] = create(world, NAMES[at]);
            model.clear();
        }
        Act::Restart => world.restart(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done to one namespace, the others have what was done to them and nothing else.
    #[test]
    fn nothing_crosses_a_namespace(acts in prop::collection::vec((0..3_usize, act()), 1..60)) {
        let mut world = world();
        let mut ids = NAMES.map(|name| create(&mut world, name));
        let mut models: [Model; 3] = Default::default();
        let router = RouterOrder::Declare {
            name: "own".to_owned(),
            settings: Box::new(RouterSettings::new(RouterKind::Fanout)),
        };
        order(&mut world, ids[0], Order::Router(router)).unwrap();
        for (at, act) in acts {
            carry_out(&mut world, &mut ids, &mut models[at], at, act);
            for (namespace, model) in ids.iter().zip(&models) {
                let found = entities(&world, *namespace);
                let found: Vec<_> = found.values().map(|it| (&*it.path, it.active)).collect();
                let expected: Vec<_> = model.iter().map(|(path, (count, _))| (*path, *count)).collect();
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(paths(&world, DEFAULT), [""; 0]);
        }
        for name in NAMES {
            delete(&mut world, name);
        }
        settle(&mut world);
        world.audit();
        world.disk.with_current(|image| assert_eq!(image.entities.len(), 0));
        world.disk.with_current(|image| assert_eq!(image.bodies.len(), 0));
    }
}

#[test]
fn a_namespace_has_no_more_entities_than_its_limit_says() {
    let mut world = world();
    let limited = |most| {
        Box::new(NamespaceDefinition {
            limits: NamespaceLimits {
                max_entities: most,
                ..NamespaceLimits::default()
            },
            ..*named("small")
        })
    };
    let full = "there can be 2 queues and topics";
    ensure(&mut world, DEFAULT, ["a", "b", "c"].map(queue).to_vec());
    let like = Some("default".to_owned());
    let create = NamespaceOrder::Create {
        definition: limited(Some(2)),
        like,
    };
    assert_eq!(about(&mut world, create).unwrap_err().to_string(), full);
    let create = NamespaceOrder::Create {
        definition: limited(Some(2)),
        like: None,
    };
    let Ok(NamespaceAnswer::One(made)) = about(&mut world, create) else {
        panic!("there is room for it");
    };
    ensure(&mut world, made.id, vec![queue("a"), queue("b")]);
    world.restart();
    let one_more = |world: &mut World| order(world, made.id, Order::ensure(vec![queue("c")]));
    let refused = one_more(&mut world).unwrap_err().to_string();
    assert!(refused.contains(full), "{refused}");
    assert_eq!(paths(&world, made.id), ["a", "b"]);
    // What is there stays, and other namespaces have nothing to do with it.
    let lower = NamespaceOrder::Replace(limited(Some(1)));
    assert!(about(&mut world, lower).is_ok());
    assert_eq!(paths(&world, made.id), ["a", "b"]);
    ensure(&mut world, DEFAULT, vec![queue("d")]);
    let lifted = NamespaceOrder::Replace(limited(None));
    assert!(about(&mut world, lifted).is_ok());
    assert_eq!(one_more(&mut world), Ok(Answer::Done));
    let nothing = NamespaceOrder::Replace(limited(Some(0)));
    let refused = about(&mut world, nothing).unwrap_err().to_string();
    assert_eq!(refused, "max-entities: 0 is below the minimum of 1");
}
