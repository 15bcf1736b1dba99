//! Sessions: which receiver holds which, for how long, and what becomes of their messages.

use broker::{BrokerSettings, SessionCountOnDisconnect};
use expect_test::expect;

use crate::script::{check, check_with};

fn small() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        body_bytes: 0,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_session_is_held_by_one_receiver_and_gives_its_own_messages_in_order() {
    check(
        "
        0s queue sessions
        0s send a:A b:B c:A
        0s accept r1 A
        0s limit r1 5
        0s accept r2 A
        0s accept r3 B
        0s limit r3 5
        1s send d:A e:C
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #3 c until 30s
            0s r2 refused: held
            0s r3 holds B until 30s
            0s r3 gets #2 b until 30s
            1s sent from #4
            1s r1 gets #4 d until 30s
            1s active 5 dead 0 deferred 0 bytes 5
        "#]],
    );
}

#[test]
fn a_session_without_messages_can_be_accepted_by_its_id() {
    check(
        "
        0s queue sessions
        0s accept r1 A
        0s limit r1 1
        1s send a:A b:A
        2s complete r1 #1
        2s limit r1 2 drain
        3s complete r1 #2
        3s limit r1 9 drain
        ",
        expect![[r#"
            0s r1 holds A until 30s
            1s sent from #1
            1s r1 gets #1 a until 30s
            2s complete r1 #1: done
            2s r1 gets #2 b until 30s
            2s r1 drained
            3s complete r1 #2: done
            3s r1 drained
        "#]],
    );
}

#[test]
fn the_next_session_is_the_one_whose_first_message_is_oldest() {
    check(
        "
        0s queue sessions
        0s send a:B b:A c:B d:C
        0s accept r1 next 5s
        0s accept r2 next 5s
        0s accept r3 next 5s
        0s accept r4 next 5s
        1s send e:A
        2s send f:D
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds B until 30s
            0s r2 holds A until 30s
            0s r3 holds C until 30s
            1s sent from #5
            2s sent from #6
            2s r4 holds D until 32s
        "#]],
    );
}

#[test]
fn who_waits_for_a_session_is_served_in_order_and_not_after_its_time() {
    check(
        "
        0s queue sessions
        0s accept r1 next 5s
        0s accept r2 next 3s
        0s accept r3 next 9s
        0s accept r4 next 9s
        4s detach r3
        6s send a:A
        7s disconnect r4
        7s send b:B
        8s accept r5 next 1s
        ",
        expect![[r#"
            3s r2 refused: timeout
            5s r1 refused: timeout
            6s sent from #1
            6s r4 holds A until 36s
            7s sent from #2
            8s r5 holds A until 38s
        "#]],
    );
}

#[test]
fn abandoned_messages_come_first_again_and_are_dead_lettered_after_too_many_times() {
    check(
        "
        0s queue sessions max-delivery=2
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 1
        0s limit r1 2
        1s abandon r1 #1
        1s limit r1 3
        2s abandon r1 #1
        2s limit r1 4
        2s counters
        2s attach r2 dead
        2s limit r2 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s abandon r1 #1: done
            1s r1 gets #1 a count 1 until 30s
            2s abandon r1 #1: done
            2s active 1 dead 1 deferred 0 bytes 2
            2s r2 gets #1 a count 2 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 2 delivery attempts." until 32s
        "#]],
    );
}

#[test]
fn closing_the_receiver_returns_its_messages_as_they_were() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 5
        1s detach r1
        1s complete r1 #1
        1s accept r2 A
        1s limit r2 1
        2s disconnect r2
        2s accept r3 next 1s
        2s limit r3 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s complete r1 #1: the session is not held
            1s r2 holds A until 31s
            1s r2 gets #1 a until 31s
            2s r3 holds A until 32s
            2s r3 gets #1 a until 32s
            2s r3 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn a_session_whose_time_is_up_is_lost_and_its_messages_count_as_delivered() {
    check(
        "
        0s queue sessions lock=10s
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 5
        5s accept r2 next 60s
        11s complete r1 #1
        11s limit r2 5
        12s complete r2 #1
        !25s complete r2 #2
        25s renew-session r2 A
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 10s
            0s r1 gets #1 a until 10s
            0s r1 gets #2 b until 10s
            10s r1 lost its session
            10s r2 holds A until 20s
            11s complete r1 #1: the session is not held
            11s r2 gets #1 a count 1 until 20s
            11s r2 gets #2 b count 1 until 20s
            12s complete r2 #1: done
            25s complete r2 #2: the session is not held
            25s r2 lost its session
            25s renew A: the session is not held
        "#]],
    );
}

#[test]
fn a_renewed_session_is_held_a_full_duration_from_now_with_its_messages() {
    check(
        "
        0s queue sessions lock=10s
        0s send a:A
        0s accept r1 A
        0s limit r1 5
        8s renew-session r1 A
        8s renew-session r2 A
        8s renew-session r1 B
        17s complete r1 #1
        19s renew-session r1 A
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 10s
            0s r1 gets #1 a until 10s
            8s renew A: until 18s
            8s renew A: the session is not held
            8s renew B: the session is not held
            17s complete r1 #1: done
            18500ms r1 lost its session
            19s renew A: the session is not held
        "#]],
    );
}

#[test]
fn messages_of_a_session_are_not_renewed_one_by_one() {
    check(
        "
        0s queue sessions
        0s send a:A
        0s accept r1 A
        0s limit r1 5
        1s renew r1 #1
        40s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            1s renew r1 #1: messages of a session are locked with it
            30s r1 lost its session
        "#]],
    );
}

#[test]
fn a_queue_with_sessions_takes_no_message_and_no_receiver_without_one() {
    check(
        "
        0s queue sessions
        0s send a
        0s send a:A b
        0s attach r1
        0s counters
        ",
        expect![[r#"
            0s send refused: the entity requires sessions, and the message has none
            0s send refused: the entity requires sessions, and the message has none
            0s r1 evicted: the entity requires sessions
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
    check(
        "
        0s queue
        0s send a:A
        0s accept r1 A
        0s accept r2 next 1s
        0s attach r3
        0s limit r3 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 refused: not allowed
            0s r2 refused: not allowed
            0s r3 gets #1 a until 30s
        "#]],
    );
}

#[test]
fn sessions_and_their_order_are_found_again_after_a_restart() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:B b:A c:B d:A e:A f:A g:A
        0s accept r1 next 5s
        0s limit r1 1
        1s complete r1 #1
        2s restart
        2s accept r1 next 5s
        2s limit r1 9
        2s accept r2 next 5s
        2s limit r2 9
        2s accept r3 next 5s
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds B until 30s
            0s r1 gets #1 a until 30s
            1s complete r1 #1: done
            2s r1 holds A until 32s
            2s r1 gets #2 b until 32s
            2s r1 gets #4 d until 32s
            2s r1 gets #5 e until 32s
            2s r1 gets #6 f until 32s
            2s r1 gets #7 g until 32s
            2s r2 holds B until 32s
            2s r2 gets #3 c until 32s
        "#]],
    );
}

#[test]
fn nobody_is_told_that_there_is_no_session_before_all_are_known() {
    check(
        "
        0s queue sessions
        0s send a:A
        1s reads late
        1s restart
        1s accept r1 next 1s
        1s send b:B
        1s asked
        1s answer
        1s asked
        1s answer
        1s limit r1 9
        1s answer
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            1s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max
            1s asked for 8 of Session 9413270669427828315ms #1..9413270669427828315ms #3
            1s r1 holds A until 31s
            1s r1 gets #1 a until 31s
        "#]],
    );
}

#[test]
fn a_session_that_is_accepted_by_id_is_there_before_all_are_known() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        1s reads late
        1s restart
        1s accept r1 A
        1s limit r1 9
        1s send c:A
        1s asked
        1s answer
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            1s r1 holds A until 31s
            1s sent from #3
            1s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max, 256 of Session 9413270669427828315ms #1..9413270669427828315ms #3
            1s r1 gets #1 a until 31s
            1s r1 gets #2 b until 31s
            1s r1 gets #3 c until 31s
        "#]],
    );
}

#[test]
fn a_backlog_comes_in_order_through_a_small_window() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:A e:B f:A g:A
        0s accept r1 A
        0s limit r1 3
        1s abandon r1 #3
        1s limit r1 9
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #3 c until 30s
            0s r1 gets #4 d until 30s
            1s abandon r1 #3: done
            1s r1 gets #3 c count 1 until 30s
            1s r1 gets #6 f until 30s
            1s r1 gets #7 g until 30s
            1s active 7 dead 0 deferred 0 bytes 7
        "#]],
    );
}

#[test]
fn expired_messages_of_a_session_leave_wherever_they_stand() {
    check_with(
        small(),
        "
        0s queue sessions dead-letter-expired
        0s send ttl=5s a:A b:B
        0s send c:A
        0s send ttl=5s d:A e:C
        6s counters
        6s accept r1 next 5s
        6s limit r1 9
        6s accept r2 next 1s
        8s list 0 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #3
            0s sent from #4
            6s active 1 dead 4 deferred 0 bytes 5
            6s r1 holds A until 36s
            6s r1 gets #3 c until 36s
            7s r2 refused: timeout
            8s list 0 10: A then skip 1
        "#]],
    );
}

#[test]
fn messages_that_expire_under_a_held_session_are_not_delivered() {
    check(
        "
        0s queue sessions lock=1m
        0s accept r1 A
        0s send ttl=5s a:A b:A
        0s limit r1 1
        0s send c:A
        6s abandon r1 #1
        6s limit r1 9
        6s counters
        ",
        expect![[r#"
            0s r1 holds A until 60s
            0s sent from #1
            0s r1 gets #1 a expires 5s until 60s
            0s sent from #3
            6s abandon r1 #1: done
            6s r1 gets #3 c until 60s
            6s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_session_that_is_named_has_nothing_of_another_one_of_the_connection() {
    check(
        "
        0s queue sessions
        0s send a:A b:B c:A
        0s accept r1 A
        0s accept r1/1 B
        0s limit r1 5
        0s defer r1 #1
        1s fetch r1 #1 session=B
        1s fetch r1 #1 session=a
        1s complete r1 #1 session=B
        1s complete r1 #1 #3 session=B
        1s complete r1 #1 #3 session=A
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1/1 holds B until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #3 c until 30s
            0s defer r1 #1: done
            1s fetch r1 #1 session=B: message #1 is not there
            1s fetch r1 #1 session=a: #1 a count 1 Deferred until 30s
            1s complete r1 #1 session=B: the lock is not held
            1s complete r1 #1 #3 session=B: the lock is not held
            1s complete r1 #1 #3 session=A: done
        "#]],
    );
}

#[test]
fn deferred_messages_are_fetched_by_the_holder_of_their_session() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 5
        0s defer r1 #1
        0s complete r1 #2
        1s accept r2 B
        1s fetch r2 #1
        1s fetch r1 #1
        1s peek-session A 1 10
        2s detach r1
        2s accept r3 next 1s
        3s complete r1 #1
        4s accept r3 A
        4s fetch r3 #1
        5s abandon r3 #1
        5s fetch r3 #1
        6s complete r3 #1
        6s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s complete r1 #2: done
            1s r2 holds B until 31s
            1s fetch r2 #1: the session is not held
            1s fetch r1 #1: #1 a count 1 Deferred until 30s
            1s peek A: #1 a count 1 Deferred
            3s r3 refused: timeout
            3s complete r1 #1: the session is not held
            4s r3 holds A until 34s
            4s fetch r3 #1: #1 a count 1 Deferred until 34s
            5s abandon r3 #1: done
            5s fetch r3 #1: #1 a count 2 Deferred until 34s
            6s complete r3 #1: done
            6s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_state_belongs_to_the_session_and_survives_its_messages_and_a_restart() {
    check(
        "
        0s queue sessions lock=10s
        0s accept r1 A
        0s state r1 A
        0s set-state r1 A hello
        0s state r1 A
        0s state r2 A
        0s set-state r2 A no
        0s counters
        1s detach r1
        1s set-state r1 A late
        2s restart
        2s accept r1 A
        2s state r1 A
        3s set-state r1 A
        3s state r1 A
        3s counters
        13s state r1 A
        ",
        expect![[r#"
            0s r1 holds A until 10s
            0s state of A: none
            0s set state of A: done
            0s state of A: hello
            0s state of A: the session is not held
            0s set state of A: the session is not held
            0s active 0 dead 0 deferred 0 bytes 69
            1s set state of A: the session is not held
            2s r1 holds A until 12s
            2s state of A: hello
            3s set state of A: done
            3s state of A: none
            3s active 0 dead 0 deferred 0 bytes 0
            12500ms r1 lost its session
            13s state of A: the session is not held
        "#]],
    );
}

#[test]
fn states_are_read_and_set_in_the_order_of_asking() {
    check(
        "
        0s queue sessions
        0s accept r1 A
        0s reads late
        0s set-state r1 A one
        0s state r1 A
        0s set-state r1 A two
        0s state r1 A
        0s answer
        0s state r1 A
        0s answer
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s set state of A: done
            0s state of A: one
            0s set state of A: done
            0s state of A: two
            0s state of A: two
        "#]],
    );
}

#[test]
fn a_state_counts_towards_the_size_of_the_queue() {
    check(
        "
        0s queue sessions max-size=300 max-message=200
        0s accept r1 A
        0s set-state r1 A x*201
        0s set-state r1 A x*200
        0s send yyyyyyyyyyyyyyyyyyyyyyyy:A
        0s accept r2 B
        0s set-state r2 B x
        0s set-state r1 A y*150
        0s set-state r2 B x
        0s send zzzzzzzzzzzzzzzzzzzzzzzzz:A
        0s send zz:A
        0s disk full
        0s set-state r1 A x
        0s set-state r1 A
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s set state of A: a message of 201 bytes is larger than 200
            0s set state of A: done
            0s sent from #1
            0s r2 holds B until 30s
            0s set state of B: the entity holds 288 bytes of 300
            0s set state of A: done
            0s set state of B: the entity holds 238 bytes of 300
            0s sent from #2
            0s sent from #3
            0s set state of A: the disk is nearly full
            0s set state of A: done
        "#]],
    );
}

#[test]
fn sessions_with_messages_or_a_state_are_listed_a_page_at_a_time() {
    check(
        "
        0s queue sessions
        0s send a:A b:B c:C
        0s accept r1 D
        0s set-state r1 D x
        0s accept r2 B
        0s set-state r2 B x
        0s accept r3 E
        0s list 0 100
        0s list 4 100
        1s set-state r2 B y
        2s list 0 100 after=0s
        2s list 0 100 after=1s
        2s limit r2 1
        2s complete r2 #2
        2s accept r4 A
        2s limit r4 1
        2s complete r4 #1
        2s list 0 100
        3s restart
        3s list 0 100
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds D until 30s
            0s set state of D: done
            0s r2 holds B until 30s
            0s set state of B: done
            0s r3 holds E until 30s
            0s list 0 100: A B C D then skip 4
            0s list 4 100:  then skip 4
            1s set state of B: done
            2s list 0 100 after=0s: B then skip 1
            2s list 0 100 after=1s:  then skip 0
            2s r2 gets #2 b until 30s
            2s complete r2 #2: done
            2s r4 holds A until 32s
            2s r4 gets #1 a until 32s
            2s complete r4 #1: done
            2s list 0 100: B C D then skip 3
            3s list 0 100: B C D then skip 3
        "#]],
    );
}

#[test]
fn a_drain_waits_for_what_is_on_disk() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:A c:A
        0s reads late
        0s accept r1 A
        0s limit r1 9 drain
        0s answer
        0s answer
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
            0s r1 gets #3 c until 30s
            0s r1 drained
        "#]],
    );
}

#[test]
fn received_and_deleted_messages_of_a_session_are_gone() {
    check(
        "
        0s queue sessions lock=10s
        0s send a:A b:A
        0s accept r1 A delete
        0s limit r1 1
        0s counters
        11s accept r2 next 1s
        11s limit r2 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 10s
            0s r1 gets #1 a
            0s active 1 dead 0 deferred 0 bytes 1
            10500ms r1 lost its session
            11s r2 holds A until 21s
            11s r2 gets #2 b until 21s
        "#]],
    );
}

#[test]
fn damaged_messages_are_set_aside_while_the_session_is_held() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        1s reads late
        1s restart
        1s accept r1 A
        1s limit r1 9
        1s answer
        1s answer damaged
        1s answer
        1s answer damaged
        1s answer damaged
        1s answer
        2s detach r1
        2s accept r2 A
        2s limit r2 9
        2s answer
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            1s r1 holds A until 31s
            1s r1 gets #2 b until 31s
            2s r2 holds A until 32s
            2s r2 gets #1 a until 32s
            2s r2 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn reads_that_fail_are_tried_again_after_a_second() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        1s reads late
        1s restart
        1s accept r1 next 5s
        1s answer broken
        2s answer
        2s answer broken
        3s answer
        3s limit r1 9
        3s answer broken
        4s answer
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            3s r1 holds A until 33s
            4s r1 gets #1 a until 33s
            4s r1 gets #2 b until 33s
        "#]],
    );
}

#[test]
fn scheduled_messages_enter_their_session_when_their_time_has_come() {
    check(
        "
        0s queue sessions
        0s send a:A+20s b:B+10s c:A
        0s accept r1 A
        0s limit r1 9
        0s accept r2 next 60s
        0s peek-session A 1 10
        0s list 0 10
        5s restart
        5s accept r1 A
        5s limit r1 9
        5s accept r2 next 60s
        12s limit r2 9
        21s peek-session A 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #3 c until 30s
            0s peek A: #1 a Scheduled, #3 c
            0s list 0 10: A then skip 1
            5s r1 holds A until 35s
            5s r1 gets #3 c until 35s
            10s r2 holds B until 40s
            12s r2 gets #4 b until 40s
            20s r1 gets #5 a until 35s
            21s peek A: #3 c, #5 a
        "#]],
    );
}

#[test]
fn in_cloud_mode_a_session_expires_as_a_whole_while_a_receiver_is_there() {
    check_with(
        small(),
        "
        0s queue sessions cloud dead-letter-expired
        0s send ttl=5s a:A
        0s send b:A c:B
        0s accept r2 A
        0s limit r2 1
        0s abandon r2 #1
        0s detach r2
        1s send ttl=30s d:A
        6s counters
        6s accept r1 B
        7s counters
        7s send e:A
        7s list 0 10
        8s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r2 holds A until 30s
            0s r2 gets #1 a expires 5s until 30s
            0s abandon r2 #1: done
            1s sent from #4
            6s active 4 dead 0 deferred 0 bytes 4
            6s r1 holds B until 36s
            7s active 1 dead 3 deferred 0 bytes 4
            7s sent from #5
            7s list 0 10: A B then skip 2
            8s peek: #3 c, #5 e
        "#]],
    );
    check_with(
        small(),
        "
        0s queue sessions cloud lock=1m
        0s send ttl=5s a:A
        0s send b:A*3
        0s accept r1 A
        0s limit r1 3
        6s abandon r1 #1
        6s abandon r1 #2
        6s limit r1 9
        6s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r1 holds A until 60s
            0s r1 gets #1 a expires 5s until 60s
            0s r1 gets #2 b until 60s
            0s r1 gets #3 b until 60s
            6s abandon r1 #1: done
            6s abandon r1 #2: done
            6s r1 gets #2 b count 1 until 60s
            6s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn forwarded_messages_enter_their_session_where_they_arrive() {
    check(
        "
        0s queue name=b sessions
        0s queue name=a forward=b
        0s accept r1 A in=b
        0s send in=a encoded x:A@1 y@2 z:B@3
        0s counters in=b
        0s accept r2 next 1s in=b
        0s list 0 10 in=b
        ",
        expect![[r#"
            0s r1 holds A until 30s
            0s sent from #1
            0s active 2 dead 1 deferred 0 bytes 85
            0s r2 holds B until 30s
            0s list 0 10 in=b: A B then skip 2
        "#]],
    );
}

/// (docs/spec/entities.md#10)
#[test]
fn a_lost_connection_counts_for_messages_of_its_sessions_if_the_setting_says_so() {
    let script = "
        0s queue sessions max-delivery=2
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 1
        1s detach r1
        1s accept r2 A
        1s limit r2 1
        2s disconnect r2
        2s accept r3 A
        2s limit r3 1
        3s disconnect r3
        3s accept r4 A
        3s limit r4 10
        3s counters
        ";
    check(
        script,
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            1s r2 holds A until 31s
            1s r2 gets #1 a until 31s
            2s r3 holds A until 32s
            2s r3 gets #1 a until 32s
            3s r4 holds A until 33s
            3s r4 gets #1 a until 33s
            3s r4 gets #2 b until 33s
            3s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
    let settings = BrokerSettings {
        session_count_on_disconnect: SessionCountOnDisconnect::Raise,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        script,
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            1s r2 holds A until 31s
            1s r2 gets #1 a until 31s
            2s r3 holds A until 32s
            2s r3 gets #1 a count 1 until 32s
            3s r4 holds A until 33s
            3s r4 gets #2 b until 33s
            3s active 1 dead 1 deferred 0 bytes 2
        "#]],
    );
}
