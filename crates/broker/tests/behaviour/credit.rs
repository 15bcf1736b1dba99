//! Credit: exact limits, serial numbers, drain, the output buffer.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn on_disk() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        body_bytes: 0,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_smaller_limit_takes_credit_back() {
    check(
        "
        0s attach r1
        0s limit r1 2
        0s send a
        0s limit r1 1
        0s send b
        1s limit r1 0
        1s send c
        2s limit r1 2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s sent from #2
            1s sent from #3
            2s r1 gets #2 b until 32s
        "#]],
    );
}

#[test]
fn a_delivery_that_was_not_handed_over_gives_its_credit_back() {
    check(
        "
        0s attach r1
        0s limit r1 1
        0s send a b
        1s undelivered r1 #1
        2s complete r1 #1
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s undelivered r1 #1: done
            1s r1 gets #1 a until 31s
            2s complete r1 #1: done
        "#]],
    );
}

#[test]
fn a_drain_delivers_what_is_available_and_uses_the_rest_up() {
    check(
        "
        0s attach r1
        0s send a b
        0s limit r1 5 drain
        1s send c
        2s limit r1 5
        3s limit r1 6
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 drained
            1s sent from #3
            3s r1 gets #3 c until 33s
        "#]],
    );
}

#[test]
fn a_drain_without_credit_or_messages_is_answered() {
    check(
        "
        0s attach r1
        0s limit r1 0 drain
        1s limit r1 7 drain
        2s limit r1 7 drain
        ",
        expect![[r#"
            0s r1 drained
            1s r1 drained
            2s r1 drained
        "#]],
    );
}

#[test]
fn a_drain_waits_for_what_is_being_read() {
    check_with(
        on_disk(),
        "
        0s send a b c
        0s attach r1
        0s reads late
        1s limit r1 9 drain
        1s asked
        2s answer
        2s asked
        3s answer
        3s asked
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            1s asked for Active #1 #2
            2s r1 gets #1 a until 32s
            2s r1 gets #2 b until 32s
            2s asked for 2 of Active #3..#4
            3s asked for Active #3
            4s r1 gets #3 c until 34s
            4s r1 drained
        "#]],
    );
}

#[test]
fn a_drain_that_is_taken_back_is_not_answered() {
    check_with(
        on_disk(),
        "
        0s send a
        0s attach r1
        0s reads late
        1s limit r1 9 drain
        2s limit r1 9
        3s answer
        4s send b
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            3s r1 gets #1 a until 33s
            4s sent from #2
            4s r1 gets #2 b until 34s
        "#]],
    );
}

#[test]
fn credit_goes_round_the_end_of_the_serial_numbers() {
    check(
        "
        0s attach r1
        0s limit r1 2000000000 drain
        0s limit r1 4000000000 drain
        0s limit r1 4294967295 drain
        0s limit r1 2
        1s send a*9
        2s limit r1 3
        ",
        expect![[r#"
            0s r1 drained
            0s r1 drained
            0s r1 drained
            1s sent from #1
            1s r1 gets #1 a until 31s
            1s r1 gets #2 a until 31s
            1s r1 gets #3 a until 31s
            2s r1 gets #4 a until 32s
        "#]],
    );
}

#[test]
fn a_full_output_buffer_holds_back_its_connection_and_no_other() {
    let settings = BrokerSettings {
        output_buffer_bytes: 500,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s attach r1
        0s attach r1/2
        0s attach r2
        0s limit r1 9
        0s limit r1/2 9
        0s send a*4
        1s limit r2 1
        2s written r1 100
        3s written r1 257
        4s limit r2 2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1/2 gets #2 a until 30s
            1s r2 gets #3 a until 31s
            2s r1 gets #4 a until 32s
        "#]],
    );
}

#[test]
fn a_blocked_receiver_that_goes_leaves_nothing_behind() {
    let settings = BrokerSettings {
        output_buffer_bytes: 1_000,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s send a*5
        0s attach r1
        0s limit r1 9
        1s detach r1
        1s attach r2
        1s attach r3
        1s limit r3 9
        1s limit r2 9
        2s written r1 1028
        3s send b*3
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 a until 30s
            0s r1 gets #3 a until 30s
            0s r1 gets #4 a until 30s
            1s r3 gets #5 a until 31s
            3s sent from #6
            3s r3 gets #6 b until 33s
            3s r2 gets #7 b until 33s
            3s r3 gets #8 b until 33s
        "#]],
    );
}
