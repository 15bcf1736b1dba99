//! Receivers with selectors: what they are given, what they leave to others, and in which order.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with, run};

fn tiny(window: usize, body_bytes: usize) -> BrokerSettings {
    BrokerSettings {
        window,
        body_bytes,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_receiver_is_given_what_its_selector_selects_and_the_rest_stays_in_order() {
    check(
        "
        0s send a encoded n=1
        0s send b encoded n=2
        0s send c encoded n=1
        0s send d encoded n=3
        0s attach r1 where n = 1
        0s limit r1 10
        1s attach r2
        1s limit r2 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s sent from #4
            0s r1 gets #1 a n=1 until 30s
            0s r1 gets #3 c n=1 until 30s
            1s r2 gets #2 b n=2 until 31s
            1s r2 gets #4 d n=3 until 31s
        "#]],
    );
}

#[test]
fn what_arrives_is_judged_as_it_arrives() {
    check(
        "
        0s attach r1 where n > 1
        0s limit r1 10
        1s send a encoded n=1
        2s send b encoded n=2
        3s send c encoded n=3
        3s counters
        ",
        expect![[r#"
            1s sent from #1
            2s sent from #2
            2s r1 gets #2 b n=2 until 32s
            3s sent from #3
            3s r1 gets #3 c n=3 until 33s
            3s active 3 dead 0 deferred 0 bytes 108
        "#]],
    );
}

#[test]
fn receive_and_delete_takes_only_what_is_selected() {
    check(
        "
        0s send a encoded n=1
        0s send b encoded n=2
        0s send c encoded n=1
        0s attach r1 delete where n = 2
        0s limit r1 10
        0s counters
        1s restart
        1s attach r1
        1s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s r1 gets #2 b n=2
            0s active 2 dead 0 deferred 0 bytes 72
            1s r1 gets #1 a n=1 until 31s
            1s r1 gets #3 c n=1 until 31s
        "#]],
    );
}

#[test]
fn a_drain_is_answered_when_nothing_selected_is_left() {
    check(
        "
        0s send a b c encoded n=1
        0s send d encoded n=2
        0s attach r1 where n = 2
        0s limit r1 5 drain
        1s limit r1 6 drain
        2s limit r1 7
        2s send e encoded n=2
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r1 gets #4 d n=2 until 30s
            0s r1 drained
            1s r1 drained
            2s sent from #5
            2s r1 gets #5 e n=2 until 32s
        "#]],
    );
}

#[test]
fn credit_is_kept_to() {
    check(
        "
        0s send a b c d encoded n=1
        0s attach r1 where n = 1
        0s limit r1 2
        1s limit r1 3
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a n=1 until 30s
            0s r1 gets #2 b n=1 until 30s
            1s r1 gets #3 c n=1 until 31s
        "#]],
    );
}

#[test]
fn a_message_that_becomes_available_again_is_judged_again_and_keeps_its_place() {
    check(
        "
        0s send a b c encoded n=1
        0s send d encoded n=2
        0s attach r2
        0s limit r2 2
        0s attach r1 where n = 1
        0s limit r1 1
        1s abandon r2 #2
        2s abandon r2 #1
        3s limit r1 2
        30s limit r1 5
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r2 gets #1 a n=1 until 30s
            0s r2 gets #2 b n=1 until 30s
            0s r1 gets #3 c n=1 until 30s
            1s abandon r2 #2: done
            2s abandon r2 #1: done
            3s r1 gets #1 a n=1 count 1 until 33s
            30s r1 gets #2 b n=1 count 1 until 60s
            30s r1 gets #3 c n=1 count 1 until 60s
        "#]],
    );
}

#[test]
fn a_changed_property_counts_as_it_is_now() {
    check(
        "
        0s send a encoded n=1
        0s attach r1 where state = 'done'
        0s limit r1 5
        0s attach r2
        0s limit r2 1
        1s abandon r2 #1 state=done
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 a n=1 until 30s
            1s abandon r2 #1 state=done: done
            1s r1 gets #1 a n=1 count 1 state="done" until 31s
        "#]],
    );
}

#[test]
fn a_delivery_count_can_be_selected() {
    check(
        "
        0s send a b encoded
        0s attach r1 where JMSXDeliveryCount > 1
        0s limit r1 5
        0s attach r2
        0s limit r2 2
        1s abandon r2 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 a until 30s
            0s r2 gets #2 b until 30s
            1s abandon r2 #2: done
            1s r1 gets #2 b count 1 until 31s
        "#]],
    );
}

#[test]
fn receivers_with_the_same_selector_take_turns() {
    check(
        "
        0s attach r1 where n = 1
        0s attach r2 where n = 1
        0s attach r3 where n = 2
        0s limit r1 9
        0s limit r2 9
        0s limit r3 9
        0s send a*4 encoded n=1
        0s send b encoded n=2
        0s detach r1
        0s send c*2 encoded n=1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a n=1 until 30s
            0s r2 gets #2 a n=1 until 30s
            0s r1 gets #3 a n=1 until 30s
            0s r2 gets #4 a n=1 until 30s
            0s sent from #5
            0s r3 gets #5 b n=2 until 30s
            0s sent from #6
            0s r2 gets #6 c n=1 until 30s
            0s r2 gets #7 c n=1 until 30s
        "#]],
    );
}

#[test]
fn selectors_that_overlap_and_receivers_without_one_take_turns() {
    check(
        "
        0s attach r1 where n = 1
        0s attach r2 where n < 3
        0s attach r3
        0s limit r1 9
        0s limit r2 9
        0s limit r3 9
        0s send a*8 encoded n=1
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 a n=1 until 30s
            0s r3 gets #2 a n=1 until 30s
            0s r1 gets #3 a n=1 until 30s
            0s r3 gets #4 a n=1 until 30s
            0s r2 gets #5 a n=1 until 30s
            0s r3 gets #6 a n=1 until 30s
            0s r1 gets #7 a n=1 until 30s
            0s r3 gets #8 a n=1 until 30s
        "#]],
    );
}

#[test]
fn dead_letters_are_selected_by_their_reason() {
    check(
        "
        0s send a b c encoded
        0s attach r1
        0s limit r1 9
        0s attach r2 dead where DeadLetterReason = 'bad'
        0s limit r2 9
        1s reject r1 #3 DeadLetterReason=bad
        1s reject r1 #2 DeadLetterReason=worse
        1s reject r1 #1 DeadLetterReason=bad
        2s complete r2 #1 dead
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            1s reject r1 #3 DeadLetterReason=bad: done
            1s r2 gets #3 c DeadLetterReason="bad" until 31s
            1s reject r1 #2 DeadLetterReason=worse: done
            1s reject r1 #1 DeadLetterReason=bad: done
            1s r2 gets #1 a DeadLetterReason="bad" until 31s
            2s complete r2 #1 dead: done
            2s active 0 dead 2 deferred 0 bytes 50
        "#]],
    );
}

#[test]
fn a_subscription_has_receivers_with_selectors_too() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s attach r1 in=t/Subscriptions/s where n = 2
        0s limit r1 9
        0s send a encoded n=1 in=t
        0s send b encoded n=2 in=t
        0s counters in=t/Subscriptions/s
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r1 gets #2 b n=2 until 30s
            0s active 2 dead 0 deferred 0 bytes 72
        "#]],
    );
}

#[test]
fn a_queue_with_sessions_lets_no_selector_in() {
    check(
        "
        0s queue sessions
        0s attach r1 where n = 1
        ",
        expect![[r#"
            0s r1 evicted: the entity requires sessions
        "#]],
    );
}

#[test]
fn a_match_behind_a_long_backlog_is_found_with_a_small_window() {
    let script = "
        0s send a*2000 encoded n=1
        0s send b encoded n=2
        0s send c*700 encoded n=1
        0s send d*2 encoded n=2
        0s attach r1 where n = 2
        0s limit r1 2
        1s complete r1 #2001
        1s limit r1 9
        2s abandon r1 #2702
        3s counters
        4s attach r2 delete
        4s limit r2 3
        ";
    let expected = "0s sent from #1\n\
        0s sent from #2001\n\
        0s sent from #2002\n\
        0s sent from #2702\n\
        0s r1 gets #2001 b n=2 until 30s\n\
        0s r1 gets #2702 d n=2 until 30s\n\
        1s complete r1 #2001: done\n\
        1s r1 gets #2703 d n=2 until 31s\n\
        2s abandon r1 #2702: done\n\
        2s r1 gets #2702 d n=2 count 1 until 32s\n\
        3s active 2702 dead 0 deferred 0 bytes ";
    for (window, body_bytes) in [(2, 0), (3, 1 << 20), (500, 10_000), (100_000, 1 << 20)] {
        let said = run(
            BrokerSettings {
                turn_work: 5_000,
                ..tiny(window, body_bytes)
            },
            script,
        );
        assert!(said.starts_with(expected), "{window} {body_bytes}: {said}");
        let end = "4s r2 gets #1 a n=1\n4s r2 gets #2 a n=1\n4s r2 gets #3 a n=1\n";
        assert!(said.ends_with(end), "{window} {body_bytes}: {said}");
    }
}

#[test]
fn a_turn_judges_a_bounded_number_and_the_next_one_goes_on() {
    check_with(
        BrokerSettings {
            turn_work: 100,
            ..BrokerSettings::default()
        },
        "
        0s send a*350 encoded n=1
        0s send b encoded n=2
        0s attach r1 where n = 2
        0s limit r1 1
        0s send c encoded n=1
        1s wait
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #351
            0s sent from #352
            1ms r1 gets #351 b n=2 until 30001ms
        "#]],
    );
}

#[test]
fn nothing_is_read_twice_for_two_selectors() {
    check_with(
        tiny(2, 1 << 20),
        "
        0s send a*5 encoded n=1
        0s send b encoded n=2
        0s send c encoded n=3
        0s restart
        0s reads late
        0s attach r1 where n = 2
        0s attach r2 where n = 3
        0s limit r1 1
        0s limit r2 1
        1s asked
        1s answer
        1s asked
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #6
            0s sent from #7
            1s asked for 2 of Active #1..#8, 256 of Active #1..#8 with bodies
            1s r2 gets #7 c n=3 until 31s
            1s r1 gets #6 b n=2 until 31s
            1s asked for 
        "#]],
    );
}

#[test]
fn what_changes_while_a_page_is_read_is_seen() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c d e f encoded n=1
        0s attach r2
        0s limit r2 4
        0s reads late
        1s attach r1 where n = 1
        1s limit r1 9
        1s asked
        1s abandon r2 #3
        1s complete r2 #4
        1s reject r2 #2
        2s answer
        3s answer
        3s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 a n=1 until 30s
            0s r2 gets #2 b n=1 until 30s
            0s r2 gets #3 c n=1 until 30s
            0s r2 gets #4 d n=1 until 30s
            1s asked for Active #5 #6
            1s abandon r2 #3: done
            1s complete r2 #4: done
            1s reject r2 #2: done
            3s r1 gets #3 c n=1 count 1 until 33s
            3s r1 gets #5 e n=1 until 33s
            3s r1 gets #6 f n=1 until 33s
        "#]],
    );
}

#[test]
fn a_read_that_failed_is_tried_again_and_a_drain_does_not_wait_for_it() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c encoded n=1
        0s attach r1 where n = 1
        0s reads late
        0s limit r1 9 drain
        0s answer broken
        0s asked
        0s limit r1 18
        1s asked
        1s reads now
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 drained
            0s asked for 
            1s asked for Active #1 #2
            1s r1 gets #1 a n=1 until 31s
            1s r1 gets #2 b n=1 until 31s
            1s r1 gets #3 c n=1 until 31s
        "#]],
    );
}

#[test]
fn a_damaged_message_is_passed_over() {
    check_with(
        tiny(9, 0),
        "
        0s send a b c encoded n=1
        0s attach r1 where n = 1
        0s reads late
        0s limit r1 9
        0s answer damaged
        0s asked
        1s answer
        1s asked
        1s answer damaged
        1s asked
        1s reads now
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            0s asked for Active #1
            1s r1 gets #1 a n=1 until 31s
            1s asked for Active #2
            1s asked for Active #3
            1s r1 gets #3 c n=1 until 31s
        "#]],
    );
}

#[test]
fn a_damaged_message_behind_the_window_is_found_and_passed_over() {
    check_with(
        tiny(1, 0),
        "
        0s send a b c encoded n=1
        0s attach r1 where n = 1
        0s limit r1 1
        0s reads late
        1s limit r1 9
        1s asked
        1s answer damaged
        2s asked
        2s answer
        2s asked
        2s answer damaged
        2s asked
        2s reads now
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a n=1 until 30s
            1s asked for 1 of Active #2..#4, 256 of Active #2..#4 with bodies
            2s asked for 1 of Active #2..#4, 256 of Active #2..#4
            2s asked for Active #2
            2s asked for 256 of Active #3..#4 with bodies
            2s r1 gets #3 c n=1 until 32s
        "#]],
    );
}

#[test]
fn what_was_passed_by_a_clock_that_goes_back_is_judged_again() {
    check_with(
        tiny(1, 1 << 20),
        "
        0s send a b encoded n=1 ttl=10s
        0s reads late
        0s jump 20s
        0s attach r1 where n = 1
        0s limit r1 9
        0s jump -20s
        0s send c encoded n=2
        0s reads now
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a n=1 expires 10s until 30s
            0s sent from #3
            0s r1 gets #2 b n=1 expires 10s until 30s
        "#]],
    );
}
