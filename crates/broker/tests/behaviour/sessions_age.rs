//! The age of the oldest message of a queue with sessions: held or not, and after a restart.

use expect_test::expect;

use crate::script::check;

#[test]
fn the_age_is_that_of_the_oldest_available_message_whoever_holds_its_session() {
    check(
        "
        0s queue sessions
        0s age
        1s send a:A
        2s send b:B c:A
        3s wait
        3s age
        4s accept r1 A
        4s age
        5s limit r1 1
        6s wait
        6s age
        7s complete r1 #1
        7s limit r1 2
        8s complete r1 #3
        8s age
        9s accept r2 B
        9s limit r2 9
        9s age
        ",
        expect![[r#"
            0s age unknown
            1s sent from #1
            2s sent from #2
            3s age 2s
            4s r1 holds A until 34s
            4s age unknown
            5s r1 gets #1 a until 34s
            6s age 4s
            7s complete r1 #1: done
            7s r1 gets #3 c until 34s
            8s complete r1 #3: done
            8s age 6s
            9s r2 holds B until 39s
            9s r2 gets #2 b until 39s
            9s age unknown
        "#]],
    );
}

#[test]
fn a_session_that_is_let_go_keeps_the_age_of_what_is_left_in_it() {
    check(
        "
        0s queue sessions
        1s send a:A
        2s send b:A
        3s accept r1 A
        3s limit r1 1
        4s complete r1 #1
        5s detach r1
        6s wait
        6s age
        ",
        expect![[r#"
            1s sent from #1
            2s sent from #2
            3s r1 holds A until 33s
            3s r1 gets #1 a until 33s
            4s complete r1 #1: done
            6s age 4s
        "#]],
    );
}

#[test]
fn after_a_restart_the_row_of_the_oldest_session_tells_the_age_and_then_that_of_the_next() {
    check(
        "
        0s queue sessions
        1s send a:A
        2s send b:B
        3s restart
        4s wait
        4s age
        4s accept r1 A
        4s limit r1 5
        5s complete r1 #1
        5s age
        ",
        expect![[r#"
            1s sent from #1
            2s sent from #2
            4s age 3s
            4s r1 holds A until 34s
            4s r1 gets #1 a until 34s
            5s complete r1 #1: done
            5s age 3s
        "#]],
    );
}

#[test]
fn until_the_row_is_read_the_age_is_unknown_and_one_that_can_not_be_read_is_asked_for_once() {
    check(
        "
        0s queue sessions
        1s send a:A
        2s reads late
        2s restart
        2s asked
        2s answer
        2s age
        2s asked
        2s answer broken
        3s age
        4s wait
        4s age
        5s asked
        ",
        expect![[r#"
            1s sent from #1
            2s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max
            2s age unknown
            2s asked for Active #1
            3s age unknown
            4s age unknown
            5s asked for 
        "#]],
    );
}

#[test]
fn a_first_message_that_has_left_meanwhile_makes_way_for_the_next() {
    check(
        "
        0s queue sessions ttl=3s
        1s send a:A
        2s send b:A
        3s reads late
        3s restart
        3s answer
        4500ms wait
        4500ms asked
        4500ms answer
        4500ms answer
        4500ms answer
        4500ms age
        ",
        expect![[r#"
            1s sent from #1
            2s sent from #2
            4500ms asked for Active #1, 1024 of Active #0..#1024
            4500ms age 2500ms
        "#]],
    );
}
