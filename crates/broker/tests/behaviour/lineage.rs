//! Lineage: what has happened to messages is recorded, and followed from one entity to the next.

use broker::BrokerSettings;
use expect_test::{Expect, expect};

use crate::script::{check_after, check_with};

fn recording() -> BrokerSettings {
    BrokerSettings {
        lineage: true,
        ..BrokerSettings::default()
    }
}

/// Runs a script and leaves out what is said before the first `trace`.
fn check(script: &str, skip: usize, expected: Expect) {
    check_after(recording(), script, skip, expected);
}

#[test]
fn nothing_is_recorded_unless_it_is_switched_on() {
    let silent = BrokerSettings::default();
    let no_room = BrokerSettings {
        lineage_bytes: 0,
        ..recording()
    };
    for settings in [silent, no_room] {
        check_with(
            settings,
            "
            0s send a@one
            0s trace id=one
            ",
            expect![[r"
                0s sent from #1
                0s trace: nothing is recorded
            "]],
        );
    }
}

#[test]
fn a_message_is_followed_from_its_acceptance_to_its_end() {
    check(
        "
        0s send a@one b@two
        0s attach r1
        1s limit r1 1
        5s renew r1 #1
        6s abandon r1 #1
        7s limit r1 2
        37s limit r1 3
        38s complete r1 #1
        40s trace id=one
        ",
        7,
        expect![[r#"
            40s trace: since 0s
            40s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            40s   1s q#1: Locked { connection: (1), delivery_count: 0 }
            40s   5s q#1: Renewed { connection: (0) }
            40s   6s q#1: Settled { how: Abandoned, by: Some((0)) }
            40s   7s q#1: Locked { connection: (1), delivery_count: 1 }
            40s   37s q#1: LockLost { why: Expired }
            40s   37s q#1: Locked { connection: (1), delivery_count: 2 }
            40s   38s q#1: Settled { how: Completed, by: Some((0)) }
        "#]],
    );
}

#[test]
fn each_way_of_settling_is_recorded_with_the_connection() {
    check(
        "
        0s send a b c d e
        0s attach r1
        0s limit r1 4
        1s defer r1 #1 unheard
        1s release r1 #2
        1s reject r1 #3 DeadLetterReason=broken
        2s fetch r2 #1
        2s complete r2 #1 unheard
        2s complete r9 #4
        3s attach r4 delete
        3s limit r4 1
        4s trace
        ",
        10,
        expect![[r#"
            4s trace: since 0s
            4s   0s q#1: Accepted { message_id: None, session_id: None }
            4s   0s q#2: Accepted { message_id: None, session_id: None }
            4s   0s q#3: Accepted { message_id: None, session_id: None }
            4s   0s q#4: Accepted { message_id: None, session_id: None }
            4s   0s q#5: Accepted { message_id: None, session_id: None }
            4s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            4s   0s q#2: Locked { connection: (1), delivery_count: 0 }
            4s   0s q#3: Locked { connection: (1), delivery_count: 0 }
            4s   0s q#4: Locked { connection: (1), delivery_count: 0 }
            4s   1s q#1: Settled { how: Deferred, by: Some((1)) }
            4s   1s q#2: Settled { how: Released, by: Some((0)) }
            4s   1s q#3: Settled { how: Rejected, by: Some((0)) }
            4s   1s q#3: DeadLettered { to: DeadLetter, reason: Some("broken") }
            4s   2s q#1: Locked { connection: (2), delivery_count: 1 }
            4s   2s q#1: Settled { how: Completed, by: Some((2)) }
            4s   3s q#2: Settled { how: ReceivedAndDeleted, by: Some((4)) }
        "#]],
    );
}

#[test]
fn a_schedule_is_recorded_until_it_is_due_or_taken_back() {
    check(
        "
        0s send a+10s@one b+20s@one
        5s cancel #2
        12s trace id=one
        12s trace #3 in=q
        ",
        2,
        expect![[r#"
            12s trace: since 0s
            12s   0s q#1: Scheduled for 10s
            12s   0s q#2: Scheduled for 20s
            12s   5s q#2: Cancelled
            12s   10s q#3: Activated from q#1
            12s trace: since 0s
            12s   0s q#1: Scheduled for 10s
            12s   10s q#3: Activated from q#1
        "#]],
    );
}

#[test]
fn copies_tell_their_rules_and_are_followed_with_their_topic() {
    check(
        "
        0s topic t
        0s subscription all of=t
        0s subscription some of=t no-rules
        0s subscription none of=t no-rules
        0s rule big in=t/Subscriptions/some where n > 5
        0s rule change in=t/Subscriptions/some where n > 6 do SET n = 1
        0s rule bad in=t/Subscriptions/some where n / 0 > 1
        1s send m@one encoded n=7 in=t
        1s trace id=one
        1s trace #2 in=t/subscriptions/some
        ",
        4,
        expect![[r#"
            1s trace: since 0s
            1s   1s t#1: Accepted { message_id: Some("one"), session_id: None }
            1s   1s t#1: Distributed { copies: 4 }
            1s   1s t/Subscriptions/all#1: Copied from t#1 by $Default
            1s   1s t/Subscriptions/some#1: Copied from t#1 by big
            1s   1s t/Subscriptions/some#2: Copied from t#1 by change
            1s   1s t/Subscriptions/some#3: Copied from t#1 by bad
            1s   1s t/Subscriptions/some#3: DeadLettered { to: DeadLetter, reason: Some("FilterException") }
            1s trace: since 0s
            1s   1s t#1: Accepted { message_id: Some("one"), session_id: None }
            1s   1s t#1: Distributed { copies: 4 }
            1s   1s t/Subscriptions/some#2: Copied from t#1 by change
        "#]],
    );
}

#[test]
fn forwards_are_followed_in_both_directions() {
    check(
        "
        0s queue name=c window=10m
        0s queue name=b forward=c
        0s queue name=a forward=b
        0s send in=a x@one encoded
        0s send in=b y@one encoded
        1s trace id=one
        1s trace #1 in=c
        1s trace in=b
        ",
        2,
        expect![[r#"
            1s trace: since 0s
            1s   0s a#1: Accepted { message_id: Some("one"), session_id: None }
            1s   0s a#1: Forwarded to b#0
            1s   0s b#1: Arrived from a#1
            1s   0s b#1: Forwarded to c#0
            1s   0s c#1: Arrived from b#1
            1s   0s b#2: Accepted { message_id: Some("one"), session_id: None }
            1s   0s b#2: Dropped { why: Duplicate }
            1s trace: since 0s
            1s   0s a#1: Accepted { message_id: Some("one"), session_id: None }
            1s   0s a#1: Forwarded to b#0
            1s   0s b#1: Arrived from a#1
            1s   0s b#1: Forwarded to c#0
            1s   0s c#1: Arrived from b#1
            1s trace: since 0s
            1s   0s b#1: Arrived from a#1
            1s   0s b#1: Forwarded to c#0
            1s   0s b#2: Accepted { message_id: Some("one"), session_id: None }
            1s   0s b#2: Dropped { why: Duplicate }
        "#]],
    );
}

#[test]
fn what_cannot_go_on_says_why_it_is_a_dead_letter() {
    check(
        "
        0s queue name=s sessions
        0s queue name=a forward=missing
        0s queue name=b forward=s
        0s send in=a x@one encoded
        0s send in=b y@one encoded
        1s trace id=one
        ",
        2,
        expect![[r#"
            1s trace: since 0s
            1s   0s a#1: Accepted { message_id: Some("one"), session_id: None }
            1s   0s a#1: DeadLettered { to: TransferDeadLetter, reason: Some("NotFound") }
            1s   0s b#1: Accepted { message_id: Some("one"), session_id: None }
            1s   0s b#1: Forwarded to s#0
            1s   0s s#1: Arrived from b#1
            1s   0s s#1: DeadLettered { to: DeadLetter, reason: Some("SessionRequired") }
        "#]],
    );
}

#[test]
fn dead_letters_tell_their_reasons_and_where_they_went() {
    check(
        "
        0s queue name=dead
        0s queue quorum name=q max-delivery=1 dead-router=- dead-key=dead
        0s queue quorum name=lost dead-router=- dead-key=nowhere max-length=1
        0s send in=q x@one encoded
        0s send in=lost y@two z@two encoded
        1s attach r1 in=q
        1s limit r1 1
        1s abandon r1 #1 in=q
        2s trace id=one
        2s trace id=two
        ",
        4,
        expect![[r#"
            2s trace: since 0s
            2s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            2s   1s q#1: Locked { connection: (1), delivery_count: 0 }
            2s   1s q#1: Settled { how: Abandoned, by: Some((0)) }
            2s   1s q#1: DeadLettered { to: DeadLetter, reason: Some("MaxDeliveryCountExceeded") }
            2s   1s q#1: Forwarded to dead#0
            2s   1s dead#1: Arrived from q#1
            2s trace: since 0s
            2s   0s lost#1: Accepted { message_id: Some("two"), session_id: None }
            2s   0s lost#2: Accepted { message_id: Some("two"), session_id: None }
            2s   0s lost#1: DeadLettered { to: DeadLetter, reason: Some("MaxLengthExceeded") }
            2s   0s lost#1: Dropped { why: Unroutable }
        "#]],
    );
}

#[test]
fn a_redriven_message_is_followed_to_its_new_number() {
    check(
        "
        0s send a@one encoded
        0s attach r1
        0s limit r1 1
        1s reject r1 #1
        2s attach r2 dead
        2s limit r2 1
        3s redrive r2 #1 dead
        4s trace id=one
        ",
        5,
        expect![[r#"
            4s trace: since 0s
            4s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            4s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            4s   1s q#1: Settled { how: Rejected, by: Some((0)) }
            4s   1s q#1: DeadLettered { to: DeadLetter, reason: None }
            4s   2s q#1: Locked { connection: (2), delivery_count: 0 }
            4s   3s q#2: Redriven from q#1 by 0
        "#]],
    );
}

#[test]
fn expired_purged_and_deleted_messages_are_recorded() {
    check(
        "
        0s queue dead-letter-expired
        0s send a@one ttl=5s
        0s send b@two
        6s delete 10
        7s send c@one
        8s remove
        9s trace id=one
        9s trace id=two
        ",
        4,
        expect![[r#"
            8s q is gone
            8s removed
            9s trace: since 0s
            9s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            9s   5s q#1: Expired
            9s   5s q#1: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            9s   7s q#3: Accepted { message_id: Some("one"), session_id: None }
            9s   8s q#0: EntityDeleted { path: "q" }
            9s trace: since 0s
            9s   0s q#2: Accepted { message_id: Some("two"), session_id: None }
            9s   6s q#2: Purged
        "#]],
    );
}

#[test]
fn locks_that_are_lost_say_why() {
    check(
        "
        0s send a@one b@one
        0s attach r1
        0s limit r1 1
        30s attach r2 hold
        30s limit r2 2
        31s disconnect r2
        32s trace id=one
        ",
        4,
        expect![[r#"
            32s trace: since 0s
            32s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            32s   0s q#2: Accepted { message_id: Some("one"), session_id: None }
            32s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            32s   30s q#1: LockLost { why: Expired }
            32s   30s q#1: Locked { connection: (2), delivery_count: 1 }
            32s   30s q#2: Locked { connection: (2), delivery_count: 0 }
            32s   31s q#1: LockLost { why: ReceiverGone }
            32s   31s q#2: LockLost { why: ReceiverGone }
        "#]],
    );
}

#[test]
fn a_session_is_a_history_and_its_locks_are_its_messages() {
    check(
        "
        0s queue sessions
        0s send a:s b:t c:s
        0s accept r1 s
        0s limit r1 1
        5s renew-session r1 s
        35s wait
        36s accept r2 s
        36s limit r2 1
        37s detach r2
        38s trace session=s
        ",
        7,
        expect![[r#"
            38s trace: since 0s
            38s   0s q#1: Accepted { message_id: None, session_id: Some("s") }
            38s   0s q#3: Accepted { message_id: None, session_id: Some("s") }
            38s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            38s   5s q#1: Renewed { connection: (1) }
            38s   35s q#1: LockLost { why: Expired }
            38s   36s q#1: Locked { connection: (2), delivery_count: 1 }
            38s   37s q#1: LockLost { why: ReceiverGone }
        "#]],
    );
}

#[test]
fn a_transaction_is_recorded_when_it_is_committed() {
    check(
        "
        0s send a@one
        0s attach r1
        0s limit r1 1
        1s declare t1 r1
        1s in t1 complete r1 #1
        1s in t1 send b@one
        2s commit t1
        3s trace id=one
        ",
        6,
        expect![[r#"
            3s trace: since 0s
            3s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            3s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            3s   2s q#1: Settled { how: Completed, by: Some((1)) }
            3s   2s q#2: Accepted { message_id: Some("one"), session_id: None }
        "#]],
    );
}

#[test]
fn a_publication_tells_its_router_and_a_duplicate_its_original() {
    check(
        "
        0s queue name=a
        0s queue name=b window=10m
        0s bind amq.direct k to=a
        0s bind amq.direct k to=b
        1s publish amq.direct k x@one encoded
        2s send in=b y@one encoded
        3s trace id=one
        ",
        4,
        expect![[r#"
            3s trace: since 0s
            3s   1s a#1: Accepted { message_id: Some("one"), session_id: None }
            3s   1s a#1: Routed { router: "amq.direct", key: "k" }
            3s   1s b#1: Accepted { message_id: Some("one"), session_id: None }
            3s   1s b#1: Routed { router: "amq.direct", key: "k" }
            3s   2s b#1: DuplicateDropped
        "#]],
    );
}

#[test]
fn an_abandoned_message_waits_and_returns() {
    check(
        "
        0s send a@one
        0s attach r1
        0s limit r1 1
        1s abandon r1 #1 wait=10s
        12s trace #1 in=Q
        12s trace #1 in=Q last=2
        ",
        3,
        expect![[r#"
            12s trace: since 0s
            12s   0s q#1: Accepted { message_id: Some("one"), session_id: None }
            12s   0s q#1: Locked { connection: (1), delivery_count: 0 }
            12s   1s q#1: Settled { how: Abandoned, by: Some((0)) }
            12s   1s q#1: Delayed until 11s
            12s   11s q#1: Resumed
            12s trace: since 0s, with more before
            12s   1s q#1: Delayed until 11s
            12s   11s q#1: Resumed
        "#]],
    );
}

#[test]
fn a_restart_begins_a_new_record() {
    check(
        "
        0s send a@one
        5s restart
        6s attach r1
        6s limit r1 1
        7s trace id=one
        7s trace #1 in=q
        ",
        2,
        expect![[r#"
            7s trace: since 5s, incomplete
            7s trace: since 5s, incomplete
            7s   6s q#1: Locked { connection: (1), delivery_count: 0 }
        "#]],
    );
}

#[test]
fn the_record_is_bounded_and_says_how_far_back_it_reaches() {
    let settings = BrokerSettings {
        lineage_bytes: 4_096,
        ..recording()
    };
    check_after(
        settings,
        "
        0s send a@one
        1s send b*40
        2s send c*40
        3s send d@two
        4s trace id=one
        4s trace id=two
        ",
        4,
        expect![[r#"
            4s trace: since 1s, incomplete
            4s trace: since 1s
            4s   3s q#82: Accepted { message_id: Some("two"), session_id: None }
        "#]],
    );
}

#[test]
fn a_session_is_found_whatever_the_letter_case_of_its_ids() {
    check(
        "
        0s queue sessions
        0s send a:S b:s c:t
        1s trace session=s
        ",
        1,
        expect![[r#"
            1s trace: since 0s
            1s   0s q#1: Accepted { message_id: None, session_id: Some("S") }
            1s   0s q#2: Accepted { message_id: None, session_id: Some("s") }
        "#]],
    );
}
