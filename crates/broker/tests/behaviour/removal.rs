//! Removal: a queue goes with all that is in it, and nothing of it comes back.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_queue_goes_with_everything_in_it_and_starts_anew() {
    check(
        "
        0s queue
        0s send a b c later+60s
        0s attach r1
        0s limit r1 2
        0s reject r1 #1
        0s defer r1 #2
        1s remove
        1s rows
        1s blocks
        1s complete r1 #3
        2s remove
        2s send x
        2s attach r1
        2s peek 1 10
        3s queue
        3s send d in=q
        3s peek 1 10 in=q
        3s counters in=q
        4s restart
        4s counters in=q
        61s peek 1 10 in=q
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s reject r1 #1: done
            0s defer r1 #2: done
            1s r1 evicted: the entity does not exist
            1s q is gone
            1s removed
            1s 0 rows and 0 bodies
            1s blocks with a deadline: 0
            1s complete r1 #3: the lock is not held
            2s not removed: the entity does not exist
            2s send refused: the entity does not exist
            2s r1 evicted: the entity does not exist
            2s peek: the entity does not exist
            3s sent from #1
            3s peek: #1 d
            3s active 1 dead 0 deferred 0 bytes 1
            4s active 1 dead 0 deferred 0 bytes 1
            61s peek: #1 d
        "#]],
    );
}

#[test]
fn no_token_cursor_or_delivery_of_the_old_queue_acts_on_the_new_one() {
    check(
        "
        0s queue
        0s send a
        0s attach r1
        0s limit r1 5
        1s remove
        1s queue
        1s send b in=q
        1s limit r1 9
        1s complete r1 #1 in=q
        1s renew r1 #1 in=q
        1s attach r2 in=q
        1s limit r2 1
        31s detach r1
        31s counters in=q
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s r1 evicted: the entity does not exist
            1s q is gone
            1s removed
            1s sent from #1
            1s complete r1 #1 in=q: the lock is not held
            1s renew r1 #1 in=q: the lock is not held
            1s r2 gets #1 b until 31s
            31s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn an_id_is_not_used_again_after_a_restart_either() {
    check(
        "
        0s queue
        0s send a
        0s attach r1
        0s limit r1 1
        1s remove
        1s restart
        1s queue
        1s send b
        1s send b in=q
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s r1 evicted: the entity does not exist
            1s q is gone
            1s removed
            1s send refused: the entity does not exist
            1s sent from #1
        "#]],
    );
}

#[test]
fn receivers_are_sent_away_whatever_they_wait_for() {
    check(
        "
        0s queue
        0s queue name=s sessions
        0s attach r1
        0s limit r1 5
        0s attach r2 dead
        0s attach r3
        0s limit r3 5 drain
        0s send a:x in=s
        0s accept r4 x in=s
        0s limit r4 1
        0s accept r5 next 60s in=s
        1s remove
        1s remove in=s
        1s limit r1 9
        1s detach r2
        1s disconnect r4
        90s queues
        ",
        expect![[r#"
            0s r3 drained
            0s sent from #1
            0s r4 holds x until 30s
            0s r4 gets #1 a until 30s
            1s r1 evicted: the entity does not exist
            1s r2 evicted: the entity does not exist
            1s r3 evicted: the entity does not exist
            1s q is gone
            1s removed
            1s r4 evicted: the entity does not exist
            1s r5 evicted: the entity does not exist
            1s s is gone
            1s removed
            90s queues: 
        "#]],
    );
}

#[test]
fn whoever_waits_for_a_read_of_a_queue_that_has_gone_hears_so() {
    check(
        "
        0s queue
        0s send a b later+60s
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        0s peek 1 10
        0s fetch r1 #1
        0s cancel #3
        0s remove
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            0s r1 evicted: the entity does not exist
            0s q is gone
            0s removed
            0s peek: the entity does not exist
            0s fetch r1 #1: the entity does not exist
            0s cancel #3: the entity does not exist
        "#]],
    );
}

#[test]
fn whoever_waits_for_something_of_a_session_hears_so() {
    check(
        "
        0s queue sessions
        0s send a:x
        0s accept r1 x
        0s reads late
        0s set-state r1 x one
        0s state r1 x
        0s peek-session x 1 10
        0s list 0 10
        0s remove
        0s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds x until 30s
            0s r1 evicted: the entity does not exist
            0s set state of x: the entity does not exist
            0s state of x: the entity does not exist
            0s q is gone
            0s removed
            0s peek x: the entity does not exist
            0s list 0 10: the entity does not exist
        "#]],
    );
}

#[test]
fn listings_that_wait_for_a_survey_are_answered() {
    check(
        "
        0s queue sessions
        0s send a:x
        1s restart
        1s reads late
        1s list 0 10
        1s remove
        1s answer
        ",
        expect![[r#"
            0s sent from #1
            1s q is gone
            1s removed
            1s list 0 10: the entity does not exist
        "#]],
    );
}

#[test]
fn sends_that_wait_for_a_look_at_the_history_are_refused_in_order() {
    check(
        "
        0s queue window=60s
        0s send a@1
        1s restart
        1s reads late
        1s send b@1
        1s send c@2
        1s remove
        1s answer
        1s queue window=60s
        1s send d@1 in=q
        1s history
        ",
        expect![[r#"
            0s sent from #1
            1s send refused: the entity does not exist
            1s send refused: the entity does not exist
            1s q is gone
            1s removed
            1s sent from #1
            1s history of 1 ids in 1 periods
        "#]],
    );
}

#[test]
fn a_transaction_with_something_of_a_queue_that_has_gone_is_rolled_back() {
    check(
        "
        0s queue
        0s queue name=other
        0s send a
        0s send b in=other
        0s attach r1
        0s limit r1 1
        0s attach r1/2 in=other
        0s limit r1/2 1
        0s declare t r1
        0s in t complete r1 #1
        0s in t complete r1/2 #1 in=other
        0s in t send c in=other
        1s remove
        1s commit t
        1s complete r1/2 #1 in=other
        1s declare u r1
        1s in u send c
        1s in u complete r1 #1
        1s in u cancel #1
        1s counters in=other
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1/2 gets #1 b until 30s
            0s declare t: done
            0s in t complete r1 #1: done
            0s in t complete r1/2 #1 in=other: done
            0s in t send c in=other: held
            1s r1 evicted: the entity does not exist
            1s q is gone
            1s removed
            1s commit t: the transaction was rolled back: an entity of it does not exist any more
            1s complete r1/2 #1 in=other: done
            1s declare u: done
            1s in u send c: the entity does not exist
            1s in u complete r1 #1: the lock is not held
            1s in u cancel #1: the entity does not exist
            1s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_commit_that_is_being_looked_up_is_rolled_back_too() {
    check(
        "
        0s queue window=60s
        0s queue name=other
        0s send a+60s in=other
        0s send x@1
        1s restart
        1s reads late
        1s declare t r1
        1s in t send b@1
        1s in t cancel #1 in=other
        1s commit t
        1s remove
        1s answer first
        1s answer
        1s counters in=other
        1s remove in=other
        1s declare u r1
        1s in u cancel #1 in=other
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            1s declare t: done
            1s in t send b@1: held
            1s in t cancel #1 in=other: done
            1s q is gone
            1s removed
            1s commit t: the transaction was rolled back: an entity of it does not exist any more
            1s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            1s other is gone
            1s removed
            1s declare u: done
            1s in u cancel #1 in=other: the entity does not exist
        "#]],
    );
}

#[test]
fn what_was_to_be_forwarded_to_a_queue_that_has_gone_is_set_aside_or_waits() {
    check(
        "
        0s queue
        0s queue name=source forward=q
        0s queue name=dead forward-dead=q
        0s remove
        0s send a in=source
        0s peek 1 10 transfer in=source
        0s send b in=dead
        0s attach r1 in=dead
        0s limit r1 1
        0s reject r1 #1 in=dead
        1s queue
        3s peek 1 10 in=q
        ",
        expect![[r#"
            0s q is gone
            0s removed
            0s sent from #1
            0s peek: #1 a DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'q' does not exist"
            0s sent from #1
            0s r1 gets #1 b until 30s
            0s reject r1 #1 in=dead: done
            3s peek: #1 b from dead letters of dead
        "#]],
    );
}

#[test]
fn a_source_or_a_destination_may_go_while_an_id_is_looked_up() {
    check(
        "
        0s queue window=60s
        0s queue name=one forward=q
        0s queue name=two forward=q
        0s send a@1 encoded
        1s restart
        1s reads late
        1s send b@1 in=one encoded
        1s send c@1 in=two encoded
        1s remove in=one
        1s answer
        1s send d@2 in=two encoded
        1s remove
        1s answer
        1s answer
        1s info in=two
        1s queues
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #1
            1s sent from #1
            1s one is gone
            1s removed
            1s sent from #2
            1s q is gone
            1s removed
            1s transfer 0 dead in transfer 0 created 0s updated 0s accessed 1s
            1s queues: two
        "#]],
    );
}

#[test]
fn a_sweep_that_reads_finds_nothing_to_do() {
    let settings = BrokerSettings {
        window: 2,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s queue
        0s send a*8 ttl=10s
        0s reads late
        10s asked
        10s remove
        10s answer
        10s rows
        ",
        expect![[r#"
            0s sent from #1
            10s asked for 1024 of Active #0..#1024
            10s q is gone
            10s removed
            10s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn nothing_of_it_is_said_before_it_is_durable_and_a_crash_before_leaves_it_there() {
    check(
        "
        0s queue
        0s send a
        0s attach r1
        1s sync manual
        1s remove
        2s restart
        2s peek 1 10
        3s remove
        3s sync
        4s restart
        4s queues
        ",
        expect![[r#"
            0s sent from #1
            2s peek: #1 a
            3s q is gone
            3s removed
            4s queues: 
        "#]],
    );
}
