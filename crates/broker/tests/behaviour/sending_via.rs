//! Sending via an entity: messages pass it on the way to their destination, as far as they can.

use broker::{BrokerSettings, ForwardFailures, ForwardRetry};
use expect_test::expect;

use crate::script::{check, check_after, check_with};

#[test]
fn a_message_arrives_at_its_destination_and_never_in_the_via_entity() {
    check(
        "
        0s queue name=via
        0s queue name=to ttl=1h
        0s attach r1 in=via
        0s limit r1 10
        0s send in=via to=TO x y
        0s attach r2 in=to
        0s limit r2 10
        0s peek 1 10 in=via
        0s counters in=via
        ",
        expect![[r#"
            0s sent from #1
            0s r2 gets #1 x expires 3600s until 30s
            0s r2 gets #2 y expires 3600s until 30s
            0s peek: 
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_commit_completes_at_the_via_entity_and_sends_to_the_destination() {
    check(
        "
        0s queue name=via
        0s queue name=to
        0s send in=via x
        0s attach r1 in=via
        0s limit r1 10
        0s declare t1 r1/7
        0s in t1 complete r1 #1 in=via scope=via
        0s in t1 send in=via to=to y z scope=via
        0s counters in=to
        0s commit t1
        0s counters in=via
        0s attach r2 in=to
        0s limit r2 10
        0s declare t2 r1/7
        0s in t2 send in=via to=to w scope=via
        0s roll-back t2
        0s counters in=to
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 x until 30s
            0s declare t1: done
            0s in t1 complete r1 #1 in=via scope=via: done
            0s in t1 send in=via to=to y z scope=via: held
            0s active 0 dead 0 deferred 0 bytes 0
            0s commit t1: done
            0s active 0 dead 0 deferred 0 bytes 0
            0s r2 gets #1 y until 30s
            0s r2 gets #2 z until 30s
            0s declare t2: done
            0s in t2 send in=via to=to w scope=via: held
            0s roll-back t2: done
            0s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_message_that_cannot_go_on_is_a_transfer_dead_letter_of_the_via_entity() {
    check_with(
        BrokerSettings {
            forward_failures: ForwardFailures::DeadLetter,
            ..BrokerSettings::default()
        },
        "
        0s queue name=via
        0s queue name=small max-message=10
        0s send in=via to=nowhere x
        0s send in=via to=small 01234567890123456789012345678901234567890123456789012345678901234567890123456789
        0s restart
        0s attach r1 in=via transfer
        0s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s r1 gets #1 x DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'nowhere' does not exist" until 30s
            0s r1 gets #2 01234567890123456789012345678901234567890123456789012345678901234567890123456789 DeadLetterReason="TooLarge" DeadLetterErrorDescription="a message of 80 bytes is larger than the 10 of 'small'" until 30s
        "#]],
    );
}

#[test]
fn a_transfer_dead_letter_that_is_put_back_is_in_the_via_entity() {
    check(
        "
        0s queue name=via
        0s send in=via to=nowhere x
        0s attach r1 in=via transfer
        0s limit r1 1
        1s redrive r1 #1 in=via
        1s attach r2 in=via
        1s limit r2 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 x DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'nowhere' does not exist" until 30s
            1s redrive r1 #1: done
            1s r2 gets #2 x until 31s
        "#]],
    );
}

#[test]
fn a_message_waits_for_a_full_destination_and_others_go_on() {
    check_with(
        BrokerSettings {
            forward_retry: ForwardRetry {
                interval: 1_000,
                time_out: 60_000,
            },
            ..BrokerSettings::default()
        },
        "
        0s queue name=via
        0s queue name=full max-size=3
        0s queue name=free
        0s send in=full abc
        0s send in=via to=full x
        0s send in=via to=free y
        0s info in=via
        0s attach r1 in=free
        0s limit r1 10
        1s restart
        30s info in=via
        70s info in=via
        70s rows
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s sent from #1
            0s transfer 1 dead in transfer 0 created 0s updated 0s accessed 0s
            0s r1 gets #1 y until 30s
            30s transfer 1 dead in transfer 0 created 0s updated 0s accessed 0s
            70s transfer 0 dead in transfer 1 created 0s updated 0s accessed 61s
            70s 3 rows and 3 bodies
        "#]],
    );
}

#[test]
fn a_message_waits_for_a_disabled_destination_over_a_restart() {
    check(
        "
        0s queue name=via
        0s queue name=to disabled
        0s send in=via to=to x y
        100s restart
        200s info in=via
        200s queue name=to
        205s attach r1 in=to
        205s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            200s transfer 2 dead in transfer 0 created 0s updated 0s accessed 0s
            205s r1 gets #1 x until 235s
            205s r1 gets #2 y until 235s
        "#]],
    );
}

#[test]
fn what_waits_counts_beside_the_messages_of_its_via_entity() {
    check(
        "
        0s queue name=via
        0s queue name=to disabled
        0s send in=via abc d e
        0s counts in=via
        0s send in=via to=to xy z
        0s counts in=via
        1s restart
        1s counts in=via
        ",
        expect![[r#"
            0s sent from #1
            0s active 3 transfer 0 all 3 of 5 bytes
            0s sent from #1
            0s active 3 transfer 2 all 5 of 8 bytes
            1s active 3 transfer 2 all 5 of 8 bytes
        "#]],
    );
}

#[test]
fn what_waits_counts_beside_the_messages_that_are_forwarded() {
    check(
        "
        0s queue name=to disabled
        0s queue name=via forward=to
        0s send in=via a b c
        0s send in=via to=to x
        0s counts in=via
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s active 0 transfer 4 all 4 of 4 bytes
        "#]],
    );
}

#[test]
fn what_waits_goes_with_its_via_entity() {
    check(
        "
        0s queue name=via
        0s queue name=to disabled
        0s send in=via to=to x
        0s remove in=via
        0s rows
        0s queue name=via
        0s queue name=to
        10s counters in=to
        ",
        expect![[r#"
            0s sent from #1
            0s via is gone
            0s removed
            0s 0 rows and 0 bodies
            10s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_disabled_via_entity_takes_nothing() {
    check(
        "
        0s queue name=to
        0s queue name=via send-disabled
        0s send in=via to=to x
        0s send in=gone to=to x
        0s counters in=to
        ",
        expect![[r#"
            0s send refused: the entity is disabled for sending
            0s send refused: the entity does not exist
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_scheduled_message_goes_on_when_its_time_comes() {
    check(
        "
        0s queue name=via
        0s queue name=to
        0s send in=via to=to x+10s
        5s restart
        9s counters in=to
        10s attach r1 in=to
        10s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            9s active 0 dead 0 deferred 0 bytes 0
            10s r1 gets #1 x until 40s
        "#]],
    );
}

#[test]
fn the_destination_detects_duplicates() {
    check(
        "
        0s queue name=via
        0s queue name=to window=60s
        0s send in=via to=to encoded x@a
        0s send in=via to=to encoded y@a z@b
        0s attach r1 in=to
        0s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r1 gets #1 x until 30s
            0s r1 gets #2 z until 30s
        "#]],
    );
}

#[test]
fn a_via_entity_has_a_bounded_number_of_destinations_at_a_time() {
    let sends = |at: u64, count: usize| {
        let sends = (0..count).map(move |to| format!("{at}s send in=via to=to{to} x"));
        sends.collect::<Vec<_>>().join("\n")
    };
    let script = format!(
        "
        0s queue name=via
        {}
        1s send in=via to=more x
        1s send in=via to=to7 x
        200s restart
        400s send in=via to=more x
        400s info in=via
        ",
        sends(0, 1_000),
    );
    check_after(
        BrokerSettings::default(),
        &script,
        1_000,
        expect![[r#"
            1s send refused: messages for 1000 other entities are sent via the entity already
            1s sent from #2
            400s sent from #1
            400s transfer 0 dead in transfer 1002 created 0s updated 0s accessed 400s
        "#]],
    );
}

#[test]
fn a_crash_takes_all_of_a_commit_or_nothing() {
    for (synced, expected) in [
        (
            "wait",
            expect![[r#"
            1s active 1 dead 0 deferred 0 bytes 1
            1s active 0 dead 0 deferred 0 bytes 0
            1s transfer 0 dead in transfer 0 created 0s updated 0s accessed 0s
        "#]],
        ),
        (
            "sync",
            expect![[r#"
            0s commit t1: done
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 1 dead 0 deferred 0 bytes 1
            1s transfer 1 dead in transfer 0 created 0s updated 0s accessed 0s
        "#]],
        ),
    ] {
        let script = format!(
            "
            0s queue name=via
            0s queue name=to
            0s queue name=off disabled
            0s send in=via x
            0s attach r1 in=via
            0s limit r1 10
            0s declare t1 r1/7
            0s in t1 complete r1 #1 in=via
            0s in t1 send in=via to=to y
            0s in t1 send in=via to=off z
            0s sync manual
            0s commit t1
            0s {synced}
            1s restart
            1s counters in=via
            1s counters in=to
            1s info in=via
            "
        );
        check_after(BrokerSettings::default(), &script, 6, expected);
    }
}
