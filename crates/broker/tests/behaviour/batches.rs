//! Batches: several entities and rules made, changed and deleted as one, or none of them.

use broker::{
    Answer, Batch, BrokerSettings, Command, Correlation, Ensured, EntityDescription, EntityError,
    EntityPath, FilterDescription, MAX_BATCH, Order, Output, QueueSettings, RuleDescription,
    RuleError,
};
use store::{CommitId, Image, NamespaceId};

use crate::world::{World, administer, request};

type Answered = Result<Answer, EntityError>;

fn ask(world: &mut World, order: Order) -> Answered {
    let said = world.turn(Command::Administer {
        request: request(1),
        namespace: NamespaceId(0),
        order: Box::new(order),
    });
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    answers.next().unwrap()
}

fn apply(world: &mut World, batch: Batch) -> Answered {
    ask(world, Order::Apply(Box::new(batch)))
}

fn image(world: &World) -> (CommitId, Image) {
    let image = world.disk.with_current(Image::clone);
    (world.shard.submitted(), image)
}

/// The batch is refused for what is at `path`, and nothing has changed: not on disk, and not in
/// memory either, since the batch that says the same without the fault can be carried out, and
/// single orders find what they did before.
fn check_refused(world: &mut World, batch: Batch, path: &str, reason: &str) {
    let before = image(world);
    let shown = shown(world);
    let refused = apply(world, batch).unwrap_err();
    assert_eq!(refused.to_string(), format!("{path}: {reason}"));
    assert_eq!(refused.cause().to_string(), reason);
    assert!(image(world) == before, "something was written");
    assert_eq!(self::shown(world), shown);
}

/// All entities and rules.
fn shown(world: &World) -> (Vec<String>, Vec<String>) {
    let entities = world.shard.broker.entities();
    let entities = entities.map(|entity| format!("{} {:?}", entity.path, entity.settings));
    let rules = world.shard.broker.rules();
    let rules = rules.map(|rules| format!("{rules:?}"));
    (entities.collect(), rules.collect())
}

fn queue(path: &str) -> Ensured {
    Ensured::Queue {
        path: path.to_owned(),
        settings: QueueSettings::default(),
    }
}

fn topic(path: &str) -> Ensured {
    Ensured::Topic {
        path: path.to_owned(),
        settings: QueueSettings::default(),
    }
}

fn subscription(topic: &str, name: &str, rules: Option<Vec<RuleDescription>>) -> Ensured {
    Ensured::Subscription {
        topic: topic.to_owned(),
        name: name.to_owned(),
        settings: Box::default(),
        rules,
    }
}

fn sql(name: &str, text: &str) -> RuleDescription {
    RuleDescription {
        name: name.to_owned(),
        filter: FilterDescription::Sql(text.to_owned()),
        ..RuleDescription::default()
    }
}

fn correlation(name: &str, bytes: usize) -> RuleDescription {
    let correlation = Correlation {
        label: Some("x".repeat(bytes)),
        ..Correlation::default()
    };
    RuleDescription {
        name: name.to_owned(),
        filter: FilterDescription::Correlation(Box::new(correlation)),
        ..RuleDescription::default()
    }
}

fn ensuring(ensured: Vec<Ensured>) -> Batch {
    Batch {
        ensured,
        ..Batch::default()
    }
}

/// A topic `t` with a subscription `s`, whose rules are these.
fn world(rules: Vec<RuleDescription>) -> World {
    let mut world = World::empty(BrokerSettings::default());
    let batch = ensuring(vec![topic("t"), subscription("t", "s", Some(rules))]);
    apply(&mut world, batch).unwrap();
    world
}

fn rules(world: &mut World, path: &str) -> Vec<String> {
    let order = Order::ListRules {
        subscription: path.to_owned(),
        skip: 0,
        top: 10_000,
    };
    match ask(world, order) {
        Ok(Answer::Rules(page)) => page.items.into_iter().map(|rule| rule.name).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_is_one_commit_and_survives_whole() {
    let mut world = world(vec![sql("old", "a = 1"), sql("stays", "b = 1")]);
    apply(&mut world, ensuring(vec![queue("gone")])).unwrap();
    let before = world.shard.submitted();
    let batch = Batch {
        removed: vec!["GONE".to_owned()],
        removed_rules: vec![("T/subscriptions/S".to_owned(), "OLD".to_owned())],
        ensured: vec![
            queue("q"),
            topic("new"),
            subscription("NEW", "all", None),
            subscription(
                "t",
                "S",
                Some(vec![sql("stays", "b = 2"), sql("more", "c = 1")]),
            ),
        ],
        ..Batch::default()
    };
    assert_eq!(apply(&mut world, batch), Ok(Answer::Done));
    assert_eq!(world.shard.submitted(), before.next());
    for _ in 0..2 {
        let paths = world.shard.broker.entities().map(|entity| entity.path);
        let paths: Vec<_> = paths.collect();
        assert_eq!(
            paths,
            [
                "t",
                "t/Subscriptions/s",
                "q",
                "new",
                "new/Subscriptions/all"
            ]
        );
        assert_eq!(rules(&mut world, "t/Subscriptions/s"), ["more", "stays"]);
        assert_eq!(rules(&mut world, "new/Subscriptions/all"), ["$Default"]);
        world.restart();
    }
    world.audit();
}

#[test]
fn a_fault_at_the_end_leaves_nothing_of_the_beginning() {
    let mut world = world(vec![sql("r", "a = 1")]);
    let path = "t/Subscriptions/new/Rules/bad";
    let good = sql("good", "a = 1");
    let batch = Batch {
        removed_rules: vec![("t/Subscriptions/s".to_owned(), "r".to_owned())],
        ensured: vec![
            queue("q"),
            topic("t2"),
            subscription("t", "new", Some(vec![good, sql("bad", "a =")])),
        ],
        ..Batch::default()
    };
    let error = sql("bad", "a =").check().unwrap_err();
    assert!(matches!(error, RuleError::Invalid { .. }));
    check_refused(&mut world, batch, path, &error.to_string());
}

#[test]
fn what_is_not_there_can_not_go() {
    let mut world = world(Vec::new());
    let gone = |path: &str| Batch {
        removed: vec!["t".to_owned(), path.to_owned()],
        ..Batch::default()
    };
    check_refused(&mut world, gone("x"), "x", "the entity does not exist");
    let rule = |of: &str| Batch {
        removed_rules: vec![(of.to_owned(), "r".to_owned())],
        ..Batch::default()
    };
    check_refused(
        &mut world,
        rule("t/Subscriptions/s"),
        "t/Subscriptions/s/Rules/r",
        "the rule 'r' does not exist",
    );
    check_refused(&mut world, rule("t"), "t", "the entity does not exist");
    let below = Batch {
        removed: vec!["t".to_owned()],
        ensured: vec![subscription("t", "s", None)],
        ..Batch::default()
    };
    check_refused(&mut world, below, "t", "the entity does not exist");
}

#[test]
fn nothing_is_named_twice() {
    let mut world = world(vec![sql("r", "a = 1")]);
    let twice = "it is named twice";
    check_refused(
        &mut world,
        ensuring(vec![queue("q"), queue("Q")]),
        "Q",
        twice,
    );
    let rules = vec![sql("a", "a = 1"), sql("A", "b = 1")];
    check_refused(
        &mut world,
        ensuring(vec![subscription("t", "s", Some(rules))]),
        "t/Subscriptions/s/Rules/A",
        twice,
    );
    let batch = Batch {
        removed: vec!["t".to_owned()],
        ensured: vec![topic("T")],
        ..Batch::default()
    };
    check_refused(&mut world, batch, "T", twice);
}

#[test]
fn what_can_not_change_refuses_the_whole() {
    let mut world = world(Vec::new());
    let settings = QueueSettings {
        requires_session: true,
        ..QueueSettings::default()
    };
    let path = "t/Subscriptions/s";
    let ensured = Ensured::Subscription {
        topic: "t".to_owned(),
        name: "s".to_owned(),
        settings: Box::new(broker::SubscriptionSettings {
            queue: settings,
            ..Default::default()
        }),
        rules: None,
    };
    check_refused(
        &mut world,
        ensuring(vec![queue("q"), ensured]),
        path,
        "requires-session cannot be changed after the queue was created",
    );
    check_refused(
        &mut world,
        ensuring(vec![queue("q"), queue("t")]),
        "t",
        "'t' is something else already",
    );
}

#[test]
fn a_topics_subscriptions_are_counted_with_those_that_are_there_and_without_those_that_go() {
    let mut world = world(Vec::new());
    let more = |from: usize, to: usize| {
        (from..to).map(|index| subscription("t", &format!("n{index}"), Some(Vec::new())))
    };
    let path = "t/Subscriptions/n1999";
    let limit = "there can be 2000 subscriptions of a topic";
    let whole = ensuring(more(0, 2_000).collect());
    check_refused(&mut world, whole, path, limit);
    apply(&mut world, ensuring(more(0, 1_999).collect())).unwrap();
    let one = ensuring(more(1_999, 2_000).collect());
    check_refused(&mut world, one.clone(), path, limit);
    let instead = Batch {
        removed: vec!["t/Subscriptions/n0".to_owned()],
        ..one
    };
    assert_eq!(apply(&mut world, instead), Ok(Answer::Done));
}

#[test]
fn a_topics_rules_are_counted_as_they_will_be() {
    let sql_rules = |from: usize, to: usize| {
        (from..to)
            .map(|index| sql(&format!("r{index}"), "a = 1"))
            .collect::<Vec<_>>()
    };
    let mut world = world(sql_rules(0, 1_999));
    let limit = "a topic can have 2000 SQL filters";
    let other = |rules| ensuring(vec![subscription("t", "other", Some(rules))]);
    check_refused(
        &mut world,
        other(sql_rules(0, 2)),
        "t/Subscriptions/other/Rules/r1",
        limit,
    );
    // A new subscription that selects everything has an SQL filter too.
    let two = ensuring(vec![
        subscription("t", "x", None),
        subscription("t", "y", None),
    ]);
    check_refused(&mut world, two, "t/Subscriptions/y/Rules/$Default", limit);
    // What goes makes room, even if it is said last.
    let replaced = ensuring(vec![
        subscription("t", "other", Some(sql_rules(0, 2))),
        subscription("t", "s", Some(vec![correlation("r7", 10)])),
    ]);
    assert_eq!(apply(&mut world, replaced), Ok(Answer::Done));
    let one = ensuring(vec![subscription("t", "z", None)]);
    let path = "t/Subscriptions/z/Rules/$Default";
    check_refused(&mut world, one.clone(), path, limit);
    let gone = Batch {
        removed: vec!["t/Subscriptions/other".to_owned()],
        ..one
    };
    assert_eq!(apply(&mut world, gone), Ok(Answer::Done));
}

#[test]
fn a_topics_rules_take_so_many_bytes_as_they_will_be() {
    let large = |from: usize, to: usize| {
        (from..to)
            .map(|index| correlation(&format!("r{index}"), 60_000))
            .collect::<Vec<_>>()
    };
    let mut world = world(large(0, 1_100));
    let one = ensuring(vec![subscription("t", "s", Some(large(1_100, 1_120)))]);
    let path = "t/Subscriptions/s/Rules/r1118";
    let limit = "the rules of a topic can take 67108864 bytes";
    check_refused(&mut world, one.clone(), path, limit);
    let smaller = Batch {
        removed_rules: vec![("t/Subscriptions/s".to_owned(), "r0".to_owned())],
        ..one.clone()
    };
    check_refused(&mut world, smaller, "t/Subscriptions/s/Rules/r1119", limit);
    let smaller = Batch {
        removed_rules: (0..3)
            .map(|index| ("t/Subscriptions/s".to_owned(), format!("r{index}")))
            .collect(),
        ..one
    };
    assert_eq!(apply(&mut world, smaller), Ok(Answer::Done));
}

#[test]
fn queues_and_topics_are_counted() {
    let mut world = world(Vec::new());
    let queues = |to: usize| (0..to).map(|index| queue(&format!("q{index}")));
    let limit = "there can be 10000 queues and topics";
    check_refused(
        &mut world,
        ensuring(queues(10_000).collect()),
        "q9999",
        limit,
    );
    apply(&mut world, ensuring(queues(9_999).collect())).unwrap();
    let instead = Batch {
        removed: vec!["t".to_owned()],
        ensured: vec![queue("one-more")],
        ..Batch::default()
    };
    assert_eq!(apply(&mut world, instead), Ok(Answer::Done));
    check_refused(&mut world, ensuring(vec![topic("x")]), "x", limit);
}

#[test]
fn a_batch_that_is_too_large_for_a_turn_is_refused() {
    let mut world = world(Vec::new());
    let rules = vec![RuleDescription::default_rule(); MAX_BATCH];
    let batch = ensuring(vec![subscription("t", "s", Some(rules))]);
    let before = image(&world);
    let refused = apply(&mut world, batch).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there can be 250000 entities and rules in one batch"
    );
    let rules = (0..2_300).map(|index| correlation(&format!("r{index}"), 60_000));
    let batch = ensuring(vec![subscription("t", "s", Some(rules.collect()))]);
    let refused = apply(&mut world, batch).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there can be 134217728 bytes of rules in one batch"
    );
    assert!(image(&world) == before);
}

#[test]
fn a_dry_run_says_the_same_and_does_nothing() {
    let mut world = world(Vec::new());
    let dry = |ensured| Batch {
        dry_run: true,
        ..ensuring(ensured)
    };
    let before = image(&world);
    let good = dry(vec![queue("q")]);
    assert_eq!(apply(&mut world, good), Ok(Answer::Done));
    assert!(image(&world) == before);
    let bad = dry(vec![queue("q"), queue("t")]);
    check_refused(&mut world, bad, "t", "'t' is something else already");
}

#[test]
fn a_batch_for_another_version_of_the_namespace_is_refused() {
    fn version(world: &mut World) -> Option<u64> {
        match ask(world, Order::DescribeNamespace) {
            Ok(Answer::Namespace(info)) => Some(info.version),
            other => panic!("{other:?}"),
        }
    }
    let mut world = world(vec![sql("r", "a = 1")]);
    let rule = |rule: RuleDescription| {
        let (subscription, rule) = ("t/Subscriptions/s".to_owned(), Box::new(rule));
        Order::ReplaceRule { subscription, rule }
    };
    let changes = [
        Order::Create {
            path: EntityPath::Queue("other".to_owned()),
            description: Box::new(EntityDescription::default()),
            rules: None,
        },
        rule(sql("r", "a = 2")),
        Order::CreateRule {
            subscription: "t/Subscriptions/s".to_owned(),
            rule: Box::new(sql("r2", "a = 2")),
        },
        Order::RemoveRule {
            subscription: "t/Subscriptions/s".to_owned(),
            name: "r2".to_owned(),
        },
        Order::Remove {
            path: "other".to_owned(),
        },
    ];
    for change in changes {
        let batch = Batch {
            version: version(&mut world),
            ..ensuring(vec![queue("q")])
        };
        let text = format!("{change:?}");
        ask(&mut world, change).unwrap();
        let before = image(&world);
        let refused = apply(&mut world, batch);
        assert_eq!(refused, Err(EntityError::Changed), "{text}");
        assert!(image(&world) == before);
    }
    let batch = Batch {
        version: version(&mut world),
        ..ensuring(vec![queue("q")])
    };
    assert_eq!(apply(&mut world, batch.clone()), Ok(Answer::Done));
    assert_eq!(apply(&mut world, batch), Err(EntityError::Changed));
}

#[test]
fn one_subscription_that_a_file_says_comes_with_its_rules_or_not_at_all() {
    let mut world = world(Vec::new());
    let rules = (0..2_000).map(|index| sql(&format!("r{index}"), "a = 1"));
    let full = ensuring(vec![subscription("t", "full", Some(rules.collect()))]);
    apply(&mut world, full).unwrap();
    let before = image(&world);
    let said = world.turn(administer(
        request(1),
        Order::ensure(vec![Ensured::Subscription {
            topic: "t".to_owned(),
            name: "half".to_owned(),
            settings: Box::default(),
            rules: Some(vec![correlation("good", 1), sql("bad", "a = 1")]),
        }]),
    ));
    let refused = said.into_iter().find_map(|output| match output {
        Output::Administered { result, .. } => Some(result.unwrap_err().cause().to_string()),
        _ => None,
    });
    assert_eq!(refused.unwrap(), "a topic can have 2000 SQL filters");
    assert!(image(&world) == before);
}

#[test]
fn a_subscription_that_is_created_has_all_of_its_rules_or_is_not_there() {
    let mut world = world(Vec::new());
    let create = |rules: Vec<RuleDescription>| Order::Create {
        path: EntityPath::Subscription {
            topic: "t".to_owned(),
            name: "n".to_owned(),
        },
        description: Box::default(),
        rules: Some(rules),
    };
    let before = image(&world);
    for (second, reason) in [
        (sql("b", "a ="), None),
        (sql("A", "a = 1"), Some("the rule 'A' exists already")),
    ] {
        let refused = ask(&mut world, create(vec![sql("a", "a = 1"), second]));
        let refused = refused.unwrap_err().to_string();
        assert!(reason.is_none_or(|reason| refused == reason), "{refused}");
        assert!(image(&world) == before);
    }
    let many: Vec<_> = (0..2_001)
        .map(|index| sql(&format!("r{index}"), "a = 1"))
        .collect();
    let refused = ask(&mut world, create(many)).unwrap_err();
    assert_eq!(refused.to_string(), "a topic can have 2000 SQL filters");
    assert!(image(&world) == before);
    ask(
        &mut world,
        create(vec![sql("a", "a = 1"), sql("b", "b = 1")]),
    )
    .unwrap();
    assert_eq!(rules(&mut world, "t/Subscriptions/n"), ["a", "b"]);
}
