//! Deferral: put aside, fetched by number, given back to where they were.

use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_deferred_message_is_skipped_and_fetched_by_its_number() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        0s defer r1 #1 why=later
        0s limit r1 5
        0s counters
        1s fetch r2 #1
        2s complete r2 #1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1 why=later: done
            0s r1 gets #2 b until 30s
            0s active 1 dead 0 deferred 1 bytes 2
            1s fetch r2 #1: #1 a count 1 Deferred why="later" until 31s
            2s complete r2 #1: done
            2s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn fetching_gives_all_or_none() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 3
        0s defer r1 #1
        0s defer r1 #2
        1s fetch r2 #1 #3
        1s fetch r2 #2 #9
        2s fetch r2 #2
        2s fetch r3 #1 #2
        3s fetch r3 #1 delete
        3s fetch r3 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s defer r1 #1: done
            0s defer r1 #2: done
            1s fetch r2 #1 #3: message #3 is not there
            1s fetch r2 #2 #9: message #9 is not there
            2s fetch r2 #2: #2 b count 1 Deferred until 32s
            2s fetch r3 #1 #2: message #2 is not there
            3s fetch r3 #1 delete: #1 a count 1 Deferred
            3s fetch r3 #1: message #1 is not there
        "#]],
    );
}

#[test]
fn an_abandoned_or_forgotten_fetch_is_deferred_again_and_counted() {
    check(
        "
        0s queue max-delivery=5
        0s send a
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s limit r1 5
        1s fetch r2 #1
        2s abandon r2 #1 x=1
        2s peek 1 1
        3s fetch r2 #1
        33s peek 1 1
        34s fetch r2 #1
        35s defer r2 #1
        36s fetch r2 #1
        37s abandon r2 #1
        37s peek 1 1 dead
        37s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            1s fetch r2 #1: #1 a count 1 Deferred until 31s
            2s abandon r2 #1 x=1: done
            2s peek: #1 a count 2 Deferred x="1"
            3s fetch r2 #1: #1 a count 2 Deferred x="1" until 33s
            33s peek: #1 a count 3 Deferred x="1"
            34s fetch r2 #1: #1 a count 3 Deferred x="1" until 64s
            35s defer r2 #1: done
            36s fetch r2 #1: #1 a count 4 Deferred x="1" until 66s
            37s abandon r2 #1: done
            37s peek: #1 a count 5 x="1" DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 5 delivery attempts."
            37s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn deferring_counts_but_never_dead_letters() {
    check(
        "
        0s queue max-delivery=2
        0s send a b
        0s attach r1
        0s limit r1 2
        0s defer r1 #1
        0s defer r1 #2
        1s fetch r2 #1 #2
        1s defer r2 #1
        1s reject r2 #2
        2s fetch r2 #1
        2s abandon r2 #1
        2s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s defer r1 #2: done
            1s fetch r2 #1 #2: #1 a count 1 Deferred until 31s, #2 b count 1 Deferred until 31s
            1s defer r2 #1: done
            1s reject r2 #2: done
            2s fetch r2 #1: #1 a count 2 Deferred until 32s
            2s abandon r2 #1: done
            2s peek: #1 a count 3 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 2 delivery attempts.", #2 b count 1
        "#]],
    );
}

#[test]
fn a_message_that_is_locked_while_a_fetch_waits_is_not_there() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        1s fetch r2 #1
        1s fetch r3 #1
        2s answer
        3s complete r2 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            2s fetch r2 #1: #1 a count 1 Deferred until 32s
            2s fetch r3 #1: message #1 is not there
            3s complete r2 #1: done
        "#]],
    );
}

#[test]
fn a_deferred_message_past_its_deadline_can_still_be_fetched() {
    check(
        "
        0s send ttl=5s a b
        0s attach r1
        0s limit r1 1
        1s defer r1 #1
        10s counters
        11s fetch r2 #1
        12s abandon r2 #1
        13s fetch r2 #1
        14s complete r2 #1
        14s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            1s defer r1 #1: done
            10s active 0 dead 0 deferred 1 bytes 1
            11s fetch r2 #1: #1 a count 1 Deferred expires 5s until 41s
            12s abandon r2 #1: done
            13s fetch r2 #1: #1 a count 2 Deferred expires 5s until 43s
            14s complete r2 #1: done
            14s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_deferred_message_survives_a_restart() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        0s defer r1 #1
        0s defer r1 #2 x=1
        1s fetch r1 #2
        2s restart
        2s peek 1 9
        2s fetch r1 #2 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s defer r1 #2 x=1: done
            1s fetch r1 #2: #2 b count 1 Deferred x="1" until 31s
            2s peek: #1 a count 1 Deferred, #2 b count 1 Deferred x="1"
            2s fetch r1 #2 #1: #2 b count 1 Deferred x="1" until 32s, #1 a count 1 Deferred until 32s
        "#]],
    );
}

#[test]
fn a_fetch_for_a_connection_that_is_gone_takes_nothing() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        1s fetch r2 #1 delete
        1s disconnect r2
        2s answer
        3s fetch r3 #1
        3s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            3s fetch r3 #1: #1 a count 1 Deferred until 33s
        "#]],
    );
}

#[test]
fn a_message_that_was_locked_and_given_back_while_a_fetch_waits_is_not_there() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        1s fetch r2 #1
        1s fetch r3 #1
        2s answer first
        2s abandon r2 #1 x=1
        3s answer first
        4s fetch r3 #1
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            2s fetch r2 #1: #1 a count 1 Deferred until 32s
            2s abandon r2 #1 x=1: done
            3s fetch r3 #1: message #1 is not there
            4s fetch r3 #1: #1 a count 2 Deferred x="1" until 34s
        "#]],
    );
}

#[test]
fn a_message_that_was_taken_while_a_fetch_waits_is_not_there() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s defer r1 #1
        0s reads late
        1s fetch r2 #1 delete
        1s fetch r3 #1 delete
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            2s fetch r2 #1 delete: #1 a count 1 Deferred
            2s fetch r3 #1 delete: message #1 is not there
        "#]],
    );
}

#[test]
fn fetching_more_than_fits_into_an_answer_takes_nothing() {
    check(
        "
        0s send abc def ghijklm
        0s attach r1
        0s limit r1 3
        0s defer r1 #1
        0s defer r1 #2
        0s defer r1 #3
        1s fetch r2 #1 #2 little delete
        1s fetch r2 #1 little
        1s fetch r2 #3 little delete
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 abc until 30s
            0s r1 gets #2 def until 30s
            0s r1 gets #3 ghijklm until 30s
            0s defer r1 #1: done
            0s defer r1 #2: done
            0s defer r1 #3: done
            1s fetch r2 #1 #2 little delete: the messages are larger together than one answer may be
            1s fetch r2 #1 little: #1 abc count 1 Deferred until 31s
            1s fetch r2 #3 little delete: #3 ghijklm count 1 Deferred
            1s active 0 dead 0 deferred 2 bytes 6
        "#]],
    );
}

#[test]
fn a_peek_can_be_of_one_state_alone() {
    let settings = broker::BrokerSettings {
        window: 2,
        ..broker::BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a b c d e f
        0s send g+60s h+50s
        0s attach r1
        0s limit r1 2
        0s defer r1 #1
        0s limit r1 3
        0s defer r1 #3
        1s peek 1 20 state=active
        1s peek 1 20 state=scheduled
        1s peek 1 20 state=deferred
        2s peek 5 1 state=active
        2s peek 2 20 state=deferred
        2s peek 8 20 state=scheduled
        3s peek 1 1 state=deferred
        3s peek 1 20 state=active dead
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #7
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s r1 gets #3 c until 30s
            0s defer r1 #3: done
            1s peek: #2 b, #4 d, #5 e, #6 f
            1s peek: #7 g Scheduled, #8 h Scheduled
            1s peek: #1 a count 1 Deferred, #3 c count 1 Deferred
            2s peek: #5 e
            2s peek: #3 c count 1 Deferred
            2s peek: #8 h Scheduled
            3s peek: #1 a count 1 Deferred
            3s peek: 
        "#]],
    );
}

#[test]
fn a_peek_of_scheduled_messages_goes_on_behind_those_that_fall_due_meanwhile() {
    check(
        "
        0s send a+2s b+60s c+61s
        0s reads late
        1s peek 1 1 state=scheduled
        3s answer
        3s answer
        4s peek 2 1 state=scheduled
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            3s peek: #2 b Scheduled
            4s peek: #2 b Scheduled
        "#]],
    );
}
