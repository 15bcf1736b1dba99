//! Expiry of queues: what counts as use, and when a queue without receivers is deleted.
//! (docs/spec/rabbitmq.md#12.3)

use expect_test::expect;

use crate::script::check;

#[test]
fn sends_do_not_keep_a_queue_and_its_messages_are_dropped() {
    check(
        "
        0s queue expires=10s dead-letter-expired
        5s send a
        9s send b
        9999ms queues
        10s queues
        10s rows
        ",
        expect![[r#"
            5s sent from #1
            9s sent from #2
            9999ms queues: q
            10s q is gone
            10s queues: 
            10s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_receiver_keeps_it_without_credit_and_its_going_starts_the_clock() {
    check(
        "
        0s queue expires=10s
        5s attach r1
        100s attach r2
        200s detach r1
        300s detach r2
        309s queues
        310s queues
        ",
        expect![[r#"
            309s queues: q
            310s q is gone
            310s queues: 
        "#]],
    );
}

#[test]
fn a_receiver_that_comes_and_goes_at_once_is_a_use() {
    check(
        "
        0s queue expires=10s
        5s attach r1
        5s detach r1
        14s queues
        15s queues
        ",
        expect![[r#"
            14s queues: q
            15s q is gone
            15s queues: 
        "#]],
    );
}

#[test]
fn a_receiver_that_comes_and_goes_in_one_turn_is_a_use() {
    check(
        "
        0s queue expires=10s
        5s visit r1
        14999ms queues
        15s queues
        ",
        expect![[r#"
            14999ms queues: q
            15s q is gone
            15s queues: 
        "#]],
    );
}

#[test]
fn a_receiver_that_does_not_wait_for_a_session_is_a_use() {
    check(
        "
        0s queue expires=10s sessions
        5s accept r1 next 0s
        14999ms queues
        15s queues
        ",
        expect![[r#"
            5s r1 refused: timeout
            14999ms queues: q
            15s q is gone
            15s queues: 
        "#]],
    );
}

#[test]
fn a_lost_connection_starts_the_clock_and_locks_do_not_stop_it() {
    check(
        "
        0s queue expires=10s lock=1h
        0s send a
        5s attach r1
        5s limit r1 1
        20s disconnect r1
        30s queues
        ",
        expect![[r#"
            0s sent from #1
            5s r1 gets #1 a until 3605s
            30s q is gone
            30s queues: 
        "#]],
    );
}

#[test]
fn a_change_of_other_settings_does_not_start_the_clock() {
    check(
        "
        0s queue expires=10s
        5s queue expires=10s max-delivery=3
        10s queues
        ",
        expect![[r#"
            10s q is gone
            10s queues: 
        "#]],
    );
}

#[test]
fn a_shorter_time_acts_at_once() {
    check(
        "
        0s queue expires=1h
        30s queue expires=20s
        30s queues
        ",
        expect![[r#"
            30s q is gone
            30s queues: 
        "#]],
    );
}

#[test]
fn a_restart_starts_the_clock() {
    check(
        "
        0s queue expires=10s
        5s restart
        10s queues
        15s queues
        ",
        expect![[r#"
            10s queues: q
            15s q is gone
            15s queues: 
        "#]],
    );
}

#[test]
fn the_session_of_a_receiver_keeps_it_too() {
    check(
        "
        0s queue expires=10s sessions
        0s send a:x
        5s accept r1 x
        30s queues
        40s detach r1
        50s queues
        ",
        expect![[r#"
            0s sent from #1
            5s r1 holds x until 35s
            30s queues: q
            35500ms r1 lost its session
            45500ms q is gone
            50s queues: 
        "#]],
    );
}

#[test]
fn a_queue_that_forwards_has_no_receivers_and_stays() {
    check(
        "
        0s queue name=end
        0s queue name=start expires=10s forward=end
        1h queues
        ",
        expect![[r#"
            3600s queues: end start
        "#]],
    );
}

#[test]
fn a_declaration_renews_the_lease_of_a_classic_queue_alone() {
    for (queue, expected) in [
        (
            "classic",
            expect![[r#"
                10s queues: q
                17999ms queues: q
                18s q is gone
                18s queues: 
            "#]],
        ),
        (
            "quorum",
            expect![[r#"
                10s q is gone
                10s queues: 
                17999ms queues: 
                18s queues: 
            "#]],
        ),
    ] {
        check(
            &format!(
                "
                0s queue {queue} expires=10s
                8s redeclare
                10s queues
                17999ms queues
                18s queues
                "
            ),
            expected,
        );
    }
}
