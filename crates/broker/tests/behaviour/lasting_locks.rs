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
