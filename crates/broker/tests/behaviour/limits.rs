//! Limits that change while the broker runs: they hold for whatever comes from then on.

use expect_test::expect;

use crate::script::check;

#[test]
fn transactions_go_by_the_limits_of_the_moment_and_keep_the_time_that_they_began_with() {
    check(
        "
        0s queue
        0s limits operations=1 open=2
        0s declare t1 r1/7
        0s declare t2 r1/7
        0s declare t3 r1/7
        0s in t1 send a b
        1s limits life=5s
        1s declare t4 r1/7
        1s in t2 send c d
        2s limits life=1s
        2s in t4 send e
        4s wait
        5s commit t2
        5s commit t4
        ",
        expect![[r#"
            0s declare t1: done
            0s declare t2: done
            0s declare t3: a connection can have 2 open transactions
            0s in t1 send a b: a transaction can have 1 operations
            1s declare t4: done
            1s in t2 send c d: held
            2s in t4 send e: held
            3s r1 hears that t4 timed out
            5s commit t2: done
            5s commit t4: the transaction has taken too long and was rolled back
        "#]],
    );
}

#[test]
fn who_waits_to_have_written_goes_on_by_the_new_limit() {
    check(
        "
        0s queue
        0s limits output-buffer=1
        0s attach r1
        0s limit r1 5
        0s send a b c d
        1s limits output-buffer=100000
        2s written r1 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            2s r1 gets #2 b until 32s
            2s r1 gets #3 c until 32s
            2s r1 gets #4 d until 32s
        "#]],
    );
}
