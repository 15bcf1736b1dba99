//! Topics: copies for every subscription that selects a message, all of them or none.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_after};

#[test]
fn every_subscription_gets_a_copy_under_its_own_number() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        0s attach r1 in=t/Subscriptions/a
        0s limit r1 10
        1s send one two encoded in=t
        1s attach r2 in=t/Subscriptions/b
        1s limit r2 1
        2s complete r1 #1 in=t/Subscriptions/a
        2s complete r2 #1 in=t/Subscriptions/b
        2s rows
        3s restart
        3s attach r3 in=t/Subscriptions/b
        3s limit r3 10
        3s complete r3 #2 in=t/Subscriptions/b
        3s attach r4 in=t/Subscriptions/a
        3s limit r4 10
        3s complete r4 #2 in=t/Subscriptions/a
        3s rows
        ",
        expect![[r#"
            1s sent from #1
            1s r1 gets #1 one until 31s
            1s r1 gets #2 two until 31s
            1s r2 gets #1 one until 31s
            2s complete r1 #1 in=t/Subscriptions/a: done
            2s complete r2 #1 in=t/Subscriptions/b: done
            2s 2 rows and 1 bodies
            3s r3 gets #2 two until 33s
            3s complete r3 #2 in=t/Subscriptions/b: done
            3s r4 gets #2 two until 33s
            3s complete r4 #2 in=t/Subscriptions/a: done
            3s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn rules_select_and_change_copies() {
    check(
        "
        0s topic t
        0s subscription all of=t
        0s subscription big of=t no-rules
        0s subscription acting of=t no-rules
        0s rule n in=t/Subscriptions/big where n > 5
        0s rule again in=t/Subscriptions/big where n > 6
        0s rule plain in=t/Subscriptions/acting label x
        0s rule one in=t/Subscriptions/acting where n > 5 do SET n = n + 1
        0s rule two in=t/Subscriptions/acting do SET sys.Label = 'y'
        1s send m encoded in=t n=7 label=x
        1s send m encoded in=t n=1 label=z
        1s attach r1 in=t/Subscriptions/all
        1s limit r1 10
        1s attach r2 in=t/Subscriptions/big
        1s limit r2 10
        1s attach r3 in=t/Subscriptions/acting
        1s limit r3 10
        2s remove-rule N in=t/Subscriptions/big
        2s rules in=t/Subscriptions/acting
        2s rules in=t/Subscriptions/big
        2s rules in=t
        2s rule N in=t/Subscriptions/acting where n > 5 AND
        2s rule plain in=t/Subscriptions/acting
        2s remove-rule none in=t/Subscriptions/acting
        3s restart
        3s rules in=t/Subscriptions/acting
        3s rules in=t/Subscriptions/big
        3s rules in=t/Subscriptions/all
        ",
        expect![[r#"
            0s rule n: done
            0s rule again: done
            0s rule plain: done
            0s rule one: done
            0s rule two: done
            1s sent from #1
            1s sent from #2
            1s r1 gets #1 m label=x n=7 until 31s
            1s r1 gets #2 m label=z n=1 until 31s
            1s r2 gets #1 m label=x n=7 until 31s
            1s r3 gets #1 m label=x n=7 until 31s
            1s r3 gets #2 m label=x n=8 RuleName=one first #1 until 31s
            1s r3 gets #3 m label=y n=7 RuleName=two first #1 until 31s
            1s r3 gets #4 m label=y n=1 RuleName=two first #2 until 31s
            2s remove rule N: done
            2s rules: one where n > 5 do SET n = n + 1, plain label Some("x"), two everything do SET sys.Label = 'y'
            2s rules: again where n > 6
            2s rules: the entity is not a subscription
            2s rule N: the rule 'N': at character 10: a value is expected, not the end
            2s rule plain: the rule 'plain' exists already
            2s remove rule none: the rule 'none' does not exist
            3s rules: one where n > 5 do SET n = n + 1, plain label Some("x"), two everything do SET sys.Label = 'y'
            3s rules: again where n > 6
            3s rules: $Default everything
        "#]],
    );
}

#[test]
fn a_message_that_no_subscription_selects_is_accepted_and_gone() {
    check(
        "
        0s topic t
        0s send m encoded in=t
        0s subscription a of=t no-rules
        0s send m encoded in=t
        0s rows
        0s counters in=t
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s 0 rows and 0 bodies
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_can_not_be_evaluated_is_dead_lettered_where_that_is_wanted() {
    check(
        "
        0s topic t
        0s subscription a of=t no-rules
        0s subscription b of=t no-rules drop-errors
        0s subscription c of=t
        0s rule r in=t/Subscriptions/a where n > 5
        0s rule r in=t/Subscriptions/b where n > 5
        0s rule r in=t/Subscriptions/c where n > 5
        1s send m encoded in=t n=text
        1s counters in=t/Subscriptions/a
        1s counters in=t/Subscriptions/b
        1s counters in=t/Subscriptions/c
        1s attach r1 in=t/Subscriptions/a dead
        1s limit r1 1
        ",
        expect![[r#"
            0s rule r: done
            0s rule r: done
            0s rule r: done
            1s sent from #1
            1s active 0 dead 1 deferred 0 bytes 40
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 1 dead 1 deferred 0 bytes 80
            1s r1 gets #1 m n=text DeadLetterReason="FilterException" DeadLetterErrorDescription="Rule 'r': a text cannot be used with a number here." until 31s
        "#]],
    );
}

#[test]
fn a_message_without_a_session_is_dead_where_sessions_are_required() {
    check(
        "
        0s topic t
        0s subscription a of=t sessions
        0s subscription b of=t
        1s send m encoded in=t
        1s send n:A encoded in=t
        1s counters in=t/Subscriptions/a
        1s counters in=t/Subscriptions/b
        1s accept r1 A in=t/Subscriptions/a
        1s limit r1 1
        1s attach r2 in=t/Subscriptions/a dead
        1s limit r2 1
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #2
            1s active 1 dead 1 deferred 0 bytes 52
            1s active 2 dead 0 deferred 0 bytes 52
            1s r1 holds A until 31s
            1s r1 gets #2 n until 31s
            1s r2 gets #1 m DeadLetterReason="Session id is null." DeadLetterErrorDescription="Session enabled entity doesn't allow a message whose session identifier is null." until 31s
        "#]],
    );
}

#[test]
fn the_smaller_time_to_live_counts_and_each_copy_expires_by_itself() {
    check(
        "
        0s topic t ttl=20s
        0s subscription a of=t ttl=10s dead-letter-expired
        0s subscription b of=t
        0s send m ttl=30s encoded in=t
        0s peek 0 10 in=t/Subscriptions/a
        0s peek 0 10 in=t/Subscriptions/b
        11s counters in=t/Subscriptions/a
        11s counters in=t/Subscriptions/b
        21s counters in=t/Subscriptions/b
        ",
        expect![[r#"
            0s sent from #1
            0s peek: #1 m expires 10s
            0s peek: #1 m expires 20s
            11s active 0 dead 1 deferred 0 bytes 25
            11s active 1 dead 0 deferred 0 bytes 25
            21s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn an_action_changes_the_time_to_live_of_its_copy() {
    check(
        "
        0s topic t ttl=60s
        0s subscription long of=t no-rules
        0s subscription longer of=t no-rules
        0s subscription capped of=t no-rules ttl=10s dead-letter-expired
        0s subscription removed of=t no-rules
        0s subscription bad of=t no-rules
        0s rule r in=t/Subscriptions/long do SET sys.TimeToLive = '00:00:30'
        0s rule r in=t/Subscriptions/longer do SET sys.TimeToLive = '00:10:00'
        0s rule r in=t/Subscriptions/capped do SET sys.TimeToLive = '00:00:30'
        0s rule r in=t/Subscriptions/removed do REMOVE sys.TimeToLive
        0s rule r in=t/Subscriptions/bad do SET sys.TimeToLive = 'soon'
        1s send m ttl=20s encoded in=t
        1s peek 0 10 in=t/Subscriptions/long
        1s peek 0 10 in=t/Subscriptions/longer
        1s peek 0 10 in=t/Subscriptions/capped
        1s peek 0 10 in=t/Subscriptions/removed
        1s counters in=t/Subscriptions/bad
        2s restart
        30s counters in=t/Subscriptions/long
        32s counters in=t/Subscriptions/long
        32s counters in=t/Subscriptions/capped
        ",
        expect![[r#"
            0s rule r: done
            0s rule r: done
            0s rule r: done
            0s rule r: done
            0s rule r: done
            1s sent from #1
            1s peek: #1 m RuleName=r expires 31s
            1s peek: #1 m RuleName=r expires 61s
            1s peek: #1 m RuleName=r expires 11s
            1s peek: #1 m RuleName=r expires 61s
            1s active 0 dead 1 deferred 0 bytes 25
            30s active 1 dead 0 deferred 0 bytes 59
            32s active 0 dead 0 deferred 0 bytes 0
            32s active 0 dead 1 deferred 0 bytes 59
        "#]],
    );
}

#[test]
fn a_forwarded_copy_keeps_the_time_to_live_of_an_action() {
    check(
        "
        0s queue name=q
        0s topic t
        0s subscription s of=t no-rules forward=q
        0s rule r in=t/Subscriptions/s do SET sys.TimeToLive = '00:00:10'
        0s send m ttl=60s encoded in=t
        5s peek 0 10 in=q
        11s counters in=q
        ",
        expect![[r#"
            0s rule r: done
            0s sent from #1
            5s peek: #1 m RuleName=r expires 10s
            11s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_is_scheduled_waits_at_the_topic_and_duplicates_end_there() {
    check(
        "
        0s topic t window=60s
        0s subscription a of=t
        0s subscription b of=t
        0s send m+10s@1 encoded in=t
        0s send m@1 encoded in=t
        1s counters in=t
        1s counters in=t/Subscriptions/a
        10s counters in=t/Subscriptions/a
        10s counters in=t/Subscriptions/b
        11s send m@2 encoded in=t
        11s send m@2 encoded in=t
        11s counters in=t/Subscriptions/a
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2, known as #1
            1s active 0 dead 0 deferred 0 bytes 27 scheduled 1
            1s active 0 dead 0 deferred 0 bytes 0
            10s active 1 dead 0 deferred 0 bytes 27
            10s active 1 dead 0 deferred 0 bytes 27
            11s sent from #3
            11s sent from #4, known as #3
            11s active 2 dead 0 deferred 0 bytes 54
        "#]],
    );
}

#[test]
fn copies_go_on_to_other_entities_and_into_other_topics() {
    check(
        "
        0s topic t
        0s topic u
        0s queue name=q
        0s subscription a of=t forward=q
        0s subscription b of=t forward=u
        0s subscription c of=u
        0s subscription d of=u
        1s send m encoded in=t
        1s rows
        1s attach r1 in=q
        1s limit r1 1
        1s complete r1 #1 in=q
        1s attach r2 in=u/Subscriptions/c
        1s limit r2 1
        ",
        expect![[r#"
            1s sent from #1
            1s 3 rows and 2 bodies
            1s r1 gets #1 m until 31s
            1s complete r1 #1 in=q: done
            1s r2 gets #1 m until 31s
        "#]],
    );
}

#[test]
fn a_transaction_publishes_at_its_commit() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        0s declare t1 r1/7
        0s in t1 send m encoded in=t
        0s counters in=t/Subscriptions/a
        1s commit t1
        1s counters in=t/Subscriptions/a
        1s counters in=t/Subscriptions/b
        ",
        expect![[r#"
            0s declare t1: done
            0s in t1 send m encoded in=t: held
            0s active 0 dead 0 deferred 0 bytes 0
            1s commit t1: done
            1s active 1 dead 0 deferred 0 bytes 25
            1s active 1 dead 0 deferred 0 bytes 25
        "#]],
    );
}

#[test]
fn a_subscription_that_goes_leaves_the_copies_of_others() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        0s rule act in=t/Subscriptions/a do SET x = 1
        0s send m*5 encoded in=t
        0s rows
        1s reads late
        1s remove in=t/Subscriptions/a
        1s send n encoded in=t
        1s restart
        1s answer
        2s rows
        2s subscription a of=t
        2s send o encoded in=t
        2s counters in=t/Subscriptions/a
        2s counters in=t/Subscriptions/b
        3s remove in=t
        3s rows
        ",
        expect![[r#"
            0s rule act: done
            0s sent from #1
            0s 15 rows and 10 bodies
            1s t/Subscriptions/a is gone
            1s removed
            1s sent from #6
            2s 6 rows and 6 bodies
            2s sent from #7
            2s active 1 dead 0 deferred 0 bytes 25
            2s active 7 dead 0 deferred 0 bytes 175
            3s t/Subscriptions/b is gone
            3s t/Subscriptions/a is gone
            3s t is gone
            3s removed
            3s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_subscription_with_rows_that_cannot_be_read_goes_all_the_same() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        0s send m*5 encoded in=t
        0s rows
        1s reads late
        1s remove in=t/Subscriptions/a
        1s wait
        1s answer unreadable 1 2 4
        1s answer
        1s asked
        1s answer unreadable 0 2 4
        1s asked
        1s answer
        1s asked
        2s reads now
        2s rows
        2s attach r1 in=t/Subscriptions/b delete
        2s limit r1 5
        2s rows
        3s remove in=t
        3s rows
        ",
        expect![[r#"
            0s sent from #1
            0s 10 rows and 5 bodies
            1s t/Subscriptions/a is gone
            1s removed
            1s asked for 1024 of Active #2..max
            1s asked for 1024 of Active #4..max
            1s asked for 
            2s 5 rows and 5 bodies
            2s r1 gets #1 m
            2s r1 gets #2 m
            2s r1 gets #3 m
            2s r1 gets #4 m
            2s r1 gets #5 m
            2s 0 rows and 2 bodies
            3s r1 evicted: the entity does not exist
            3s t/Subscriptions/b is gone
            3s t is gone
            3s removed
            3s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_subscription_with_stragglers_that_cannot_be_read_goes_all_the_same() {
    check_after(
        BrokerSettings::default(),
        "
        0s topic t
        0s subscription a of=t lock=1h
        0s subscription b of=t
        0s send m*2 encoded in=t
        0s attach r1 in=t/Subscriptions/a
        0s limit r1 2
        0s send m*2000 encoded in=t
        0s attach r2 in=t/Subscriptions/a delete
        0s limit r2 1999
        1s detach r1
        1s detach r2
        1s reads late
        1s remove in=t/Subscriptions/a
        1s asked
        1s answer damaged
        1s asked
        1s answer
        1s asked
        1s answer damaged
        1s asked
        1s answer
        1s asked
        2s rows
        2s remove in=t
        2s rows
        ",
        2003,
        expect![[r#"
            1s t/Subscriptions/a is gone
            1s removed
            1s asked for Active #1 #2
            1s asked for Active #1
            1s asked for Active #2
            1s asked for 1024 of Active #2002..max
            1s asked for 
            2s 2002 rows and 2002 bodies
            2s t/Subscriptions/b is gone
            2s t is gone
            2s removed
            2s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_topic_that_is_full_refuses_and_counts_what_its_subscriptions_hold() {
    check(
        "
        0s topic t max-size=100
        0s subscription a of=t
        0s subscription b of=t
        0s send xxxxxxxxxx encoded in=t
        0s send xxxxxxxxxxxxxxxxxxxx encoded in=t
        0s counters in=t/Subscriptions/a
        1s restart
        1s send xxxxxxxxxxxxxxxxxxxx encoded in=t
        1s attach r1 in=t/Subscriptions/a
        1s limit r1 10
        1s complete r1 #1 in=t/Subscriptions/a
        1s send xxxxxxxxxxxxxxxxxxxx encoded in=t
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the entity holds 68 bytes of 100
            0s active 1 dead 0 deferred 0 bytes 34
            1s send refused: the entity holds 68 bytes of 100
            1s r1 gets #1 xxxxxxxxxx until 31s
            1s complete r1 #1 in=t/Subscriptions/a: done
            1s sent from #2
            1s r1 gets #2 xxxxxxxxxxxxxxxxxxxx until 31s
        "#]],
    );
}

#[test]
fn nothing_but_its_topic_writes_to_a_subscription() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s queue name=q forward=t/Subscriptions/a
        0s send m encoded in=t/Subscriptions/a
        0s send m encoded in=q
        0s counters in=t/Subscriptions/a
        0s peek 0 10 in=q transfer
        ",
        expect![[r#"
            0s send refused: only its topic writes to a subscription
            0s sent from #1
            0s active 0 dead 0 deferred 0 bytes 0
            0s peek: #1 m DeadLetterReason="Subscription" DeadLetterErrorDescription="only its topic writes to the subscription 't/Subscriptions/a'"
        "#]],
    );
}

#[test]
fn a_subscription_is_kept_by_its_receivers_and_keeps_its_topic() {
    check(
        "
        0s topic t idle=10m
        0s subscription a of=t idle=10m
        0s subscription b of=t idle=15m
        300s send m encoded in=t
        500s peek 0 10 in=t/Subscriptions/b
        600s queues
        700s queues
        1399s queues
        1400s queues
        ",
        expect![[r#"
            300s sent from #1
            500s peek: #1 m
            600s t/Subscriptions/a is gone
            600s queues: t t/Subscriptions/b
            700s queues: t t/Subscriptions/b
            1100s t/Subscriptions/b is gone
            1100s t is gone
            1399s queues: 
            1400s queues: 
        "#]],
    );
}

#[test]
fn only_a_forwarded_message_has_an_enqueued_sequence_number() {
    check(
        "
        0s topic t
        0s queue name=source forward=t
        0s subscription none of=t no-rules
        0s rule one in=t/Subscriptions/none where sys.EnqueuedSequenceNumber IS NULL
        0s subscription first of=t no-rules
        0s rule one in=t/Subscriptions/first where sys.EnqueuedSequenceNumber = 1
        1s send direct encoded in=t
        1s send forwarded encoded in=source
        1s peek 1 9 in=t/Subscriptions/none
        1s peek 1 9 in=t/Subscriptions/first
        ",
        expect![[r#"
            0s rule one: done
            0s rule one: done
            1s sent from #1
            1s sent from #1
            1s peek: #1 direct
            1s peek: #1 forwarded
        "#]],
    );
}

#[test]
fn states_of_sessions_count_to_the_size_of_the_topic() {
    check(
        "
        0s topic t max-size=40
        0s subscription a of=t sessions
        0s accept r1 x in=t/Subscriptions/a
        0s set-state r1 x 0123456789012345678901234567890123456789 in=t/Subscriptions/a
        1s send a encoded in=t
        1s restart
        1s send a encoded in=t
        2s accept r2 x in=t/Subscriptions/a
        2s set-state r2 x short in=t/Subscriptions/a
        2s send a encoded in=t
        ",
        expect![[r#"
            0s r1 holds x until 30s
            0s set state of x: done
            1s send refused: the entity holds 104 bytes of 40
            1s send refused: the entity holds 104 bytes of 40
            2s r2 holds x until 32s
            2s set state of x: done
            2s send refused: the entity holds 69 bytes of 40
        "#]],
    );
}
