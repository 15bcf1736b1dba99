//! Commits of transactions that have to look something up first: message ids, scheduled messages.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn duplicates_are_dropped_at_the_commit() {
    check(
        "
        0s queue window=20s
        0s send a@1
        0s declare t1 r1/7
        1s in t1 send b@1 c@2
        1s in t1 send d@2 e@3
        1s send f@3
        2s commit t1
        2s attach r1
        2s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s declare t1: done
            1s in t1 send b@1 c@2: held
            1s in t1 send d@2 e@3: held
            1s sent from #2
            2s commit t1: done
            2s r1 gets #1 a until 32s
            2s r1 gets #2 f until 32s
            2s r1 gets #3 c until 32s
        "#]],
    );
}

#[test]
fn what_was_rolled_back_is_not_in_the_history() {
    check(
        "
        0s queue window=20s
        0s declare t1 r1/7
        1s in t1 send a@1
        2s roll-back t1
        2s history
        3s send b@1
        3s counters
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a@1: held
            2s roll-back t1: done
            2s history of 0 ids in 0 periods
            3s sent from #1
            3s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn what_a_transaction_sends_is_forwarded_once_it_is_committed() {
    check(
        "
        0s queue
        0s queue name=q2 forward=q
        0s declare t1 r1/7
        1s in t1 send a encoded in=q2
        1s counters
        2s commit t1
        2s counters
        2s counters in=q2
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a encoded in=q2: held
            1s active 0 dead 0 deferred 0 bytes 0
            2s commit t1: done
            2s active 1 dead 0 deferred 0 bytes 25
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_scheduled_message_has_its_number_before_the_commit() {
    check(
        "
        0s declare t1 r1/7
        1s in t1 send a+10s b
        1s send c
        1s peek 1 10
        2s commit t1
        2s peek 1 10
        2s attach r1
        2s limit r1 10
        10s counters
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a+10s b: held from #1
            1s sent from #3
            1s peek: #3 c
            2s commit t1: done
            2s peek: #1 a Scheduled, #3 c, #4 b
            2s r1 gets #3 c until 32s
            2s r1 gets #4 b until 32s
            10s r1 gets #5 a until 40s
            10s active 3 dead 0 deferred 0 bytes 3
        "#]],
    );
}

#[test]
fn what_is_due_before_the_commit_is_enqueued_by_it() {
    check(
        "
        0s declare t1 r1/7
        1s in t1 send a+10s
        11s commit t1
        11s attach r1
        11s limit r1 10
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a+10s: held from #1
            11s commit t1: done
            11s r1 gets #2 a until 41s
        "#]],
    );
}

#[test]
fn a_number_that_was_promised_is_nobody_elses() {
    check(
        "
        0s declare t1 r1/7
        1s in t1 send a+10s
        2s restart
        3s send b+20s
        4s declare t2 r1/7
        4s in t2 send c+10s
        4s roll-back t2
        5s send d
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a+10s: held from #1
            3s sent from #2
            4s declare t2: done
            4s in t2 send c+10s: held from #3
            4s roll-back t2: done
            5s sent from #4
        "#]],
    );
}

#[test]
fn scheduled_messages_are_cancelled_by_the_commit() {
    check(
        "
        0s send a+60s b+60s c+60s
        0s declare t1 r1/7
        1s in t1 cancel #1 #2
        1s in t1 cancel #2
        1s in t1 send d
        1s peek 1 10
        2s commit t1
        2s peek 1 10
        3s declare t2 r1/7
        3s in t2 cancel #3
        3s roll-back t2
        3s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s declare t1: done
            1s in t1 cancel #1 #2: done
            1s in t1 cancel #2: message #2 is not there
            1s in t1 send d: held
            1s peek: #1 a Scheduled, #2 b Scheduled, #3 c Scheduled
            2s commit t1: done
            2s peek: #3 c Scheduled, #4 d
            3s declare t2: done
            3s in t2 cancel #3: done
            3s roll-back t2: done
            3s peek: #3 c Scheduled, #4 d
        "#]],
    );
}

#[test]
fn a_cancellation_that_is_not_possible_takes_everything_back() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a+10s b+60s
        0s declare t1 r1/7
        0s declare t2 r1/7
        1s in t1 cancel #1 #2
        1s in t1 send x in=q2
        1s in t2 cancel #7
        11s commit t1
        11s commit t2
        11s counters
        11s counters in=q2
        11s cancel #2
        ",
        expect![[r#"
            0s sent from #1
            0s declare t1: done
            0s declare t2: done
            1s in t1 cancel #1 #2: done
            1s in t1 send x in=q2: held
            1s in t2 cancel #7: done
            11s commit t1: the transaction was rolled back: message #1 is not there
            11s commit t2: the transaction was rolled back: message #7 is not there
            11s active 1 dead 0 deferred 0 bytes 2 scheduled 1
            11s active 0 dead 0 deferred 0 bytes 0
            11s cancel #2: done
        "#]],
    );
}

#[test]
fn what_is_cancelled_or_activated_between_lookup_and_commit_counts() {
    check(
        "
        0s send a+10s b+60s
        0s declare t1 r1/7
        0s declare t2 r1/7
        1s in t1 cancel #1
        1s in t2 cancel #2
        2s reads late
        2s commit t1
        2s commit t2
        2s cancel #2
        10s wait
        10s answer
        10s counters
        ",
        expect![[r#"
            0s sent from #1
            0s declare t1: done
            0s declare t2: done
            1s in t1 cancel #1: done
            1s in t2 cancel #2: done
            10s commit t1: the transaction was rolled back: message #1 is not there
            10s commit t2: done
            10s cancel #2: message #2 is not there
            10s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_commit_waits_for_the_lookup_of_its_ids() {
    check(
        "
        0s queue window=20s
        0s queue name=q2
        0s send a@1
        1s restart
        1s reads late
        1s declare t1 r1/7
        2s in t1 send b@1 c@2 d@3
        2s in t1 send e in=q2
        2s commit t1
        2s in t1 send f
        2s commit t1
        3s counters in=q2
        4s answer
        4s counters
        4s counters in=q2
        ",
        expect![[r#"
            0s sent from #1
            1s declare t1: done
            2s in t1 send b@1 c@2 d@3: held
            2s in t1 send e in=q2: held
            2s in t1 send f: the transaction is not known on this connection
            2s commit t1: the transaction is not known on this connection
            3s active 0 dead 0 deferred 0 bytes 0
            4s commit t1: done
            4s active 3 dead 0 deferred 0 bytes 3
            4s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn what_is_accepted_between_lookup_and_commit_counts() {
    check_with(
        BrokerSettings {
            window: 2,
            ..BrokerSettings::default()
        },
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s send z@9
        1s reads late
        2s declare t1 r1/7
        2s in t1 send b@1 c@2 d@9
        2s in t1 send i@2
        2s commit t1
        2s send e@2
        2s send f@4 g@5 h@6
        2s counters
        3s answer
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            2s declare t1: done
            2s in t1 send b@1 c@2 d@9: held
            2s in t1 send i@2: held
            2s sent from #3
            2s sent from #4
            2s active 6 dead 0 deferred 0 bytes 6
            3s commit t1: done
            3s active 6 dead 0 deferred 0 bytes 6
        "#]],
    );
}

#[test]
fn a_history_that_can_not_be_read_takes_everything_back() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s reads late
        1s declare t1 r1/7
        2s in t1 send b@1
        2s commit t1
        3s answer broken
        3s counters
        ",
        expect![[r#"
            0s sent from #1
            1s declare t1: done
            2s in t1 send b@1: held
            3s commit t1: the transaction was rolled back: the history of message ids cannot be read
            3s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_discharge_is_decided_even_if_its_connection_is_gone_meanwhile() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s reads late
        1s declare t1 r1/7
        2s in t1 send b@2
        2s commit t1
        2s end r1/7
        2s disconnect r1
        200s answer
        200s counters
        ",
        expect![[r#"
            0s sent from #1
            1s declare t1: done
            2s in t1 send b@2: held
            200s commit t1: done
            200s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}
