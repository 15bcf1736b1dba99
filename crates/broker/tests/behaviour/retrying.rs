//! Retries: an abandoned message waits for its next delivery, and returns to its place.

use expect_test::expect;

use crate::script::check;

#[test]
fn an_abandoned_message_waits_as_long_as_its_receiver_says() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        1s abandon r1 #1 why=busy wait=10s
        1s peek 1 9
        1s counters
        2s limit r1 9
        2s complete r1 #2
        10s counters
        11s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1 why=busy wait=10s: done
            1s peek: #1 a count 1 Scheduled why="busy", #2 b
            1s active 1 dead 0 deferred 0 bytes 2 scheduled 1
            2s r1 gets #2 b until 32s
            2s complete r1 #2: done
            10s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            11s r1 gets #1 a count 1 why="busy" until 41s
            11s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn no_wait_is_longer_than_seven_days() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 9
        0s abandon r1 #1 wait=9999999s
        604799s counters
        604800s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s abandon r1 #1 wait=9999999s: done
            604799s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            604800s r1 gets #1 a count 1 until 604830s
            604800s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_backoff_grows_with_the_delivery_count_up_to_its_most() {
    check(
        "
        0s queue backoff=1s,3s,2 max-delivery=5 lock=30s
        0s send a
        0s attach r1
        0s limit r1 9
        0s abandon r1 #1
        1s counters
        1s abandon r1 #1
        3s counters
        33s counters
        36s counters
        36s abandon r1 #1 wait=0s
        36s abandon r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s abandon r1 #1: done
            1s r1 gets #1 a count 1 until 31s
            1s active 1 dead 0 deferred 0 bytes 1
            1s abandon r1 #1: done
            3s r1 gets #1 a count 2 until 33s
            3s active 1 dead 0 deferred 0 bytes 1
            33s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            36s r1 gets #1 a count 3 until 66s
            36s active 1 dead 0 deferred 0 bytes 1
            36s abandon r1 #1 wait=0s: done
            36s r1 gets #1 a count 4 until 66s
            36s abandon r1 #1: done
        "#]],
    );
}

#[test]
fn a_message_of_a_session_does_not_wait_so_that_the_order_is_kept() {
    check(
        "
        0s queue sessions backoff=5s,5s,1
        0s send a:s b:s
        0s accept r1 s
        0s limit r1 1
        0s abandon r1 #1 wait=5s
        0s limit r1 2
        1s abandon r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds s until 30s
            0s r1 gets #1 a until 30s
            0s abandon r1 #1 wait=5s: a message of a session or of a dead-letter queue cannot wait for its next delivery
            0s r1 gets #2 b until 30s
            1s abandon r1 #1: done
        "#]],
    );
}

#[test]
fn a_message_that_waits_returns_with_its_changes_after_a_restart() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        0s abandon r1 #1 why=busy wait=5s
        1s restart
        2s attach r1
        2s limit r1 9
        5s counters
        5s complete r1 #1
        5s complete r1 #2
        5s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s abandon r1 #1 why=busy wait=5s: done
            2s r1 gets #2 b until 32s
            5s r1 gets #1 a count 1 why="busy" until 35s
            5s active 2 dead 0 deferred 0 bytes 2
            5s complete r1 #1: done
            5s complete r1 #2: done
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_message_waits_until_its_deadline_at_the_latest() {
    check(
        "
        0s queue dead-letter-expired
        0s send ttl=5s a
        0s attach r1
        0s limit r1 9
        1s abandon r1 #1 wait=10s why=late
        5s counters
        5s counters
        5s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            1s abandon r1 #1 wait=10s why=late: done
            5s active 0 dead 1 deferred 0 bytes 1
            5s active 0 dead 1 deferred 0 bytes 1
            5s peek: #1 a count 1 why="late" DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s
        "#]],
    );
}

#[test]
fn a_message_that_waits_is_not_cancelled_and_a_dead_letter_cannot_wait() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 9
        1s abandon r1 #1 wait=10s
        1s cancel #1
        1s reject r1 #2
        1s attach r2 dead
        1s limit r2 9
        2s abandon r2 #2 wait=1s
        2s abandon r2 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s abandon r1 #1 wait=10s: done
            1s cancel #1: message #1 is not there
            1s reject r1 #2: done
            1s r2 gets #2 b until 31s
            2s abandon r2 #2 wait=1s: a message of a session or of a dead-letter queue cannot wait for its next delivery
            2s abandon r2 #2: done
            2s r2 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn a_deferred_message_stays_deferred_and_a_lost_lock_backs_off() {
    check(
        "
        0s queue backoff=2s,2s,1 lock=10s
        0s send a b
        0s attach r1
        0s limit r1 9
        0s defer r1 #1
        1s fetch r1 #1
        1s abandon r1 #1 wait=1s
        3s fetch r1 #1
        10s counters
        12s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 10s
            0s r1 gets #2 b until 10s
            0s defer r1 #1: done
            1s fetch r1 #1: #1 a count 1 Deferred until 11s
            1s abandon r1 #1 wait=1s: done
            3s fetch r1 #1: #1 a count 2 Deferred until 13s
            10s active 0 dead 0 deferred 1 bytes 2 scheduled 1
            12s r1 gets #2 b count 1 until 22s
            12s active 1 dead 0 deferred 1 bytes 2
        "#]],
    );
}

#[test]
fn delayed_retry_waits_for_each_return_by_the_delivery_count() {
    check(
        "
        0s queue retry-all=10s,25s
        0s send a
        0s attach r1 hold
        0s limit r1 9
        0s release r1 #1
        9s counters
        10s abandon r1 #1
        20s abandon r1 #1
        40s abandon r1 #1
        64s counters
        65s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            0s release r1 #1: done
            9s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            10s r1 gets #1 a until it goes
            10s abandon r1 #1: done
            20s r1 gets #1 a count 1 until it goes
            20s abandon r1 #1: done
            40s r1 gets #1 a count 2 until it goes
            40s abandon r1 #1: done
            64s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            65s r1 gets #1 a count 3 until it goes
            65s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn delayed_retry_may_be_for_failed_or_for_returned_messages_alone() {
    check(
        "
        0s queue name=failed retry-failed=10s,10s
        0s queue name=returned retry-returned=10s,10s
        0s send a in=failed
        0s send b in=returned
        0s attach r1/1 hold in=failed
        0s attach r1/2 hold in=returned
        0s limit r1/1 9
        0s limit r1/2 9
        1s release r1/1 #1 in=failed
        1s release r1/2 #1 in=returned
        2s abandon r1/1 #1 in=failed
        11s abandon r1/2 #1 in=returned
        12s complete r1/1 #1 in=failed
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s r1/1 gets #1 a until it goes
            0s r1/2 gets #1 b until it goes
            1s release r1/1 #1 in=failed: done
            1s r1/1 gets #1 a until it goes
            1s release r1/2 #1 in=returned: done
            2s abandon r1/1 #1 in=failed: done
            11s r1/2 gets #1 b until it goes
            11s abandon r1/2 #1 in=returned: done
            11s r1/2 gets #1 b count 1 until it goes
            12s r1/1 gets #1 a count 1 until it goes
            12s complete r1/1 #1 in=failed: done
        "#]],
    );
}

#[test]
fn delayed_retry_waits_after_a_detach_and_a_lost_connection_and_not_when_the_client_says_when() {
    check(
        "
        0s queue retry-all=10s,60s
        0s send a
        0s attach r1 hold
        0s limit r1 1
        0s attach r2 hold
        0s limit r2 9
        1s detach r1
        11s disconnect r2
        11s attach r3 hold
        11s limit r3 9
        21s abandon r3 #1 wait=1s
        22s undelivered r3 #1
        22s limit r3 10
        23s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until it goes
            11s r2 gets #1 a until it goes
            21s r3 gets #1 a count 1 until it goes
            21s abandon r3 #1 wait=1s: done
            22s r3 gets #1 a count 2 until it goes
            22s undelivered r3 #1: done
            22s r3 gets #1 a count 2 until it goes
            23s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}
