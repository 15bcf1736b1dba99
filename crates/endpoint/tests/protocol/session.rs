//! Session: begin, end and the windows. [AMQP 2.5]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn a_begin_is_answered_with_its_channel() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 7: begin
        > 3: begin
        > 7: end
        > 9: begin",
        &expect![[r#"
            > 7: begin
              * Begun s0
              < 0: begin remote=7 window=100
            > 3: begin
              * Begun s1
              < 1: begin remote=3 window=100
            > 7: end
              * Ended s0
              < 0: end
            > 9: begin
              * Begun s1048576
              < 0: begin remote=9 window=100
        "#]],
    );
}

#[test]
fn a_session_of_ours_is_joined_by_the_peers_begin() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        begin
        > 5: begin remote=0
        > 5: end",
        &expect![[r#"
            begin
              < 0: begin window=100
            > 5: begin remote=0
              * Begun s0
            > 5: end
              * Ended s0
              < 0: end
        "#]],
    );
}

#[test]
fn a_begin_on_a_channel_in_use_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Begun,
        "
        > 0: begin",
        &expect![[r#"
            > 0: begin
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_begin_that_answers_nothing_is_not_allowed() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 0: begin remote=3",
        &expect![[r#"
            > 0: begin remote=3
              * Closed error=amqp:not-allowed
              < close error=amqp:not-allowed
        "#]],
    );
}

#[test]
fn a_channel_above_channel_max_breaks_the_framing() {
    // [AMQP 2.7.1]
    check_with(
        Config {
            channel_max: 7,
            ..config()
        },
        Start::Opened,
        "
        > 8: begin",
        &expect![[r#"
            > 8: begin
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn channel_max_is_no_more_than_the_sessions_allowed() {
    // [AMQP 2.7.1]
    check_with(
        Config {
            max_sessions: 4,
            ..config()
        },
        Start::Fresh,
        "
        > AMQP > open
        > 3: begin
        > 4: begin",
        &expect![[r#"
            > AMQP > open
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=3
            > 3: begin
              * Begun s0
              < 0: begin remote=3 window=100
            > 4: begin
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn we_begin_no_session_above_the_peers_channel_max() {
    // [AMQP 2.7.1]
    check(
        Start::Fresh,
        "
        > AMQP > open channel-max=0
        begin
        begin",
        &expect![[r#"
            > AMQP > open channel-max=0
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            begin
              < 0: begin window=100
            begin
              * Ended s4294967295 error=amqp:resource-limit-exceeded
        "#]],
    );
}

#[test]
fn a_peer_whose_channel_max_leaves_us_no_channel_is_refused() {
    // [AMQP 2.7.1]
    check(
        Start::Fresh,
        "
        > AMQP > open channel-max=0
        > 0: begin
        > 1: begin",
        &expect![[r#"
            > AMQP > open channel-max=0
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 1: begin
              * Closed error=amqp:resource-limit-exceeded
              < close error=amqp:resource-limit-exceeded
        "#]],
    );
}

#[test]
fn an_attach_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: attach a h=0 sender",
        &expect![[r#"
            > 4: attach a h=0 sender
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_flow_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: flow",
        &expect![[r#"
            > 4: flow
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_transfer_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: transfer h=0 id=0 tag=a",
        &expect![[r#"
            > 4: transfer h=0 id=0 tag=a
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_disposition_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: disposition first=0",
        &expect![[r#"
            > 4: disposition first=0
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_detach_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: detach h=0",
        &expect![[r#"
            > 4: detach h=0
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn a_detach_behind_the_end_of_its_session_is_dropped() {
    // [amqp 1.5]
    check(
        Start::Begun,
        "
        > 0: attach in h=0 receiver target=q
        > 0: end
        > 0: detach h=0 closed
        > 0: flow",
        &expect![[r#"
            > 0: attach in h=0 receiver target=q
              * AttachRequested in receiver
            > 0: end
              * Detached closed
              * Ended s0
              < 0: end
            > 0: detach h=0 closed
            > 0: flow
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn an_end_on_a_channel_without_session_is_illegal() {
    // [AMQP 2.5.1]
    check(
        Start::Opened,
        "
        > 4: end",
        &expect![[r#"
            > 4: end
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn an_end_is_answered_and_takes_the_links_along() {
    // [AMQP 2.5.5]
    check(
        Start::Sending,
        "
        send out body=one
        > 0: end error=amqp:internal-error
        send out body=two
        settle 0 accepted
        > 0: flow",
        &expect![[r#"
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            > 0: end error=amqp:internal-error
              * Detached closed error=amqp:internal-error unsettled=[101]
              * Ended s0 error=amqp:internal-error
              < 0: end
            send out body=two
              = no credit
            settle 0 accepted
            > 0: flow
              * Closed error=amqp:illegal-state
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn after_our_end_everything_is_dropped_until_the_answer() {
    // [AMQP 2.5.5]
    check(
        Start::Receiving,
        "
        end error=amqp:internal-error
        > 0: transfer h=0 id=0 tag=a body=late
        > 0: transfer h=99 id=0 tag=a body=late
        > 0: attach late h=1 sender
        > 0: flow h=44 echo
        > 0: disposition first=5 last=2
        > 0: detach h=55
        > 0: end
        > 0: begin",
        &expect![[r#"
            end error=amqp:internal-error
              * Detached closed error=amqp:internal-error
              < 0: end error=amqp:internal-error
            > 0: transfer h=0 id=0 tag=a body=late
            > 0: transfer h=99 id=0 tag=a body=late
            > 0: attach late h=1 sender
            > 0: flow h=44 echo
            > 0: disposition first=5 last=2
            > 0: detach h=55
            > 0: end
              * Ended s0
            > 0: begin
              * Begun s1048576
              < 0: begin remote=0 window=100
        "#]],
    );
}

#[test]
fn a_session_is_ended_before_it_is_joined() {
    // [AMQP 2.5.5]
    check(
        Start::Opened,
        "
        begin
        end
        > 0: begin remote=0
        > 0: end",
        &expect![[r#"
            begin
              < 0: begin window=100
            end
              < 0: end
            > 0: begin remote=0
            > 0: end
              * Ended s0
        "#]],
    );
}

#[test]
fn ends_that_cross_are_not_answered_twice() {
    // [AMQP 2.5.5]
    check(
        Start::Begun,
        "
        end
        > 0: end
        > 0: begin",
        &expect![[r#"
            end
              < 0: end
            > 0: end
              * Ended s0
            > 0: begin
              * Begun s1048576
              < 0: begin remote=0 window=100
        "#]],
    );
}

#[test]
fn a_channel_is_free_again_after_both_ends() {
    // [AMQP 2.5.5]
    check(
        Start::Begun,
        "
        > 0: end
        > 0: begin
        > 0: end
        > 0: begin",
        &expect![[r#"
            > 0: end
              * Ended s0
              < 0: end
            > 0: begin
              * Begun s1048576
              < 0: begin remote=0 window=100
            > 0: end
              * Ended s1048576
              < 0: end
            > 0: begin
              * Begun s2097152
              < 0: begin remote=0 window=100
        "#]],
    );
}

#[test]
fn our_window_is_refreshed_well_before_it_is_used_up() {
    // [AMQP 2.5.6]
    check_with(
        Config {
            incoming_window: 4,
            ..config()
        },
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a settled body=1
        > 0: transfer h=0 id=1 tag=b settled body=2
        > 0: transfer h=0 id=2 tag=c settled body=3
        > 0: transfer h=0 id=3 tag=d settled body=4",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            > 0: transfer h=0 id=1 tag=b settled body=2
              * Delivery 1 settled body=2
              < 0: flow next-in=2 in-window=4 next-out=1
            > 0: transfer h=0 id=2 tag=c settled body=3
              * Delivery 2 settled body=3
            > 0: transfer h=0 id=3 tag=d settled body=4
              * Delivery 3 settled body=4
              < 0: flow next-in=4 in-window=4 next-out=1
        "#]],
    );
}

#[test]
fn a_transfer_beyond_our_window_ends_the_session() {
    // [AMQP 2.8.17]: window-violation
    check_with(
        Config {
            incoming_window: 0,
            ..config()
        },
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: transfer h=0 id=0 tag=a settled body=1 > 0: transfer h=0 id=1 tag=b settled body=2
        refuse in amqp:not-found
        > 0: end",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: transfer h=0 id=0 tag=a settled body=1 > 0: transfer h=0 id=1 tag=b settled body=2
              < 0: flow next-in=1 in-window=1 next-out=1
              < 0: flow next-in=2 in-window=1 next-out=1
            refuse in amqp:not-found
              < 0: attach in h=0 receiver null
              < 0: detach h=0 closed error=amqp:not-found
            > 0: end
              * Detached closed
              * Ended s0
              < 0: end
        "#]],
    );
}

#[test]
fn transfers_wait_for_the_peers_window() {
    // [AMQP 2.5.6]
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10 in-window=1 next-in=1
        send out body=one
        send out body=two
        send out body=three
        status
        > 0: flow in-window=1 next-in=2
        > 0: flow in-window=5 next-in=3
        status",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            > 0: flow h=0 credit=10 in-window=1 next-in=1
              * Credit limit=10
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            send out body=two
            send out body=three
            status
              = finished=false deadline=None buffered=8
            > 0: flow in-window=1 next-in=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=two
            > 0: flow in-window=5 next-in=3
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=three
            status
              = finished=false deadline=None buffered=0
        "#]],
    );
}

#[test]
fn the_peers_window_counts_from_what_it_has_seen() {
    // [AMQP 2.5.6]
    check(
        Start::Sending,
        "
        send out body=one
        send out body=two
        > 0: flow in-window=3 next-in=2
        send out body=three
        send out body=four
        send out body=five",
        &expect![[r#"
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            send out body=two
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=two
            > 0: flow in-window=3 next-in=2
            send out body=three
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=three
            send out body=four
              < 0: transfer h=0 id=3 tag=t format=0 unsettled body=four
            send out body=five
        "#]],
    );
}

#[test]
fn a_flow_that_has_seen_more_than_was_sent_violates_the_window() {
    // [AMQP 2.5.6]
    check(
        Start::Sending,
        "
        > 0: flow in-window=3 next-in=2",
        &expect![[r#"
            > 0: flow in-window=3 next-in=2
              * Detached closed error=amqp:session:window-violation
              * Ended s0 error=amqp:session:window-violation
              < 0: end error=amqp:session:window-violation
        "#]],
    );
}

#[test]
fn a_session_flow_with_echo_is_answered() {
    // [AMQP 2.7.4]
    check(
        Start::Begun,
        "
        > 0: flow echo next-out=17
        > 0: flow",
        &expect![[r#"
            > 0: flow echo next-out=17
              < 0: flow next-in=17 in-window=100 next-out=1
            > 0: flow
        "#]],
    );
}
