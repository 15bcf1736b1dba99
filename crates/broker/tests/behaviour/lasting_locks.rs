//! Lasting locks: those without a time limit, which end with their receiver.
//! (docs/spec/rabbitmq.md#10.3, #10.5)

use broker::{BrokerSettings, LocksOnDisconnect};
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_lasting_lock_outlives_the_lock_duration_and_can_be_settled() {
    check(
        "
        0s send a
        0s attach r1 hold
        0s limit r1 1
        90s attach r2
        90s limit r2 1
        9000s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            9000s complete r1 #1: done
        "#]],
    );
}

#[test]
fn a_receiver_that_detaches_gives_back_what_it_holds_without_a_count() {
    check(
        "
        0s send a b c
        0s attach r1 hold
        0s attach r2
        0s limit r1 2
        0s limit r2 9
        5s detach r1
        6s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            0s r1 gets #2 b until it goes
            0s r2 gets #3 c until 30s
            5s r2 gets #1 a until 35s
            5s r2 gets #2 b until 35s
            6s complete r1 #1: the lock is not held
        "#]],
    );
}

#[test]
fn a_lost_connection_raises_the_counts_whatever_becomes_of_other_locks() {
    for locks_on_disconnect in [LocksOnDisconnect::Keep, LocksOnDisconnect::Drop] {
        check_with(
            BrokerSettings {
                locks_on_disconnect,
                ..BrokerSettings::default()
            },
            "
            0s queue max-delivery=2
            0s send a
            0s attach r1 hold
            0s limit r1 1
            1s disconnect r1
            1s attach r2 hold
            1s limit r2 1
            2s disconnect r2
            2s counters
            ",
            expect![[r#"
                0s sent from #1
                0s r1 gets #1 a until it goes
                1s r2 gets #1 a count 1 until it goes
                2s active 0 dead 1 deferred 0 bytes 1
            "#]],
        );
    }
}

#[test]
fn a_deleted_queue_ends_lasting_locks() {
    check(
        "
        0s send a
        0s attach r1 hold
        0s limit r1 1
        1s remove
        2s complete r1 #1
        2s detach r1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            1s r1 evicted: the entity does not exist
            1s q is gone
            1s removed
            2s complete r1 #1: the lock is not held
        "#]],
    );
}

#[test]
fn a_message_that_is_held_for_too_long_goes_to_others_without_a_count() {
    check(
        "
        0s queue consumer-timeout=60s lock=5s
        0s send a b
        0s attach r1 hold
        0s limit r1 1
        59s attach r2 hold
        59s limit r2 1
        60s attach r3 hold
        60s limit r3 1
        61s complete r1 #1
        62s limit r1 2
        62s send c
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            59s r2 gets #2 b until it goes
            60s r1 has held #1 for too long
            60s r3 gets #1 a until it goes
            61s complete r1 #1: the lock is not held
            62s sent from #3
            62s r1 gets #3 c until it goes
        "#]],
    );
}

#[test]
fn a_receiver_that_has_held_a_message_for_too_long_gets_no_more_until_it_names_its_credit() {
    check(
        "
        0s queue consumer-timeout=60s
        0s send a
        0s attach r1 hold
        0s limit r1 9
        60s send b
        70s limit r1 10
        130s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            60s r1 has held #1 for too long
            60s sent from #2
            70s r1 gets #1 a until it goes
            70s r1 gets #2 b until it goes
            130s r1 has held #1 for too long
            130s r1 has held #2 for too long
            130s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_receiver_may_have_a_time_out_of_its_own_or_none() {
    check(
        "
        0s queue consumer-timeout=60s
        0s send a b
        0s attach r1/1 hold timeout=10s
        0s limit r1/1 1
        0s attach r1/2 hold timeout=0s
        0s limit r1/2 1
        10s counters
        900s counters
        900s detach r1/2
        ",
        expect![[r#"
            0s sent from #1
            0s r1/1 gets #1 a until it goes
            0s r1/2 gets #2 b until it goes
            10s r1/1 has held #1 for too long
            10s active 2 dead 0 deferred 0 bytes 2
            900s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_peek_shows_the_lock_of_a_link_as_the_links_whatever_its_time() {
    for queue in ["0s queue", "0s queue consumer-timeout=60s"] {
        check(
            &format!(
                "
                {queue}
                0s send a
                0s attach r1 hold
                0s limit r1 1
                1s peek 1 9
                "
            ),
            expect![[r#"
                0s sent from #1
                0s r1 gets #1 a until it goes
                1s peek: #1 a locked by a link
            "#]],
        );
    }
}

#[test]
fn a_receiver_that_goes_with_its_session_raises_the_counts_up_to_the_limit() {
    check(
        "
        0s queue max-delivery=2
        0s send a b
        0s attach r1 hold
        0s attach r2
        0s limit r1 1
        0s limit r2 1
        1s lose r1
        1s attach r3 hold
        1s limit r3 1
        2s lose r3
        2s counters
        3s lose r2
        3s complete r2 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            0s r2 gets #2 b until 30s
            1s r3 gets #1 a count 1 until it goes
            2s active 1 dead 1 deferred 0 bytes 2
            3s complete r2 #2: done
        "#]],
    );
}

#[test]
fn a_lasting_lock_is_no_other_links_to_renew() {
    check(
        "
        0s send a
        0s attach r1 hold
        0s limit r1 1
        1s renew r1 #1
        2s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            1s renew r1 #1: the lock is not held
            2s complete r1 #1: done
        "#]],
    );
}

#[test]
fn a_lasting_lock_is_no_transactions_to_end() {
    check(
        "
        0s send a
        0s attach r1 hold
        0s limit r1 1
        1s declare t1 r1/7
        1s in t1 complete r1 #1
        1s commit t1
        2s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            1s declare t1: done
            1s in t1 complete r1 #1: the lock is not held
            1s commit t1: done
            2s complete r1 #1: done
        "#]],
    );
}
