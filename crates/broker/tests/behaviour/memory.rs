//! Memory: small windows, no bodies in memory, late reads.

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
fn a_window_of_two_walks_through_a_long_backlog() {
    let script = "
        0s send a*1000
        0s attach r1 delete
        0s limit r1 998
        1s counters
        1s attach r2
        1s limit r2 9
        ";
    let mut expected = String::from("0s sent from #1\n");
    for number in 1..=998 {
        expected += &format!("0s r1 gets #{number} a\n");
    }
    expected += "1s active 2 dead 0 deferred 0 bytes 2\n";
    expected += "1s r2 gets #999 a until 31s\n1s r2 gets #1000 a until 31s\n";
    for body_bytes in [0, 1 << 20] {
        assert_eq!(run(tiny(2, body_bytes), script), expected);
    }
}

#[test]
fn a_message_is_offered_only_when_its_body_is_there() {
    check_with(
        tiny(8, 0),
        "
        0s reads late
        0s send a b
        0s attach r1 delete
        0s limit r1 9
        0s counters
        1s asked
        1s answer
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s active 2 dead 0 deferred 0 bytes 2
            1s asked for Active #1 #2
            1s r1 gets #1 a
            1s r1 gets #2 b
            1s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn bodies_are_read_before_their_turn_and_more_of_them_each_time() {
    let three = 3 * 129;
    check_with(
        tiny(100, three),
        "
        0s send a b c d e f g h i
        0s attach r1 delete
        0s reads late
        1s limit r1 4
        1s asked
        2s answer
        2s asked
        3s limit r1 5
        4s answer
        4s asked
        5s answer
        5s asked
        6s limit r1 7
        6s asked
        ",
        expect![[r#"
            0s sent from #1
            1s r1 gets #1 a
            1s r1 gets #2 b
            1s r1 gets #3 c
            1s asked for Active #4
            2s r1 gets #4 d
            2s asked for Active #5
            4s r1 gets #5 e
            4s asked for Active #6 #7
            5s asked for 
            6s r1 gets #6 f
            6s r1 gets #7 g
            6s asked for Active #8 #9
        "#]],
    );
}

#[test]
fn a_message_that_finds_a_waiting_receiver_is_not_read_back() {
    check_with(
        tiny(8, 0),
        "
        0s reads late
        0s attach r1
        0s limit r1 9
        0s send a b
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
        "#]],
    );
}

#[test]
fn a_message_that_was_lent_while_its_body_was_read_is_read_again() {
    check_with(
        tiny(8, 0),
        "
        0s send a
        0s send b encoded n=1
        0s reads late
        0s attach r1 delete
        0s limit r1 2
        0s asked
        1s attach r2 where n = 1
        1s limit r2 1
        1s asked
        2s answer last
        3s abandon r2 #2 state=done
        3s asked
        4s answer first
        4s asked
        5s answer
        5s answer
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s asked for Active #1 #2
            1s asked for Active #1 #2, Active #1 #2
            2s r2 gets #2 b n=1 until 32s
            2s r1 gets #1 a
            3s abandon r2 #2 state=done: done
            3s asked for Active #1 #2, Active #2
            4s asked for Active #2
            5s r1 gets #2 b n=1 count 1 state="done"
        "#]],
    );
}

#[test]
fn a_message_that_returns_while_the_window_is_read_keeps_its_place() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c d e f
        0s attach r1
        0s limit r1 2
        0s reads late
        1s limit r1 4
        1s asked
        1s abandon r1 #2
        2s answer
        2s asked
        3s answer
        3s asked
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s asked for Active #3 #4
            1s abandon r1 #2: done
            2s r1 gets #2 b count 1 until 32s
            2s asked for Active #3
            3s r1 gets #3 c until 33s
            3s asked for 2 of Active #4..#7
        "#]],
    );
}

#[test]
fn a_dead_letter_that_arrives_while_the_window_is_read_keeps_its_place() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c d e f
        0s attach r1
        0s limit r1 6
        0s reject r1 #6
        0s reject r1 #5
        0s reject r1 #2
        0s reject r1 #3
        0s attach r2 dead delete
        0s limit r2 2
        0s reads late
        1s limit r2 9
        1s asked
        1s reject r1 #4
        1s reject r1 #1
        2s reads now
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s r1 gets #4 d until 30s
            0s r1 gets #5 e until 30s
            0s r1 gets #6 f until 30s
            0s reject r1 #6: done
            0s reject r1 #5: done
            0s reject r1 #2: done
            0s reject r1 #3: done
            0s r2 gets #2 b
            0s r2 gets #3 c
            1s asked for DeadLetter #5 #6
            1s reject r1 #4: done
            1s reject r1 #1: done
            2s r2 gets #1 a
            2s r2 gets #4 d
            2s r2 gets #5 e
            2s r2 gets #6 f
        "#]],
    );
}

#[test]
fn nothing_is_said_before_its_commit_is_durable() {
    check(
        "
        0s sync manual
        0s attach r1
        0s limit r1 9
        0s send a
        1s wait
        2s sync
        3s complete r1 #1
        4s sync
        ",
        expect![[r#"
            2s sent from #1
            2s r1 gets #1 a until 32s
            4s complete r1 #1: done
        "#]],
    );
}

#[test]
fn what_is_durable_is_handed_out_while_later_commits_wait() {
    check(
        "
        0s sync manual
        0s send a
        0s send b
        0s send c
        1s sync
        2s send d
        3s attach r1
        3s limit r1 2
        4s complete r1 #1
        4s limit r1 5
        5s abandon r1 #2
        6s wait
        7s sync
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #2
            1s sent from #3
            3s r1 gets #1 a until 33s
            3s r1 gets #2 b until 33s
            4s r1 gets #3 c until 34s
            7s sent from #4
            7s complete r1 #1: done
            7s r1 gets #4 d until 37s
            7s abandon r1 #2: done
            7s r1 gets #2 b count 1 until 37s
        "#]],
    );
}

#[test]
fn a_message_that_is_deleted_as_it_is_received_waits_for_that() {
    check(
        "
        0s sync manual
        0s send a
        0s send b
        1s sync
        2s attach r1 delete
        2s limit r1 1
        3s wait
        4s sync
        5s attach r2
        5s limit r2 1
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #2
            4s r1 gets #1 a
            5s r2 gets #2 b until 35s
        "#]],
    );
}

#[test]
fn what_was_read_back_rests_on_what_was_submitted_when_it_was_asked_for() {
    check_with(
        tiny(1, 0),
        "
        0s sync manual
        0s send a
        0s send b
        0s send c
        1s sync
        2s attach r1
        2s limit r1 2
        3s abandon r1 #2
        4s reads late
        4s limit r1 5
        5s complete r1 #1
        5s answer
        6s answer
        7s answer
        8s sync
        9s answer
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #2
            1s sent from #3
            2s r1 gets #1 a until 32s
            2s r1 gets #2 b until 32s
            8s abandon r1 #2: done
            8s complete r1 #1: done
            8s r1 gets #2 b count 1 until 38s
            8s r1 gets #3 c until 38s
        "#]],
    );
}

#[test]
fn nothing_is_said_after_the_store_has_failed() {
    check(
        "
        0s sync manual
        0s send a
        1s sync
        2s attach r1
        2s limit r1 9
        3s fail
        3s complete r1 #1
        4s send b
        4s peek 1 1
        ",
        expect![[r#"
            1s sent from #1
            2s r1 gets #1 a until 32s
        "#]],
    );
}

#[test]
fn a_read_that_failed_is_tried_again_after_a_second() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c
        0s attach r1
        0s reads late
        0s limit r1 9
        0s answer broken
        0s asked
        1s asked
        1s answer
        2s asked
        2s answer broken
        2s limit r1 9 drain
        3s asked
        ",
        expect![[r#"
            0s sent from #1
            0s asked for 
            1s asked for Active #1 #2
            1s r1 gets #1 a until 31s
            1s r1 gets #2 b until 31s
            2s asked for 2 of Active #3..#4
            2s r1 drained
            3s asked for 
        "#]],
    );
}

#[test]
fn a_damaged_message_is_set_aside_and_those_behind_it_are_delivered() {
    check_with(
        tiny(2, 0),
        "
        0s send a b c
        0s attach r1
        0s reads late
        0s limit r1 9
        0s answer damaged
        0s asked
        1s answer damaged
        1s asked
        1s answer
        1s reads now
        1s answer
        5s complete r1 #2
        31s wait
        ",
        expect![[r#"
            0s sent from #1
            0s asked for Active #1
            1s asked for Active #2
            1s r1 gets #2 b until 31s
            1s r1 gets #3 c until 31s
            5s complete r1 #2: done
            31s r1 gets #1 a until 61s
            31s r1 gets #3 c count 1 until 61s
        "#]],
    );
}

#[test]
fn a_peek_shows_what_is_locked_behind_the_windows_end() {
    check_with(
        tiny(2, 1 << 20),
        "
        0s send a b
        0s send c ttl=5s
        0s send d e
        0s attach r1
        0s limit r1 5
        1s abandon r1 #1
        1s abandon r1 #2
        1s abandon r1 #3
        6s peek 3 9
        6s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #3
            0s sent from #4
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c expires 5s until 30s
            0s r1 gets #4 d until 30s
            0s r1 gets #5 e until 30s
            1s abandon r1 #1: done
            1s abandon r1 #2: done
            1s abandon r1 #3: done
            6s peek: #4 d, #5 e
            6s peek: #1 a count 1, #2 b count 1, #4 d, #5 e
        "#]],
    );
}

#[test]
fn a_peek_or_fetch_that_can_not_be_read_says_so() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        1s peek 1 9
        1s fetch r2 #1
        2s answer damaged
        3s fetch r2 #1
        3s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            2s peek: a body is damaged: its checksum is wrong
            2s fetch r2 #1: a body is damaged: its checksum is wrong
            3s fetch r2 #1: #1 a count 1 Deferred until 33s
        "#]],
    );
}
