//! Idle: both time-outs and the heartbeats between them. [AMQP 2.4.5]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn heartbeats_come_at_half_the_peers_idle_time_out() {
    // [AMQP 2.4.5]
    check(
        Start::Fresh,
        "
        > AMQP
        > open idle=10000
        status
        wait 4999
        wait 1
        wait 5000
        status",
        &expect![[r#"
            > AMQP
              < AMQP
            > open idle=10000
              * Opened peer
              < open max-frame-size=65536 channel-max=4999
            status
              = finished=false deadline=Some(5000) buffered=0
            wait 4999
            wait 1
              < empty
            wait 5000
              < empty
            status
              = finished=false deadline=Some(15000) buffered=0
        "#]],
    );
}

#[test]
fn output_counts_as_a_heartbeat() {
    // [AMQP 2.4.5]
    check(
        Start::Fresh,
        "
        > AMQP > open idle=10000
        wait 4000
        > 0: begin
        wait 4999
        wait 1",
        &expect![[r#"
            > AMQP > open idle=10000
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            wait 4000
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            wait 4999
            wait 1
              < empty
        "#]],
    );
}

#[test]
fn silence_for_our_idle_time_out_forces_the_connection_closed() {
    // [AMQP 2.4.5]; docs/spec/amqp.md#1.4
    check_with(
        Config {
            idle_time_out: Some(60_000),
            ..config()
        },
        Start::Opened,
        "
        status
        wait 59999
        > empty
        wait 60000
        status",
        &expect![[r#"
            status
              = finished=false deadline=Some(60000) buffered=0
            wait 59999
            > empty
            wait 60000
              * Closed error=amqp:connection:forced
              < close error=amqp:connection:forced
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn an_unfinished_frame_counts_as_received_too() {
    // [AMQP 2.4.5]
    check_with(
        Config {
            idle_time_out: Some(60_000),
            ..config()
        },
        Start::Opened,
        "
        wait 59999
        > hex 00000010
        wait 59999
        wait 1",
        &expect![[r#"
            wait 59999
            > hex 00000010
            wait 59999
            wait 1
              * Closed error=amqp:connection:forced
              < close error=amqp:connection:forced
        "#]],
    );
}

#[test]
fn an_idle_time_out_of_zero_is_none() {
    // [AMQP 2.7.1]
    check(
        Start::Fresh,
        "
        > AMQP > open idle=0
        status",
        &expect![[r#"
            > AMQP > open idle=0
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            status
              = finished=false deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_tiny_idle_time_out_does_not_make_us_spin() {
    // [AMQP 2.4.5]
    check(
        Start::Fresh,
        "
        > AMQP > open idle=1
        status
        wait 10
        status",
        &expect![[r#"
            > AMQP > open idle=1
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            status
              = finished=false deadline=Some(10) buffered=0
            wait 10
              < empty
            status
              = finished=false deadline=Some(20) buffered=0
        "#]],
    );
}
