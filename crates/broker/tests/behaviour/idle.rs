//! Auto-delete on idle: what counts as use, and when an unused queue is deleted.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_queue_that_nobody_uses_goes_with_its_messages_when_its_time_is_up() {
    check(
        "
        0s queue idle=5m
        0s queue name=stays
        60s send a b
        60s attach r1
        60s limit r1 1
        61s reject r1 #1
        120s detach r1
        360s queues
        361s queues
        362s rows
        ",
        expect![[r#"
            60s sent from #1
            60s r1 gets #1 a until 90s
            61s reject r1 #1: done
            360s queues: q stays
            361s q is gone
            361s queues: stays
            362s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn each_of_these_is_a_use() {
    check(
        "
        0s queue idle=5m lock=1h
        200s send a b c
        400s peek 1 1
        600s attach r1
        690s limit r1 3
        900s complete r1 #1
        1100s defer r1 #2
        1300s fetch r1 #2
        1310s renew r1 #2
        1330s reject r1 #2
        1520s peek 1 1 dead
        1700s attach r2 dead
        1750s limit r2 1
        1900s queue idle=5m lock=1h max-delivery=3
        2100s cancel #77
        2399s queues
        2400s queues
        ",
        expect![[r#"
            200s sent from #1
            400s peek: #1 a
            690s r1 gets #1 a until 4290s
            690s r1 gets #2 b until 4290s
            690s r1 gets #3 c until 4290s
            900s complete r1 #1: done
            1100s defer r1 #2: done
            1300s fetch r1 #2: #2 b count 1 Deferred until 4900s
            1310s renew r1 #2: until 4910s
            1330s reject r1 #2: done
            1520s peek: #2 b count 1
            1750s r2 gets #2 b count 1 until 5350s
            2100s cancel #77: message #77 is not there
            2399s queues: q
            2400s r1 evicted: the entity does not exist
            2400s r2 evicted: the entity does not exist
            2400s q is gone
            2400s queues: 
        "#]],
    );
}

#[test]
fn a_receiver_that_waits_keeps_a_queue_and_one_that_does_not_does_not() {
    check(
        "
        0s queue idle=5m
        0s attach r1
        10s limit r1 1
        3000s limit r1 0
        3000s info
        3299s queues
        3301s queues
        ",
        expect![[r#"
            3000s transfer 0 dead in transfer 0 created 0s updated 0s accessed 3000s
            3299s queues: q
            3300s r1 evicted: the entity does not exist
            3300s q is gone
            3301s queues: 
        "#]],
    );
}

#[test]
fn who_waits_for_a_session_or_holds_one_with_credit_keeps_a_queue() {
    check(
        "
        0s queue sessions idle=5m lock=1h
        0s accept r1 next 1000s
        1001s send a:x
        1002s accept r1 x
        1003s limit r1 5
        2500s queues
        2500s detach r1
        2799s queues
        2800s queues
        ",
        expect![[r#"
            1000s r1 refused: timeout
            1001s sent from #1
            1002s r1 holds x until 4602s
            1003s r1 gets #1 a until 4602s
            2500s queues: q
            2799s queues: q
            2800s q is gone
            2800s queues: 
        "#]],
    );
}

#[test]
fn a_message_that_is_scheduled_keeps_a_queue_until_some_time_after_it_is_active() {
    check(
        "
        0s queue idle=5m
        0s send a+1h
        3599s queues
        3601s counters
        3899s queues
        3900s queues
        ",
        expect![[r#"
            0s sent from #1
            3599s queues: q
            3601s active 1 dead 0 deferred 0 bytes 1
            3899s queues: q
            3900s q is gone
            3900s queues: 
        "#]],
    );
}

#[test]
fn an_arriving_message_keeps_a_destination_and_a_source_is_never_idle() {
    check(
        "
        0s queue idle=5m
        0s queue name=source forward=q idle=5m
        0s queue name=dead forward-dead=q idle=5m
        250s send a in=source
        500s queues
        549s queues
        550s queues
        90000s queues
        ",
        expect![[r#"
            250s sent from #1
            500s queues: q source dead
            549s queues: q source dead
            550s q is gone
            550s queues: source dead
            90000s queues: source dead
        "#]],
    );
}

#[test]
fn the_idle_time_of_a_source_counts_from_the_end_of_its_forward() {
    check(
        "
        0s queue name=target
        0s queue name=source forward=target idle=5m
        500s restart
        1000s queues
        1000s queue name=source idle=5m
        1299s queues
        1300s queues
        ",
        expect![[r#"
            1000s queues: target source
            1299s queues: target source
            1300s source is gone
            1300s queues: target
        "#]],
    );
}

#[test]
fn a_disabled_queue_is_idle_like_others() {
    check(
        "
        0s queue idle=5m
        0s attach r1
        0s limit r1 1
        60s queue idle=5m disabled
        359s queues
        360s queues
        ",
        expect![[r#"
            60s r1 evicted: the entity is disabled for receiving
            359s queues: q
            360s q is gone
            360s queues: 
        "#]],
    );
}

#[test]
fn clocks_that_jump_delete_nothing_and_keep_nothing() {
    check(
        "
        0s queue idle=5m
        60s send a
        70s jump +10y
        80s queues
        90s jump -20y
        359s queues
        360s queues
        ",
        expect![[r#"
            60s sent from #1
            80s queues: q
            359s queues: q
            360s q is gone
            360s queues: 
        "#]],
    );
}

#[test]
fn a_restart_deletes_nothing_early() {
    check(
        "
        0s queue idle=5m
        100s send a
        150s peek 1 1
        200s restart
        449s queues
        505s queues
        600s queue idle=5m
        600s send a in=q
        700s restart
        700s jump +1h
        700s restart
        759s queues
        760s queues
        ",
        expect![[r#"
            100s sent from #1
            150s peek: #1 a
            449s queues: q
            460s q is gone
            505s queues: 
            600s sent from #1
            759s queues: q
            760s q is gone
            760s queues: 
        "#]],
    );
}

#[test]
fn a_receiver_that_waited_until_a_crash_finds_its_queue_again() {
    check(
        "
        0s queue idle=5m
        0s attach r1
        0s limit r1 1
        1000s restart
        1030s attach r1
        1030s limit r1 1
        5000s queues
        ",
        expect![[r#"
            5000s queues: q
        "#]],
    );
}

#[test]
fn times_are_told_and_survive_a_restart_to_within_a_minute() {
    check(
        "
        0s queue
        1s info
        10s queue max-delivery=3
        20s info
        100s peek 1 1
        120s peek 1 1
        130s info
        140s restart
        140s info
        200s send a
        210s restart
        210s info
        ",
        expect![[r#"
            1s transfer 0 dead in transfer 0 created 0s updated 0s accessed never
            20s transfer 0 dead in transfer 0 created 0s updated 10s accessed never
            100s peek: 
            120s peek: 
            130s transfer 0 dead in transfer 0 created 0s updated 10s accessed 120s
            140s transfer 0 dead in transfer 0 created 0s updated 10s accessed 100s
            200s sent from #1
            210s transfer 0 dead in transfer 0 created 0s updated 10s accessed 200s
        "#]],
    );
}

#[test]
fn whoever_changes_the_time_changes_when_it_is_up() {
    check(
        "
        0s queue
        3600s queue idle=5m
        3700s queue idle=10m
        3701s queue idle=10m
        4299s queues
        4300s queues
        ",
        expect![[r#"
            4299s queues: q
            4300s q is gone
            4300s queues: 
        "#]],
    );
}

#[test]
fn many_queues_that_nobody_uses_go_at_once() {
    check(
        "
        0s queue name=a idle=5m
        0s queue name=b idle=5m
        0s queue name=c idle=5m
        0s send x in=b
        300s queues
        301s queue name=a
        301s queues
        ",
        expect![[r#"
            0s sent from #1
            300s a is gone
            300s b is gone
            300s c is gone
            300s queues: 
            301s queues: a
        "#]],
    );
}

#[test]
fn a_receiver_that_waits_at_a_subscription_keeps_its_topic() {
    check(
        "
        0s topic t idle=5m
        0s subscription a of=t
        0s attach r1 in=t/Subscriptions/a
        10s limit r1 1 in=t/Subscriptions/a
        1000s queues
        1000s limit r1 0 in=t/Subscriptions/a
        1299s queues
        1300s queues
        ",
        expect![[r#"
            1000s queues: t t/Subscriptions/a
            1299s queues: t t/Subscriptions/a
            1300s r1 evicted: the entity does not exist
            1300s t/Subscriptions/a is gone
            1300s t is gone
            1300s queues: 
        "#]],
    );
}

#[test]
fn deleting_a_subscription_is_use_of_its_topic() {
    check(
        "
        0s topic t idle=5m
        0s subscription a of=t
        200s remove in=t/Subscriptions/a
        499s queues
        500s queues
        ",
        expect![[r#"
            200s t/Subscriptions/a is gone
            200s removed
            499s queues: t
            500s t is gone
            500s queues: 
        "#]],
    );
}

#[test]
fn over_a_restart_a_topic_was_used_when_its_subscription_was() {
    check(
        "
        0s topic t idle=5m
        0s subscription a of=t
        250s peek 1 9 in=t/Subscriptions/a
        260s restart
        559s queues
        560s queues
        ",
        expect![[r#"
            250s peek: 
            559s queues: t t/Subscriptions/a
            560s t/Subscriptions/a is gone
            560s t is gone
            560s queues: 
        "#]],
    );
}
