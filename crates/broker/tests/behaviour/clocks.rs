//! Clocks: locks go by one, deadlines of messages by the other, and only the other may jump.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_jump_forward_loses_no_lock() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        1s jump +10y
        2s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            2s complete r1 #1: done
        "#]],
    );
}

#[test]
fn a_jump_back_freezes_nothing() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 9
        1s jump -1h
        30s wait
        31s send ttl=5s b
        31s complete r1 #1
        31s complete r1 #2
        31s detach r1
        32s send ttl=5s c
        3700s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            30s r1 gets #1 a count 1 until 60s
            31s sent from #2
            31s r1 gets #2 b expires 5s until 61s
            31s complete r1 #1: done
            31s complete r1 #2: done
            32s sent from #3
            3700s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn enqueued_time_never_decreases() {
    check(
        "
        0s send ttl=10s a
        1s jump -1h
        1s send ttl=10s b
        2s peek 1 9
        3s restart
        3s send ttl=10s c
        3s peek 3 1
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            2s peek: #1 a expires 10s, #2 b expires 10s
            3s sent from #3
            3s peek: #3 c expires 10s
        "#]],
    );
}

#[test]
fn a_jump_forward_expires_what_is_due_by_the_wall_clock() {
    check(
        "
        0s send ttl=1h a
        1s jump +2h
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}
