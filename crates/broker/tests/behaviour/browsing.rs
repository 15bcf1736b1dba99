//! Browsers: receivers that are shown messages and take none.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with, run};

#[test]
fn a_browser_is_shown_everything_in_order_and_takes_nothing() {
    check(
        "
        0s send a b c d
        0s attach r1
        0s limit r1 2
        0s defer r1 #1
        0s attach r2 copy
        0s limit r2 2
        1s limit r2 9
        1s counters
        2s send e
        2s complete r2 #3
        2s limit r1 9
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s r2 gets #2 b
            0s r2 gets #3 c
            1s r2 gets #4 d
            1s active 3 dead 0 deferred 1 bytes 4
            2s sent from #5
            2s r2 gets #5 e
            2s complete r2 #3: the lock is not held
            2s r1 gets #3 c until 32s
            2s r1 gets #4 d until 32s
            2s r1 gets #5 e until 32s
            3s active 4 dead 0 deferred 1 bytes 5
        "#]],
    );
}

#[test]
fn a_drain_ends_a_browse() {
    check(
        "
        0s attach r1 copy
        0s limit r1 5 drain
        1s send a b
        1s limit r1 10 drain
        2s limit r1 15 drain
        ",
        expect![[r#"
            0s r1 drained
            1s sent from #1
            1s r1 gets #1 a
            1s r1 gets #2 b
            1s r1 drained
            2s r1 drained
        "#]],
    );
}

#[test]
fn browsers_hold_nobody_up_and_each_has_its_own_place() {
    check(
        "
        0s attach r1 copy
        0s attach r2 copy
        0s attach r3
        0s limit r1 1
        0s limit r2 9
        0s limit r3 9
        0s send a b
        1s complete r3 #1
        1s complete r3 #2
        1s send c
        1s limit r1 9
        ",
        expect![[r#"
            0s sent from #1
            0s r3 gets #1 a until 30s
            0s r3 gets #2 b until 30s
            0s r1 gets #1 a
            0s r2 gets #1 a
            0s r2 gets #2 b
            1s complete r3 #1: done
            1s complete r3 #2: done
            1s sent from #3
            1s r3 gets #3 c until 31s
            1s r2 gets #3 c
            1s r1 gets #3 c
        "#]],
    );
}

#[test]
fn a_browser_with_a_selector_is_shown_what_it_selects() {
    check(
        "
        0s send a encoded n=1
        0s send b encoded n=2
        0s send c encoded n=1
        0s attach r1 copy where n = 1
        0s limit r1 5
        1s send d encoded n=2
        1s send e encoded n=1
        2s limit r1 9 drain
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s r1 gets #1 a n=1
            0s r1 gets #3 c n=1
            1s sent from #4
            1s sent from #5
            1s r1 gets #5 e n=1
            2s r1 drained
        "#]],
    );
}

#[test]
fn a_browser_reads_further_at_once_while_its_selector_selects_nothing() {
    check(
        "
        0s send a*200 encoded n=1
        0s send b encoded n=2
        0s reads late
        0s attach r1 copy where n = 2
        0s limit r1 1
        0s asked
        0s answer
        0s asked
        0s answer
        0s asked
        0s answer
        0s limit r1 2
        0s send c encoded n=2
        0s asked
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #201
            0s asked for 32 of Active #1..#202 with bodies
            0s asked for 64 of Active #33..#202 with bodies
            0s asked for 128 of Active #97..#202 with bodies
            0s r1 gets #201 b n=2
            0s sent from #202
            0s asked for 32 of Active #202..#203 with bodies
            0s r1 gets #202 c n=2
        "#]],
    );
}

#[test]
fn what_is_scheduled_is_shown_when_its_time_has_come() {
    check(
        "
        0s send a b+5s
        0s attach r1 copy
        0s limit r1 9
        5s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a
            5s r1 gets #3 b
        "#]],
    );
}

#[test]
fn a_dead_letter_that_arrives_behind_others_is_shown() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 9
        0s attach r2 copy dead
        0s limit r2 9
        1s reject r1 #3
        2s reject r1 #1
        3s abandon r1 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            1s reject r1 #3: done
            1s r2 gets #3 c
            2s reject r1 #1: done
            2s r2 gets #1 a
            3s abandon r1 #2: done
            3s r1 gets #2 b count 1 until 33s
        "#]],
    );
}

#[test]
fn a_queue_with_sessions_can_be_browsed() {
    check(
        "
        0s queue sessions
        0s send a:x b:y c:x
        0s attach r1 copy
        0s limit r1 9
        1s send d:y
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a
            0s r1 gets #2 b
            0s r1 gets #3 c
            1s sent from #4
            1s r1 gets #4 d
        "#]],
    );
}

#[test]
fn a_long_backlog_is_shown_whole_without_memory() {
    let mut expected = String::from("0s sent from #1\n");
    for number in 1..=1_000 {
        expected += &format!("0s r1 gets #{number} a\n");
    }
    expected += "1s r1 drained\n";
    let tiny = BrokerSettings {
        window: 2,
        body_bytes: 0,
        ..BrokerSettings::default()
    };
    let script = "
        0s send a*1000
        0s attach r1 copy
        0s limit r1 1000
        1s limit r1 2000 drain
        ";
    assert_eq!(run(tiny, script), expected);
}

#[test]
fn a_browser_waits_while_its_connection_writes() {
    check_with(
        BrokerSettings {
            output_buffer_bytes: 257,
            ..BrokerSettings::default()
        },
        "
        0s send a b c
        0s attach r1 copy
        0s limit r1 9
        1s written r1 257
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a
            1s r1 gets #2 b
        "#]],
    );
}

#[test]
fn a_damaged_message_is_passed_over() {
    check(
        "
        0s send a b c
        0s reads late
        0s attach r1 copy
        0s limit r1 9
        0s answer damaged
        0s asked
        0s answer damaged
        0s asked
        0s answer
        0s asked
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s asked for 1 of Active #1..#4 with bodies
            0s asked for 1 of Active #1..#4
            0s asked for 9 of Active #2..#4 with bodies
            0s r1 gets #2 b
            0s r1 gets #3 c
        "#]],
    );
}

#[test]
fn a_read_that_failed_is_tried_again() {
    check(
        "
        0s send a
        0s reads late
        0s attach r1 copy
        0s limit r1 9
        0s answer broken
        0s asked
        1s asked
        1s reads now
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            0s asked for 
            1s asked for 9 of Active #1..#2 with bodies
            1s r1 gets #1 a
        "#]],
    );
}

#[test]
fn a_browser_of_a_disabled_queue_is_evicted() {
    check(
        "
        0s send a
        0s attach r1 copy
        0s queue receive-disabled
        0s attach r1 copy
        ",
        expect![[r#"
            0s sent from #1
            0s r1 evicted: the entity is disabled for receiving
            0s r1 evicted: the entity is disabled for receiving
        "#]],
    );
}
