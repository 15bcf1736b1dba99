//! Preferred receivers: one that is active alone, and those of a higher priority. A queue that goes
//! with its last receiver.

use expect_test::expect;

use crate::script::check;

#[test]
fn one_receiver_at_a_time_is_given_messages_and_the_oldest_follows() {
    check(
        "
        0s queue name=q single
        1s attach r1 in=q
        1s attach r2 in=q
        1s attach r3 in=q
        2s limit r2 5
        2s limit r3 5
        2s send one in=q
        3s limit r1 1
        4s send two in=q
        4s limit r3 5 drain
        5s detach r1
        6s send three in=q
        7s detach r2
        8s send four in=q
        ",
        expect![[r#"
            2s sent from #1
            3s r1 gets #1 one until 33s
            4s sent from #2
            4s r3 drained
            5s r2 gets #2 two until 35s
            6s sent from #3
            6s r2 gets #3 three until 36s
            8s sent from #4
        "#]],
    );
}

#[test]
fn receivers_that_ask_are_told_which_of_them_is_active() {
    check(
        "
        0s queue name=q single
        0s queue name=p
        1s attach r1 in=q told
        1s attach r2 in=q told
        1s attach r3 in=q told priority=1
        1s attach r4 in=p told
        2s detach r2
        3s detach r1
        4s attach r5 in=q
        5s detach r3
        ",
        expect![[r#"
            1s r1 is active
            1s r2 is on standby
            1s r3 is on standby
            1s r4 is active
            3s r3 is active
        "#]],
    );
}

#[test]
fn receivers_of_the_highest_priority_take_turns_and_others_get_what_they_leave() {
    check(
        "
        0s queue name=q
        1s attach r1 in=q
        1s attach r2 in=q priority=5
        1s attach r3 in=q priority=5
        1s attach r4 in=q priority=-1
        2s limit r4 9
        2s limit r1 1
        2s limit r2 2
        2s limit r3 1
        3s send a in=q
        3s send b in=q
        3s send c in=q
        3s send d in=q
        3s send e in=q
        4s detach r2
        5s limit r1 2
        5s send f in=q
        ",
        expect![[r#"
            3s sent from #1
            3s r2 gets #1 a until 33s
            3s sent from #2
            3s r3 gets #2 b until 33s
            3s sent from #3
            3s r2 gets #3 c until 33s
            3s sent from #4
            3s r1 gets #4 d until 33s
            3s sent from #5
            3s r4 gets #5 e until 33s
            5s sent from #6
            5s r1 gets #6 f until 35s
        "#]],
    );
}

#[test]
fn a_queue_that_deletes_itself_goes_with_its_last_receiver_and_not_before() {
    check(
        "
        0s queue name=q auto-delete
        10s send one in=q
        11s attach r1 in=q
        11s attach r2 in=q
        12s detach r1
        13s wait
        13s send two in=q
        14s disconnect r2
        15s wait
        15s send three in=q
        ",
        expect![[r#"
            10s sent from #1
            13s sent from #2
            14s q is gone
            15s send refused: the entity does not exist
        "#]],
    );
}

#[test]
fn a_queue_that_deletes_itself_goes_unused_when_its_time_is_up_too() {
    check(
        "
        0s queue name=used auto-delete expires=10s
        0s queue name=unused auto-delete expires=10s
        5s attach r1 in=used
        9s queues
        10s queues
        20s detach r1
        21s queues
        ",
        expect![[r#"
            9s queues: used unused
            10s unused is gone
            10s queues: used
            20s used is gone
            21s queues: 
        "#]],
    );
}
