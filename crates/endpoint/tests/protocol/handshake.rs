//! Handshake: headers, SASL and open. [AMQP 2.2, 2.4, 5.3]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn plain_amqp_is_answered_by_header_and_open() {
    // [AMQP 2.2, 2.4.1]
    check(
        Start::Fresh,
        "
        > AMQP
        > open
        status",
        &expect![[r#"
            > AMQP
              < AMQP
            > open
              * Opened peer
              < open max-frame-size=65536 channel-max=4999
            status
              = finished=false deadline=None buffered=0
        "#]],
    );
}

#[test]
fn sasl_is_offered_and_decided_by_the_owner() {
    // [AMQP 5.3.2]
    check(
        Start::Fresh,
        "
        > SASL
        > sasl-init PLAIN
        sasl ok
        > AMQP
        > open",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > sasl-init PLAIN
              * SaslInit PLAIN
            sasl ok
              < sasl-outcome Ok
            > AMQP
              < AMQP
            > open
              * Opened peer
              < open max-frame-size=65536 channel-max=4999
        "#]],
    );
}

#[test]
fn everything_in_one_burst_waits_for_the_sasl_decision() {
    // [AMQP 2.4.1, 5.3.2]: a client may pipeline, transfers included
    check(
        Start::Fresh,
        "
        > SASL > sasl-init ANONYMOUS > AMQP > open > 0: begin > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=early > 0: attach out h=1 receiver > 0: flow h=1 credit=5 next-out=1
        sasl ok
        accept in
        credit in 10
        accept out
        send out body=hello",
        &expect![[r#"
            > SASL > sasl-init ANONYMOUS > AMQP > open > 0: begin > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=early > 0: attach out h=1 receiver > 0: flow h=1 credit=5 next-out=1
              * SaslInit ANONYMOUS
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            sasl ok
              * Opened peer
              * Begun s0
              * AttachRequested in sender
              * AttachRequested out receiver
              < sasl-outcome Ok
              < AMQP
              < open max-frame-size=65536 channel-max=4999
              < 0: begin remote=0 window=100
            accept in
              * Delivery 0 settled body=early
              < 0: attach in h=0 receiver
            credit in 10
              < 0: flow h=0 dc=1 credit=10 next-in=1 in-window=100 next-out=1
            accept out
              * Credit limit=5
              < 0: attach out h=1 sender idc=0
            send out body=hello
              < 0: transfer h=1 id=0 tag=t format=0 unsettled body=hello
        "#]],
    );
}

#[test]
fn a_failed_sasl_exchange_ends_the_connection() {
    // [AMQP 5.3.2]
    check(
        Start::Fresh,
        "
        > SASL
        > sasl-init PLAIN
        sasl auth
        > AMQP > open
        status
        wait 2000
        status",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > sasl-init PLAIN
              * SaslInit PLAIN
            sasl auth
              * Closed error=amqp:unauthorized-access
              < sasl-outcome Auth
            > AMQP > open
            status
              = finished=false deadline=Some(2000) buffered=0
            wait 2000
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_mechanism_that_was_not_offered_fails() {
    // [AMQP 5.3.3.2]
    check(
        Start::Fresh,
        "
        > SASL
        > sasl-init GSSAPI",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > sasl-init GSSAPI
              * Closed error=amqp:unauthorized-access
              < sasl-outcome Auth
        "#]],
    );
}

#[test]
fn a_response_without_a_challenge_is_refused() {
    // [AMQP 5.3.3.4]
    check(
        Start::Fresh,
        "
        > SASL
        > sasl-response",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > sasl-response
              * Closed error=amqp:unauthorized-access
              < sasl-outcome Sys
        "#]],
    );
}

#[test]
fn a_server_frame_from_a_client_is_refused() {
    // [AMQP 5.3.3.5]
    check(
        Start::Fresh,
        "
        > SASL
        > sasl-outcome ok",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > sasl-outcome ok
              * Closed error=amqp:unauthorized-access
              < sasl-outcome Sys
        "#]],
    );
}

#[test]
fn an_amqp_frame_inside_sasl_ends_the_connection() {
    // [AMQP 5.3.1]
    check(
        Start::Fresh,
        "
        > SASL
        > open
        status",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > open
              * Closed error=amqp:connection:framing-error
            status
              = finished=false deadline=Some(2000) buffered=0
        "#]],
    );
}

#[test]
fn a_sasl_frame_after_sasl_ends_the_connection() {
    // [AMQP 5.3.1]
    check(
        Start::Opened,
        "
        > sasl-init PLAIN
        > close
        status",
        &expect![[r#"
            > sasl-init PLAIN
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
            > close
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_header_of_another_protocol_is_answered_with_ours() {
    // [AMQP 2.2]
    check(
        Start::Fresh,
        "
        > HTTP
        eof
        status",
        &expect![[r#"
            > HTTP
              * Closed error=amqp:not-implemented
              < AMQP
            eof
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_tls_header_is_answered_with_ours() {
    // [AMQP 5.2]
    check(
        Start::Fresh,
        "
        > TLS",
        &expect![[r#"
            > TLS
              * Closed error=amqp:not-implemented
              < AMQP
        "#]],
    );
}

#[test]
fn a_second_sasl_header_is_answered_with_amqp() {
    // [AMQP 2.2]
    check(
        Start::Fresh,
        "
        > SASL > sasl-init ANONYMOUS
        sasl ok
        > SASL",
        &expect![[r#"
            > SASL > sasl-init ANONYMOUS
              * SaslInit ANONYMOUS
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            sasl ok
              < sasl-outcome Ok
            > SASL
              * Closed error=amqp:not-implemented
              < AMQP
        "#]],
    );
}

#[test]
fn plain_amqp_is_answered_with_sasl_where_sasl_is_required() {
    // [AMQP 2.2, 5.3]
    check_with(
        Config {
            sasl_required: true,
            ..config()
        },
        Start::Fresh,
        "
        > AMQP",
        &expect![[r#"
            > AMQP
              * Closed error=amqp:not-implemented
              < SASL
        "#]],
    );
}

#[test]
fn sasl_is_answered_with_amqp_where_no_mechanism_is_offered() {
    // [AMQP 2.2]
    check_with(
        Config {
            sasl_mechanisms: Vec::new(),
            ..config()
        },
        Start::Fresh,
        "
        > SASL",
        &expect![[r#"
            > SASL
              * Closed error=amqp:not-implemented
              < AMQP
        "#]],
    );
}

#[test]
fn a_client_chooses_its_mechanism_and_opens() {
    // [AMQP 5.3.2]
    check_with(
        Config {
            client_sasl: Some((amqp::Symbol::new("PLAIN"), Vec::new())),
            ..config()
        },
        Start::Client,
        "
        status
        > SASL > sasl-mechanisms PLAIN
        > sasl-outcome ok
        > AMQP > open",
        &expect![[r#"
            status
              = finished=false deadline=Some(30000) buffered=8
              < SASL
            > SASL > sasl-mechanisms PLAIN
              < sasl-init PLAIN
            > sasl-outcome ok
              * SaslOutcome Ok
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > AMQP > open
              * Opened peer
        "#]],
    );
}

#[test]
fn a_client_ends_when_its_mechanism_is_not_offered() {
    // [AMQP 5.3.2]
    check_with(
        Config {
            client_sasl: Some((amqp::Symbol::new("EXTERNAL"), Vec::new())),
            ..config()
        },
        Start::Client,
        "
        > SASL > sasl-mechanisms PLAIN",
        &expect![[r#"
            > SASL > sasl-mechanisms PLAIN
              * Closed error=amqp:unauthorized-access
              < SASL
        "#]],
    );
}

#[test]
fn a_client_ends_when_sasl_fails() {
    // [AMQP 5.3.3.6]
    check_with(
        Config {
            client_sasl: Some((amqp::Symbol::new("PLAIN"), Vec::new())),
            ..config()
        },
        Start::Client,
        "
        > SASL > sasl-mechanisms PLAIN > sasl-outcome auth",
        &expect![[r#"
            > SASL > sasl-mechanisms PLAIN > sasl-outcome auth
              * SaslOutcome Auth
              * Closed error=amqp:unauthorized-access
              < SASL
              < sasl-init PLAIN
        "#]],
    );
}

#[test]
fn a_client_can_not_answer_a_challenge() {
    // [AMQP 5.3.3.3]
    check_with(
        Config {
            client_sasl: Some((amqp::Symbol::new("PLAIN"), Vec::new())),
            ..config()
        },
        Start::Client,
        "
        > SASL > sasl-mechanisms PLAIN > sasl-challenge",
        &expect![[r#"
            > SASL > sasl-mechanisms PLAIN > sasl-challenge
              * Closed error=amqp:not-implemented
              < SASL
              < sasl-init PLAIN
        "#]],
    );
}

#[test]
fn a_client_without_sasl_pipelines_its_frames() {
    // [AMQP 2.4.1]
    check(
        Start::Client,
        "
        begin
        attach out sender
        attach in receiver
        credit in 5
        > AMQP > open > 0: begin remote=0
        > 0: attach out h=4 receiver > 0: flow h=4 credit=1 next-in=1
        send out body=hello",
        &expect![[r#"
            begin
              < AMQP
              < open max-frame-size=65536 channel-max=4999
              < 0: begin window=100
            attach out sender
              < 0: attach out h=0 sender idc=0
            attach in receiver
              < 0: attach in h=1 receiver
            credit in 5
              < 0: flow h=1 credit=5 in-window=100 next-out=1
            > AMQP > open > 0: begin remote=0
              * Opened peer
              * Begun s0
            > 0: attach out h=4 receiver > 0: flow h=4 credit=1 next-in=1
              * Attached out
              * Credit limit=1
            send out body=hello
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=hello
        "#]],
    );
}

#[test]
fn a_client_ends_when_the_header_is_not_its_own() {
    // [AMQP 2.2]
    check(
        Start::Client,
        "
        > SASL",
        &expect![[r#"
            > SASL
              * Closed error=amqp:not-implemented
              < AMQP
              < open max-frame-size=65536 channel-max=4999
        "#]],
    );
}

#[test]
fn anything_but_open_comes_too_early() {
    // [AMQP 2.4.1]
    check(
        Start::Fresh,
        "
        > AMQP
        > 0: begin
        > close
        status",
        &expect![[r#"
            > AMQP
              < AMQP
            > 0: begin
              * Closed error=amqp:illegal-state
              < open max-frame-size=65536 channel-max=4999
              < close error=amqp:illegal-state
            > close
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_close_before_open_comes_too_early() {
    // [AMQP 2.4.3]
    check(
        Start::Fresh,
        "
        > AMQP
        > close",
        &expect![[r#"
            > AMQP
              < AMQP
            > close
              * Closed error=amqp:illegal-state
              < open max-frame-size=65536 channel-max=4999
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_second_open_comes_too_late() {
    // [AMQP 2.4.1]
    check(
        Start::Opened,
        "
        > open",
        &expect![[r#"
            > open
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn open_belongs_on_channel_0() {
    // [AMQP 2.4.1]
    check(
        Start::Fresh,
        "
        > AMQP
        > 1: open",
        &expect![[r#"
            > AMQP
              < AMQP
            > 1: open
              * Closed error=amqp:not-allowed
              < open max-frame-size=65536 channel-max=4999
              < close error=amqp:not-allowed
        "#]],
    );
}

#[test]
fn a_max_frame_size_below_512_is_invalid() {
    // [AMQP 2.7.1]
    check(
        Start::Fresh,
        "
        > AMQP
        > open max-frame-size=511",
        &expect![[r#"
            > AMQP
              < AMQP
            > open max-frame-size=511
              * Closed error=amqp:invalid-field
              < open max-frame-size=65536 channel-max=4999
              < close error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_frame_smaller_than_its_header_breaks_the_framing() {
    // [AMQP 2.3.1]
    check(
        Start::Opened,
        "
        > hex 0000000702000000
        > close
        status",
        &expect![[r#"
            > hex 0000000702000000
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
            > close
            status
              = finished=false deadline=Some(2000) buffered=0
        "#]],
    );
}

#[test]
fn a_data_offset_below_2_breaks_the_framing() {
    // [AMQP 2.3.1]
    check(
        Start::Opened,
        "
        > hex 0000000801000000",
        &expect![[r#"
            > hex 0000000801000000
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn a_data_offset_beyond_the_frame_breaks_the_framing() {
    // [AMQP 2.3.1]
    check(
        Start::Opened,
        "
        > hex 0000000803000000",
        &expect![[r#"
            > hex 0000000803000000
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn an_unknown_frame_type_breaks_the_framing() {
    // [AMQP 2.3.1]
    check(
        Start::Opened,
        "
        > hex 0000000802020000",
        &expect![[r#"
            > hex 0000000802020000
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn a_frame_above_max_frame_size_breaks_the_framing_at_once() {
    // [AMQP 2.7.1]
    check(
        Start::Opened,
        "
        > hex 7fffffff02000000",
        &expect![[r#"
            > hex 7fffffff02000000
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn a_frame_above_64_kib_breaks_the_framing_before_open() {
    // [AMQP 2.7.1]
    check_with(
        Config {
            max_frame_size: 1 << 20,
            ..config()
        },
        Start::Fresh,
        "
        > AMQP
        > hex 0001000102000000",
        &expect![[r#"
            > AMQP
              < AMQP
            > hex 0001000102000000
              * Closed error=amqp:connection:framing-error
              < open max-frame-size=1048576 channel-max=4999
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn a_body_that_is_no_performative_is_a_decode_error() {
    // [AMQP 2.8.15]
    check(
        Start::Opened,
        "
        > hex 0000000c0200000000532045",
        &expect![[r#"
            > hex 0000000c0200000000532045
              * Closed error=amqp:decode-error
              < close error=amqp:decode-error
        "#]],
    );
}

#[test]
fn a_body_that_is_cut_short_is_a_decode_error() {
    // [AMQP 2.8.15]
    check(
        Start::Opened,
        "
        > hex 0000000d0200000000531ac005",
        &expect![[r#"
            > hex 0000000d0200000000531ac005
              * Closed error=amqp:decode-error
              < close error=amqp:decode-error
        "#]],
    );
}

#[test]
fn bytes_after_a_performative_without_payload_are_a_decode_error() {
    // [AMQP 2.3.2]
    check(
        Start::Begun,
        "
        > 0: trailing-flow body=extra",
        &expect![[r#"
            > 0: trailing-flow body=extra
              * Closed error=amqp:decode-error
              < close error=amqp:decode-error
        "#]],
    );
}

#[test]
fn an_empty_frame_is_a_sign_of_life_only() {
    // [AMQP 2.4.5]
    check(
        Start::Opened,
        "
        > empty
        > 7: empty",
        &expect![[r#"
            > empty
            > 7: empty
        "#]],
    );
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up_silently_before_amqp() {
    // [AMQP 5.3.2]
    check(
        Start::Fresh,
        "
        > SASL
        status
        wait 30000
        status",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            status
              = finished=false deadline=Some(30000) buffered=0
            wait 30000
              * Closed error=amqp:connection:forced
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_handshake_that_takes_too_long_is_closed_after_the_header() {
    // [AMQP 2.4.1]
    check(
        Start::Fresh,
        "
        > AMQP
        wait 30000
        status",
        &expect![[r#"
            > AMQP
              < AMQP
            wait 30000
              * Closed error=amqp:connection:forced
              < open max-frame-size=65536 channel-max=4999
              < close error=amqp:connection:forced
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_closed_connection_answers_close() {
    // [AMQP 2.4.3]
    check(
        Start::Opened,
        "
        > close error=amqp:connection:forced
        > open
        status",
        &expect![[r#"
            > close error=amqp:connection:forced
              * Closed error=amqp:connection:forced
              < close
            > open
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn our_close_waits_for_the_answer() {
    // [AMQP 2.4.3]
    check(
        Start::Begun,
        "
        close error=amqp:connection:forced
        > 0: attach late h=0 sender
        status
        > close
        status",
        &expect![[r#"
            close error=amqp:connection:forced
              < close error=amqp:connection:forced
            > 0: attach late h=0 sender
            status
              = finished=false deadline=Some(10000) buffered=0
            > close
              * Closed
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn our_close_does_not_wait_for_ever() {
    // [AMQP 2.4.3]
    check(
        Start::Opened,
        "
        close
        close
        wait 10000
        status",
        &expect![[r#"
            close
              < close
            close
            wait 10000
              * Closed
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_close_before_the_handshake_is_just_the_end() {
    // [AMQP 2.4.3]
    check(
        Start::Fresh,
        "
        > SASL
        close
        status",
        &expect![[r#"
            > SASL
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            close
              * Closed
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_connection_that_is_cut_is_closed_without_error() {
    // [AMQP 2.4.4]
    check(
        Start::Begun,
        "
        eof
        eof
        > 0: attach late h=0 sender
        status",
        &expect![[r#"
            eof
              * Closed
            eof
            > 0: attach late h=0 sender
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn after_our_error_frames_are_read_and_dropped_for_a_while() {
    // [AMQP 2.4.3]
    check(
        Start::Begun,
        "
        > 9: end
        > 0: attach late h=0 sender
        begin
        close
        wait 1999
        status
        wait 1
        status",
        &expect![[r#"
            > 9: end
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
            > 0: attach late h=0 sender
            begin
            close
            wait 1999
            status
              = finished=false deadline=Some(2000) buffered=0
            wait 1
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_client_may_act_before_sasl_is_done() {
    // [AMQP 2.4.1]
    check_with(
        Config {
            client_sasl: Some((amqp::Symbol::new("PLAIN"), Vec::new())),
            ..config()
        },
        Start::Client,
        "
        begin
        attach out sender
        > SASL > sasl-mechanisms PLAIN
        > sasl-outcome ok
        > AMQP > open > 0: begin remote=0 > 0: attach out h=0 receiver",
        &expect![[r#"
            begin
              < SASL
            attach out sender
            > SASL > sasl-mechanisms PLAIN
              < sasl-init PLAIN
            > sasl-outcome ok
              * SaslOutcome Ok
              < AMQP
              < open max-frame-size=65536 channel-max=4999
              < 0: begin window=100
              < 0: attach out h=0 sender idc=0
            > AMQP > open > 0: begin remote=0 > 0: attach out h=0 receiver
              * Opened peer
              * Begun s0
              * Attached out
        "#]],
    );
}

#[test]
fn too_much_ahead_of_the_sasl_decision_ends_the_connection() {
    // [AMQP 5.3.2]
    check(
        Start::Fresh,
        "
        > SASL > sasl-init PLAIN
        > 0: transfer h=0 size=262144
        sasl ok
        status",
        &expect![[r#"
            > SASL > sasl-init PLAIN
              * SaslInit PLAIN
              < SASL
              < sasl-mechanisms MSSBCBS PLAIN ANONYMOUS
            > 0: transfer h=0 size=262144
              * Closed error=amqp:resource-limit-exceeded
            sasl ok
            status
              = finished=false deadline=Some(2000) buffered=0
        "#]],
    );
}

#[test]
fn a_performative_above_64_kib_is_not_decoded() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check_with(
        Config {
            max_frame_size: 1 << 20,
            ..config()
        },
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a size=70000
        dispose 0 accepted
        > 0: trailing-flow size=70000",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a size=70000
              * Delivery 0 size=70000
            dispose 0 accepted
              < 0: disposition receiver first=0 last=0 settled state=accepted
            > 0: trailing-flow size=70000
              * Closed error=amqp:resource-limit-exceeded
              < close error=amqp:resource-limit-exceeded
        "#]],
    );
}
