//! Orders of an administrator: entities and rules are created, changed, shown, listed and deleted,
//! each order whole or not at all.

use broker::{
    Answer, AuthorizationRule, BrokerSettings, Command, Correlation, EntityDescription,
    EntityError, EntityInfo, EntityPath, FilterDescription, Listing, Order, OriginalTexts, Output,
    QueueSettings, RuleDescription, RuleError, StoreOnlyProperties, Value,
};
use store::{EntryKey, Index, NamespaceId, SequenceNumber, Store, Write, WriteSet};

use crate::script::START;
use crate::world::{World, request};

type Answered = Result<Answer, EntityError>;

fn order(order: Order) -> Command {
    Command::Administer {
        request: request(1),
        namespace: NamespaceId(0),
        order: Box::new(order),
    }
}

fn answers(said: Vec<Output>) -> Vec<Answered> {
    let answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    answers.collect()
}

fn ask(world: &mut World, asked: Order) -> Answered {
    let mut answers = answers(world.turn(order(asked)));
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn entity(answer: Answered) -> EntityInfo {
    match answer {
        Ok(Answer::Entity(info)) => *info,
        other => panic!("{other:?}"),
    }
}

fn rule(answer: Answered) -> RuleDescription {
    match answer {
        Ok(Answer::Rule(rule)) => *rule,
        other => panic!("{other:?}"),
    }
}

fn queue(path: &str) -> EntityPath {
    EntityPath::Queue(path.to_owned())
}

fn subscription(name: &str) -> EntityPath {
    EntityPath::Subscription {
        topic: "T".to_owned(),
        name: name.to_owned(),
    }
}

fn create(path: EntityPath) -> Order {
    create_as(path, EntityDescription::default())
}

fn create_as(path: EntityPath, description: EntityDescription) -> Order {
    Order::Create {
        path,
        description: Box::new(description),
        rules: None,
    }
}

fn describe(path: &str) -> Order {
    let path = path.to_owned();
    Order::Describe { path }
}

fn world() -> World {
    World::empty(BrokerSettings::default())
}

fn world_with_topic() -> World {
    let mut world = world();
    entity(ask(&mut world, create(EntityPath::Topic("t".to_owned()))));
    world
}

fn forwarding_to(target: &str) -> EntityDescription {
    EntityDescription {
        settings: QueueSettings {
            forward_to: Some(target.to_owned()),
            ..QueueSettings::default()
        },
        ..EntityDescription::default()
    }
}

/// A description with every property different from its default.
fn everything() -> EntityDescription {
    let key = AuthorizationRule {
        listen: false,
        manage: false,
        secondary_key: "second".to_owned(),
        modified_time: Some("2020-01-01T00:00:00".to_owned()),
        ..AuthorizationRule::of_key("app".to_owned(), "first".to_owned())
    };
    EntityDescription {
        settings: QueueSettings {
            lock_duration: 30_000,
            max_delivery_count: 3,
            ..QueueSettings::default()
        },
        dead_lettering_on_filter_evaluation_exceptions: false,
        store_only: StoreOnlyProperties {
            user_metadata: Some("mine".to_owned()),
            enable_batched_operations: false,
            is_anonymous_accessible: true,
            support_ordering: false,
            enable_partitioning: true,
            enable_express: true,
            enable_subscription_partitioning: true,
            filtering_messages_before_publishing: true,
            authorization_rules: vec![key],
            texts: OriginalTexts {
                lock_duration: Some("PT0.5M".to_owned()),
                ..OriginalTexts::default()
            },
        },
    }
}

#[test]
fn of_two_who_create_the_same_at_once_one_is_told_that_it_exists() {
    let mut world = world();
    let commands = vec![
        order(create(queue("Orders"))),
        order(create(queue("orders"))),
    ];
    let answers = answers(world.turn_with(commands));
    assert_eq!(entity(answers[0].clone()).queue.path, "Orders");
    let exists = EntityError::Exists(broker::EntityKind::Queue);
    assert_eq!(answers[1], Err(exists.clone()));
    let topic = EntityPath::Topic("ORDERS".to_owned());
    assert_eq!(ask(&mut world, create(topic)), Err(exists));
}

#[test]
fn nobody_hears_of_an_entity_before_it_is_durable() {
    let mut world = world();
    world.disk.set_automatic(false);
    assert_eq!(world.turn(order(create(queue("q")))), vec![]);
    assert_eq!(world.turn(order(describe("q"))), vec![]);
    world.restart();
    world.disk.set_automatic(true);
    assert_eq!(ask(&mut world, describe("q")), Err(EntityError::NotFound));
}

#[test]
fn every_property_is_there_again_after_a_restart() {
    let mut world = world();
    let made = entity(ask(&mut world, create_as(queue("q"), everything())));
    world.restart();
    let found = entity(ask(&mut world, describe("Q")));
    assert_eq!(found, made);
    let EntityDescription {
        settings,
        store_only,
        ..
    } = everything();
    assert_eq!(found.queue.settings, settings);
    assert_eq!(*found.store_only, store_only);
}

#[test]
fn an_update_takes_the_place_of_the_whole_description() {
    let mut world = world();
    let made = entity(ask(&mut world, create_as(queue("q"), everything())));
    world.mono = 5_000;
    let mut description = everything();
    description.store_only.user_metadata = None;
    description.settings.lock_duration = 10_000;
    let update = Order::Update {
        entity: made.queue.id,
        description: Box::new(description),
    };
    let changed = entity(ask(&mut world, update.clone()));
    assert_eq!(changed.queue.settings.lock_duration, 10_000);
    assert_eq!(changed.store_only.user_metadata, None);
    assert_eq!(changed.queue.created.0, START);
    assert_eq!(changed.queue.updated.0, START + 5_000);
    let key = &changed.store_only.authorization_rules[0];
    let times = (key.created_time.as_deref(), key.modified_time.as_deref());
    assert_eq!(times, (None, Some("2020-01-01T00:00:00")), "as given");
    world.restart();
    assert_eq!(entity(ask(&mut world, describe("q"))), changed);
    let remove = Order::Remove {
        path: "q".to_owned(),
    };
    assert_eq!(ask(&mut world, remove.clone()), Ok(Answer::Done));
    assert_eq!(ask(&mut world, remove), Err(EntityError::NotFound));
    assert_eq!(ask(&mut world, update), Err(EntityError::NotFound));
}

#[test]
fn what_an_entity_became_by_its_creation_stays() {
    let mut world = world();
    let made = entity(ask(&mut world, create(queue("q"))));
    let mut refused = |change: fn(&mut EntityDescription), property: &'static str| {
        let mut description = Box::new(EntityDescription::default());
        change(&mut description);
        let entity = made.queue.id;
        let update = Order::Update {
            entity,
            description,
        };
        let kind = broker::EntityKind::Queue;
        let expected = Err(EntityError::Immutable { property, kind });
        assert_eq!(ask(&mut world, update), expected);
    };
    refused(|d| d.settings.requires_session = true, "RequiresSession");
    refused(
        |d| d.settings.requires_duplicate_detection = true,
        "RequiresDuplicateDetection",
    );
    refused(
        |d| d.store_only.enable_partitioning = true,
        "EnablePartitioning",
    );
    refused(
        |d| d.store_only.enable_subscription_partitioning = true,
        "EnableSubscriptionPartitioning",
    );
    assert_eq!(entity(ask(&mut world, describe("q"))), made);
}

#[test]
fn what_messages_are_forwarded_to_has_to_be_there_when_that_is_said() {
    let mut world = world_with_topic();
    let missing = ask(
        &mut world,
        create_as(queue("q"), forwarding_to("sb://h/nowhere")),
    );
    let expected = EntityError::Destination("sb://h/nowhere".to_owned());
    assert_eq!(missing, Err(expected));
    let itself = ask(
        &mut world,
        create_as(queue("q"), forwarding_to("https://h/Q")),
    );
    let expected = EntityError::Destination("https://h/Q".to_owned());
    assert_eq!(itself, Err(expected));
    let made = entity(ask(
        &mut world,
        create_as(queue("q"), forwarding_to("sb://h/T/")),
    ));
    let path = "t".to_owned();
    assert_eq!(ask(&mut world, Order::Remove { path }), Ok(Answer::Done));
    // The target is gone, yet the update does not name it anew.
    let update = Order::Update {
        entity: made.queue.id,
        description: Box::new(forwarding_to("sb://h/T/")),
    };
    entity(ask(&mut world, update));
}

#[test]
fn lists_are_in_the_order_of_names_and_in_pages() {
    let mut world = world_with_topic();
    for name in ["b", "C", "a/x", "A"] {
        entity(ask(&mut world, create(queue(name))));
        let name = name.replace('/', "-");
        entity(ask(&mut world, create(subscription(&name))));
    }
    let mut listed = |of: Listing, skip, top| {
        let answer = ask(&mut world, Order::List { of, skip, top });
        let Ok(Answer::Entities(page)) = answer else {
            panic!("{answer:?}");
        };
        let paths = page.items.into_iter().map(|info| info.queue.path);
        (paths.collect::<Vec<_>>().join(" "), page.more)
    };
    let (page, whole) = (
        |text: &str| (text.to_owned(), true),
        |text: &str| (text.to_owned(), false),
    );
    assert_eq!(listed(Listing::Queues, 0, 100), whole("A a/x b C"));
    assert_eq!(listed(Listing::Queues, 0, 3), page("A a/x b"));
    assert_eq!(listed(Listing::Queues, 3, 3), whole("C"));
    assert_eq!(listed(Listing::Queues, 9, 3), whole(""));
    assert_eq!(listed(Listing::Topics, 0, 100), whole("t"));
    let below = || Listing::Subscriptions("T".to_owned());
    let second = "t/Subscriptions/a-x t/Subscriptions/b";
    assert_eq!(listed(below(), 1, 2), page(second));
    let path = "nowhere".to_owned();
    let of = Listing::Subscriptions(path);
    let missing = ask(
        &mut world,
        Order::List {
            of,
            skip: 0,
            top: 1,
        },
    );
    assert_eq!(missing, Err(EntityError::NoTopic));
}

fn sql(name: &str, text: &str) -> RuleDescription {
    RuleDescription {
        name: name.to_owned(),
        filter: FilterDescription::Sql(text.to_owned()),
        filter_parameters: vec![("@limit".to_owned(), Value::Long(5))],
        action: Some("SET seen = @now".to_owned()),
        action_parameters: vec![("now".to_owned(), Value::Timestamp(1))],
        ..RuleDescription::default()
    }
}

#[test]
fn a_subscription_comes_with_its_rule_or_not_at_all() {
    let mut world = world_with_topic();
    let with = |rule: RuleDescription| Order::Create {
        path: subscription("s"),
        description: Box::default(),
        rules: Some(vec![rule]),
    };
    let refused = ask(&mut world, with(sql("big", "n >")));
    assert!(
        matches!(refused, Err(EntityError::Rule(RuleError::Invalid { .. }))),
        "{refused:?}"
    );
    assert_eq!(
        ask(&mut world, describe("t/subscriptions/s")),
        Err(EntityError::NotFound)
    );
    entity(ask(&mut world, with(sql("big", "n > @limit"))));
    world.restart();
    let rules = Order::ListRules {
        subscription: "T/subscriptions/S".to_owned(),
        skip: 0,
        top: 100,
    };
    let Ok(Answer::Rules(page)) = ask(&mut world, rules) else {
        panic!("no rules");
    };
    let expected = RuleDescription {
        created: broker::Wall(START),
        ..sql("big", "n > @limit")
    };
    assert_eq!((page.items, page.more), (vec![expected], false));
}

#[test]
fn rules_are_made_replaced_and_deleted_by_name() {
    let mut world = world_with_topic();
    entity(ask(&mut world, create(subscription("s"))));
    let path = || "t/Subscriptions/s".to_owned();
    let make = |rule: RuleDescription| Order::CreateRule {
        subscription: path(),
        rule: Box::new(rule),
    };
    let replace = |rule: RuleDescription| Order::ReplaceRule {
        subscription: path(),
        rule: Box::new(rule),
    };
    let show = |name: &str| Order::DescribeRule {
        subscription: path(),
        name: name.to_owned(),
    };
    rule(ask(&mut world, make(sql("Big", "n > @limit"))));
    let twice = ask(&mut world, make(sql("BIG", "n > 1")));
    assert_eq!(twice, Err(RuleError::Exists("BIG".to_owned()).into()));
    let missing = ask(&mut world, replace(sql("small", "n < 1")));
    assert_eq!(missing, Err(RuleError::NotFound("small".to_owned()).into()));
    world.mono = 3_000;
    let correlation = RuleDescription {
        name: "big".to_owned(),
        filter: FilterDescription::Correlation(Box::new(Correlation {
            label: Some("red".to_owned()),
            ..Correlation::default()
        })),
        ..RuleDescription::default()
    };
    let replaced = rule(ask(&mut world, replace(correlation.clone())));
    assert_eq!((&*replaced.name, replaced.created.0), ("Big", START));
    assert_eq!(replaced.filter, correlation.filter);
    let topic = entity(ask(&mut world, describe("t")));
    assert_eq!(topic.below.subscriptions, 1);
    assert_eq!(
        (topic.below.sql_filters, topic.below.correlation_filters),
        (1, 1)
    );
    world.restart();
    assert_eq!(rule(ask(&mut world, show("bIG"))), replaced);
    let remove = Order::RemoveRule {
        subscription: path(),
        name: "BIG".to_owned(),
    };
    assert_eq!(ask(&mut world, remove), Ok(Answer::Done));
    let gone = ask(&mut world, show("big"));
    assert_eq!(gone, Err(RuleError::NotFound("big".to_owned()).into()));
}

#[test]
fn a_rule_is_made_under_a_name_that_is_allowed() {
    let mut world = world_with_topic();
    let with = |name: &str| Order::Create {
        path: subscription("s"),
        description: Box::default(),
        rules: Some(vec![sql(name, "n > 1")]),
    };
    let make = |name: &str| Order::CreateRule {
        subscription: "t/Subscriptions/s".to_owned(),
        rule: Box::new(sql(name, "n > 1")),
    };
    let name_of = |name: &str| Err(broker::check_rule_name(name).unwrap_err());
    let refused = |answer: Answered| match answer {
        Err(EntityError::Rule(RuleError::Name(error))) => Err(error),
        other => Ok(other),
    };
    let wrong = ["a b", "a~b", "$other", "a/b", "..", "", &"x".repeat(51)];
    for name in wrong {
        assert_eq!(
            refused(ask(&mut world, with(name))),
            name_of(name),
            "{name}"
        );
    }
    entity(ask(&mut world, create(subscription("s"))));
    for name in wrong {
        assert_eq!(
            refused(ask(&mut world, make(name))),
            name_of(name),
            "{name}"
        );
    }
    for name in ["-a_", ".b.", &"x".repeat(50)] {
        rule(ask(&mut world, make(name)));
    }
}

#[test]
fn a_rule_that_the_store_has_keeps_its_name_whatever_it_is() {
    let mut world = world_with_topic();
    let made = entity(ask(&mut world, create(subscription("s"))));
    let mut writes = WriteSet::default();
    let stored = br#"{"name": "Big @ once", "filter": {"sql": "n > 5"}, "created": 1, "place": 7}"#;
    writes.push(Write::PutEntry {
        entity: made.queue.id,
        index: Index::Rule,
        key: EntryKey::new(&b"big @ once"[..], SequenceNumber(0)),
        value: stored[..].into(),
    });
    world.disk.crash().submit(writes);
    world.restart();
    let path = || "t/Subscriptions/s".to_owned();
    let show = Order::DescribeRule {
        subscription: path(),
        name: "big @ ONCE".to_owned(),
    };
    assert_eq!(rule(ask(&mut world, show)).name, "Big @ once");
    let replace = Order::ReplaceRule {
        subscription: path(),
        rule: Box::new(sql("big @ once", "n > 6")),
    };
    assert_eq!(rule(ask(&mut world, replace)).name, "Big @ once");
    let remove = Order::RemoveRule {
        subscription: path(),
        name: "big @ once".to_owned(),
    };
    assert_eq!(ask(&mut world, remove), Ok(Answer::Done));
}

#[test]
fn rules_of_nothing_tell_whether_the_topic_is_there() {
    let mut world = world_with_topic();
    let show = |subscription: &str| Order::DescribeRule {
        subscription: subscription.to_owned(),
        name: "r".to_owned(),
    };
    let below = ask(&mut world, show("t/subscriptions/none"));
    assert_eq!(below, Err(EntityError::NotFound));
    let nowhere = ask(&mut world, show("none/subscriptions/none"));
    assert_eq!(nowhere, Err(EntityError::NoTopic));
}
