//! States of sessions that are shown to a request, which need not hold the session.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_state_is_shown_be_the_session_held_or_not() {
    check(
        "
        0s queue sessions
        0s accept r1 A
        0s set-state r1 A hello
        0s show-state A
        0s show-state B
        1s detach r1
        1s show-state A
        2s restart
        2s show-state A
        2s show-state A in=nowhere
        3s reads late
        3s show-state A
        3s answer damaged
        4s show-state A
        4s remove
        4s answer
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s set state of A: done
            0s state of A: hello
            0s state of B: none
            1s state of A: hello
            2s state of A: hello
            2s state of A: the entity does not exist
            3s state of A: a body is damaged: its checksum is wrong
            4s q is gone
            4s removed
            4s state of A: the entity does not exist
        "#]],
    );
    check(
        "
        0s show-state A
        ",
        expect![[r#"
            0s state of A: the entity has no sessions
        "#]],
    );
}
