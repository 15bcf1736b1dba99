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
            0s sent from #1
            1s sent from #4
            1s 4 rows and 4 bodies
            1s r1 holds A until 31s
            1s r1 gets #1 a until 31s
            1s r1 gets #3 c until 31s
            1s r2 holds B until 31s
            1s r2 gets #2 b until 31s
            1s r2 gets #4 d until 31s
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 4 dead 0 deferred 0 bytes 108
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
            0s sent from #1
            3s active 5 dead 0 deferred 0 bytes 135
            4s r1 gets #1 a until 34s
            4s r1 gets #2 b until 34s
            4s r1 gets #3 c until 34s
            4s r1 gets #4 d until 34s
            4s r1 gets #5 e until 34s
            4s active 0 dead 0 deferred 0 bytes 0
            4s active 5 dead 0 deferred 0 bytes 135
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
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            1s r1 evicted: messages are forwarded from here
            1s r1 evicted: messages are forwarded from here
            2s r2 gets #1 a until 32s
            2s r2 gets #2 b until 32s
            2s r2 gets #3 c until 32s
            2s active 0 dead 0 deferred 0 bytes 0
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
            0s sent from #1
            20s sent from #2
            22s r1 gets #1 b first #2 expires 32s until 52s
            22s r1 gets #2 c first #3 expires 32s until 52s
            23s r1 evicted: the entity does not exist
            23s b is gone
            23s removed
            24s sent from #4
            25s active 0 dead 1 deferred 0 bytes 54
            25s transfer 0 dead in transfer 1 created 0s updated 0s accessed 24s
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
            0s sent from #1
            1s sent from #4
            2s r1 gets #1 a until 32s
            2s r1 gets #2 c first #3 until 32s
            2s r1 gets #3 e first #5 until 32s
            2s active 0 dead 0 deferred 0 bytes 0
            2s active 3 dead 0 deferred 0 bytes 87
        "#]],
    );
}

#[test]
fn a_message_whose_id_cannot_be_looked_up_stays_and_all_others_go_on() {
    check(
        "
        0s queue name=b window=20s
        0s send in=b encoded o@9
        0s queue name=a sessions forward=b
        1s restart
        1s reads late
        1s send in=a encoded x:A@1 y:B@2
        1s answer
        1s answer damaged
        1s answer
        1s answer
        1s answer
        1s answer
        1s asked
        1s counters in=a
        1s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #1
            1s asked for 
            1s active 1 dead 0 deferred 0 bytes 29
            1s active 2 dead 0 deferred 0 bytes 56
        "#]],
    );
}

#[test]
fn a_damaged_message_stays_and_all_others_go_on() {
    check(
        "
        0s queue name=b
        0s queue name=a sessions
        0s send in=a a:A b:B c:A encoded
        1s reads late
        1s queue name=a sessions forward=b
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s answer damaged
        1s answer damaged
        1s answer damaged
        1s answer damaged
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        1s answer
        1s asked
        1s answer
        1s answer
        1s counters in=a
        1s counters in=b
        2s send in=a d:A encoded
        2s asked
        2s answer
        2s counters in=a
        2s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 256 of Active #1..#4 with bodies
            1s asked for 128 of Active #1..#4 with bodies
            1s asked for 2 of Active #1..#4 with bodies
            1s asked for 1 of Active #1..#4 with bodies
            1s asked for 1 of Active #1..#4
            1s asked for 256 of Active #2..#4 with bodies
            1s active 1 dead 0 deferred 0 bytes 27
            1s active 2 dead 0 deferred 0 bytes 54
            2s sent from #4
            2s asked for 256 of Active #2..#5 with bodies
            2s active 1 dead 0 deferred 0 bytes 27
            2s active 3 dead 0 deferred 0 bytes 81
        "#]],
    );
}

#[test]
fn damaged_rows_stay_and_all_others_go_on() {
    check(
        "
        0s queue name=b
        0s queue name=a sessions
        0s send in=a a:A b:B c:A d:B encoded
        1s reads late
        1s queue name=a sessions forward=b
        1s answer unreadable 1 2 4
        1s asked
        1s answer
        1s asked
        1s answer unreadable 0 2 4
        1s asked
        1s answer
        1s answer
        1s counters in=a
        1s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 1 of Active #1..#5 with bodies
            1s asked for 8 of Session 9413270669427828315ms #2..9413270669427828315ms #5, 256 of Active #2..#5 with bodies
            1s asked for 1 of Session 9413270669427828315ms #2..9413270669427828315ms #5, 256 of Active #4..#5 with bodies
            1s active 2 dead 0 deferred 0 bytes 54
            1s active 2 dead 0 deferred 0 bytes 54
        "#]],
    );
}
