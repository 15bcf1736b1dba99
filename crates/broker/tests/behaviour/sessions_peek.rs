//! Sessions that are peeked at, without being held.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_session_is_browsed_without_being_held() {
    check(
        "
        0s queue sessions
        0s send a:A b:B c:A d:A
        0s accept r1 A
        0s limit r1 2
        0s defer r1 #1
        0s peek-session A 1 10
        0s peek-session A 2 1
        0s peek-session B 1 10
        0s peek-session C 1 10
        0s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #3 c until 30s
            0s defer r1 #1: done
            0s peek A: #1 a count 1 Deferred, #3 c, #4 d
            0s peek A: #3 c
            0s peek B: #2 b
            0s peek C: 
            0s peek: #1 a count 1 Deferred, #2 b, #3 c, #4 d
        "#]],
    );
}

#[test]
fn a_peek_shows_what_is_behind_messages_that_go_while_it_is_read() {
    check(
        "
        0s queue sessions
        0s send a:A b:A c:A
        0s accept r1 A
        0s limit r1 2
        0s reads fresh
        0s peek-session A 0 1
        0s answer
        0s answer
        0s complete r1 #1 #2
        0s answer
        0s answer
        0s answer
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s complete r1 #1 #2: done
            0s peek A: #3 c
        "#]],
    );
}

/// A scheduled message, which is found first, does not hide available ones before it.
#[test]
fn a_peek_shows_what_is_before_scheduled_messages_when_others_go_while_it_is_read() {
    check(
        "
        0s queue sessions
        0s send a:A b:A c:A
        0s send d:A+60s
        0s accept r1 A
        0s limit r1 2
        0s reads fresh
        0s peek-session A 0 1
        0s answer
        0s answer
        0s answer
        0s complete r1 #1 #2
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s complete r1 #1 #2: done
            0s peek A: #3 c
        "#]],
    );
}
