//! Scheduled messages: when they come, in which order, and how they are taken back.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn tiny() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        turn_work: 3,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_scheduled_message_comes_at_its_time_under_a_new_number() {
    check(
        "
        0s send a+10s
        0s attach r1
        0s limit r1 5
        0s peek 1 5
        0s counters
        9s send b
        10s peek 1 5
        11s complete r1 #3
        11s counters
        ",
        expect![[r#"
            0s sent from #1
            0s peek: #1 a Scheduled
            0s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            9s sent from #2
            9s r1 gets #2 b until 39s
            10s r1 gets #3 a until 40s
            10s peek: #2 b, #3 a
            11s complete r1 #3: done
            11s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn activation_goes_by_due_time_then_by_number() {
    check(
        "
        0s send c+10s a+5s d+10s now b+5s
        0s attach r1
        0s limit r1 10
        20s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #4 now until 30s
            5s r1 gets #6 a until 35s
            5s r1 gets #7 b until 35s
            10s r1 gets #8 c until 40s
            10s r1 gets #9 d until 40s
        "#]],
    );
}

#[test]
fn what_is_scheduled_for_a_time_that_has_come_is_enqueued_at_once() {
    check(
        "
        5s send a+5s b+4s c+5001ms
        5s peek 1 5
        5s counters
        ",
        expect![[r#"
            5s sent from #1
            5s peek: #1 a, #2 b, #3 c Scheduled
            5s active 2 dead 0 deferred 0 bytes 3 scheduled 1
        "#]],
    );
}

#[test]
fn time_to_live_begins_with_activation() {
    check(
        "
        0s send ttl=5s a+10s
        9s peek 1 5
        10s peek 1 5
        15s counters
        ",
        expect![[r#"
            0s sent from #1
            9s peek: #1 a Scheduled
            10s peek: #2 a expires 15s
            15s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn an_expired_one_is_dead_lettered_under_its_new_number() {
    check(
        "
        0s queue ttl=3s dead-letter-expired
        0s send a+10s
        13s peek 1 5 dead
        13s counters
        13s attach r1 dead
        13s limit r1 1
        14s complete r1 #2 dead
        14s counters
        ",
        expect![[r#"
            0s sent from #1
            13s peek: #2 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 13s
            13s active 0 dead 1 deferred 0 bytes 1
            13s r1 gets #2 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 13s until 43s
            14s complete r1 #2 dead: done
            14s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn cancelling_takes_back_all_or_none() {
    check(
        "
        0s send a+10s b+10s c
        1s cancel #1 #9
        1s cancel #1 #3
        1s counters
        2s cancel #1 #1
        2s cancel #1
        2s counters
        10s peek 1 5
        11s cancel #2
        11s cancel #4
        ",
        expect![[r#"
            0s sent from #1
            1s cancel #1 #9: message #9 is not there
            1s cancel #1 #3: message #3 is not there
            1s active 1 dead 0 deferred 0 bytes 3 scheduled 2
            2s cancel #1 #1: done
            2s cancel #1: message #1 is not there
            2s active 1 dead 0 deferred 0 bytes 2 scheduled 1
            10s peek: #3 c, #4 b
            11s cancel #2: message #2 is not there
            11s cancel #4: message #4 is not there
        "#]],
    );
}

#[test]
fn what_is_activated_while_a_cancellation_waits_is_not_there() {
    check(
        "
        0s send a+10s b+20s
        9s reads late
        9s cancel #1 #2
        10s answer
        10s cancel #2
        10s cancel #2
        11s answer
        11s counters
        ",
        expect![[r#"
            0s sent from #1
            10s cancel #1 #2: message #1 is not there
            11s cancel #2: done
            11s cancel #2: message #2 is not there
            11s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_cancellation_that_can_not_be_read_changes_nothing() {
    check(
        "
        0s send a+10s
        1s reads late
        1s cancel #1
        1s answer broken
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            1s cancel #1: the disk refused: no answer
            1s active 0 dead 0 deferred 0 bytes 1 scheduled 1
        "#]],
    );
}

#[test]
fn scheduled_messages_are_not_received_by_number() {
    check(
        "
        0s send a+10s
        1s fetch r1 #1
        10s fetch r1 #2
        ",
        expect![[r#"
            0s sent from #1
            1s fetch r1 #1: message #1 is not there
            10s fetch r1 #2: message #2 is not there
        "#]],
    );
}

#[test]
fn a_restart_loses_none_and_asks_for_what_is_due_soon() {
    check(
        "
        0s send a+100s b+300s
        1s restart
        1s reads late
        39s asked
        40s asked
        41s answer
        100s counters
        239s asked
        240s asked
        ",
        expect![[r#"
            0s sent from #1
            39s asked for 
            40s asked for 4096 of Schedule 100s #1..max
            100s active 1 dead 0 deferred 0 bytes 2 scheduled 1
            239s asked for 
            240s asked for 
        "#]],
    );
}

#[test]
fn what_was_due_while_nobody_ran_comes_at_once_and_in_order() {
    check(
        "
        0s send c+30s a+10s b+20s
        !40s restart
        40s attach r1
        40s limit r1 5
        41s wait
        ",
        expect![[r#"
            0s sent from #1
            40s r1 gets #4 a until 70s
            40s r1 gets #5 b until 70s
            40s r1 gets #6 c until 70s
        "#]],
    );
}

#[test]
fn a_restart_does_not_look_at_what_has_gone() {
    check_with(
        tiny(),
        "
        0s send a+10s b+10s c+10s d+10s e+100s
        9s send x+10s
        10s counters
        11s restart
        11s reads late
        50s asked
        50s answer
        100s counters
        ",
        expect![[r#"
            0s sent from #1
            9s sent from #6
            10s active 5 dead 0 deferred 0 bytes 6 scheduled 1
            50s asked for 2 of Schedule 100s #5..max
            100s active 6 dead 0 deferred 0 bytes 6
        "#]],
    );
}

#[test]
fn many_come_in_order_through_a_tiny_window() {
    check_with(
        tiny(),
        "
        0s send f+30s e+20s d+20s c+10s b+10s a+5s
        0s attach r1
        0s limit r1 10
        1s cancel #2
        40s wait
        ",
        expect![[r#"
            0s sent from #1
            1s cancel #2: done
            5s r1 gets #7 a until 35s
            10s r1 gets #8 c until 40s
            10s r1 gets #9 b until 40s
            20s r1 gets #10 d until 50s
            30s r1 gets #11 f until 60s
            35s r1 gets #7 a count 1 until 65s
            40s r1 gets #8 c count 1 until 70s
            40s r1 gets #9 b count 1 until 70s
        "#]],
    );
}

#[test]
fn what_arrives_or_goes_while_more_is_read_is_merged() {
    check_with(
        tiny(),
        "
        0s reads late
        0s send a+10s b+20s c+30s d+40s e+50s
        0s attach r1 delete
        0s limit r1 20
        10s cancel #3
        11s answer
        20s asked
        20s send x+25s y+60s z+45s
        21s answer
        22s answer
        40s asked
        40s answer
        41s answer
        41s asked
        42s answer
        60s answer
        60s answer
        60s answer
        60s answer
        60s counters
        ",
        expect![[r#"
            0s sent from #1
            11s r1 gets #6 a
            11s cancel #3: done
            20s asked for 2 of Schedule 30s #3..max, Active #7
            20s sent from #8
            21s r1 gets #7 b
            40s asked for Active #11, 2 of Schedule 45s #10..max
            40s r1 gets #11 x
            41s r1 gets #12 d
            41s asked for 
            60s r1 gets #13 z
            60s r1 gets #14 e
            60s r1 gets #15 y
            60s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_read_that_failed_is_tried_again() {
    check_with(
        tiny(),
        "
        0s send a+10s b+20s c+30s d+40s
        0s reads late
        0s restart
        5s asked
        5s answer broken
        5999ms asked
        6s asked
        6s answer
        20s counters
        ",
        expect![[r#"
            0s sent from #1
            5s asked for 2 of Schedule 10s #1..max
            5999ms asked for 
            6s asked for 2 of Schedule 10s #1..max
            20s active 2 dead 0 deferred 0 bytes 4 scheduled 2
        "#]],
    );
}

#[test]
fn a_clock_that_goes_back_makes_it_wait_and_forgets_nothing() {
    check(
        "
        0s send a+10s
        5s jump -60s
        5s attach r1
        5s limit r1 5
        69s counters
        71s send b
        ",
        expect![[r#"
            0s sent from #1
            69s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            70s r1 gets #2 a until 100s
            71s sent from #3
            71s r1 gets #3 b until 101s
        "#]],
    );
}

#[test]
fn a_clock_that_leaps_ahead_makes_all_of_it_come() {
    check(
        "
        0s send b+20s a+10s c+1h
        1s attach r1
        1s limit r1 5
        1s jump +30s
        1s wait
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            1s r1 gets #4 a until 31s
            1s r1 gets #5 b until 31s
            2s active 2 dead 0 deferred 0 bytes 3 scheduled 1
        "#]],
    );
}

#[test]
fn enqueued_time_does_not_go_back_with_the_clock() {
    check(
        "
        0s queue ttl=10s
        30s send a
        30s jump -20s
        30s send b+15s
        35s peek 1 5
        ",
        expect![[r#"
            30s sent from #1
            30s sent from #2
            35s peek: #1 a expires 40s, #3 b expires 40s
        "#]],
    );
}

#[test]
fn peeking_merges_them_by_number_and_keeps_its_bounds() {
    check_with(
        tiny(),
        "
        0s send a b+10s c d+5s e f+7s g
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        1s peek 1 10
        1s peek 2 2
        1s peek 3 3
        1s peek 1 10 bytes=2
        1s peek 4 10 bytes=3
        1s peek 1 1
        1s peek 7 4
        1s peek 1 10 dead
        6s peek 1 10
        8s peek 1 3
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            1s peek: #1 a count 1 Deferred, #2 b Scheduled, #3 c, #4 d Scheduled, #5 e, #6 f Scheduled, #7 g
            1s peek: #2 b Scheduled, #3 c
            1s peek: #3 c, #4 d Scheduled, #5 e
            1s peek: #1 a count 1 Deferred, #2 b Scheduled
            1s peek: #4 d Scheduled, #5 e, #6 f Scheduled
            1s peek: #1 a count 1 Deferred
            1s peek: #7 g
            1s peek: 
            6s peek: #1 a count 1 Deferred, #2 b Scheduled, #3 c, #5 e, #6 f Scheduled, #7 g, #8 d
            8s peek: #1 a count 1 Deferred, #2 b Scheduled, #3 c
        "#]],
    );
}

#[test]
fn a_message_that_is_activated_while_a_peek_waits_is_shown_once() {
    check(
        "
        0s send a+10s b+20s c
        9s reads late
        9s peek 1 10
        10s answer
        10s answer
        ",
        expect![[r#"
            0s sent from #1
            10s peek: #2 b Scheduled, #3 c, #4 a
        "#]],
    );
}

#[test]
fn scheduled_messages_count_against_the_size_of_the_queue() {
    check(
        "
        0s queue max-size=4
        0s send aaa+10s
        0s send bb+20s
        1s cancel #1
        1s send bb+20s
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the entity holds 3 bytes of 4
            1s cancel #1: done
            1s sent from #2
        "#]],
    );
}

#[test]
fn scheduling_and_sending_are_refused_alike() {
    check(
        "
        0s queue max-message=3
        0s send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb+10s
        0s disk full
        0s send a+10s
        ",
        expect![[r#"
            0s send refused: a message of 68 bytes is larger than 3
            0s send refused: the disk is nearly full
        "#]],
    );
}

#[test]
fn a_turn_does_so_much_and_the_rest_comes_in_the_next() {
    check_with(
        BrokerSettings {
            turn_work: 8,
            ..BrokerSettings::default()
        },
        "
        0s send a+10s*20
        !10s wait
        !11s send b
        !11s counters
        !12s cancel #20
        !12s counters
        12s counters
        12s peek 21 3
        ",
        expect![[r#"
            0s sent from #1
            11s sent from #21
            11s active 9 dead 0 deferred 0 bytes 21 scheduled 12 lag 1s
            12s cancel #20: done
            12s active 20 dead 0 deferred 0 bytes 20
            12s active 20 dead 0 deferred 0 bytes 20
            12s peek: #21 b, #22 a, #23 a
        "#]],
    );
}

#[test]
fn duplicates_are_found_when_they_are_scheduled_and_told_the_first_ones_number() {
    check(
        "
        0s queue window=20s
        0s send a+10s@1 b+10s@2
        1s send c@1 d+10s@3 e+10s@2 f
        10s send g+20s@1
        10s cancel #1
        11s cancel #2
        11s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #3, known as #1 #2
            10s sent from #8, known as #1
            10s cancel #1: message #1 is not there
            11s cancel #2: message #2 is not there
            11s peek: #4 f, #5 a, #6 b, #7 d
        "#]],
    );
}

#[test]
fn a_default_that_has_been_lowered_holds_for_what_is_activated_after() {
    check(
        "
        0s queue
        0s send ttl=60s a+10s
        5s queue ttl=3s
        12s peek 1 9
        13s counters
        ",
        expect![[r#"
            0s sent from #1
            12s peek: #2 a expires 13s
            13s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn damaged_entries_are_passed_over_and_messages_behind_them_come() {
    check(
        "
        0s queue lock=5m
        0s send a+10s b+20s c+30s d+40s
        0s reads late
        1s restart
        1s attach r1
        1s limit r1 9
        1s asked
        1s answer lost 2 35s
        1s asked
        1s answer
        1s asked
        1s answer lost 0 35s
        1s asked
        1s answer
        2s reads now
        2s counters
        45s limit r1 9
        45s counters
        46s restart
        46s counters
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 4096 of Schedule 10s #1..max
            1s asked for 2 of Schedule 10s #1..max
            1s asked for 4096 of Schedule 20s #3..max
            1s asked for 4096 of Schedule 35s #0..max
            2s active 0 dead 0 deferred 0 bytes 4 scheduled 4
            10s r1 gets #5 a until 310s
            20s r1 gets #6 b until 320s
            40s r1 gets #7 d until 340s
            45s active 3 dead 0 deferred 0 bytes 4 scheduled 1 lag 25s
            46s active 4 dead 0 deferred 0 bytes 4
        "#]],
    );
}

#[test]
fn an_entry_that_is_not_understood_is_passed_over_and_receivers_are_told() {
    check(
        "
        0s queue lock=5m
        0s send a+10s b+20s c+30s
        0s reads late
        1s restart
        1s attach r1
        1s limit r1 9
        1s answer mangled 2
        2s reads now
        2s attach r1
        2s limit r1 9
        25s limit r1 9
        25s counters
        31s cancel #2
        31s counters
        31s limit r1 9 drain
        ",
        expect![[r#"
            0s sent from #1
            1s r1 evicted: the store is damaged: messages #2 to #2 cannot be read
            10s r1 gets #4 a until 310s
            25s active 1 dead 0 deferred 0 bytes 3 scheduled 2 lag 5s
            30s r1 gets #5 c until 330s
            31s cancel #2: done
            31s active 2 dead 0 deferred 0 bytes 2
            31s r1 drained
        "#]],
    );
}

#[test]
fn a_schedule_that_cannot_be_read_to_its_end_asks_for_no_more() {
    check(
        "
        0s send a+10s b+20s
        0s reads late
        1s restart
        1s answer lost 0 100y
        2s asked
        2s send c+30s
        2s reads now
        40s attach r1
        40s counters
        ",
        expect![[r#"
            0s sent from #1
            2s asked for 
            2s sent from #3
            40s active 1 dead 0 deferred 0 bytes 3 scheduled 2 lag 30s
        "#]],
    );
}

#[test]
fn a_peek_hides_no_message_that_is_scheduled_below_others_meanwhile() {
    check(
        "
        0s declare t1 r1
        0s in t1 send a+60s
        0s send b+60s
        0s reads late
        1s peek 1 5
        1s commit t1
        1s answer
        2s reads
        2s peek 1 5
        ",
        expect![[r#"
            0s declare t1: done
            0s in t1 send a+60s: held from #1
            0s sent from #2
            1s commit t1: done
            1s peek: #2 b Scheduled
            2s peek: #1 a Scheduled, #2 b Scheduled
        "#]],
    );
}
