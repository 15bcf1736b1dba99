//! Forwarding: messages and dead letters go on by themselves, as far as they can.

use broker::{BrokerSettings, ForwardFailures};
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_message_arrives_at_the_end_of_the_chain() {
    check(
        "
        0s queue name=c ttl=1h
        0s queue name=b forward=c
        0s queue name=a forward=sb://host/B/
        0s send in=c here
        0s send in=a x y
        0s rows
        1s attach r1 in=c
        1s limit r1 10
        1s counters in=a
        1s counters in=b
        1s counters in=c
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s 3 rows and 3 bodies
            1s r1 gets #1 here expires 3600s until 31s
            1s r1 gets #2 x first #1 expires 3600s until 31s
            1s r1 gets #3 y first #2 expires 3600s until 31s
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 0 dead 0 deferred 0 bytes 0
            1s active 3 dead 0 deferred 0 bytes 6
        "#]],
    );
}

#[test]
fn what_was_there_before_goes_on_when_forwarding_is_set() {
    check_with(
        BrokerSettings {
            turn_work: 3,
            window: 2,
            body_bytes: 0,
            ..BrokerSettings::default()
        },
        "
        0s queue name=b
        0s queue name=a
        0s send in=a v w x y z
        1s restart
        1s queue name=a forward=b
        2s attach r1 in=b
        2s limit r1 10
        2s counters in=a
        ",
        expect![[r#"
            0s sent from #1
            2s r1 gets #1 v until 32s
            2s r1 gets #2 w until 32s
            2s r1 gets #3 x until 32s
            2s r1 gets #4 y until 32s
            2s r1 gets #5 z until 32s
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_message_whose_destination_is_missing_goes_to_the_transfer_dead_letter_queue() {
    check(
        "
        0s queue name=a forward=nowhere
        0s send in=a x
        0s attach r1 in=a transfer
        0s limit r1 10
        0s complete r1 #1 in=a
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 x DeadLetterReason="amqp:not-found" DeadLetterErrorDescription="The messaging entity 'nowhere' could not be found." until 30s
            0s complete r1 #1 in=a: done
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn failures_go_to_the_ordinary_dead_letter_queue_if_set_so_and_stay_there() {
    check_with(
        BrokerSettings {
            forward_failures: ForwardFailures::DeadLetter,
            ..BrokerSettings::default()
        },
        "
        0s queue name=dead
        0s queue name=a forward=nowhere forward-dead=dead
        0s send in=a x
        1s attach r1 in=dead
        1s limit r1 10
        1s peek 1 10 in=a dead
        ",
        expect![[r#"
            0s sent from #1
            1s peek: #1 x DeadLetterReason="amqp:not-found" DeadLetterErrorDescription="The messaging entity 'nowhere' could not be found."
        "#]],
    );
}

#[test]
fn a_full_destination_refuses_and_dead_letters_wait_for_room() {
    check(
        "
        0s queue name=b max-size=3
        0s queue name=a forward=b
        0s queue name=d max-delivery=1 forward-dead=b
        0s send in=a abc
        0s send in=a x
        0s peek 1 10 in=a transfer
        1s send in=d yz
        1s attach r1 in=d
        1s limit r1 1
        1s abandon r1 #1 in=d
        2s counters in=d
        3s attach r2 in=b
        3s limit r2 10
        3s complete r2 #1 in=b
        5s counters in=d
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s peek: #2 x DeadLetterReason="amqp:resource-limit-exceeded" DeadLetterErrorDescription="'b' does not take the message: the entity holds 3 bytes of 3."
            1s sent from #1
            1s r1 gets #1 yz until 31s
            1s abandon r1 #1 in=d: done
            2s active 0 dead 1 deferred 0 bytes 2
            3s r2 gets #1 abc until 33s
            3s complete r2 #1 in=b: done
            4s r2 gets #2 yz DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 1 delivery attempts." first #1 from dead letters of d until 34s
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_circle_ends_after_four_hops() {
    check(
        "
        0s queue name=b forward=a
        0s queue name=a forward=b
        0s send in=a x
        0s peek 1 10 in=a transfer
        0s peek 1 10 in=b transfer
        ",
        expect![[r#"
            0s sent from #1
            0s peek: #3 x DeadLetterReason="MaxTransferHopCountExceeded" DeadLetterErrorDescription="The message was forwarded more than 4 times." first #1
            0s peek: 
        "#]],
    );
}

#[test]
fn dead_letters_keep_their_reasons_and_name_their_source() {
    check(
        "
        0s queue name=graves
        0s queue name=a forward-dead=graves
        0s send in=a x y
        0s attach r1 in=a
        0s limit r1 10
        1s reject r1 #2 in=a DeadLetterReason=broken
        2s attach r2 in=graves
        2s limit r2 10
        3s abandon r2 #1 in=graves why=no
        4s complete r2 #1 in=graves
        5s rows
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 x until 30s
            0s r1 gets #2 y until 30s
            1s reject r1 #2 in=a DeadLetterReason=broken: done
            2s r2 gets #1 y DeadLetterReason="broken" first #2 from dead letters of a until 32s
            3s abandon r2 #1 in=graves why=no: done
            3s r2 gets #1 y count 1 DeadLetterReason="broken" why="no" first #2 from dead letters of a until 33s
            4s complete r2 #1 in=graves: done
            5s 1 rows and 1 bodies
        "#]],
    );
}

#[test]
fn a_destination_detects_duplicates_also_after_a_restart() {
    check(
        "
        0s queue name=b window=20s
        0s queue name=a forward=b
        0s send in=a encoded x@1 y@2 x@1
        0s counters in=b
        1s restart
        1s reads late
        2s send in=a encoded x@1 z@3
        2s send in=b encoded z@3 w@4
        2s counters in=a
        3s answer
        3s answer
        3s answer
        3s answer
        3s answer
        3s counters in=a
        3s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            0s active 2 dead 0 deferred 0 bytes 54
            2s sent from #4
            2s active 2 dead 0 deferred 0 bytes 54
            3s sent from #3
            3s active 0 dead 0 deferred 0 bytes 0
            3s active 4 dead 0 deferred 0 bytes 108
        "#]],
    );
}

#[test]
fn forwarded_messages_survive_a_crash_in_one_place() {
    check(
        "
        0s queue name=b
        0s queue name=a forward=b
        0s send in=a x y z
        1s restart
        1s rows
        1s attach r1 in=b
        1s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            1s 3 rows and 3 bodies
            1s r1 gets #1 x until 31s
            1s r1 gets #2 y until 31s
            1s r1 gets #3 z until 31s
        "#]],
    );
}

#[test]
fn nothing_goes_on_while_the_disk_is_nearly_full() {
    check(
        "
        0s queue name=b
        0s queue name=a
        0s send in=a x
        0s disk full
        1s queue name=a forward=b
        2s counters in=a
        3s disk room
        5s counters in=a
        5s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            2s active 1 dead 0 deferred 0 bytes 1
            5s active 0 dead 0 deferred 0 bytes 0
            5s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}
