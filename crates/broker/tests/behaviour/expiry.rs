//! Expiry: time to live, eager and cloud, dropped and dead-lettered.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn tiny(window: usize) -> BrokerSettings {
    BrokerSettings {
        window,
        turn_work: 4,
        ..BrokerSettings::default()
    }
}

#[test]
fn an_expired_message_leaves_with_nobody_attached() {
    check(
        "
        0s send a
        0s send ttl=5s b
        0s send c
        4999ms counters
        5s counters
        5s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            4999ms active 3 dead 0 deferred 0 bytes 3
            5s active 2 dead 0 deferred 0 bytes 2
            5s peek: #1 a, #3 c
        "#]],
    );
}

#[test]
fn an_expired_message_is_dead_lettered_if_the_queue_says_so() {
    check(
        "
        0s queue dead-letter-expired
        0s send ttl=5s a
        6s counters
        6s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            6s active 0 dead 1 deferred 0 bytes 1
            6s peek: #1 a DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s
        "#]],
    );
}

#[test]
fn the_queues_time_to_live_is_default_and_ceiling() {
    check(
        "
        0s queue ttl=10s
        0s send a
        0s send ttl=5s b
        0s send ttl=1h c
        0s peek 1 9
        9s counters
        10s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s peek: #1 a expires 10s, #2 b expires 5s, #3 c expires 10s
            9s active 2 dead 0 deferred 0 bytes 2
            10s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_expire_beyond_the_window_and_out_of_order() {
    check_with(
        tiny(2),
        "
        0s queue dead-letter-expired
        0s send a*20
        0s send ttl=5s b*10
        0s send ttl=3s c*10
        0s send d*20
        2s counters
        3s counters
        5s counters
        5s peek 25 1
        5s peek 1 2 dead
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #21
            0s sent from #31
            0s sent from #41
            2s active 60 dead 0 deferred 0 bytes 60
            3s active 50 dead 10 deferred 0 bytes 60
            5s active 40 dead 20 deferred 0 bytes 60
            5s peek: #41 d
            5s peek: #21 b DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s, #22 b DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s
        "#]],
    );
}

#[test]
fn messages_are_not_delivered_past_their_deadline_though_no_sweep_came_by() {
    let settings = BrokerSettings {
        turn_work: 1,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send ttl=5s a*3
        0s send b
        0s attach r1
        0s jump +5s
        0s limit r1 9
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r1 gets #4 b until 30s
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
    check(
        "
        0s send ttl=5s a*3
        0s send b
        0s attach r1
        0s jump +5s
        0s limit r1 9
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r1 gets #4 b until 30s
            0s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_locked_message_can_be_settled_past_its_deadline() {
    check(
        "
        0s send ttl=5s a b
        0s attach r1
        0s limit r1 2
        6s renew r1 #1
        7s complete r1 #1
        8s defer r1 #2
        8s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s r1 gets #2 b expires 5s until 30s
            6s renew r1 #1: until 36s
            7s complete r1 #1: done
            8s defer r1 #2: done
            8s active 0 dead 0 deferred 1 bytes 1
        "#]],
    );
}

#[test]
fn a_locked_message_past_its_deadline_expires_when_it_is_given_back() {
    check(
        "
        0s queue dead-letter-expired
        0s send ttl=5s a b c
        0s attach r1
        0s limit r1 9
        6s abandon r1 #1 x=1
        7s release r1 #2
        30s counters
        30s peek 1 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s r1 gets #2 b expires 5s until 30s
            0s r1 gets #3 c expires 5s until 30s
            6s abandon r1 #1 x=1: done
            7s release r1 #2: done
            30s active 0 dead 3 deferred 0 bytes 3
            30s peek: #1 a count 1 x="1" DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s, #2 b DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s, #3 c count 1 DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s
        "#]],
    );
}

#[test]
fn a_message_locked_when_its_block_was_due_expires_after_a_restart() {
    check(
        "
        0s send ttl=5s a
        0s attach r1
        0s limit r1 1
        6s counters
        7s restart
        7s wait
        8s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            6s active 1 dead 0 deferred 0 bytes 1
            8s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_was_changed_before_is_kept_when_it_expires() {
    check_with(
        tiny(2),
        "
        0s queue dead-letter-expired
        0s send a*4
        0s send ttl=5s b c d
        0s attach r1
        0s limit r1 7
        1s abandon r1 #5 x=1
        1s abandon r1 #7 x=2
        1s release r1 #6
        1s release r1 #1
        1s release r1 #2
        2s detach r1
        5s peek 1 9 dead
        5s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #5
            0s r1 gets #1 a until 30s
            0s r1 gets #2 a until 30s
            0s r1 gets #3 a until 30s
            0s r1 gets #4 a until 30s
            0s r1 gets #5 b expires 5s until 30s
            0s r1 gets #6 c expires 5s until 30s
            0s r1 gets #7 d expires 5s until 30s
            1s abandon r1 #5 x=1: done
            1s abandon r1 #7 x=2: done
            1s release r1 #6: done
            1s release r1 #1: done
            1s release r1 #2: done
            5s peek: #5 b count 1 x="1" DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s, #6 c DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s, #7 d count 1 x="2" DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." expires 5s
            5s active 4 dead 3 deferred 0 bytes 7
        "#]],
    );
}

#[test]
fn in_cloud_mode_nothing_expires_while_nobody_is_attached() {
    check(
        "
        0s queue cloud
        0s send ttl=5s a
        0s send b
        10s peek 1 9
        10s attach r2 dead
        11s counters
        12s attach r1
        12s counters
        12s limit r1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            10s peek: #1 a expires 5s, #2 b
            11s active 2 dead 0 deferred 0 bytes 2
            12s active 1 dead 0 deferred 0 bytes 1
            12s r1 gets #2 b until 42s
        "#]],
    );
}

#[test]
fn in_cloud_mode_a_lock_that_ends_with_nobody_attached_expires_nothing() {
    check(
        "
        0s queue cloud
        0s send ttl=5s a
        0s attach r1
        0s limit r1 1
        1s detach r1
        31s counters
        40s attach r1
        40s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            31s active 1 dead 0 deferred 0 bytes 1
            40s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_restart_forgets_no_deadline() {
    check_with(
        tiny(2),
        "
        0s send ttl=1h x
        0s send a*10
        0s send ttl=10s b*10
        5s restart
        5s counters
        10s counters
        12s restart
        1h counters
        3601s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #12
            5s active 21 dead 0 deferred 0 bytes 21
            10s active 11 dead 0 deferred 0 bytes 11
            3600s active 10 dead 0 deferred 0 bytes 10
            3601s active 10 dead 0 deferred 0 bytes 10
        "#]],
    );
}

#[test]
fn a_message_that_is_settled_while_its_block_is_read_is_left_alone() {
    check_with(
        tiny(2),
        "
        0s queue dead-letter-expired
        0s send ttl=5s a b c d e f
        0s attach r1
        0s limit r1 6
        0s release r1 #1
        0s release r1 #2
        0s release r1 #3
        0s reads late
        5s asked
        5s complete r1 #4
        5s defer r1 #5
        5s abandon r1 #6
        6s answer
        6s answer
        6s answer
        7s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s r1 gets #2 b expires 5s until 30s
            0s r1 gets #3 c expires 5s until 30s
            0s r1 gets #4 d expires 5s until 30s
            0s r1 gets #5 e expires 5s until 30s
            0s r1 gets #6 f expires 5s until 30s
            0s release r1 #1: done
            0s release r1 #2: done
            0s release r1 #3: done
            5s asked for 4 of Active #0..#1024
            5s complete r1 #4: done
            5s defer r1 #5: done
            5s abandon r1 #6: done
            7s active 0 dead 4 deferred 1 bytes 5
        "#]],
    );
}

#[test]
fn a_deadline_is_kept_of_a_message_that_is_locked_while_its_patch_is_read() {
    check_with(
        BrokerSettings {
            body_bytes: 0,
            ..BrokerSettings::default()
        },
        "
        0s queue dead-letter-expired
        0s send ttl=5s a
        0s attach r1
        0s limit r1 1
        1s abandon r1 #1
        1s reads late
        5s asked
        5s jump -3s
        5s limit r1 2
        5s answer last
        5s answer
        5s blocks
        6s reads now
        6s restart
        9s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            1s abandon r1 #1: done
            5s asked for Active #1
            5s r1 gets #1 a count 1 expires 5s until 35s
            5s blocks with a deadline: 1
            9s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_damaged_patch_keeps_no_other_message_from_dead_lettering() {
    check_with(
        BrokerSettings {
            body_bytes: 0,
            ..BrokerSettings::default()
        },
        "
        0s queue dead-letter-expired
        0s send ttl=5s a b c
        0s attach r1
        0s limit r1 3
        1s abandon r1 #1
        1s abandon r1 #2
        1s abandon r1 #3
        1s reads late
        5s asked
        5s answer damaged
        5s asked
        5s answer
        5s asked
        5s answer damaged
        5s asked
        5s answer
        5s asked
        5s counters
        66s asked
        66s answer
        66s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            0s r1 gets #2 b expires 5s until 30s
            0s r1 gets #3 c expires 5s until 30s
            1s abandon r1 #1: done
            1s abandon r1 #2: done
            1s abandon r1 #3: done
            5s asked for Active #1 #2 #3
            5s asked for Active #1
            5s asked for Active #2
            5s asked for Active #3
            5s asked for 
            5s active 1 dead 2 deferred 0 bytes 3
            66s asked for Active #2
            66s active 0 dead 3 deferred 0 bytes 3
        "#]],
    );
}

#[test]
fn in_cloud_mode_a_message_that_was_locked_when_due_expires_for_the_next_receiver() {
    check(
        "
        0s queue cloud
        0s send ttl=5s a
        0s attach r1
        0s limit r1 1
        10s detach r1
        31s counters
        40s attach r1
        40s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            31s active 1 dead 0 deferred 0 bytes 1
            40s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_block_whose_last_message_was_settled_late_is_forgotten() {
    check(
        "
        0s send ttl=5s a
        0s attach r1
        0s limit r1 1
        6s blocks
        10s complete r1 #1
        10s blocks
        70s blocks
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a expires 5s until 30s
            6s blocks with a deadline: 1
            10s complete r1 #1: done
            10s blocks with a deadline: 1
            70s blocks with a deadline: 0
        "#]],
    );
}
