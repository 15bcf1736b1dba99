//! Settled within a transaction: the client has settled a delivery and has no more say in it, so
//! the end of the transaction decides what becomes of the message. (docs/spec/amqp.md#8.1)

use broker::{BrokerSettings, LocksOnDisconnect};
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_roll_back_ends_a_settled_delivery_at_once() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s declare t1 r1/7
        1s in t1 complete r1 #1 otherwise=abandon
        1s in t1 complete r1 #2 otherwise=release
        1s limit r1 10
        2s roll-back t1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            1s in t1 complete r1 #2 otherwise=release: done
            2s roll-back t1: done
            2s r1 gets #1 a count 1 until 32s
            2s r1 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn a_commit_does_what_was_said_and_not_the_rest() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 complete r1 #1 otherwise=abandon
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            2s commit t1: done
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_refused_commit_and_a_time_out_end_it_too() {
    check(
        "
        0s queue lock=300s
        0s send a b
        0s attach r1
        0s limit r1 2
        0s declare t1 r1/7
        0s declare t2 r1/7
        1s in t1 complete r1 #1 otherwise=abandon
        1s fail-transaction t1 too bad
        1s in t2 complete r1 #2 otherwise=release
        1s limit r1 10
        2s commit t1
        121s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 300s
            0s r1 gets #2 b until 300s
            0s declare t1: done
            0s declare t2: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            1s in t2 complete r1 #2 otherwise=release: done
            2s commit t1: the transaction was rolled back: too bad
            2s r1 gets #1 a count 1 until 302s
            121s r1 hears that t2 timed out
            121s r1 gets #2 b until 421s
        "#]],
    );
}

#[test]
fn a_lost_coordinator_or_connection_ends_it() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s attach r2
        0s declare t1 r1/7
        0s declare t2 r1/8
        1s in t1 complete r1 #1 otherwise=abandon
        1s in t2 complete r1 #2 otherwise=abandon
        1s limit r2 10
        2s end r1/7
        3s disconnect r1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            0s declare t2: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            1s in t2 complete r1 #2 otherwise=abandon: done
            2s r2 gets #1 a count 1 until 32s
            3s r2 gets #2 b count 1 until 33s
        "#]],
    );
}

#[test]
fn the_receivers_of_a_lost_connection_do_not_get_it_back() {
    let settings = BrokerSettings {
        locks_on_disconnect: LocksOnDisconnect::Keep,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 complete r1 #1 otherwise=abandon
        2s disconnect r1
        2s attach r2
        2s limit r2 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            2s r2 gets #1 a count 1 until 32s
        "#]],
    );
}

#[test]
fn a_refused_operation_gives_a_settled_delivery_back() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        1s in t1 complete r1 #1 otherwise=abandon unheard
        1s limit r1 2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s in t1 complete r1 #1 otherwise=abandon unheard: the transaction is not known on this connection
            1s r1 gets #1 a count 1 until 31s
        "#]],
    );
}

#[test]
fn an_outcome_that_comes_settled_is_kept_for_the_roll_back() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 abandon r1 #1
        1s in t1 abandon r1 #2
        1s complete r1 #1 unheard
        1s counters
        2s roll-back t1
        2s counters
        3s complete r1 #2
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s declare t1: done
            1s in t1 abandon r1 #1: done
            1s in t1 abandon r1 #2: done
            1s active 2 dead 0 deferred 0 bytes 2
            2s roll-back t1: done
            2s active 1 dead 0 deferred 0 bytes 1
            3s complete r1 #2: done
            3s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn the_first_word_counts() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 abandon r1 #1
        1s defer r1 #1 unheard
        1s complete r1 #1 unheard
        2s roll-back t1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 abandon r1 #1: done
            2s roll-back t1: done
            2s active 0 dead 0 deferred 1 bytes 1
        "#]],
    );
}

#[test]
fn a_kept_outcome_does_nothing_at_the_commit() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 defer r1 #1
        1s complete r1 #1 unheard
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 defer r1 #1: done
            2s commit t1: done
            2s active 0 dead 0 deferred 1 bytes 1
        "#]],
    );
}

#[test]
fn a_dead_letter_of_a_dead_letter_queue_is_given_back() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s reject r1 #1
        0s attach r2 dead
        0s limit r2 1
        0s declare t1 r2/7
        1s in t1 complete r2 #1 dead otherwise=reject
        1s limit r2 2
        2s roll-back t1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s reject r1 #1: done
            0s r2 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r2 #1 dead otherwise=reject: done
            2s roll-back t1: done
            2s r2 gets #1 a until 32s
        "#]],
    );
}

#[test]
fn a_message_of_a_session_comes_back_in_its_place() {
    check(
        "
        0s queue sessions
        0s send a:A b:A
        0s accept r1 A
        0s limit r1 1
        0s declare t1 r1/7
        1s in t1 complete r1 #1 otherwise=abandon
        2s roll-back t1
        2s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 complete r1 #1 otherwise=abandon: done
            2s roll-back t1: done
            2s r1 gets #1 a count 1 until 30s
            2s r1 gets #2 b until 30s
        "#]],
    );
}
