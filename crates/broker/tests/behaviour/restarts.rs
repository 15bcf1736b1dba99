//! Restarts: what is durable is there again, locks are not.

use broker::{
    BrokerSettings, Ensured, NamespaceOrder, Order, QueueSettings, Shard, SubscriptionSettings,
};
use expect_test::expect;
use store::{Store, Write, WriteSet};

use crate::script::{check, check_after, describe, run};
use crate::world::{World, administer, request};

#[test]
fn locks_do_not_survive_and_numbers_go_on() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 2
        0s abandon r1 #1
        0s complete r1 #2
        1s restart
        1s counters
        1s complete r1 #1
        1s attach r1
        1s limit r1 9
        2s send d
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s abandon r1 #1: done
            0s complete r1 #2: done
            1s active 2 dead 0 deferred 0 bytes 2
            1s complete r1 #1: the lock is not held
            1s r1 gets #1 a count 1 until 31s
            1s r1 gets #3 c until 31s
            2s sent from #4
            2s r1 gets #4 d until 32s
        "#]],
    );
}

#[test]
fn what_was_not_durable_is_gone_and_its_number_is_given_again() {
    check(
        "
        0s send a
        0s sync manual
        1s send b
        2s restart
        2s counters
        2s sync manual
        2s send c
        2s sync
        ",
        expect![[r#"
            0s sent from #1
            2s active 1 dead 0 deferred 0 bytes 1
            2s sent from #2
        "#]],
    );
}

#[test]
fn stragglers_are_read_by_number_and_come_first() {
    let settings = BrokerSettings {
        window: 4,
        ..BrokerSettings::default()
    };
    let script = "
        0s queue lock=1h
        0s send first
        0s attach r1
        0s limit r1 1
        0s send x*2000
        0s attach r2 delete
        0s limit r2 1998
        1s restart
        1s reads late
        1s peek 1 9
        1s asked
        2s answer
        2s asked
        3s answer
        4s attach r3
        4s limit r3 9
        4s asked
        5s answer
        5s reads now
        5s answer
        ";
    let stage = expect![[r#"
        1s asked for Active #1
        2s asked for 8 of Active #2000..#2002 with bodies
        3s peek: #1 first, #2000 x, #2001 x
        4s asked for Active #1
        5s r3 gets #1 first until 3605s
        5s r3 gets #2000 x until 3605s
        5s r3 gets #2001 x until 3605s
    "#]];
    // Two thousand deliveries are of no interest here.
    check_after(settings, script, 2001, stage);
}

#[test]
fn a_queue_that_is_declared_again_keeps_its_messages_and_takes_the_new_settings() {
    check(
        "
        0s queue lock=5s
        0s send a
        1s restart
        1s queue lock=10s
        1s attach r1
        1s limit r1 1
        2s queue sessions
        ",
        expect![[r#"
            0s sent from #1
            1s r1 gets #1 a until 11s
            2s queue: requires-session cannot be changed after the queue was created
        "#]],
    );
}

#[test]
fn a_locked_message_behind_many_fetched_ones_is_found_again() {
    let deferred: Vec<String> = (1..=70).map(|number| format!("#{number}")).collect();
    let deferred = deferred.join(" ");
    let script = format!(
        "
        0s send a*72
        0s attach r1
        0s limit r1 70
        0s defer r1 {deferred}
        0s fetch r1 {deferred}
        0s limit r1 71
        0s send b
        1s restart
        1s attach r2
        1s limit r2 9
        "
    );
    let said = run(BrokerSettings::default(), &script);
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    let expected = [
        "1s r2 gets #73 b until 31s",
        "1s r2 gets #72 a until 31s",
        "1s r2 gets #71 a until 31s",
    ];
    assert_eq!(last, expected);
}

#[test]
fn a_subscription_whose_topic_is_missing_is_refused_by_name() {
    let mut world = world_with_subscription();
    check_refused(
        &mut world,
        "topic",
        "the subscription events/Subscriptions/all is damaged: its topic is missing; restore a backup",
    );
}

#[test]
fn what_a_snapshot_lacks_is_refused_by_name() {
    for (lost, detail) in [
        ("snapshot", "its snapshot is missing"),
        ("frozen topic", "its topic is missing"),
    ] {
        let mut world = world_with_subscription();
        let (name, snapshot) = ("default".to_owned(), "base".to_owned());
        let order = NamespaceOrder::TakeSnapshot { name, snapshot };
        world.turn(administer(request(0), Order::Namespaces(order)));
        let of = match lost {
            "snapshot" => "events",
            _ => "events/Subscriptions/all",
        };
        let text = format!("what a snapshot has of {of} is damaged: {detail}; restore a backup");
        check_refused(&mut world, lost, &text);
    }
}

/// A topic with a subscription.
fn world_with_subscription() -> World {
    let mut world = World::empty(BrokerSettings::default());
    let topic = Ensured::Topic {
        path: "events".to_owned(),
        settings: QueueSettings::default(),
    };
    let subscription = Ensured::Subscription {
        topic: "events".to_owned(),
        name: "all".to_owned(),
        settings: Box::new(SubscriptionSettings::default()),
        rules: None,
    };
    let order = Order::ensure(vec![topic, subscription]);
    world.turn(administer(request(0), order));
    world
}

/// A store that has lost an entity of this kind, the first one, is refused with this text.
fn check_refused(world: &mut World, lost: &str, expected: &str) {
    let open = |store| Shard::open(BrokerSettings::default(), describe, store, world.now());
    assert!(open(Box::new(world.disk.crash())).is_ok());
    let begins = |definition: &[u8]| {
        let definition = String::from_utf8_lossy(definition);
        match lost {
            "topic" => definition.starts_with(r#"{"topic""#),
            "snapshot" => definition.starts_with(r#"{"snapshot""#),
            _ => definition.starts_with(r#"{"frozen""#),
        }
    };
    let found = world.disk.with_current(|image| {
        let mut rows = image.entities.values();
        rows.find(|row| begins(&row.definition)).map(|row| row.id)
    });
    let mut damaged = world.disk.crash();
    let mut writes = WriteSet::default();
    writes.push(Write::RemoveEntity(found.expect("there is one")));
    damaged.submit(writes);
    drop(damaged);
    let refused = open(Box::new(world.disk.crash())).err().expect("refused");
    assert_eq!(refused.to_string(), expected);
}
