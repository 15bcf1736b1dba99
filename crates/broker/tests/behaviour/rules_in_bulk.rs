//! Rules in bulk: what all rules of a topic may take of memory, and what one page of them may.

use broker::{
    Command, Correlation, Ensured, FilterDescription, Output, QueueSettings, RuleDescription,
    RuleError, Value,
};
use store::EntityId;

use crate::world::{World, ensure, remove, request};

/// As much as one rule may take, or nearly so.
const LARGE: usize = 60 << 10;
const FIRST: EntityId = EntityId(2);
const SECOND: EntityId = EntityId(3);

/// A topic with two subscriptions that have no rules.
fn world() -> World {
    let mut world = World::empty(broker::BrokerSettings::default());
    world.turn(ensure(Ensured::Topic {
        path: "t".to_owned(),
        settings: QueueSettings::default(),
    }));
    for name in ["first", "second"] {
        world.turn(ensure(Ensured::Subscription {
            topic: "t".to_owned(),
            name: name.to_owned(),
            settings: Box::default(),
            rules: Some(Vec::new()),
        }));
    }
    world
}

/// A correlation filter with one large value.
fn rule(name: &str, bytes: usize) -> Box<RuleDescription> {
    let correlation = Correlation {
        properties: vec![("key".to_owned(), Value::String("v".repeat(bytes)))],
        ..Correlation::default()
    };
    Box::new(RuleDescription {
        name: name.to_owned(),
        filter: FilterDescription::Correlation(Box::new(correlation)),
        ..RuleDescription::default()
    })
}

fn add(world: &mut World, entity: EntityId, rule: Box<RuleDescription>) -> Result<(), RuleError> {
    let said = world.turn(Command::AddRule {
        request: request(1),
        entity,
        rule,
    });
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::RuleChanged { result, .. } => Some(result),
        _ => None,
    });
    answers.next().unwrap()
}

fn page(world: &mut World, entity: EntityId, skip: usize, top: usize) -> Vec<RuleDescription> {
    let said = world.turn(Command::ListRules {
        request: request(2),
        entity,
        skip,
        top,
    });
    let mut answers = said.into_iter().filter_map(|output| match output {
        Output::Rules { result, .. } => Some(result.unwrap()),
        _ => None,
    });
    answers.next().unwrap()
}

#[test]
fn a_topics_rules_take_so_much_memory_together_and_no_more() {
    let mut world = world();
    let mut added = 0_usize;
    let refused = loop {
        let entity = if added.is_multiple_of(2) {
            FIRST
        } else {
            SECOND
        };
        match add(&mut world, entity, rule(&format!("r{added}"), LARGE)) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
        assert!(added < 2_000, "there is no bound");
    };
    assert!(matches!(refused, RuleError::TooLarge { limit } if limit == 64 << 20));
    assert!((1_000..=1_093).contains(&added), "{added} rules of 60 KiB");
    // Room is the topic's: what one subscription gives back is there for the other.
    assert!(add(&mut world, SECOND, rule("more", LARGE)).is_err());
    world.turn(Command::RemoveRule {
        request: request(3),
        entity: FIRST,
        name: "r0".to_owned(),
    });
    assert_eq!(add(&mut world, SECOND, rule("more", LARGE)), Ok(()));
    assert!(add(&mut world, SECOND, rule("still-more", LARGE)).is_err());
    // A restart counts the same.
    world.restart();
    assert!(add(&mut world, FIRST, rule("still-more", LARGE)).is_err());
    world.turn(remove("t/Subscriptions/second"));
    assert_eq!(add(&mut world, FIRST, rule("still-more", LARGE)), Ok(()));
}

#[test]
fn a_rule_that_has_no_room_for_what_a_file_makes_of_it_stays_as_it_is() {
    let mut world = world();
    add(&mut world, FIRST, rule("kept", 1)).unwrap();
    let mut added = 0;
    while add(&mut world, SECOND, rule(&format!("r{added}"), LARGE)).is_ok() {
        added += 1;
    }
    world.turn(ensure(Ensured::Subscription {
        topic: "t".to_owned(),
        name: "first".to_owned(),
        settings: Box::default(),
        rules: Some(vec![*rule("kept", LARGE)]),
    }));
    let check = |world: &mut World| {
        let page = page(world, FIRST, 0, 10);
        let [kept] = page.as_slice() else {
            panic!("{page:?}");
        };
        assert_eq!(kept.filter, rule("kept", 1).filter);
    };
    check(&mut world);
    world.restart();
    check(&mut world);
}

#[test]
fn a_page_of_rules_ends_with_the_one_that_takes_it_beyond_its_bytes() {
    let mut world = world();
    for index in 0..300 {
        add(&mut world, FIRST, rule(&format!("r{index:03}"), LARGE)).unwrap();
    }
    let (mut seen, mut pages) = (Vec::new(), Vec::new());
    loop {
        let page = page(&mut world, FIRST, seen.len(), 1_000);
        if page.is_empty() {
            break;
        }
        pages.push(page.len());
        seen.extend(page.into_iter().map(|rule| rule.name));
    }
    // 274 of 60 KiB are the first to be more than 16 MiB.
    assert_eq!(pages, [274, 26]);
    let names: Vec<_> = (0..300).map(|index| format!("r{index:03}")).collect();
    assert_eq!(seen, names);
    assert_eq!(page(&mut world, FIRST, 4, 2).len(), 2);
}
