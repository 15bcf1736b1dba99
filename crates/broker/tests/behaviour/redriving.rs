//! Dead letters that are put back: as new, once, and whatever happens meanwhile.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_dead_letter_comes_back_as_new_and_without_its_reason() {
    check(
        "
        0s queue max-delivery=2
        0s attach r1
        0s limit r1 10
        0s send a
        1s abandon r1 #1 x=1
        2s abandon r1 #1
        3s attach r2 dead
        3s limit r2 1
        4s redrive r2 #1
        5s counters
        6s complete r1 #2
        6s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1 x=1: done
            1s r1 gets #1 a count 1 x="1" until 31s
            2s abandon r1 #1: done
            3s r2 gets #1 a count 2 x="1" DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 2 delivery attempts." until 33s
            4s redrive r2 #1: done
            4s r1 gets #2 a x="1" until 34s
            5s active 1 dead 0 deferred 0 bytes 1
            6s complete r1 #2: done
            6s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_was_put_back_survives_a_restart_and_is_no_dead_letter_any_more() {
    check(
        "
        0s attach r1
        0s limit r1 1
        0s send a
        1s reject r1 #1 DeadLetterReason=bad z=3
        2s attach r2 dead
        2s limit r2 5
        3s redrive r2 #1
        4s restart
        5s counters
        5s peek 1 5 dead
        5s peek 1 5
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s reject r1 #1 DeadLetterReason=bad z=3: done
            2s r2 gets #1 a DeadLetterReason="bad" z="3" until 32s
            3s redrive r2 #1: done
            5s active 1 dead 0 deferred 0 bytes 1
            5s peek: 
            5s peek: #2 a z="3"
        "#]],
    );
}

#[test]
fn another_message_takes_the_place_of_a_dead_letter_of_a_subscription() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s attach r1 in=t/Subscriptions/s
        0s limit r1 10
        0s send a encoded in=t
        1s reject r1 #1 DeadLetterReason=bad z=3 in=t/Subscriptions/s
        2s attach r2 dead in=t/Subscriptions/s
        2s limit r2 1
        3s redrive r2 #1 as=better in=t/Subscriptions/s
        4s counters in=t/Subscriptions/s
        4s complete r1 #2 in=t/Subscriptions/s
        5s counters in=t/Subscriptions/s
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s reject r1 #1 DeadLetterReason=bad z=3 in=t/Subscriptions/s: done
            2s r2 gets #1 a DeadLetterReason="bad" z="3" until 32s
            3s redrive r2 #1: done
            3s r1 gets #2 better until 33s
            4s active 1 dead 0 deferred 0 bytes 6
            4s complete r1 #2 in=t/Subscriptions/s: done
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_lock_that_is_lost_puts_nothing_back() {
    check(
        "
        0s attach r1
        0s limit r1 5
        0s send a
        1s reject r1 #1
        2s attach r2 dead
        2s limit r2 1
        40s redrive r2 #1
        41s counters
        42s limit r2 2
        43s restart
        44s redrive r2 #1
        45s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s reject r1 #1: done
            2s r2 gets #1 a until 32s
            40s redrive r2 #1: the lock is not held
            41s active 0 dead 1 deferred 0 bytes 1
            42s r2 gets #1 a until 72s
            44s redrive r2 #1: the lock is not held
            45s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn only_a_dead_letter_can_be_put_back_and_only_once() {
    check(
        "
        0s attach r1
        0s limit r1 5
        0s send a b
        1s redrive r1 #1
        2s reject r1 #2
        3s attach r2 dead
        3s limit r2 5
        4s redrive r2 #2
        5s redrive r2 #2
        6s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s redrive r1 #1: the message is no dead letter
            2s reject r1 #2: done
            3s r2 gets #2 b until 33s
            4s redrive r2 #2: done
            4s r1 gets #3 b until 34s
            5s redrive r2 #2: the lock is not held
            6s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn what_is_put_back_is_no_duplicate_of_itself() {
    check(
        "
        0s queue window=10m
        0s attach r1
        0s limit r1 5
        0s send a@1
        1s reject r1 #1
        2s attach r2 dead
        2s limit r2 5
        3s redrive r2 #1
        4s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s reject r1 #1: done
            2s r2 gets #1 a until 32s
            3s redrive r2 #1: done
            3s r1 gets #2 a until 33s
            4s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}
