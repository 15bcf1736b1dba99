//! Receiving: order, completion, receive-and-delete, fairness, peek.

use expect_test::expect;

use crate::script::check;

#[test]
fn messages_are_received_in_order_and_completed() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 10
        1s complete r1 #2
        1s complete r1 #1
        1s counters
        2s complete r1 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            1s complete r1 #2: done
            1s complete r1 #1: done
            1s active 1 dead 0 deferred 0 bytes 1
            2s complete r1 #2: the lock is not held
        "#]],
    );
}

#[test]
fn a_waiting_receiver_gets_a_message_as_it_arrives() {
    check(
        "
        0s attach r1
        0s limit r1 1
        1s send a b
        2s limit r1 2
        ",
        expect![[r#"
            1s sent from #1
            1s r1 gets #1 a until 31s
            2s r1 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn an_abandoned_message_returns_to_its_own_place() {
    check(
        "
        0s send a b c d
        0s attach r1
        0s limit r1 3
        0s abandon r1 #2
        0s abandon r1 #1
        0s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s abandon r1 #2: done
            0s abandon r1 #1: done
            0s r1 gets #1 a count 1 until 30s
            0s r1 gets #2 b count 1 until 30s
            0s r1 gets #4 d until 30s
        "#]],
    );
}

#[test]
fn receive_and_delete_removes_what_it_delivers_and_no_more() {
    check(
        "
        0s send a b c
        0s attach r1 delete
        0s limit r1 2
        0s counters
        1s restart
        1s attach r1
        1s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a
            0s r1 gets #2 b
            0s active 1 dead 0 deferred 0 bytes 1
            1s r1 gets #3 c until 31s
        "#]],
    );
}

#[test]
fn competing_receivers_are_served_in_turn() {
    check(
        "
        0s attach r1
        0s attach r2
        0s attach r3
        0s limit r2 10
        0s limit r1 10
        0s limit r3 1
        0s send a*7
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 a until 30s
            0s r1 gets #2 a until 30s
            0s r3 gets #3 a until 30s
            0s r2 gets #4 a until 30s
            0s r1 gets #5 a until 30s
            0s r2 gets #6 a until 30s
            0s r1 gets #7 a until 30s
        "#]],
    );
}

#[test]
fn a_peek_shows_what_is_available_locked_and_deferred_and_takes_nothing() {
    check(
        "
        0s send a b c d
        0s attach r1
        0s limit r1 2
        0s defer r1 #1 why=later
        0s peek 1 10
        0s peek 2 2
        0s peek 5 10
        0s counters
        0s limit r1 4
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1 why=later: done
            0s peek: #1 a count 1 Deferred why="later", #2 b, #3 c, #4 d
            0s peek: #2 b, #3 c
            0s peek: 
            0s active 3 dead 0 deferred 1 bytes 4
            0s r1 gets #3 c until 30s
            0s r1 gets #4 d until 30s
        "#]],
    );
}

#[test]
fn a_peek_ends_at_its_bytes_but_shows_at_least_one() {
    check(
        "
        0s send aaaa bbbb cccc dddd
        0s attach r1
        0s limit r1 2
        0s defer r1 #1
        0s defer r1 #2
        0s peek 1 10 bytes=5
        0s peek 2 10 bytes=1
        0s peek 3 10 bytes=8
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 aaaa until 30s
            0s r1 gets #2 bbbb until 30s
            0s defer r1 #1: done
            0s defer r1 #2: done
            0s peek: #1 aaaa count 1 Deferred, #2 bbbb count 1 Deferred
            0s peek: #2 bbbb count 1 Deferred
            0s peek: #3 cccc, #4 dddd
        "#]],
    );
}

#[test]
fn a_peek_of_the_dead_letters_shows_only_them() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 2
        0s reject r1 #2 DeadLetterReason=bad
        0s peek 1 10 dead
        0s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s reject r1 #2 DeadLetterReason=bad: done
            0s peek: #2 b DeadLetterReason="bad"
            0s peek: #1 a, #3 c
        "#]],
    );
}

#[test]
fn a_released_message_is_available_at_once_with_its_count_unchanged() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s attach r2
        0s limit r2 10
        0s release r1 #1
        0s abandon r2 #1
        0s release r2 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s release r1 #1: done
            0s r2 gets #1 a until 30s
            0s abandon r2 #1: done
            0s r2 gets #1 a count 1 until 30s
            0s release r2 #1: done
            0s r2 gets #1 a count 1 until 30s
        "#]],
    );
}

#[test]
fn several_locks_end_together_or_not_at_all() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 2
        0s complete r1 #1 #2 #3
        0s counters
        0s complete r1 #1 #2 #1
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s complete r1 #1 #2 #3: the lock is not held
            0s active 3 dead 0 deferred 0 bytes 3
            0s complete r1 #1 #2 #1: done
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}
