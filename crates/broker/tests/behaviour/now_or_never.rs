//! Messages without any time to live: for receivers that wait for them, or for none.
//! (docs/spec/rabbitmq.md#12.2)

use expect_test::expect;

use crate::script::check;

#[test]
fn a_message_that_nobody_waits_for_is_gone_at_once() {
    check(
        "
        0s send ttl=0s a
        0s counters
        0s peek 1 9
        0s attach r1
        0s limit r1 1
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s active 0 dead 0 deferred 0 bytes 0
            0s peek: 
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_receiver_that_waits_gets_it_with_a_lock() {
    check(
        "
        0s attach r1
        0s limit r1 1
        0s send ttl=0s a b
        0s counters
        1s complete r1 #1
        1s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 0s until 30s
            0s active 1 dead 0 deferred 0 bytes 1
            1s complete r1 #1: done
            1s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_comes_back_expires() {
    check(
        "
        0s queue dead-letter-expired
        0s attach r1
        0s limit r1 2
        0s send ttl=0s a
        1s abandon r1 #1
        1s counters
        1s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 0s until 30s
            1s abandon r1 #1: done
            1s active 0 dead 1 deferred 0 bytes 1
            1s peek: #1 a count 1 DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 0s
        "#]],
    );
}

#[test]
fn messages_before_it_take_the_credit() {
    check(
        "
        0s attach r1
        0s send a
        0s limit r1 1
        0s send b
        0s send ttl=0s c
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s sent from #2
            0s sent from #3
            0s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_queue_can_say_so_for_all_its_messages() {
    check(
        "
        0s queue ttl=0s dead-letter-expired
        0s send a
        0s send ttl=1h b
        0s attach r1
        0s limit r1 1
        0s send c
        0s counters
        0s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s r1 gets #3 c expires 0s until 30s
            0s active 1 dead 2 deferred 0 bytes 3
            0s peek: #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 0s, #2 b DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 0s
        "#]],
    );
}

#[test]
fn it_passes_through_a_queue_that_forwards() {
    check(
        "
        0s queue name=end
        0s queue name=start forward=end
        0s attach r1 in=end
        0s limit r1 1
        0s send ttl=0s in=start a b
        0s counters in=start
        0s counters in=end
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 0s until 30s
            0s active 0 dead 0 deferred 0 bytes 0
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn the_holder_of_a_session_gets_it() {
    check(
        "
        0s queue sessions
        0s send a:x
        0s accept r1 x
        0s limit r1 2
        0s send ttl=0s b:x
        0s send ttl=0s c:y
        0s counters
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds x until 30s
            0s r1 gets #1 a until 30s
            0s sent from #2
            0s r1 gets #2 b expires 0s until 30s
            0s sent from #3
            0s active 2 dead 0 deferred 0 bytes 2
            0s peek: #1 a, #2 b expires 0s
        "#]],
    );
}

#[test]
fn in_cloud_mode_it_waits_for_a_receiver_and_is_not_delivered() {
    check(
        "
        0s queue cloud
        0s send ttl=0s a
        5s counters
        5s attach r1
        5s limit r1 1
        5s counters
        ",
        expect![[r#"
            0s sent from #1
            5s active 1 dead 0 deferred 0 bytes 1
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn it_is_dead_lettered_if_the_queue_says_so_and_its_sender_hears_nothing() {
    check(
        "
        0s queue dead-letter-expired
        0s send ttl=0s a
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}
