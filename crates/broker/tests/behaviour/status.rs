//! Entity status: what a disabled queue refuses, which receivers it evicts, and what goes on all
//! the same.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_disabled_queue_refuses_sends_and_receivers_and_looks_and_counts_on() {
    check(
        "
        0s queue
        0s send a
        0s queue disabled
        1s send b
        1s attach r1
        1s attach r1 dead
        1s peek 1 10
        1s fetch r1 #1
        1s counters
        2s queue
        2s attach r1
        2s limit r1 1
        2s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            1s send refused: the entity is disabled for sending
            1s r1 evicted: the entity is disabled for receiving
            1s r1 evicted: the entity is disabled for receiving
            1s peek: the entity is disabled for receiving
            1s fetch r1 #1: the entity is disabled for receiving
            1s active 1 dead 0 deferred 0 bytes 1
            2s r1 gets #1 a until 32s
            2s peek: #1 a
        "#]],
    );
}

#[test]
fn a_queue_that_only_refuses_sends_gives_and_one_that_only_refuses_receivers_takes() {
    check(
        "
        0s queue send-disabled
        0s queue name=r receive-disabled
        0s send a
        0s attach r1
        0s peek 1 10
        0s send b in=r
        0s attach r2 in=r
        0s peek 1 10 in=r
        0s counters in=r
        ",
        expect![[r#"
            0s send refused: the entity is disabled for sending
            0s peek: 
            0s sent from #1
            0s r2 evicted: the entity is disabled for receiving
            0s peek: the entity is disabled for receiving
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn receivers_are_sent_away_when_the_status_changes_and_what_they_hold_can_be_settled() {
    check(
        "
        0s queue
        0s send a b c d
        0s attach r1
        0s limit r1 3
        0s attach r2 dead
        1s queue send-disabled
        2s queue receive-disabled
        3s complete r1 #1
        3s abandon r1 #2
        3s renew r1 #3
        3s reject r1 #3
        3s counters
        4s queue
        4s attach r1
        4s limit r1 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            2s r1 evicted: the entity is disabled for receiving
            2s r2 evicted: the entity is disabled for receiving
            3s complete r1 #1: done
            3s abandon r1 #2: done
            3s renew r1 #3: until 33s
            3s reject r1 #3: done
            3s active 2 dead 1 deferred 0 bytes 3
            4s r1 gets #2 b count 1 until 34s
            4s r1 gets #4 d until 34s
        "#]],
    );
}

#[test]
fn a_lock_that_runs_out_while_a_queue_is_disabled_waits_for_better_times() {
    check(
        "
        0s queue lock=10s
        0s send a
        0s attach r1
        0s limit r1 1
        1s queue lock=10s disabled
        11s counters
        12s queue lock=10s
        12s attach r1
        12s limit r1 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 10s
            1s r1 evicted: the entity is disabled for receiving
            11s active 1 dead 0 deferred 0 bytes 1
            12s r1 gets #1 a count 1 until 22s
        "#]],
    );
}

#[test]
fn holders_of_sessions_and_those_who_wait_for_one_are_sent_away() {
    check(
        "
        0s queue sessions
        0s send a:x b:x
        0s accept r1 x
        0s limit r1 1
        0s accept r2 next 60s
        0s accept r3 x
        1s queue sessions receive-disabled
        1s complete r1 #1
        1s accept r1 x
        1s accept r2 next 60s
        1s peek-session x 1 10
        2s queue sessions
        2s accept r2 next 60s
        2s limit r2 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds x until 30s
            0s r1 gets #1 a until 30s
            0s r3 refused: held
            1s r2 evicted: the entity is disabled for receiving
            1s r1 evicted: the entity is disabled for receiving
            1s complete r1 #1: the session is not held
            1s r1 evicted: the entity is disabled for receiving
            1s r2 evicted: the entity is disabled for receiving
            1s peek x: the entity is disabled for receiving
            2s r2 holds x until 32s
            2s r2 gets #1 a until 32s
            2s r2 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn scheduled_messages_become_active_and_expired_ones_leave_in_every_status() {
    check(
        "
        0s queue dead-letter-expired
        0s send later+60s
        0s send short ttl=30s
        1s queue dead-letter-expired disabled
        2s send never+90s
        2s cancel #99
        59s counters
        60s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            2s send refused: the entity is disabled for sending
            2s cancel #99: message #99 is not there
            59s active 0 dead 1 deferred 0 bytes 10 scheduled 1
            60s active 1 dead 1 deferred 0 bytes 10
        "#]],
    );
}

#[test]
fn a_send_that_waits_for_a_look_at_the_history_is_refused_when_the_queue_was_disabled_meanwhile() {
    check(
        "
        0s queue window=60s
        0s send a@1
        1s restart
        1s reads late
        1s send b@2
        1s queue window=60s disabled
        1s answer
        1s answer
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            1s send refused: the entity is disabled for sending
            1s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_transaction_sends_nothing_to_a_queue_that_was_disabled_before_its_commit() {
    check(
        "
        0s queue
        0s queue name=other
        0s send a in=other
        0s attach r1 in=other
        0s limit r1 1
        0s declare t r1
        0s in t send b
        0s in t complete r1 #1 in=other
        1s queue send-disabled
        1s commit t
        1s declare u r1
        1s in u send c
        1s complete r1 #1 in=other
        1s counters
        1s counters in=other
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t: done
            0s in t send b: held
            0s in t complete r1 #1 in=other: done
            1s commit t: the transaction was rolled back: the entity is disabled for sending
            1s declare u: done
            1s in u send c: the entity is disabled for sending
            1s complete r1 #1 in=other: done
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_wait_in_the_source_while_their_destination_is_disabled() {
    check(
        "
        0s queue
        0s queue name=source forward=q
        0s queue name=dead forward-dead=q
        0s queue send-disabled
        0s send a in=source
        0s info in=source
        0s send b in=dead
        0s attach r1 in=dead
        0s limit r1 1
        0s reject r1 #1 in=dead
        60s counters in=source
        60s counters in=dead
        60s queue
        62s counters in=source
        62s counters in=dead
        62s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s transfer 1 dead in transfer 0 created 0s updated 0s accessed 0s
            0s sent from #1
            0s r1 gets #1 b until 30s
            0s reject r1 #1 in=dead: done
            60s active 1 dead 0 deferred 0 bytes 1
            60s active 0 dead 1 deferred 0 bytes 1
            62s active 0 dead 0 deferred 0 bytes 0
            62s active 0 dead 0 deferred 0 bytes 0
            62s peek: #1 a, #2 b first #1 from dead letters of dead
        "#]],
    );
}

#[test]
fn a_message_that_waits_for_a_disabled_destination_expires_as_others_do() {
    check(
        "
        0s queue disabled
        0s queue name=source forward=q ttl=10s dead-letter-expired
        0s send a in=source
        11s counters in=source
        11s queue
        13s counters
        ",
        expect![[r#"
            0s sent from #1
            11s active 0 dead 1 deferred 0 bytes 1
            13s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_stay_where_nobody_could_receive_them_until_somebody_could() {
    check(
        "
        0s queue
        0s queue name=source forward=q receive-disabled
        0s send a b in=source
        0s counters in=source
        0s info in=source
        1s restart
        1s counters in=source
        2s queue name=source forward=q
        2s counters in=source
        2s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s active 2 dead 0 deferred 0 bytes 2
            0s transfer 2 dead in transfer 0 created 0s updated 0s accessed 0s
            1s active 2 dead 0 deferred 0 bytes 2
            2s active 0 dead 0 deferred 0 bytes 0
            2s peek: #1 a, #2 b
        "#]],
    );
}

#[test]
fn receivers_are_sent_away_where_messages_begin_to_be_forwarded() {
    check(
        "
        0s queue
        0s queue name=other
        0s attach r1
        0s attach r2 dead
        0s attach r3
        1s queue forward=other
        1s attach r1
        2s queue forward-dead=other
        2s attach r1
        2s attach r2 dead
        ",
        expect![[r#"
            1s r1 evicted: messages are forwarded from here
            1s r3 evicted: messages are forwarded from here
            1s r1 evicted: messages are forwarded from here
            2s r2 evicted: messages are forwarded from here
            2s r2 evicted: messages are forwarded from here
        "#]],
    );
}

#[test]
fn a_status_survives_a_restart() {
    check(
        "
        0s queue disabled
        1s restart
        1s send a
        ",
        expect![[r#"
            1s send refused: the entity is disabled for sending
        "#]],
    );
}

#[test]
fn a_declared_queue_can_forward_to_itself_and_never_with_sessions() {
    check(
        "
        0s queue name=b forward=B
        0s queue name=c forward-dead=sb://localhost/c
        0s queue name=a sessions forward=b
        0s queue name=a sessions forward-dead=b
        0s queue name=a
        0s queue name=a sessions
        0s queue name=a window=20s
        0s queues
        ",
        expect![[r#"
            0s queue: requires-session cannot be changed after the queue was created
            0s queue: requires-session cannot be changed after the queue was created
            0s queues: b c a
        "#]],
    );
}

#[test]
fn a_queue_that_is_there_can_forward_to_itself_until_the_hops_are_used_up() {
    check(
        "
        0s queue name=a
        0s queue name=a forward=A
        1s send a
        1s queue name=a forward=A forward-dead=sb://host/a
        2s info
        ",
        expect![[r#"
            1s sent from #1
            2s transfer 0 dead in transfer 1 created 0s updated 1s accessed 1s
        "#]],
    );
}
