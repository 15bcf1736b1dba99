//! Forwarding: messages and dead letters go on by themselves, as far as they can.

use broker::{BrokerSettings, ForwardFailures, ForwardRetry};
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
fn a_small_budget_moves_the_messages_of_all_who_forward() {
    check_with(
        BrokerSettings {
            turn_work: 2,
            ..BrokerSettings::default()
        },
        "
        0s queue name=c
        0s queue name=a
        0s queue name=b
        0s send in=a v w x
        0s send in=b y z
        0s disk full
        0s queue name=a forward=c
        0s queue name=b forward=c
        0s disk free
        0s restart
        2s counters in=a
        2s counters in=b
        2s counters in=c
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            2s active 0 dead 0 deferred 0 bytes 0
            2s active 0 dead 0 deferred 0 bytes 0
            2s active 5 dead 0 deferred 0 bytes 5
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
            0s r1 gets #1 x DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'nowhere' does not exist" until 30s
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
            1s peek: #1 x DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'nowhere' does not exist"
        "#]],
    );
}

/// A forward to a full destination fails at once.
fn at_once() -> BrokerSettings {
    BrokerSettings {
        forward_retry: ForwardRetry {
            time_out: 0,
            ..ForwardRetry::default()
        },
        ..BrokerSettings::default()
    }
}

/// (docs/spec/entities.md#14.4)
#[test]
fn a_full_destination_is_tried_again_for_a_minute() {
    check(
        "
        0s queue name=b max-size=3
        0s queue name=a forward=b
        0s send in=a abc
        0s send in=a x
        0s peek 1 10 in=a
        50s send in=a y
        59s peek 1 10 in=a transfer
        60s wait
        61s peek 1 10 in=a transfer
        61s peek 1 10 in=a
        109s peek 1 10 in=a
        111s peek 1 10 in=a transfer
        111s peek 1 10 in=a
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s peek: #2 x
            50s sent from #3
            59s peek: 
            61s peek: #2 x DeadLetterReason="QuotaExceeded" DeadLetterErrorDescription="the destination 'b' holds 3 bytes of 3"
            61s peek: #3 y
            109s peek: #3 y
            111s peek: #2 x DeadLetterReason="QuotaExceeded" DeadLetterErrorDescription="the destination 'b' holds 3 bytes of 3", #3 y DeadLetterReason="QuotaExceeded" DeadLetterErrorDescription="the destination 'b' holds 3 bytes of 3"
            111s peek: 
        "#]],
    );
}

#[test]
fn another_destination_gets_a_minute_of_its_own() {
    check(
        "
        0s queue name=b max-size=3
        0s queue name=c max-size=1
        0s queue name=a forward=b
        0s send in=a abc
        0s send in=c z
        0s send in=a x
        50s queue name=a forward=c
        61s peek 1 10 in=a transfer
        90s remove in=c
        90s queue name=c max-size=1
        90s send in=c z
        111s peek 1 10 in=a transfer
        149s peek 1 10 in=a
        151s peek 1 10 in=a transfer
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s sent from #2
            61s peek: 
            90s c is gone
            90s removed
            90s sent from #1
            111s peek: 
            149s peek: #2 x
            151s peek: #2 x DeadLetterReason="QuotaExceeded" DeadLetterErrorDescription="the destination 'c' holds 1 bytes of 1"
        "#]],
    );
}

#[test]
fn room_that_comes_in_time_lets_messages_go_on_in_order() {
    check(
        "
        0s queue name=b max-size=3
        0s queue name=a forward=b
        0s send in=a abc
        0s send in=a x ttl=30s
        0s send in=a y z
        40s attach r1 in=b
        40s limit r1 10
        40s complete r1 #1 in=b
        42s peek 1 10 in=a transfer
        42s counters in=a
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            40s r1 gets #1 abc until 70s
            40s complete r1 #1 in=b: done
            41s r1 gets #2 y first #3 until 71s
            41s r1 gets #3 z first #4 until 71s
            42s peek: 
            42s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_full_destination_refuses_and_dead_letters_wait_for_room() {
    check_with(
        at_once(),
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
            0s peek: #2 x DeadLetterReason="QuotaExceeded" DeadLetterErrorDescription="the destination 'b' holds 3 bytes of 3"
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
fn a_dead_letter_that_cannot_go_on_is_not_taken_for_a_damaged_one() {
    check_with(
        BrokerSettings {
            forward_failures: ForwardFailures::DeadLetter,
            ..BrokerSettings::default()
        },
        "
        0s queue name=dead
        0s queue name=a forward=nowhere forward-dead=dead
        0s send in=a x
        1s queue name=a
        1s attach r1 in=a dead
        1s limit r1 10 drain
        1s limit r1 20
        31s complete r1 #1 in=a dead
        ",
        expect![[r#"
            0s sent from #1
            1s r1 drained
            30s r1 gets #1 x DeadLetterReason="NotFound" DeadLetterErrorDescription="the destination 'nowhere' does not exist" until 60s
            31s complete r1 #1 in=a dead: done
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
            0s peek: #3 x DeadLetterReason="TooManyHops" DeadLetterErrorDescription="the message was forwarded more than 4 times" first #1
            0s peek: 
        "#]],
    );
}

#[test]
fn a_circle_of_dead_letters_ends_after_four_hops() {
    check(
        "
        0s queue name=b
        0s queue name=a forward-dead=b ttl=1s dead-letter-expired
        0s queue name=b forward-dead=a ttl=1s dead-letter-expired
        0s send in=a x
        10s peek 1 10 in=a transfer
        10s peek 1 10 in=a dead
        10s peek 1 10 in=b dead
        10s restart
        11s peek 1 10 in=a transfer
        ",
        expect![[r#"
            0s sent from #1
            10s peek: #3 x DeadLetterReason="TooManyHops" DeadLetterErrorDescription="the message was forwarded more than 4 times" first #1 from dead letters of b expires 5s
            10s peek: 
            10s peek: 
            11s peek: #3 x DeadLetterReason="TooManyHops" DeadLetterErrorDescription="the message was forwarded more than 4 times" first #1 from dead letters of b expires 5s
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
fn a_message_whose_id_cannot_be_looked_up_stays_for_a_while_and_others_go_on() {
    check(
        "
        0s queue name=b window=20s
        0s queue name=a forward=b lock=10s
        0s send in=a encoded x@1
        1s restart
        1s reads late
        2s send in=a encoded y@2 z@3 x@1
        2s answer damaged
        2s counters in=a
        2s answer
        2s answer
        2s counters in=a
        2s counters in=b
        13s answer
        13s answer
        13s counters in=a
        13s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #2
            2s active 3 dead 0 deferred 0 bytes 81
            2s active 1 dead 0 deferred 0 bytes 27
            2s active 2 dead 0 deferred 0 bytes 54
            13s active 0 dead 0 deferred 0 bytes 0
            13s active 3 dead 0 deferred 0 bytes 81
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

#[test]
fn the_answer_to_a_lookup_is_for_its_own_message_even_if_that_has_expired() {
    check(
        "
        0s queue name=b window=1h
        0s queue name=a forward=b
        0s send in=b encoded y@1
        1s restart
        1s reads late
        2s send in=a encoded x@9 ttl=1s
        2s send in=a encoded y@1
        4s answer
        4s answer
        4s answer
        4s answer
        4s answer
        4s counters in=a
        4s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #1
            2s sent from #2
            4s active 0 dead 0 deferred 0 bytes 0
            4s active 1 dead 0 deferred 0 bytes 27
        "#]],
    );
}

#[test]
fn the_answer_to_a_lookup_holds_only_while_what_came_since_is_remembered() {
    check_with(
        BrokerSettings {
            window: 2,
            body_bytes: 0,
            ..BrokerSettings::default()
        },
        "
        0s queue name=b window=1h
        0s queue name=a forward=b
        0s send in=b encoded y@1
        1s restart
        1s reads late
        2s send in=a encoded x@9
        3s answer
        3s send in=b encoded q@9 c@2 d@3
        4s answer
        4s answer
        4s answer
        4s answer
        4s answer
        5s reads early
        5s counters in=a
        5s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #1
            3s sent from #2
            5s active 0 dead 0 deferred 0 bytes 0
            5s active 4 dead 0 deferred 0 bytes 108
        "#]],
    );
}

#[test]
fn the_answer_of_one_destination_is_not_taken_for_anothers() {
    check(
        "
        0s queue name=c window=1h
        0s queue name=b window=1h
        0s queue name=a forward=b
        0s send in=c encoded y@1
        0s send in=b encoded y@2
        1s restart
        1s reads late
        2s send in=a encoded y@1
        3s queue name=a forward=c
        4s answer
        4s answer
        4s answer
        4s counters in=c
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            2s sent from #1
            4s active 1 dead 0 deferred 0 bytes 27
        "#]],
    );
}

#[test]
fn an_answer_from_before_forwarding_was_off_for_a_while_is_not_trusted() {
    check_with(
        BrokerSettings {
            window: 2,
            ..BrokerSettings::default()
        },
        "
        0s queue name=b window=1h
        0s queue name=a forward=b
        0s send in=b encoded y@1
        1s restart
        1s reads late
        2s send in=a encoded x@9
        3s queue name=a
        3s answer
        3s answer
        3s reads early
        4s send in=b encoded x@9 c@2 d@3 e@4
        5s queue name=a forward=b
        6s counters in=a
        6s counters in=b
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #1
            4s sent from #2
            6s active 0 dead 0 deferred 0 bytes 0
            6s active 5 dead 0 deferred 0 bytes 135
        "#]],
    );
}

#[test]
fn much_forwarding_leaves_time_for_locks_to_end() {
    check_with(
        BrokerSettings {
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s queue name=b
        0s queue name=a forward=b
        0s queue name=l lock=5s
        0s send in=l m
        0s attach r1 in=l
        0s limit r1 1
        0s attach r2 in=l
        0s limit r2 10
        !6s send in=a y*6
        !6s send in=a y*6
        !6s send in=a y*6
        6s counters in=a
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 m until 5s
            6s sent from #1
            6s r2 gets #1 m count 1 until 11s
            6s sent from #7
            6s sent from #13
            6s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn many_messages_that_can_not_go_on_do_not_keep_others_from_it() {
    check_with(
        BrokerSettings {
            forward_failures: ForwardFailures::DeadLetter,
            ..BrokerSettings::default()
        },
        "
        0s queue name=a forward=nowhere forward-dead=dead
        0s send in=a x*520
        1s queue name=a
        2s send in=a w
        2s attach r1 in=a
        2s limit r1 1
        3s reject r1 #521 in=a
        4s queue name=dead
        5s restart
        5s reads late
        5s queue name=a forward-dead=dead
        6s answer
        6s answer
        6s answer
        6s answer
        7s reads early
        7s counters in=a
        7s counters in=dead
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #521
            2s r1 gets #521 w until 32s
            3s reject r1 #521 in=a: done
            7s active 0 dead 520 deferred 0 bytes 520
            7s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_dead_letter_that_is_too_large_stays_and_the_next_goes_on() {
    check(
        "
        0s queue name=d max-message=1
        0s queue name=a forward-dead=d
        0s send in=a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb x
        0s attach r1 in=a
        0s limit r1 10
        1s reject r1 #1 in=a
        1s reject r1 #2 in=a
        100s counters in=a
        100s counters in=d
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb until 30s
            0s r1 gets #2 x until 30s
            1s reject r1 #1 in=a: done
            1s reject r1 #2 in=a: done
            100s active 0 dead 1 deferred 0 bytes 66
            100s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn the_default_limit_holds_for_what_is_forwarded_where_the_destination_has_none() {
    check_with(
        BrokerSettings {
            max_message_size: 1,
            ..BrokerSettings::default()
        },
        "
        0s queue name=d
        0s queue name=large max-message=2
        0s queue name=a forward=d max-message=2
        0s queue name=b forward=large max-message=2
        0s send in=a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb x
        0s send in=b bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        1s counters in=d
        1s counters in=large
        1s attach r1 in=a transfer
        1s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            1s active 1 dead 0 deferred 0 bytes 1
            1s active 1 dead 0 deferred 0 bytes 66
            1s r1 gets #1 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb DeadLetterReason="TooLarge" DeadLetterErrorDescription="a message of 66 bytes is larger than the 1 of 'd'" until 31s
        "#]],
    );
}

#[test]
fn messages_that_can_not_go_on_do_not_fill_the_window() {
    check_with(
        BrokerSettings {
            window: 2,
            forward_failures: ForwardFailures::DeadLetter,
            ..BrokerSettings::default()
        },
        "
        0s queue name=dead
        0s queue name=a forward=nowhere forward-dead=dead
        0s send in=a x y z
        1s queue name=a forward-dead=dead
        2s send in=a w
        2s attach r1 in=a
        2s limit r1 1
        3s reject r1 #4 in=a
        9s counters in=a
        9s counters in=dead
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #4
            2s r1 gets #4 w until 32s
            3s reject r1 #4 in=a: done
            9s active 0 dead 3 deferred 0 bytes 3
            9s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_duplicate_is_dropped_even_where_there_is_no_room_for_it() {
    check(
        "
        0s queue name=b window=1h max-size=60
        0s queue name=a forward=b
        0s send in=a encoded x@1 y@2
        0s send in=a encoded x@1
        0s counters in=a
        0s peek 1 10 in=a transfer
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #3
            0s active 0 dead 0 deferred 0 bytes 0
            0s peek: 
        "#]],
    );
}
