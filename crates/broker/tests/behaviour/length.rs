//! Length limits: what counts, what is dropped and what is refused.
//! (docs/spec/rabbitmq.md#12.4)

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn the_oldest_available_messages_are_dead_lettered() {
    check(
        "
        0s queue max-length=2
        0s send a b c d
        0s counters
        0s peek 1 9
        0s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s active 2 dead 2 deferred 0 bytes 4
            0s peek: #3 c, #4 d
            0s peek: #1 a DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn locked_messages_do_not_count() {
    check(
        "
        0s queue max-length=2
        0s attach r1
        0s limit r1 1
        0s send a b c
        0s counters
        1s send d
        1s abandon r1 #1
        1s counters
        1s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s active 3 dead 0 deferred 0 bytes 3
            1s sent from #4
            1s abandon r1 #1: done
            1s active 2 dead 2 deferred 0 bytes 4
            1s peek: #1 a count 1 DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn receivers_take_what_they_can_before_anything_is_dropped() {
    check(
        "
        0s queue max-length=0
        0s attach r1
        0s limit r1 1
        0s send a b
        0s counters
        0s complete r1 #1
        0s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s active 1 dead 1 deferred 0 bytes 2
            0s complete r1 #1: done
            0s peek: #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn bytes_are_limited_as_messages_are() {
    check(
        "
        0s queue max-length-bytes=3
        0s send aa
        0s send bb
        0s send c
        0s counters
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s active 2 dead 1 deferred 0 bytes 5
            0s peek: #2 bb, #3 c
        "#]],
    );
}

#[test]
fn a_queue_that_rejects_holds_exactly_its_limit() {
    check(
        "
        0s queue max-length=2 reject-publish
        0s send a
        0s send b c
        0s send b
        0s send c
        0s attach r1
        0s limit r1 1
        0s send c
        0s send d
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 2 allows
            0s sent from #2
            0s send refused: the queue holds as much as its max-length of 2 allows
            0s r1 gets #1 a until 30s
            0s sent from #3
            0s send refused: the queue holds as much as its max-length of 2 allows
            0s active 3 dead 0 deferred 0 bytes 3
        "#]],
    );
}

#[test]
fn a_queue_that_rejects_by_bytes_says_so() {
    check(
        "
        0s queue max-length-bytes=3 reject-publish
        0s send aaaa
        0s send aaa
        0s send b
        ",
        expect![[r#"
            0s send refused: the queue holds as much as its max-length-bytes of 3 allows
            0s sent from #1
            0s send refused: the queue holds as much as its max-length-bytes of 3 allows
        "#]],
    );
}

#[test]
fn what_is_scheduled_does_not_count_until_its_time() {
    check(
        "
        0s queue max-length=1
        0s send a
        0s send b+10s
        9s counters
        10s counters
        10s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            9s active 1 dead 0 deferred 0 bytes 2 scheduled 1
            10s active 1 dead 1 deferred 0 bytes 2
            10s peek: #3 b
        "#]],
    );
}

#[test]
fn a_limit_that_is_lowered_acts_on_what_is_there() {
    check(
        "
        0s send a b c d
        0s queue max-length=1
        0s counters
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s active 1 dead 3 deferred 0 bytes 4
            0s peek: #4 d
        "#]],
    );
}

#[test]
fn what_was_changed_goes_along() {
    check(
        "
        0s queue max-length=1
        0s send a
        0s attach r1
        0s limit r1 1
        0s abandon r1 #1 note=hello
        0s detach r1
        0s send b
        0s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s abandon r1 #1 note=hello: done
            0s sent from #2
            0s peek: #1 a count 1 note="hello" DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn messages_on_the_disk_are_dropped_too() {
    check_with(
        BrokerSettings {
            window: 2,
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s queue
        0s send a*40
        0s restart
        1s queue max-length=3
        1s send b
        1s counters
        1s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #41
            1s active 3 dead 38 deferred 0 bytes 41
            1s peek: #39 a, #40 a, #41 b
        "#]],
    );
}

#[test]
fn a_queue_with_sessions_rejects() {
    check(
        "
        0s queue sessions max-length=1
        0s send a:x
        0s send b:y
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 1 allows
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_destination_that_rejects_is_full() {
    check(
        "
        0s queue name=end max-length=1 reject-publish
        0s queue name=start forward=end
        0s send in=start a b
        0s counters in=start
        0s counters in=end
        61s counters in=start
        61s info in=start
        ",
        expect![[r#"
            0s sent from #1
            0s active 1 dead 0 deferred 0 bytes 1
            0s active 1 dead 0 deferred 0 bytes 1
            61s active 0 dead 0 deferred 0 bytes 1
            61s transfer 0 dead in transfer 1 created 0s updated 0s accessed 0s
        "#]],
    );
}

#[test]
fn a_subscription_drops_its_head() {
    check(
        "
        0s topic t
        0s subscription s of=t max-length=1
        0s send in=t encoded a b
        0s counters in=t/Subscriptions/s
        ",
        expect![[r#"
            0s sent from #1
            0s active 1 dead 1 deferred 0 bytes 50
        "#]],
    );
}

#[test]
fn a_transaction_counts_all_that_it_sends() {
    check(
        "
        0s queue max-length=2 reject-publish
        0s declare t r1
        0s in t send a b
        0s in t send c
        0s commit t
        0s declare u r1
        0s in u send a
        0s in u send b c+10s
        0s commit u
        0s counters
        ",
        expect![[r#"
            0s declare t: done
            0s in t send a b: held
            0s in t send c: held
            0s commit t: the transaction was rolled back: the queue holds as much as its max-length of 2 allows
            0s declare u: done
            0s in u send a: held
            0s in u send b c+10s: held from #1
            0s commit u: done
            0s active 2 dead 0 deferred 0 bytes 3 scheduled 1
        "#]],
    );
}

#[test]
fn what_is_refused_is_a_dead_letter_where_the_overflow_says_so() {
    check(
        "
        0s queue max-length=1 reject-publish-dlx
        0s attach r1 dead
        0s send a
        0s send b
        1s send c d
        1s counters
        1s peek 1 9
        1s peek 1 9 dead
        2s limit r1 1
        2s complete r1 #2
        3s restart
        3s peek 1 9 dead
        3s send e
        4s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 1 allows
            1s send refused: the queue holds as much as its max-length of 1 allows
            1s active 1 dead 3 deferred 0 bytes 4
            1s peek: #1 a
            1s peek: #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #3 c DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #4 d DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
            2s r1 gets #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length." until 32s
            2s complete r1 #2: done
            3s peek: #3 c DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #4 d DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
            3s send refused: the queue holds as much as its max-length of 1 allows
            4s peek: #3 c DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #4 d DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #5 e DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn a_transaction_that_is_refused_leaves_no_dead_letter() {
    check(
        "
        0s queue max-length=1 reject-publish-dlx
        0s declare t r1
        0s in t send a b
        0s in t send a
        0s in t send b
        0s commit t
        1s peek 1 9
        1s peek 1 9 dead
        1s declare u r1
        1s in u send a
        1s commit u
        1s send b
        2s peek 1 9
        2s peek 1 9 dead
        ",
        expect![[r#"
            0s declare t: done
            0s in t send a b: the queue holds as much as its max-length of 1 allows
            0s in t send a: held
            0s in t send b: held
            0s commit t: the transaction was rolled back: the queue holds as much as its max-length of 1 allows
            1s peek: 
            1s peek: 
            1s declare u: done
            1s in u send a: held
            1s commit u: done
            1s send refused: the queue holds as much as its max-length of 1 allows
            2s peek: #1 a
            2s peek: #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}

#[test]
fn what_is_too_large_or_belongs_to_a_session_is_refused_without_a_trace() {
    check(
        "
        0s queue max-length=0 max-message=2 reject-publish-dlx
        0s send abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz
        0s counters
        ",
        expect![[r#"
            0s send refused: a message of 78 bytes is larger than 2
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
    check(
        "
        0s queue max-length=0 sessions reject-publish-dlx
        0s send a:x
        0s counters
        ",
        expect![[r#"
            0s send refused: the queue holds as much as its max-length of 0 allows
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_publication_is_a_dead_letter_of_the_queue_that_refuses_it_and_stays_in_the_others() {
    check(
        "
        0s queue name=full max-length=0 reject-publish-dlx
        0s queue name=free
        0s bind amq.topic x.# to=full
        0s bind amq.topic x.# to=free
        1s publish amq.topic x.y one
        1s peek 1 9 dead in=full
        1s peek 1 9 in=free
        ",
        expect![[r#"
            0s bind amq.topic x.# to=full: done
            0s bind amq.topic x.# to=free: done
            1s publish amq.topic x.y one: 'full' has refused the message: the queue holds as much as its max-length of 0 allows
            1s peek: #1 one DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
            1s peek: #1 one
        "#]],
    );
}

#[test]
fn a_duplicate_that_is_refused_is_no_dead_letter() {
    check(
        "
        0s queue name=full max-length=1 window=10m reject-publish-dlx
        0s send a@1 in=full
        0s bind amq.topic x.# to=full
        1s send a@1 in=full
        1s send a@1 b@2 c@3+1h in=full
        1s publish amq.topic x.y a@1
        1s publish amq.topic x.y d@4
        2s peek 1 9 dead in=full
        ",
        expect![[r#"
            0s sent from #1
            0s bind amq.topic x.# to=full: done
            1s send refused: the queue holds as much as its max-length of 1 allows
            1s send refused: the queue holds as much as its max-length of 1 allows
            1s publish amq.topic x.y a@1: stored by 1
            1s publish amq.topic x.y d@4: 'full' has refused the message: the queue holds as much as its max-length of 1 allows
            2s peek: #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #3 c DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length.", #4 d DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length."
        "#]],
    );
}
