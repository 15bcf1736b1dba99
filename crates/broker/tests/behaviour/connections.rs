//! Connections: links that go, connections that are lost, keep and drop.

use broker::{BrokerSettings, LocksOnDisconnect};
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_lost_connection_keeps_its_locks() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        1s disconnect r1
        1s attach r2
        1s limit r2 9
        2s complete r1 #1
        30s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            2s complete r1 #1: done
            30s r2 gets #2 b count 1 until 60s
        "#]],
    );
}

#[test]
fn a_lost_connection_drops_its_locks_if_the_broker_is_set_up_so() {
    let settings = BrokerSettings {
        locks_on_disconnect: LocksOnDisconnect::Drop,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s queue max-delivery=3
        0s send a b c d
        0s attach r1
        0s limit r1 3
        0s abandon r1 #3
        0s limit r1 4
        0s abandon r1 #3
        0s limit r1 5
        0s defer r1 #1
        0s fetch r1 #1
        0s detach r1
        0s attach r2
        0s limit r2 1
        1s disconnect r1
        2s limit r2 9
        2s complete r1 #2
        2s peek 1 9
        2s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s abandon r1 #3: done
            0s r1 gets #3 c count 1 until 30s
            0s abandon r1 #3: done
            0s r1 gets #3 c count 2 until 30s
            0s defer r1 #1: done
            0s fetch r1 #1: #1 a count 1 Deferred until 30s
            0s r2 gets #4 d until 30s
            2s r2 gets #2 b count 1 until 32s
            2s complete r1 #2: the lock is not held
            2s peek: #1 a count 2 Deferred, #2 b count 1, #4 d
            2s peek: #3 c count 3 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts."
        "#]],
    );
}

#[test]
fn a_receiver_that_attaches_again_starts_anew() {
    check(
        "
        0s send a b c d
        0s attach r1
        0s limit r1 2
        1s attach r1
        1s limit r1 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s r1 gets #3 c until 31s
        "#]],
    );
}

#[test]
fn a_detached_receiver_gets_nothing_more() {
    check(
        "
        0s attach r1
        0s attach r2
        0s limit r1 9
        0s limit r2 9
        1s detach r1
        1s send a b
        2s limit r1 20
        ",
        expect![[r#"
            1s sent from #1
            1s r2 gets #1 a until 31s
            1s r2 gets #2 b until 31s
        "#]],
    );
}
