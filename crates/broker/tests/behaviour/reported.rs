//! Reports of ended locks: what has become of the message, for a connection that wants to know.

use expect_test::expect;

use crate::script::check;

#[test]
fn the_last_delivery_that_is_abandoned_makes_a_dead_letter() {
    check(
        "
        0s queue max-delivery=2
        0s attach r1
        0s limit r1 10
        0s send a
        1s abandon r1 #1 reported
        2s abandon r1 #1 reported
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s r1 hears that the lock of #1 has ended
            1s abandon r1 #1 reported: done
            1s r1 gets #1 a count 1 until 31s
            2s r1 hears that the lock of #1 has made it a dead letter: MaxDeliveryCountExceeded, Message could not be consumed after 2 delivery attempts.
            2s abandon r1 #1 reported: done
        "#]],
    );
}

#[test]
fn a_message_that_has_expired_in_its_last_delivery_is_dead_for_its_age() {
    check(
        "
        0s queue max-delivery=1 dead-letter-expired
        0s attach r1
        0s limit r1 10
        0s send ttl=5s a
        0s send ttl=5s b
        6s abandon r1 #1 reported
        6s release r1 #2 reported
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s sent from #2
            0s r1 gets #2 b expires 5s until 30s
            6s r1 hears that the lock of #1 has made it a dead letter: TTLExpiredException, The message expired and was dead lettered.
            6s abandon r1 #1 reported: done
            6s r1 hears that the lock of #2 has made it a dead letter: TTLExpiredException, The message expired and was dead lettered.
            6s release r1 #2 reported: done
        "#]],
    );
}

#[test]
fn a_message_that_is_gone_is_no_dead_letter() {
    check(
        "
        0s queue max-delivery=1
        0s attach r1
        0s limit r1 10
        0s send ttl=5s a
        0s send b
        6s abandon r1 #1 reported
        6s complete r1 #2 reported
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s sent from #2
            0s r1 gets #2 b until 30s
            6s r1 hears that the lock of #1 has ended
            6s abandon r1 #1 reported: done
            6s r1 hears that the lock of #2 has ended
            6s complete r1 #2 reported: done
        "#]],
    );
}

#[test]
fn a_dead_letter_has_the_words_of_its_receiver_or_those_of_changes_that_do_not_fit() {
    check(
        "
        0s attach r1
        0s limit r1 10
        0s send a b c
        1s reject r1 #1 #2 reported DeadLetterReason=spoilt
        1s defer r1 #3 reported note=x*70000
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            1s r1 hears that the lock of #1 has made it a dead letter: spoilt, -
            1s r1 hears that the lock of #2 has made it a dead letter: spoilt, -
            1s reject r1 #1 #2 reported DeadLetterReason=spoilt: done
            1s r1 hears that the lock of #3 has made it a dead letter: HeaderSizeExceeded, The size quota for this stream has been exceeded.
            1s defer r1 #3 reported note=x*70000: done
        "#]],
    );
}

#[test]
fn a_connection_that_wants_no_answer_is_told_too() {
    check(
        "
        0s queue max-delivery=1
        0s attach r1
        0s limit r1 10
        0s send a b
        1s abandon r1 #1 reported unheard
        1s abandon r1 #1 reported unheard
        31s abandon r1 #2 reported
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s r1 hears that the lock of #1 has made it a dead letter: MaxDeliveryCountExceeded, Message could not be consumed after 1 delivery attempts.
            1s r1 hears that the lock of #1 has not ended: the lock is not held
            31s abandon r1 #2 reported: the lock is not held
        "#]],
    );
}

#[test]
fn a_commit_reports_before_its_answer_and_a_rollback_does_not() {
    check(
        "
        0s queue max-delivery=1
        0s attach r1
        0s limit r1 10
        0s send a b
        1s declare t1 r1/7
        1s in t1 abandon r1 #1 reported
        2s commit t1
        3s declare t2 r1/8
        3s in t2 abandon r1 #2 reported otherwise=release
        4s roll-back t2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s declare t1: done
            1s in t1 abandon r1 #1 reported: done
            2s r1 hears that the lock of #1 has made it a dead letter: MaxDeliveryCountExceeded, Message could not be consumed after 1 delivery attempts.
            2s commit t1: done
            3s declare t2: done
            3s in t2 abandon r1 #2 reported otherwise=release: done
            4s roll-back t2: done
            4s r1 gets #2 b until 34s
        "#]],
    );
}
