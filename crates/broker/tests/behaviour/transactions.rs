//! Transactions: sends and settlements of several queues that all happen, or none does.

use broker::{BrokerSettings, LocksOnDisconnect, TransactionSettings};
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_commit_completes_and_sends_across_queues() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a
        0s attach r1
        0s limit r1 10
        0s attach r2 in=q2
        0s limit r2 10
        1s declare t1 r1/7
        1s in t1 send b c in=q2
        1s in t1 complete r1 #1
        1s counters
        1s counters in=q2
        2s commit t1
        2s counters
        2s counters in=q2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s declare t1: done
            1s in t1 send b c in=q2: held
            1s in t1 complete r1 #1: done
            1s active 1 dead 0 deferred 0 bytes 1
            1s active 0 dead 0 deferred 0 bytes 0
            2s commit t1: done
            2s r2 gets #1 b until 32s
            2s r2 gets #2 c until 32s
            2s active 0 dead 0 deferred 0 bytes 0
            2s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_roll_back_drops_what_was_sent_and_keeps_the_locks() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 send b in=q2
        1s in t1 complete r1 #1
        2s roll-back t1
        2s counters
        2s counters in=q2
        3s complete r1 #1
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 send b in=q2: held
            1s in t1 complete r1 #1: done
            2s roll-back t1: done
            2s active 1 dead 0 deferred 0 bytes 1
            2s active 0 dead 0 deferred 0 bytes 0
            3s complete r1 #1: done
            3s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_was_rolled_back_is_not_abandoned_but_runs_out() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 abandon r1 #1
        2s roll-back t1
        30s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 abandon r1 #1: done
            2s roll-back t1: done
            30s r1 gets #1 a count 1 until 60s
        "#]],
    );
}

#[test]
fn every_way_to_settle_takes_part() {
    check(
        "
        0s send a b c d e
        0s attach r1
        0s limit r1 5
        0s declare t1 r1/7
        1s in t1 abandon r1 #1 why=later
        1s in t1 defer r1 #2 why=wait
        1s in t1 reject r1 #3 why=bad
        1s in t1 complete r1 #4
        1s in t1 release r1 #5
        1s counters
        2s commit t1
        2s counters
        3s limit r1 10
        3s fetch r1 #2
        3s attach r2 dead
        3s limit r2 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s r1 gets #4 d until 30s
            0s r1 gets #5 e until 30s
            0s declare t1: done
            1s in t1 abandon r1 #1 why=later: done
            1s in t1 defer r1 #2 why=wait: done
            1s in t1 reject r1 #3 why=bad: done
            1s in t1 complete r1 #4: done
            1s in t1 release r1 #5: done
            1s active 5 dead 0 deferred 0 bytes 5
            2s commit t1: done
            2s active 2 dead 1 deferred 1 bytes 4
            3s r1 gets #1 a count 1 why="later" until 33s
            3s r1 gets #5 e until 33s
            3s fetch r1 #2: #2 b count 1 Deferred why="wait" until 33s
            3s r2 gets #3 c why="bad" until 33s
        "#]],
    );
}

#[test]
fn a_dead_letter_can_not_be_dead_lettered_in_a_transaction_either() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s reject r1 #1
        0s attach r2 dead
        0s limit r2 1
        0s declare t1 r2/7
        1s in t1 reject r2 #1 dead
        1s in t1 complete r2 #1 dead
        1s commit t1
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s reject r1 #1: done
            0s r2 gets #1 a until 30s
            0s declare t1: done
            1s in t1 reject r2 #1 dead: a dead letter cannot be dead-lettered again
            1s in t1 complete r2 #1 dead: done
            1s commit t1: done
            1s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn nobody_else_ends_a_lock_that_is_part_of_a_transaction() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        0s declare t2 r1/7
        1s in t1 complete r1 #1
        1s complete r1 #1
        1s abandon r1 #1 #2
        1s in t2 complete r1 #2 #1
        1s in t1 complete r1 #1
        1s complete r1 #2
        2s commit t1
        2s counters
        3s commit t2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            0s declare t2: done
            1s in t1 complete r1 #1: done
            1s complete r1 #1: the message is part of a transaction that is not over
            1s abandon r1 #1 #2: the message is part of a transaction that is not over
            1s in t2 complete r1 #2 #1: the message is part of a transaction that is not over
            1s in t1 complete r1 #1: the message is part of a transaction that is not over
            1s complete r1 #2: done
            2s commit t1: done
            2s active 0 dead 0 deferred 0 bytes 0
            3s commit t2: done
        "#]],
    );
}

#[test]
fn several_locks_are_taken_in_together_or_not_at_all() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 complete r1 #1 #3
        1s complete r1 #1
        1s in t1 complete r1 #2 #2
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            1s in t1 complete r1 #1 #3: the lock is not held
            1s complete r1 #1: done
            1s in t1 complete r1 #2 #2: done
            2s commit t1: done
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_lock_that_runs_out_before_the_commit_takes_everything_back() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a b
        0s attach r1
        0s limit r1 2
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        1s in t1 complete r1 #2
        1s in t1 send c in=q2
        20s renew r1 #2
        30s wait
        31s commit t1
        31s counters
        31s counters in=q2
        32s complete r1 #2
        32s in t1 send d
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            1s in t1 complete r1 #2: done
            1s in t1 send c in=q2: held
            20s renew r1 #2: until 50s
            31s commit t1: the transaction was rolled back: a lock was lost before the commit
            31s active 2 dead 0 deferred 0 bytes 2
            31s active 0 dead 0 deferred 0 bytes 0
            32s complete r1 #2: done
            32s in t1 send d: the transaction is not known on this connection
        "#]],
    );
}

#[test]
fn a_lock_whose_end_nobody_has_noticed_is_lost_all_the_same() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        !30s commit t1
        30s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            30s commit t1: the transaction was rolled back: a lock was lost before the commit
            30s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_renewed_lock_is_there_for_the_commit() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        20s renew r1 #1
        45s commit t1
        45s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            20s renew r1 #1: until 50s
            45s commit t1: done
            45s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_transaction_has_two_minutes_from_its_first_operation() {
    check(
        "
        0s queue lock=5m
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        100s in t1 send b
        100s in t1 complete r1 #1
        219s in t1 send c
        220s wait
        221s in t1 send d
        221s commit t1
        221s commit t1
        221s complete r1 #1
        221s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 300s
            0s declare t1: done
            100s in t1 send b: held
            100s in t1 complete r1 #1: done
            219s in t1 send c: held
            220s r1 hears that t1 timed out
            221s in t1 send d: the transaction has taken too long and was rolled back
            221s commit t1: the transaction has taken too long and was rolled back
            221s commit t1: the transaction is not known on this connection
            221s complete r1 #1: done
            221s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_transaction_whose_end_nobody_has_noticed_is_over_all_the_same() {
    check(
        "
        0s declare t1 r1/7
        0s declare t2 r1/7
        0s in t1 send a
        0s in t2 send a
        !120s commit t1
        !120s in t2 send b
        121s roll-back t2
        121s counters
        ",
        expect![[r#"
            0s declare t1: done
            0s declare t2: done
            0s in t1 send a: held
            0s in t2 send a: held
            120s r1 hears that t1 timed out
            120s commit t1: the transaction has taken too long and was rolled back
            120s r1 hears that t2 timed out
            120s in t2 send b: the transaction has taken too long and was rolled back
            121s roll-back t2: the transaction has taken too long and was rolled back
            121s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_lost_connection_rolls_back() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 send b
        1s in t1 complete r1 #1
        2s disconnect r1
        2s counters
        2s commit t1
        3s complete r1 #1
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 send b: held
            1s in t1 complete r1 #1: done
            2s active 1 dead 0 deferred 0 bytes 1
            2s commit t1: the transaction is not known on this connection
            3s complete r1 #1: done
            3s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_connection_that_drops_its_locks_drops_those_of_its_transactions() {
    check_with(
        BrokerSettings {
            locks_on_disconnect: LocksOnDisconnect::Drop,
            ..BrokerSettings::default()
        },
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        2s disconnect r1
        2s attach r2
        2s limit r2 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            2s r2 gets #1 a count 1 until 32s
        "#]],
    );
}

#[test]
fn the_end_of_a_coordinator_rolls_back_what_it_declared() {
    check(
        "
        0s declare t1 r1/7
        0s declare t2 r1/8
        1s in t1 send a
        1s in t2 send b
        2s end r1/7
        2s commit t1
        2s commit t2
        2s counters
        ",
        expect![[r#"
            0s declare t1: done
            0s declare t2: done
            1s in t1 send a: held
            1s in t2 send b: held
            2s commit t1: the transaction is not known on this connection
            2s commit t2: done
            2s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_transaction_belongs_to_its_connection() {
    check(
        "
        0s declare t1 r1/7
        1s in t1 send a by=r2
        1s in t1 send a
        2s commit t1 by=r2
        2s roll-back t1 by=r2
        2s commit t1
        2s counters
        3s commit t1
        3s in never send a
        3s commit never
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a by=r2: the transaction is not known on this connection
            1s in t1 send a: held
            2s commit t1 by=r2: the transaction is not known on this connection
            2s roll-back t1 by=r2: the transaction is not known on this connection
            2s commit t1: done
            2s active 1 dead 0 deferred 0 bytes 1
            3s commit t1: the transaction is not known on this connection
            3s in never send a: the transaction is not known on this connection
            3s commit never: the transaction is not known on this connection
        "#]],
    );
}

#[test]
fn the_locks_of_another_connection_can_take_part() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r2/7
        1s in t1 complete r1 #1
        2s disconnect r1
        3s commit t1
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            3s commit t1: done
            3s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_of_sessions_take_part() {
    check(
        "
        0s queue sessions
        0s send a:A b:B
        0s accept r1 A
        0s limit r1 5
        0s declare t1 r1/7
        1s in t1 send c
        1s in t1 send c:A
        1s in t1 complete r1 #1
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 send c: the entity requires sessions, and the message has none
            1s in t1 send c:A: held
            1s in t1 complete r1 #1: done
            2s commit t1: done
            2s r1 gets #3 c until 30s
            2s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_session_that_is_lost_before_the_commit_takes_everything_back() {
    check(
        "
        0s queue sessions
        0s send a:A
        0s accept r1 A
        0s limit r1 5
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        1s in t1 send c:B
        2s detach r1
        3s commit t1
        4s accept r2 A
        4s limit r2 5
        5s declare t2 r2/7
        5s in t2 complete r2 #1
        5s in t2 send d:B
        34s commit t2
        34s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            1s in t1 send c:B: held
            3s commit t1: the transaction was rolled back: a lock was lost before the commit
            4s r2 holds A until 34s
            4s r2 gets #1 a until 34s
            5s declare t2: done
            5s in t2 complete r2 #1: done
            5s in t2 send d:B: held
            34s r2 lost its session
            34s commit t2: the transaction was rolled back: a lock was lost before the commit
            34s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn what_a_transaction_holds_counts_against_the_quota() {
    check(
        "
        0s queue max-size=10
        0s queue name=q2 max-size=10
        0s declare t1 r1/7
        1s in t1 send aaaa
        1s in t1 send bbbb
        1s in t1 send ccc
        1s in t1 send dddd in=q2
        1s in t1 send cc
        2s commit t1
        2s counters
        2s counters in=q2
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send aaaa: held
            1s in t1 send bbbb: held
            1s in t1 send ccc: the entity holds 8 bytes of 10
            1s in t1 send dddd in=q2: held
            1s in t1 send cc: held
            2s commit t1: done
            2s active 3 dead 0 deferred 0 bytes 10
            2s active 1 dead 0 deferred 0 bytes 4
        "#]],
    );
}

#[test]
fn a_quota_that_others_have_used_up_takes_everything_back() {
    check(
        "
        0s queue max-size=10
        0s queue name=q2
        0s declare t1 r1/7
        1s in t1 send aaaa
        1s in t1 send bb in=q2
        1s in t1 send cccc
        2s send ddd
        3s commit t1
        3s counters
        3s counters in=q2
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send aaaa: held
            1s in t1 send bb in=q2: held
            1s in t1 send cccc: held
            2s sent from #1
            3s commit t1: the transaction was rolled back: the entity holds 7 bytes of 10
            3s active 1 dead 0 deferred 0 bytes 3
            3s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_can_not_be_sent_is_refused_at_once_and_the_rest_goes_on() {
    check(
        "
        0s queue max-message=3
        0s declare t1 r1/7
        1s in t1 send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        1s in t1 send b in=q2
        1s in t1 complete r1 #1
        1s in t1 send a
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: a message of 68 bytes is larger than 3
            1s in t1 send b in=q2: the entity does not exist
            1s in t1 complete r1 #1: the lock is not held
            1s in t1 send a: held
            2s commit t1: done
            2s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_refusal_that_nobody_hears_of_fails_the_transaction() {
    check(
        "
        0s queue max-message=3
        0s declare t1 r1/7
        1s in t1 send a
        1s in t1 send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb unheard
        2s commit t1
        2s counters
        3s declare t2 r1/7
        3s in t2 complete r1 #9 unheard
        3s roll-back t2
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a: held
            1s in t1 send bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb unheard: a message of 68 bytes is larger than 3
            2s commit t1: the transaction was rolled back: a message of 68 bytes is larger than 3
            2s active 0 dead 0 deferred 0 bytes 0
            3s declare t2: done
            3s in t2 complete r1 #9 unheard: the lock is not held
            3s roll-back t2: done
        "#]],
    );
}

#[test]
fn what_was_refused_before_it_came_here_fails_the_transaction_too() {
    check(
        "
        0s declare t1 r1/7
        1s in t1 send a
        1s fail-transaction t1 it was no message
        2s commit t1
        2s counters
        3s declare t2 r1/7
        3s in t2 send
        4s commit t2
        4s counters
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a: held
            2s commit t1: the transaction was rolled back: it was no message
            2s active 0 dead 0 deferred 0 bytes 0
            3s declare t2: done
            3s in t2 send: held
            4s commit t2: done
            4s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_full_disk_takes_back_what_sends_and_commits_what_settles() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s declare t1 r1/7
        0s declare t2 r1/7
        1s in t1 complete r1 #1
        1s in t2 complete r1 #2
        1s in t2 send c
        2s disk full
        2s in t1 send d
        3s commit t1
        3s commit t2
        4s disk empty
        4s complete r1 #2
        4s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            0s declare t2: done
            1s in t1 complete r1 #1: done
            1s in t2 complete r1 #2: done
            1s in t2 send c: held
            2s in t1 send d: the disk is nearly full
            3s commit t1: done
            3s commit t2: the transaction was rolled back: the disk is nearly full
            4s complete r1 #2: done
            4s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn transactions_are_bounded() {
    let transactions = TransactionSettings {
        operations: 3,
        open: 2,
        bytes: 1_000,
        all_bytes: 1_500,
        ..TransactionSettings::default()
    };
    check_with(
        BrokerSettings {
            transactions,
            ..BrokerSettings::default()
        },
        "
        0s declare t1 r1/7
        0s declare t2 r1/8
        0s declare t3 r1/7
        0s declare t4 r2/7
        1s in t1 send a b
        1s in t1 send c d
        1s in t1 send c
        1s in t1 send d
        1s in t2 send aaaaaaaaaa*2
        1s in t4 send aaaaaaaaaa*3
        2s in t4 send aaaaaaaaaa
        3s roll-back t1
        3s in t4 send aaaaaaaaaa
        3s in t2 send aaaaaaaaaa
        4s declare t5 r1/7
        4s commit t4
        4s commit t2
        4s counters
        ",
        expect![[r#"
            0s declare t1: done
            0s declare t2: done
            0s declare t3: a connection can have 2 open transactions
            0s declare t4: done
            1s in t1 send a b: held
            1s in t1 send c d: a transaction can have 3 operations
            1s in t1 send c: held
            1s in t1 send d: a transaction can have 3 operations
            1s in t2 send aaaaaaaaaa*2: held
            1s in t4 send aaaaaaaaaa*3: all open transactions together can hold 1500 bytes
            2s in t4 send aaaaaaaaaa: all open transactions together can hold 1500 bytes
            3s roll-back t1: done
            3s in t4 send aaaaaaaaaa: held
            3s in t2 send aaaaaaaaaa: held
            4s declare t5: done
            4s commit t4: done
            4s commit t2: done
            4s active 4 dead 0 deferred 0 bytes 40
        "#]],
    );
}

#[test]
fn a_large_message_does_not_fit_into_a_transaction() {
    let transactions = TransactionSettings {
        bytes: 300,
        ..TransactionSettings::default()
    };
    check_with(
        BrokerSettings {
            transactions,
            ..BrokerSettings::default()
        },
        "
        0s declare t1 r1/7
        1s in t1 send 0123456789012345678901234567890123456789012345
        1s in t1 send 01234567890123456789012345678901234567890123
        2s commit t1
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send 0123456789012345678901234567890123456789012345: a transaction can hold 300 bytes
            1s in t1 send 01234567890123456789012345678901234567890123: held
            2s commit t1: done
        "#]],
    );
}

#[test]
fn a_restart_rolls_back_and_forgets() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        1s in t1 send b
        2s restart
        3s commit t1
        3s counters
        3s attach r2
        3s limit r2 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            1s in t1 send b: held
            3s commit t1: the transaction is not known on this connection
            3s active 1 dead 0 deferred 0 bytes 1
            3s r2 gets #1 a until 33s
        "#]],
    );
}

#[test]
fn nothing_is_said_of_a_commit_before_it_is_durable() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a
        0s attach r1
        0s limit r1 1
        0s attach r2 in=q2
        0s limit r2 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1
        1s in t1 send b in=q2
        2s sync manual
        2s commit t1
        3s sync
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1: done
            1s in t1 send b in=q2: held
            3s commit t1: done
            3s r2 gets #1 b until 33s
        "#]],
    );
}

#[test]
fn a_receiver_gets_nothing_of_a_commit_that_is_half_done() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s declare t1 r1/7
        1s in t1 send c
        1s in t1 abandon r1 #1
        2s limit r1 10
        3s commit t1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            1s in t1 send c: held
            1s in t1 abandon r1 #1: done
            3s commit t1: done
            3s r1 gets #1 a count 1 until 33s
            3s r1 gets #3 c until 33s
        "#]],
    );
}
