//! Locks: expiry, late settlement, renewal, tokens.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn a_late_settlement_is_refused() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        30s complete r1 #1
        30s attach r2
        30s limit r2 1
        31s complete r1 #1
        31s complete r2 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            30s complete r1 #1: the lock is not held
            30s r2 gets #1 a count 1 until 60s
            31s complete r1 #1: the lock is not held
            31s complete r2 #1: done
        "#]],
    );
}

#[test]
fn a_message_whose_lock_ran_out_returns_to_its_place_with_its_count_raised() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 1
        29s attach r2
        29s limit r2 5
        35s counters
        60s wait
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            29s r2 gets #2 b until 59s
            30s r2 gets #1 a count 1 until 60s
            35s active 2 dead 0 deferred 0 bytes 2
            59s r2 gets #2 b count 1 until 89s
            60s r2 gets #1 a count 2 until 90s
        "#]],
    );
}

#[test]
fn a_renewed_lock_holds_a_full_duration_from_now() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 5
        20s renew r1 #1
        49s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            20s renew r1 #1: until 50s
            49s complete r1 #1: done
        "#]],
    );
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 5
        20s renew r1 #1
        50s renew r1 #1
        50s peek 1 1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            20s renew r1 #1: until 50s
            50s r1 gets #1 a count 1 until 80s
            50s renew r1 #1: until 80s
            50s peek: #1 a count 1
        "#]],
    );
}

#[test]
fn renewing_is_for_all_tokens_or_for_none() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        10s complete r1 #2
        20s renew r1 #1 #2
        31s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            10s complete r1 #2: done
            20s renew r1 #1 #2: the lock is not held
            31s complete r1 #1: the lock is not held
        "#]],
    );
}

#[test]
fn a_token_is_good_wherever_it_comes_from_while_the_lock_lives() {
    check(
        "
        0s send a b
        0s attach r1
        0s limit r1 2
        1s detach r1
        2s renew r1 #1
        3s complete r1 #1
        4s complete r1 #2 dead
        5s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            2s renew r1 #1: until 32s
            3s complete r1 #1: done
            4s complete r1 #2 dead: done
            5s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_changed_lock_duration_applies_from_the_next_lock_or_renewal() {
    check(
        "
        0s queue lock=60s
        0s send a b
        0s attach r1
        0s limit r1 1
        1s queue lock=5s
        1s limit r1 2
        7s renew r1 #1
        10s complete r1 #1
        10s complete r1 #2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 60s
            1s r1 gets #2 b until 6s
            7s renew r1 #1: until 12s
            10s complete r1 #1: done
            10s complete r1 #2: the lock is not held
        "#]],
    );
}

#[test]
fn no_more_than_the_most_are_locked_at_once() {
    let settings = BrokerSettings {
        max_locked: 2,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a b c d
        0s attach r1
        0s limit r1 10
        1s complete r1 #2
        2s limit r1 10 drain
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s complete r1 #2: done
            1s r1 gets #3 c until 31s
            2s r1 drained
        "#]],
    );
}

#[test]
fn many_locks_that_run_out_at_once_are_ended_over_several_turns() {
    let settings = BrokerSettings {
        turn_work: 3,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a*10
        0s attach r1
        0s limit r1 10
        30s peek 1 10
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 a until 30s
            0s r1 gets #3 a until 30s
            0s r1 gets #4 a until 30s
            0s r1 gets #5 a until 30s
            0s r1 gets #6 a until 30s
            0s r1 gets #7 a until 30s
            0s r1 gets #8 a until 30s
            0s r1 gets #9 a until 30s
            0s r1 gets #10 a until 30s
            30s peek: #1 a count 1, #2 a count 1, #3 a count 1, #4 a count 1, #5 a count 1, #6 a count 1, #7 a count 1, #8 a count 1, #9 a count 1, #10 a count 1
        "#]],
    );
}

#[test]
fn a_lock_is_over_when_its_time_is_whether_or_not_that_was_noticed() {
    check(
        "
        0s send a
        0s attach r1
        0s limit r1 1
        !30s complete r1 #1
        31s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            30s complete r1 #1: the lock is not held
            31s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn nothing_more_is_locked_while_locks_keep_too_many_changed_properties() {
    let settings = BrokerSettings {
        locked_bytes: 20,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a b c
        0s attach r1
        0s limit r1 1
        1s abandon r1 #1 why=too-long-to-keep-with-others
        2s limit r1 10
        3s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1 why=too-long-to-keep-with-others: done
            2s r1 gets #1 a count 1 why="too-long-to-keep-with-others" until 32s
            3s complete r1 #1: done
            3s r1 gets #2 b until 33s
            3s r1 gets #3 c until 33s
        "#]],
    );
}
