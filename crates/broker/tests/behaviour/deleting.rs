//! Deleting: the oldest messages go at once; what is locked, deferred or scheduled stays.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn small_window() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        turn_work: 4,
        ..BrokerSettings::default()
    }
}

#[test]
fn the_oldest_go_first_and_the_answer_tells_how_many_went() {
    check(
        "
        0s send a b c d
        0s delete 3
        0s counters
        0s rows
        0s delete 3
        0s delete 3
        0s counters
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s delete 3: 3
            0s active 1 dead 0 deferred 0 bytes 1
            0s 1 rows and 1 bodies
            0s delete 3: 1
            0s delete 3: 0
            0s active 0 dead 0 deferred 0 bytes 0
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn only_what_was_enqueued_before_a_moment_goes() {
    check(
        "
        0s send a
        1s send b
        2s send c
        2s delete 9 before=0s
        2s delete 9 before=1s
        2s delete 9 before=2s
        2s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            2s sent from #3
            2s delete 9 before=0s: 0
            2s delete 9 before=1s: 1
            2s delete 9 before=2s: 1
            2s peek: #3 c
        "#]],
    );
}

#[test]
fn locked_deferred_and_scheduled_messages_stay() {
    check(
        "
        0s send a b c d
        0s send e+60s
        0s attach r1
        0s limit r1 2
        0s defer r1 #2
        0s delete 9
        0s counters
        0s peek 1 9
        0s complete r1 #1
        1s fetch r1 #2
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #5
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #2: done
            0s delete 9: 2
            0s active 1 dead 0 deferred 1 bytes 3 scheduled 1
            0s peek: #1 a, #2 b count 1 Deferred, #5 e Scheduled
            0s complete r1 #1: done
            1s fetch r1 #2: #2 b count 1 Deferred until 31s
        "#]],
    );
}

#[test]
fn what_is_part_of_a_transaction_stays() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        0s declare t r1
        0s in t complete r1 #1
        0s delete 9
        0s commit t
        0s counters
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t: done
            0s in t complete r1 #1: done
            0s delete 9: 1
            0s commit t: done
            0s active 0 dead 0 deferred 0 bytes 0
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_message_is_gone_for_receivers_and_its_token_for_the_next_one() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        0s delete 9
        0s release r1 #1
        0s delete 9
        0s limit r1 5 drain
        0s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s delete 9: 1
            0s release r1 #1: done
            0s delete 9: 1
            0s r1 drained
            0s complete r1 #1: the lock is not held
        "#]],
    );
}

#[test]
fn dead_letters_go_with_what_was_written_about_them() {
    check(
        "
        0s queue max-delivery=1
        0s send a b c
        0s attach r1
        0s limit r1 3
        0s reject r1 #1 DeadLetterReason=bad
        0s abandon r1 #2 x=1
        0s delete 9 dead
        0s counters
        0s rows
        0s delete 9
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s reject r1 #1 DeadLetterReason=bad: done
            0s abandon r1 #2 x=1: done
            0s delete 9 dead: 2
            0s active 1 dead 0 deferred 0 bytes 1
            0s 1 rows and 1 bodies
            0s delete 9: 0
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn an_expired_message_is_not_counted() {
    check(
        "
        0s queue dead-letter-expired
        0s send a ttl=1s
        0s send b
        !2s delete 9
        2s counters
        2s delete 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            2s delete 9: 1
            2s active 0 dead 1 deferred 0 bytes 1
            2s delete 9 dead: 1
        "#]],
    );
}

#[test]
fn an_abandoned_and_expired_message_is_left_to_expire_with_its_changes() {
    check_with(
        BrokerSettings {
            body_bytes: 0,
            ..BrokerSettings::default()
        },
        "
        0s queue dead-letter-expired
        0s send a ttl=2s
        0s send b
        0s attach r1
        0s limit r1 1
        0s abandon r1 #1 x=1
        0s detach r1
        !3s delete 9
        3s counters
        3s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r1 gets #1 a expires 2s until 30s
            0s abandon r1 #1 x=1: done
            3s delete 9: 1
            3s active 0 dead 1 deferred 0 bytes 1
            3s peek: #1 a count 1 x="1" DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 2s
        "#]],
    );
}

#[test]
fn what_is_on_disk_only_is_brought_in_and_goes() {
    check_with(
        small_window(),
        "
        0s send a b c d e f g h
        0s reads late
        0s delete 5
        0s asked
        0s answer
        0s asked
        0s answer
        0s answer
        0s counters
        0s reads now
        0s delete 9
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s asked for 2 of Active #3..#9
            0s asked for 2 of Active #5..#9
            0s delete 5: 5
            0s active 3 dead 0 deferred 0 bytes 3
            0s delete 9: 3
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_arrives_while_a_deletion_waits_stays() {
    check_with(
        small_window(),
        "
        0s send a b c d
        0s reads late
        0s delete 9
        0s send e
        0s answer
        0s answer
        0s reads now
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #5
            0s delete 9: 4
            0s peek: #5 e
        "#]],
    );
}

#[test]
fn deletions_wait_their_turn_and_a_read_that_fails_ends_one() {
    check_with(
        small_window(),
        "
        0s send a b c d e f
        0s reads late
        0s delete 3
        0s delete 9
        0s answer broken
        0s counters
        2s answer
        2s reads now
        2s answer
        2s delete 9
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s delete 3: 2
            0s delete 9: the store cannot be read
            0s active 4 dead 0 deferred 0 bytes 4
            2s delete 9: 4
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn after_a_restart_a_deletion_begins_where_the_last_one_ended() {
    check_with(
        small_window(),
        "
        0s send a b c d e f
        0s delete 4
        0s restart
        0s reads late
        0s delete 1
        0s asked
        0s answer
        0s reads now
        0s delete 9
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s delete 4: 4
            0s asked for 2 of Active #5..#7
            0s delete 1: 1
            0s delete 9: 1
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_a_restart_knows_by_number_only_goes_first() {
    let mut sends = String::new();
    for _ in 0..1_100 {
        sends.push_str("0s send x\n");
    }
    let script = format!(
        "
        0s send first
        0s attach r1
        0s limit r1 1
        {sends}
        0s delete 1099
        0s restart
        0s delete 1
        0s peek 1 9
        "
    );
    crate::script::check_after(
        BrokerSettings {
            window: 8,
            ..BrokerSettings::default()
        },
        &script,
        1_102,
        expect![[r#"
            0s delete 1099: 1099
            0s delete 1: 1
            0s peek: #1101 x
        "#]],
    );
}

#[test]
fn deleting_is_done_in_pieces_between_which_others_have_their_turn() {
    check_with(
        BrokerSettings {
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s send a b c d
        0s queue name=other
        !0s delete 9
        !0s send x in=other
        !0s send e
        0s wait
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s sent from #5
            0s delete 9: 4
        "#]],
    );
}

#[test]
fn a_piece_is_begun_when_the_one_before_is_durable_and_a_large_one_when_nobody_else_came_lately() {
    check_with(
        BrokerSettings {
            turn_work: 8,
            ..BrokerSettings::default()
        },
        "
        0s send a b c d e f g h i j k l m n o p
        0s queue name=other
        0s sync manual
        0s delete 15
        0s counters
        0s wait
        0s send x in=other
        0s counters
        0s sync
        0s counters
        0s sync
        0s sync
        0s sync
        0s counters
        1s wait
        1s counters
        1s sync
        1s counters
        1s sync
        ",
        expect![[r#"
            0s sent from #1
            0s active 14 dead 0 deferred 0 bytes 14
            0s active 14 dead 0 deferred 0 bytes 14
            0s sent from #1
            0s active 12 dead 0 deferred 0 bytes 12
            0s active 6 dead 0 deferred 0 bytes 6
            1s active 6 dead 0 deferred 0 bytes 6
            1s active 1 dead 0 deferred 0 bytes 1
            1s delete 15: 15
        "#]],
    );
}

#[test]
fn queues_delete_in_turns() {
    check_with(
        BrokerSettings {
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s send a b c d e f g h
        0s queue name=other
        0s send u v w in=other
        0s sync manual
        0s delete 9
        0s delete 2 in=other
        0s counters
        0s counters in=other
        0s sync
        0s counters
        0s counters in=other
        0s sync
        0s counters
        0s counters in=other
        0s sync
        0s sync
        0s counters
        0s counters in=other
        0s sync
        0s sync
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #1
            0s active 7 dead 0 deferred 0 bytes 7
            0s active 3 dead 0 deferred 0 bytes 3
            0s active 6 dead 0 deferred 0 bytes 6
            0s active 3 dead 0 deferred 0 bytes 3
            0s active 6 dead 0 deferred 0 bytes 6
            0s active 2 dead 0 deferred 0 bytes 2
            0s active 3 dead 0 deferred 0 bytes 3
            0s active 1 dead 0 deferred 0 bytes 1
            0s delete 2 in=other: 2
            0s delete 9: 8
        "#]],
    );
}

#[test]
fn nothing_is_told_before_it_is_durable() {
    check(
        "
        0s send a b
        0s sync manual
        0s delete 9
        1s counters
        1s sync
        ",
        expect![[r#"
            0s sent from #1
            1s active 0 dead 0 deferred 0 bytes 0
            1s delete 9: 2
        "#]],
    );
}

#[test]
fn of_a_queue_that_is_not_there_nothing_goes() {
    check(
        "
        0s send a
        0s delete 9 in=nowhere
        0s delete 9 session=s
        0s delete 0
        ",
        expect![[r#"
            0s sent from #1
            0s delete 9 in=nowhere: the entity does not exist
            0s delete 9 session=s: the entity has no sessions
            0s delete 0: 0
        "#]],
    );
}
