//! States of sessions that transactions set.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_state_is_set_by_the_commit_together_with_the_completion() {
    check(
        "
        0s queue sessions
        0s send a:A
        0s accept r1 A
        0s limit r1 10
        0s set-state r1 A one
        1s declare t1 r1/7
        1s in t1 set-state A two
        1s in t1 complete r1 #1
        1s state r1 A
        2s commit t1
        2s state r1 A
        2s counters
        3s restart
        3s accept r1 A
        3s state r1 A
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s set state of A: done
            1s declare t1: done
            1s in t1 set-state A two: done
            1s in t1 complete r1 #1: done
            1s state of A: one
            2s commit t1: done
            2s state of A: two
            2s active 0 dead 0 deferred 0 bytes 67
            3s r1 holds A until 33s
            3s state of A: two
            3s active 0 dead 0 deferred 0 bytes 67
        "#]],
    );
}

#[test]
fn a_roll_back_leaves_the_state_as_it_was() {
    check(
        "
        0s queue sessions
        0s accept r1 A
        0s set-state r1 A one
        1s declare t1 r1/7
        1s in t1 set-state A two
        1s in t1 set-state A
        2s roll-back t1
        2s state r1 A
        3s declare t2 r1/7
        3s in t2 set-state A three
        4s end r1/7
        4s state r1 A
        5s declare t3 r1/7
        5s in t3 set-state A four
        5s in t3 set-state A
        5s commit t3
        5s state r1 A
        5s counters
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s set state of A: done
            1s declare t1: done
            1s in t1 set-state A two: done
            1s in t1 set-state A: done
            2s roll-back t1: done
            2s state of A: one
            3s declare t2: done
            3s in t2 set-state A three: done
            4s state of A: one
            5s declare t3: done
            5s in t3 set-state A four: done
            5s in t3 set-state A: done
            5s commit t3: done
            5s state of A: none
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn only_the_holder_enlists_and_a_session_that_was_lost_fails_the_commit() {
    check(
        "
        0s queue sessions lock=10s
        0s queue name=plain
        0s accept r1 A
        0s declare t1 r1/7
        0s in t1 set-state B no
        0s in t1 set-state A no in=plain
        0s in t1 set-state A no in=nowhere
        0s in t1 set-state A yes by=r2
        0s in t1 set-state A yes
        5s detach r1
        5s accept r1 A
        6s commit t1
        6s state r1 A
        7s declare t2 r1/7
        7s in t2 set-state A yes
        20s commit t2
        20s accept r1 A
        20s state r1 A
        ",
        expect![[r#"
            0s r1 holds A until 10s
            0s declare t1: done
            0s in t1 set-state B no: the session is not held
            0s in t1 set-state A no in=plain: the entity has no sessions
            0s in t1 set-state A no in=nowhere: the entity does not exist
            0s in t1 set-state A yes by=r2: the transaction is not known on this connection
            0s in t1 set-state A yes: done
            5s r1 holds A until 15s
            6s commit t1: the transaction was rolled back: a session was lost before the commit
            6s state of A: none
            7s declare t2: done
            7s in t2 set-state A yes: done
            15500ms r1 lost its session
            20s commit t2: the transaction was rolled back: a session was lost before the commit
            20s r1 holds A until 30s
            20s state of A: none
        "#]],
    );
}

#[test]
fn a_state_counts_towards_the_size_of_the_queue_beside_what_is_sent() {
    check(
        "
        0s queue sessions max-size=300 max-message=200
        0s accept r1 A
        0s accept r2 B
        0s set-state r1 A x*100
        1s declare t1 r1/7
        1s in t1 set-state A x*201
        1s in t1 send yyyyyyyyyyyyyyyyyyyy:A
        1s in t1 set-state A z*190
        1s in t1 set-state A z*90
        1s commit t1
        1s counters
        2s declare t2 r1/7
        2s in t2 send yyyyyyyyyyyyyyyyyyyy:A
        2s in t2 set-state A z*197
        2s commit t2
        2s counters
        3s declare t3 r1/7
        3s in t3 send yyyyyyyyyyyyyyyyyyyy:A
        3s in t3 set-state A z*196
        3s commit t3
        3s counters
        4s disk full
        4s declare t4 r1/7
        4s in t4 set-state A z
        4s in t4 set-state A
        4s commit t4
        4s counters
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s r2 holds B until 30s
            0s set state of A: done
            1s declare t1: done
            1s in t1 set-state A x*201: a message of 201 bytes is larger than 200
            1s in t1 send yyyyyyyyyyyyyyyyyyyy:A: held
            1s in t1 set-state A z*190: done
            1s in t1 set-state A z*90: done
            1s commit t1: done
            1s active 1 dead 0 deferred 0 bytes 174
            2s declare t2: done
            2s in t2 send yyyyyyyyyyyyyyyyyyyy:A: held
            2s in t2 set-state A z*197: done
            2s commit t2: the transaction was rolled back: the entity holds 194 bytes of 300
            2s active 1 dead 0 deferred 0 bytes 174
            3s declare t3: done
            3s in t3 send yyyyyyyyyyyyyyyyyyyy:A: held
            3s in t3 set-state A z*196: done
            3s commit t3: done
            3s active 2 dead 0 deferred 0 bytes 300
            4s declare t4: done
            4s in t4 set-state A z: the disk is nearly full
            4s in t4 set-state A: done
            4s commit t4: done
            4s active 2 dead 0 deferred 0 bytes 40
        "#]],
    );
}

#[test]
fn a_commit_waits_for_what_the_state_takes_and_others_see_it_in_order() {
    check(
        "
        0s queue sessions
        0s accept r1 A
        0s set-state r1 A first
        1s detach r1
        1s accept r1 A
        1s reads late
        1s declare t1 r1/7
        1s in t1 set-state A second
        1s commit t1
        1s state r1 A
        1s set-state r1 A longer-third
        1s state r1 A
        1s answer
        1s counters
        2s declare t2 r1/7
        2s state r1 A
        2s in t2 set-state A fourth
        2s commit t2
        2s answer
        2s counters
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s set state of A: done
            1s r1 holds A until 31s
            1s declare t1: done
            1s in t1 set-state A second: done
            1s commit t1: done
            1s state of A: second
            1s set state of A: done
            1s state of A: longer-third
            1s active 0 dead 0 deferred 0 bytes 76
            2s declare t2: done
            2s in t2 set-state A fourth: done
            2s commit t2: done
            2s state of A: fourth
            2s active 0 dead 0 deferred 0 bytes 70
        "#]],
    );
}
