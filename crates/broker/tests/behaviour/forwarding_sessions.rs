//! Forwarding from queues and subscriptions with sessions. (docs/spec/entities.md#14.1)

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn small() -> BrokerSettings {
    BrokerSettings {
        turn_work: 3,
        window: 2,
        body_bytes: 0,
        ..BrokerSettings::default()
    }
}

#[test]
fn messages_go_on_in_the_order_of_their_numbers_and_keep_their_sessions() {
    check(
        "
        0s queue name=b sessions
        0s queue name=a sessions forward=b
        0s send in=a a:A b:B c:A encoded
        1s send in=a d:B encoded
        1s rows
        1s accept r1 A in=b
        1s limit r1 5
        1s accept r2 B in=b
        1s limit r2 5
        1s counters in=a
        1s counters in=b
        ",
        expect![[r#"
        "#]],
    );
}

#[test]
fn what_was_there_before_goes_on_when_forwarding_is_set_and_after_a_restart() {
    check_with(
        small(),
        "
        0s queue name=b
        0s queue name=a sessions
        0s send in=a a:A b:B c:A d:C e:B encoded
        1s queue name=a sessions forward=b disabled
        2s restart
        3s counters in=a
        3s queue name=a sessions forward=b
        4s attach r1 in=b
        4s limit r1 9
        4s counters in=a
        4s counters in=b
        ",
        expect![[r#"
        "#]],
    );
}

#[test]
fn a_holder_is_sent_away_and_its_messages_go_on() {
    check(
        "
        0s queue name=b
        0s queue name=a sessions
        0s send in=a a:A b:A c:B encoded
        0s accept r1 A in=a
        0s limit r1 1
        1s queue name=a sessions forward=b
        1s accept r1 B in=a
        2s attach r2 in=b
        2s limit r2 9
        2s counters in=a
        ",
        expect![[r#"
        "#]],
    );
}

#[test]
fn what_expires_or_cannot_go_leaves_for_the_dead_letter_queues() {
    check(
        "
        0s queue name=b disabled
        0s queue name=a sessions forward=b dead-letter-expired ttl=10s
        0s send in=a a:A encoded
        20s send in=a b:A c:B encoded
        21s queue name=b
        22s attach r1 in=b
        22s limit r1 9
        23s remove in=b
        24s send in=a d:C encoded
        25s counters in=a
        25s info in=a
        ",
        expect![[r#"
        "#]],
    );
}

#[test]
fn a_destination_that_detects_duplicates_takes_each_id_once() {
    check_with(
        small(),
        "
        0s queue name=b window=20s
        0s queue name=a sessions forward=b
        0s send in=a a:A@1 b:B@1 c:A@2 encoded
        0s restart
        1s send in=a d:A@2 e:C@3 encoded
        2s attach r1 in=b
        2s limit r1 9
        2s counters in=a
        2s counters in=b
        ",
        expect![[r#"
        "#]],
    );
}
