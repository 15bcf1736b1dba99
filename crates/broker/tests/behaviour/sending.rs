//! Sending: what is refused, and that nothing of it happens.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_batch_that_does_not_fit_is_refused_whole() {
    check(
        "
        0s queue max-size=10
        0s send aaaa
        0s send bbbb ccc
        0s send bbbbbb
        0s send c
        0s attach r1
        0s limit r1 1
        0s reject r1 #1
        0s send d
        0s attach r2 dead
        0s limit r2 1
        0s complete r2 #1 dead
        0s send d
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the entity holds 4 bytes of 10
            0s sent from #2
            0s send refused: the entity holds 10 bytes of 10
            0s r1 gets #1 aaaa until 30s
            0s reject r1 #1: done
            0s send refused: the entity holds 10 bytes of 10
            0s r2 gets #1 aaaa until 30s
            0s complete r2 #1 dead: done
            0s sent from #3
        "#]],
    );
}

#[test]
fn a_message_that_is_too_large_is_refused() {
    // The dialect may have added 64 bytes to what was sent.
    check(
        "
        0s queue max-message=4
        0s send a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        0s send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        0s counters
        ",
        expect![[r#"
            0s send refused: a message of 69 bytes is larger than 4
            0s sent from #1
            0s active 1 dead 0 deferred 0 bytes 68
        "#]],
    );
}

#[test]
fn a_nearly_full_disk_refuses_sends_and_lets_settlements_through() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 9
        1s disk full
        1s send c
        1s complete r1 #1
        1s abandon r1 #2
        2s disk ok
        2s send c
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s send refused: the disk is nearly full
            1s complete r1 #1: done
            1s abandon r1 #2: done
            1s r1 gets #2 b count 1 until 31s
            2s sent from #3
            2s r1 gets #3 c until 32s
        "#]],
    );
}
