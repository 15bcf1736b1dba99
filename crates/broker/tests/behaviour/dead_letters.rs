//! Dead letters: delivery counts (docs/spec/amqp.md#4.4), reasons, and the subqueue's own rules.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn the_delivery_count_counts_failed_deliveries_and_nothing_else() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        1s release r1 #1
        1s limit r1 2
        2s abandon r1 #1
        2s limit r1 3
        32s limit r1 4
        33s undelivered r1 #1
        34s defer r1 #1
        35s fetch r2 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s release r1 #1: done
            1s r1 gets #1 a until 31s
            2s abandon r1 #1: done
            2s r1 gets #1 a count 1 until 32s
            32s r1 gets #1 a count 2 until 62s
            33s undelivered r1 #1: done
            33s r1 gets #1 a count 2 until 63s
            34s defer r1 #1: done
            35s fetch r2 #1: #1 a count 3 Deferred until 65s
        "#]],
    );
}

#[test]
fn a_message_delivered_too_often_is_dead_lettered_with_its_count() {
    check(
        "
        0s queue max-delivery=3
        0s attach r1
        0s limit r1 10
        0s send a
        1s abandon r1 #1
        2s abandon r1 #1
        3s wait
        32s wait
        33s counters
        33s attach r2 dead
        33s limit r2 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1: done
            1s r1 gets #1 a count 1 until 31s
            2s abandon r1 #1: done
            2s r1 gets #1 a count 2 until 32s
            33s active 0 dead 1 deferred 0 bytes 1
            33s r2 gets #1 a count 3 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 63s
        "#]],
    );
}

#[test]
fn changes_of_abandons_are_merged_and_outlive_a_restart() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 10
        1s abandon r1 #1 x=1 y=1
        2s abandon r1 #1 x=2 z=2
        3s restart
        3s attach r1
        3s limit r1 1
        4s reject r1 #1 DeadLetterReason=bad z=3
        4s peek 1 1 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1 x=1 y=1: done
            1s r1 gets #1 a count 1 x="1" y="1" until 31s
            2s abandon r1 #1 x=2 z=2: done
            2s r1 gets #1 a count 2 x="2" y="1" z="2" until 32s
            3s r1 gets #1 a count 2 x="2" y="1" z="2" until 33s
            4s reject r1 #1 DeadLetterReason=bad z=3: done
            4s peek: #1 a count 2 x="2" y="1" z="3" DeadLetterReason="bad"
        "#]],
    );
}

#[test]
fn dead_letters_keep_their_numbers_and_stand_in_order() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 3
        0s attach r2 dead
        0s reject r1 #3
        0s reject r1 #1 DeadLetterReason=no
        0s reject r1 #2
        0s limit r2 5
        0s counters
        0s complete r2 #2 dead
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s reject r1 #3: done
            0s reject r1 #1 DeadLetterReason=no: done
            0s reject r1 #2: done
            0s r2 gets #1 a DeadLetterReason="no" until 30s
            0s r2 gets #2 b until 30s
            0s r2 gets #3 c until 30s
            0s active 0 dead 3 deferred 0 bytes 3
            0s complete r2 #2 dead: done
            0s active 0 dead 2 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_dead_letter_can_not_be_dead_lettered_again() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s reject r1 #1
        0s attach r2 dead
        0s limit r2 1
        1s reject r2 #1 dead
        2s complete r2 #1 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s reject r1 #1: done
            0s r2 gets #1 a until 30s
            1s reject r2 #1 dead: a dead letter cannot be dead-lettered again
            2s complete r2 #1 dead: done
        "#]],
    );
}

#[test]
fn in_the_dead_letter_queue_counts_stay_and_nothing_expires() {
    check(
        "
        0s queue max-delivery=1 ttl=10s dead-letter-expired
        0s send a
        11s attach r1 dead
        11s limit r1 9
        12s abandon r1 #1 seen=yes
        13s wait
        100s complete r1 #1 dead
        ",
        expect![[r#"
            0s sent from #1
            11s r1 gets #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 10s until 41s
            12s abandon r1 #1 seen=yes: done
            12s r1 gets #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." seen="yes" expires 10s until 42s
            42s r1 gets #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." seen="yes" expires 10s until 72s
            72s r1 gets #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." seen="yes" expires 10s until 102s
            100s complete r1 #1 dead: done
        "#]],
    );
}

#[test]
fn a_dead_letter_can_be_deferred_and_fetched() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        0s reject r1 #1
        0s attach r2 dead
        0s limit r2 1
        1s defer r2 #1 dead
        1s counters
        1s peek 1 1 dead
        2s fetch r2 #1
        2s fetch r2 #1 dead
        3s reject r2 #1
        3s abandon r2 #1
        4s fetch r2 #1 dead delete
        4s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s reject r1 #1: done
            0s r2 gets #1 a until 30s
            1s defer r2 #1 dead: done
            1s active 0 dead 1 deferred 0 bytes 1
            1s peek: #1 a Deferred
            2s fetch r2 #1: message #1 is not there
            2s fetch r2 #1 dead: #1 a Deferred until 32s
            3s reject r2 #1: a dead letter cannot be dead-lettered again
            3s abandon r2 #1: done
            4s fetch r2 #1 dead delete: #1 a Deferred
            4s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn changes_that_outgrow_the_headers_dead_letter_the_message() {
    check(
        "
        0s send a b c
        0s attach r1
        0s limit r1 3
        0s abandon r1 #1 x=1
        0s limit r1 4
        0s abandon r1 #1 y=0123456789*7000
        0s defer r1 #2 y=0123456789*7000
        0s reject r1 #3 y=0123456789*7000
        0s peek 1 9 dead
        0s attach r2 dead
        0s limit r2 1
        0s abandon r2 #1 y=0123456789*7000
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s abandon r1 #1 x=1: done
            0s r1 gets #1 a count 1 x="1" until 30s
            0s abandon r1 #1 y=0123456789*7000: done
            0s defer r1 #2 y=0123456789*7000: done
            0s reject r1 #3 y=0123456789*7000: done
            0s peek: #1 a count 2 x="1" DeadLetterReason="HeaderSizeExceeded" DeadLetterErrorDescription="The size quota for this stream has been exceeded.", #2 b count 1 DeadLetterReason="HeaderSizeExceeded" DeadLetterErrorDescription="The size quota for this stream has been exceeded.", #3 c DeadLetterReason="HeaderSizeExceeded" DeadLetterErrorDescription="The size quota for this stream has been exceeded."
            0s r2 gets #1 a count 2 x="1" DeadLetterReason="HeaderSizeExceeded" DeadLetterErrorDescription="The size quota for this stream has been exceeded." until 30s
            0s abandon r2 #1 y=0123456789*7000: done
            0s active 0 dead 3 deferred 0 bytes 3
        "#]],
    );
}

/// A message is rejected, one was delivered too often, and one is too many.
const THREE_DEATHS: &str = "
    0s attach r1
    0s limit r1 2
    0s send a b
    1s reject r1 #1
    1s abandon r1 #2
    1s counters
    1s detach r1
    2s send c
    2s send d
    2s counters
    2s rows
    ";

#[test]
fn a_queue_that_rabbitmqs_clients_have_declared_drops_its_dead_letters() {
    let expected = expect![[r#"
        0s sent from #1
        0s r1 gets #1 a until 30s
        0s r1 gets #2 b until 30s
        1s reject r1 #1: done
        1s abandon r1 #2: done
        1s active 0 dead 0 deferred 0 bytes 0
        2s sent from #3
        2s sent from #4
        2s active 1 dead 0 deferred 0 bytes 1
        2s 1 rows and 1 bodies
    "#]];
    let classic = "0s queue classic max-delivery=1 max-length=1";
    check(&format!("{classic}\n{THREE_DEATHS}"), expected);
    let expected = expect![[r#"
        0s sent from #1
        0s r1 gets #1 a until 30s
        0s r1 gets #2 b until 30s
        1s reject r1 #1: done
        1s abandon r1 #2: done
        1s active 0 dead 0 deferred 0 bytes 0
        2s sent from #3
        2s sent from #4
        2s active 1 dead 0 deferred 0 bytes 1
        2s 1 rows and 1 bodies
    "#]];
    let quorum = "0s queue quorum max-delivery=1 max-length=1";
    check(&format!("{quorum}\n{THREE_DEATHS}"), expected);
}

#[test]
fn a_declared_queue_keeps_its_dead_letters_where_the_broker_or_its_owner_says_so() {
    let keep = BrokerSettings {
        keep_undead_lettered: true,
        ..BrokerSettings::default()
    };
    let script = format!("0s queue classic max-delivery=1 max-length=1\n{THREE_DEATHS}");
    check_with(
        keep,
        &script,
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s reject r1 #1: done
            1s abandon r1 #2: done
            1s active 0 dead 2 deferred 0 bytes 2
            2s sent from #3
            2s sent from #4
            2s active 1 dead 3 deferred 0 bytes 4
            2s 4 rows and 4 bodies
        "#]],
    );
    check(
        "
        0s queue classic dead-letter-expired ttl=1s
        0s send a
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            2s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
    check(
        "
        0s queue name=other
        0s queue classic forward-dead=other
        0s send a
        0s attach r1
        0s limit r1 1
        1s reject r1 #1
        1s counters in=other
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s reject r1 #1: done
            1s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}
