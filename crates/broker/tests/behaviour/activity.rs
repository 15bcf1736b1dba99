//! Activity: what an operator sees of receivers, locks and sessions.

use expect_test::expect;

use crate::script::check;

#[test]
fn receivers_are_shown_with_their_credit_and_locks_with_the_time_that_is_left() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 2
        10s attach r2 delete
        10s activity
        10s activity 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            10s receivers 2 locks 2 sessions 0
            10s receiver Some(PeekLock) credit 0 session -
            10s receiver Some(ReceiveAndDelete) credit 0 session -
            10s lock #1 in Main by a receiver for 20s
            10s lock #2 in Main by a receiver for 20s
            10s receivers 2 locks 2 sessions 0
            10s locks by subqueue [2, 0, 0]
            10s receiver Some(PeekLock) credit 0 session -
            10s lock #1 in Main by a receiver for 20s
        "#]],
    );
}

#[test]
fn held_sessions_are_shown_before_those_that_wait() {
    check(
        "
        0s queue sessions
        0s send a:A b:B c:C
        0s accept r1 B
        0s limit r1 5
        5s accept r2 D
        5s activity
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds B until 30s
            0s r1 gets #2 b until 30s
            5s r2 holds D until 35s
            5s receivers 2 locks 1 sessions 4
            5s receiver Some(PeekLock) credit 4 session B
            5s receiver Some(PeekLock) credit 0 session D
            5s lock #2 in Main by a receiver for -
            5s session B held for 25s locked 1
            5s session D held for 30s locked 0
            5s session A idle
            5s session C idle
        "#]],
    );
}

#[test]
fn an_explanation_can_tell_by_which_selector_a_receiver_takes_and_when_it_was_so() {
    check(
        "
        0s send a encoded n=1
        0s attach r1 where n = 2
        0s limit r1 1
        5s activity
        ",
        expect![[r#"
            0s sent from #1
            5s receivers 1 locks 0 sessions 0
            5s receiver Some(PeekLock) credit 1 session - selector n = 2
        "#]],
    );
}
