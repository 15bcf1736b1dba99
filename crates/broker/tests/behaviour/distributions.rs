//! Distributions: what is said of a message before a topic has it comes to the same as what the
//! topic says itself, holds for its generation of rules only, and saves the shard the work.

use broker::{
    BrokerSettings, Command, Correlation, Ensured, FilterDescription, Incoming, Operation,
    QueueSettings, RefusalReport, RequestId, RuleDescription, RuleSnapshot, SubscriptionSettings,
    Value,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use store::{EntityId, Image, Part};

use crate::world::{World, ensure, remove, request};

const TOPIC: EntityId = EntityId(1);
/// Subscriptions follow their topic.
const FIRST: u64 = 2;

/// A topic with subscriptions that have these rules.
fn world(settings: BrokerSettings, subscriptions: &[Vec<RuleDescription>]) -> World {
    let mut world = World::empty(settings);
    world.turn(ensure(Ensured::Topic {
        path: "t".to_owned(),
        settings: QueueSettings::default(),
    }));
    for (index, rules) in subscriptions.iter().enumerate() {
        world.turn(ensure(Ensured::Subscription {
            topic: "t".to_owned(),
            name: format!("s{index}"),
            settings: Box::new(SubscriptionSettings {
                dead_lettering_on_filter_evaluation_exceptions: index % 3 != 2,
                ..SubscriptionSettings::default()
            }),
            rules: Some(rules.clone()),
        }));
    }
    world
}

fn sql(name: &str, text: &str, action: Option<&str>) -> RuleDescription {
    RuleDescription {
        name: name.to_owned(),
        filter: FilterDescription::Sql(text.to_owned()),
        action: action.map(str::to_owned),
        ..RuleDescription::default()
    }
}

fn snapshot(world: &World) -> RuleSnapshot {
    world.shard.broker.rules().next().unwrap().1
}

/// A message with an application property `n`, and what these rules make of it.
fn message(n: i64, rules: Option<&RuleSnapshot>) -> Incoming {
    let mut out = BytesMut::new();
    let properties = [(Value::from("n"), Value::Long(n))];
    amqp::message::encode_map_section(&mut out, 0x74, &properties);
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, b"hello");
    let payload = out.freeze();
    let distribution = rules.and_then(|rules| rules.distribute(&payload, &mut 0));
    Incoming {
        distribution: distribution.map(Box::new),
        payload,
        ..Incoming::default()
    }
}

fn send(world: &mut World, messages: Vec<Incoming>) {
    world.turn(Command::Send {
        request: request(1),
        entity: TOPIC,
        messages,
    });
}

fn count(world: &World, entity: u64, part: Part) -> u64 {
    let head = |image: &Image| {
        let head = image.heads.get(&EntityId(entity));
        head.map_or(0, |head| head.part(part).count)
    };
    world.disk.with_current(head)
}

/// How many copies each of the subscriptions has.
fn copies(world: &World, subscriptions: u64) -> Vec<u64> {
    let entities = FIRST..FIRST + subscriptions;
    entities.map(|id| count(world, id, Part::Active)).collect()
}

#[test]
fn what_was_said_before_the_rules_changed_is_not_used() {
    let rules = [
        vec![sql("one", "n = 1", None)],
        vec![sql("two", "n = 2", None)],
    ];
    let mut world = world(BrokerSettings::default(), &rules);
    let old = snapshot(&world);
    send(&mut world, vec![message(1, Some(&old))]);
    assert_eq!(copies(&world, 2), [1, 0]);
    // A rule more, a rule less, and the same rules again: each time it is another generation.
    let entity = EntityId(FIRST + 1);
    let rule = Box::new(sql("also", "n = 1", None));
    world.turn(Command::AddRule {
        request: request(2),
        entity,
        rule,
    });
    send(&mut world, vec![message(1, Some(&old))]);
    assert_eq!(copies(&world, 2), [2, 1]);
    let more = snapshot(&world);
    world.turn(Command::RemoveRule {
        request: request(3),
        entity,
        name: "also".to_owned(),
    });
    send(
        &mut world,
        vec![message(1, Some(&more)), message(1, Some(&old))],
    );
    assert_eq!(copies(&world, 2), [4, 1]);
    assert_ne!(snapshot(&world), old);
}

#[test]
fn rules_that_change_later_do_not_touch_what_was_accepted() {
    let rules = [vec![sql("one", "n = 1", None)], Vec::new()];
    // A message goes on in each turn.
    let settings = BrokerSettings {
        turn_work: 1,
        ..BrokerSettings::default()
    };
    let mut world = world(settings, &rules);
    let said = snapshot(&world);
    send(&mut world, vec![message(1, Some(&said)); 20]);
    assert!(copies(&world, 1)[0] < 20, "some wait");
    world.turn(Command::AddRule {
        request: request(2),
        entity: EntityId(FIRST + 1),
        rule: Box::new(sql("all", "1 = 1", None)),
    });
    world.turn(Command::RemoveRule {
        request: request(3),
        entity: EntityId(FIRST),
        name: "one".to_owned(),
    });
    while world.step_to(1) {
        world.turn_with(Vec::new());
    }
    assert_eq!(copies(&world, 2), [20, 0]);
}

#[test]
fn a_subscription_that_has_gone_takes_no_copy_and_a_new_one_of_its_name_does() {
    let rules = [
        vec![sql("one", "n = 1", None)],
        vec![sql("two", "n = 1", None)],
    ];
    let mut world = world(BrokerSettings::default(), &rules);
    let old = snapshot(&world);
    world.turn(remove("t/Subscriptions/s0"));
    send(&mut world, vec![message(1, Some(&old))]);
    assert_eq!(copies(&world, 2), [0, 1]);
    world.turn(ensure(Ensured::Subscription {
        topic: "t".to_owned(),
        name: "s0".to_owned(),
        settings: Box::default(),
        rules: Some(rules[0].clone()),
    }));
    send(&mut world, vec![message(1, Some(&old))]);
    assert_eq!(copies(&world, 3), [0, 2, 1]);
}

#[test]
fn what_asks_for_numbers_and_times_is_answered_when_the_message_has_them() {
    let rules = [
        vec![sql("number", "sys.SequenceNumber = 2", None)],
        vec![sql("time", "sys.EnqueuedTimeUtc IS NULL", None)],
        vec![sql(
            "either",
            "n = 1",
            Some("SET number = sys.SequenceNumber"),
        )],
        vec![sql("early", "n = 1", None)],
    ];
    let mut world = world(BrokerSettings::default(), &rules);
    let rules = snapshot(&world);
    send(
        &mut world,
        vec![message(1, Some(&rules)), message(1, Some(&rules))],
    );
    assert_eq!(copies(&world, 4), [1, 0, 2, 2]);
    let numbers = world.disk.with_current(|image| {
        let bodies = image.bodies.iter();
        let changed = bodies.filter(|((home, _), _)| home.0 == FIRST + 2);
        let numbers = changed.map(|(_, body)| find_long(body, "number"));
        numbers.collect::<Vec<_>>()
    });
    assert_eq!(numbers, [Some(1), Some(2)]);
}

/// The value of an application property.
fn find_long(body: &Bytes, name: &str) -> Option<i64> {
    let sections = amqp::message::Sections::scan(body).unwrap();
    let mut items = amqp::items::Items::of(&body[sections.application_properties]).unwrap();
    while let Some((key, value)) = items.next_entry().unwrap() {
        if amqp::items::text(key) == Some(name) {
            return amqp::items::integer(value);
        }
    }
    None
}

#[test]
fn a_queue_makes_nothing_of_a_distribution_that_is_not_its_own() {
    let rules = [vec![sql("one", "n = 1", None)]];
    let mut world = world(BrokerSettings::default(), &rules);
    world.turn(ensure(Ensured::Queue {
        path: "q".to_owned(),
        settings: QueueSettings::default(),
    }));
    let rules = snapshot(&world);
    world.turn(Command::Send {
        request: request(1),
        entity: EntityId(FIRST + 1),
        messages: vec![message(1, Some(&rules))],
    });
    assert_eq!(copies(&world, 2), [0, 1]);
}

#[test]
fn a_transaction_carries_what_was_said_of_its_messages() {
    let rules = [vec![sql("one", "n = 1", None)]];
    let mut world = world(BrokerSettings::default(), &rules);
    let rules = snapshot(&world);
    let ask = |token| RequestId {
        connection: broker::ConnectionId(5),
        token,
    };
    let said = world.turn(Command::Declare {
        request: ask(0),
        namespace: store::NamespaceId(0),
        coordinator: 0,
    });
    let [
        broker::Output::Declared {
            result: Ok(transaction),
            ..
        },
    ] = said[..]
    else {
        panic!("{said:?}");
    };
    world.turn(Command::Enlist {
        request: ask(1),
        transaction,
        operation: Box::new(Operation::Send {
            entity: TOPIC,
            messages: vec![message(1, Some(&rules)), message(2, Some(&rules))],
        }),
        scope: None,
        refusal: RefusalReport::Misread,
    });
    assert_eq!(copies(&world, 1), [0]);
    world.turn(Command::Discharge {
        request: ask(2),
        transaction,
        fail: false,
    });
    assert_eq!(copies(&world, 1), [1]);
}

/// A long condition on `n`, of which nothing is certain before its end.
fn slow(n: usize) -> String {
    let terms = (0..20).map(|term| format!("n + {term} = {}", 1_000 * n + 7));
    terms.collect::<Vec<_>>().join(" OR ")
}

#[test]
fn rules_that_the_shard_evaluates_count_as_work_and_those_that_were_evaluated_before_do_not() {
    let rules: Vec<_> = (1..=100)
        .map(|n| sql(&n.to_string(), &slow(n), None))
        .collect();
    let everything = vec![sql("all", "1 = 1", None)];
    let passed_in_one_turn = |hinted: bool| {
        let mut world = world(
            BrokerSettings::default(),
            &[rules.clone(), everything.clone()],
        );
        let snapshot = snapshot(&world);
        let message = message(1, hinted.then_some(&snapshot));
        send(&mut world, vec![message; 300]);
        let first = count(&world, FIRST + 1, Part::Active);
        // What is left over goes on by itself.
        while world.step_to(1) {
            world.turn_with(Vec::new());
        }
        assert_eq!(copies(&world, 2), [0, 300]);
        first
    };
    assert_eq!(passed_in_one_turn(true), 300);
    let evaluated = passed_in_one_turn(false);
    assert!(
        (1..=40).contains(&evaluated),
        "{evaluated} messages in a turn"
    );
}

fn rule() -> impl Strategy<Value = RuleDescription> {
    let correlation = |n: i64| {
        FilterDescription::Correlation(Box::new(Correlation {
            properties: vec![("n".to_owned(), Value::Long(n))],
            ..Correlation::default()
        }))
    };
    let sql = |text: &str| Just(FilterDescription::Sql(text.to_owned()));
    let filter = prop_oneof![
        sql("1 = 1"),
        sql("n > 1"),
        sql("n = 0 OR n = 3"),
        sql("sys.SequenceNumber > 2"),
        sql("sys.SequenceNumber / (n - 1) > 0"),
        sql("1 / n > 0"),
        sql("n = newid()"),
        (0..4_i64).prop_map(correlation),
    ];
    let action = prop_oneof![
        4 => Just(None),
        1 => Just(Some("SET a = n")),
        1 => Just(Some("SET a = sys.SequenceNumber")),
        1 => Just(Some("SET a = 1 / (n - 2)")),
        1 => Just(Some("REMOVE n")),
        1 => Just(Some("SET sys.SessionId = 'x'; SET b = sys.EnqueuedSequenceNumber")),
    ];
    (filter, action).prop_map(|(filter, action)| RuleDescription {
        filter,
        action: action.map(str::to_owned),
        ..RuleDescription::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_copies_are_the_same_whoever_evaluates_the_rules(
        mut subscriptions in prop::collection::vec(prop::collection::vec(rule(), 0..6), 1..5),
        messages in prop::collection::vec(0..5_i64, 1..12),
        turn_work in 2..40_usize,
    ) {
        for rules in &mut subscriptions {
            for (index, rule) in rules.iter_mut().enumerate() {
                rule.name = format!("rule {index}");
            }
        }
        let run = |hinted: bool| {
            let settings = BrokerSettings { turn_work, ..BrokerSettings::default() };
            let mut world = world(settings, &subscriptions);
            let rules = snapshot(&world);
            let messages = messages.iter().map(|n| message(*n, hinted.then_some(&rules)));
            let messages = messages.collect();
            send(&mut world, messages);
            while world.step_to(1) {
                world.turn_with(Vec::new());
            }
            assert_eq!(world.disk.violations(), vec![]);
            world.disk.with_current(Image::clone)
        };
        let (inside, outside) = (run(false), run(true));
        prop_assert_eq!(inside.audit(), vec![]);
        prop_assert_eq!(&inside.messages, &outside.messages);
        prop_assert_eq!(&inside.bodies, &outside.bodies);
        prop_assert_eq!(&inside.patches, &outside.patches);
        prop_assert_eq!(&inside.heads, &outside.heads);
        prop_assert_eq!(inside, outside);
    }
}
