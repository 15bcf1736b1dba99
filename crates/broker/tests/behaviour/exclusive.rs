//! Exclusive queues: which connection receives from one, and when it goes.
//! (docs/spec/rabbitmq.md#7)

use expect_test::expect;

use crate::script::check;

#[test]
fn only_the_connection_that_made_it_receives_from_it() {
    check(
        "
        0s own r1 name=mine
        0s send a in=mine
        0s attach r2/1 in=mine
        0s attach r1/1 in=mine
        0s limit r1/1 5
        0s complete r1/1 #1 in=mine
        0s send b in=mine
        ",
        expect![[r#"
            0s sent from #1
            0s r2/1 evicted: the queue belongs to another connection
            0s r1/1 gets #1 a until 30s
            0s complete r1/1 #1 in=mine: done
            0s sent from #2
            0s r1/1 gets #2 b until 30s
        "#]],
    );
}

#[test]
fn it_goes_with_its_connection_and_what_is_in_it_is_dropped() {
    check(
        "
        0s own r1 name=mine dead-letter-expired
        0s own r1 name=other
        0s own r2 name=theirs
        0s send a b in=mine
        0s attach r1/1 in=mine
        0s limit r1/1 1
        1s detach r1/1
        2s queues
        3s disconnect r1
        3s queues
        3s rows
        3s own r2 name=mine
        3s queues
        ",
        expect![[r#"
            0s sent from #1
            0s r1/1 gets #1 a until 30s
            2s queues: q mine other theirs
            3s mine is gone
            3s other is gone
            3s queues: q theirs
            3s 0 rows and 0 bodies
            3s queues: q theirs mine
        "#]],
    );
}

#[test]
fn it_does_not_outlive_a_restart() {
    check(
        "
        0s own r1 name=mine
        0s queue name=kept
        0s send a in=mine
        1s restart
        1s attach r1/1 in=mine
        1s queues
        1s rows
        ",
        expect![[r#"
            0s sent from #1
            1s mine is gone
            1s r1/1 evicted: the entity does not exist
            1s queues: q kept
            1s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_change_of_its_settings_leaves_it_to_its_connection() {
    check(
        "
        0s own r1 name=mine
        1s queue name=mine max-length=5
        2s attach r2/1 in=mine
        3s disconnect r1
        3s queues
        ",
        expect![[r#"
            2s r2/1 evicted: the queue belongs to another connection
            3s mine is gone
            3s queues: q
        "#]],
    );
}

#[test]
fn a_queue_that_was_deleted_is_not_its_connections_any_more() {
    check(
        "
        0s own r1 name=mine
        0s remove in=mine
        0s queue name=mine
        0s attach r2/1 in=mine
        0s disconnect r1
        0s queues
        ",
        expect![[r#"
            0s mine is gone
            0s removed
            0s queues: q mine
        "#]],
    );
}

#[test]
fn other_connections_take_nothing_from_it_by_request() {
    check(
        "
        0s own r1 name=mine
        0s send a b in=mine
        0s attach r1/1 in=mine
        0s limit r1/1 1
        0s defer r1/1 #1 in=mine
        1s fetch r2 #1 in=mine
        1s delete 9 by=r2 in=mine
        2s delete 9 by=r1 in=mine
        2s fetch r1 #1 in=mine
        ",
        expect![[r#"
            0s sent from #1
            0s r1/1 gets #1 a until 30s
            0s defer r1/1 #1 in=mine: done
            1s fetch r2 #1 in=mine: the queue belongs to another connection
            1s delete 9 by=r2 in=mine: the queue belongs to another connection
            2s delete 9 by=r1 in=mine: 1
            2s fetch r1 #1 in=mine: #1 a count 1 Deferred until 32s
        "#]],
    );
}
