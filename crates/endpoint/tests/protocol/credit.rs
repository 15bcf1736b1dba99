//! Credit: granted, used, drained. [AMQP 2.6.7]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn rule_18_no_more_is_sent_than_the_credit_allows() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-18
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        send out body=0
        > 0: flow h=0 credit=2
        send out body=1
        send out body=2
        send out body=3
        > 0: flow h=0 dc=1 credit=2 next-in=3
        send out body=4
        send out body=5",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            send out body=0
              = no credit
            > 0: flow h=0 credit=2
              * Credit limit=2
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=2
            send out body=3
              = no credit
            > 0: flow h=0 dc=1 credit=2 next-in=3
              * Credit limit=3
            send out body=4
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=4
            send out body=5
              = no credit
        "#]],
    );
}

#[test]
fn credit_is_absolute_and_may_shrink() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#6.2
    check(
        Start::Sending,
        "
        > 0: flow h=0 dc=0 credit=3
        > 0: flow h=0 dc=0 credit=0
        send out body=1
        > 0: flow h=0 dc=0 credit=1
        send out body=2",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=3
              * Credit limit=3
            > 0: flow h=0 dc=0 credit=0
              * Credit limit=0
            send out body=1
              = no credit
            > 0: flow h=0 dc=0 credit=1
              * Credit limit=1
            send out body=2
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=2
        "#]],
    );
}

#[test]
fn credit_without_change_is_no_news() {
    // [AMQP 2.6.7]
    check(
        Start::Sending,
        "
        > 0: flow h=0 dc=0 credit=10
        > 0: flow h=0 credit=10
        > 0: flow h=0",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=10
            > 0: flow h=0 credit=10
            > 0: flow h=0
        "#]],
    );
}

#[test]
fn credit_taken_back_holds_what_waits_for_the_window() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-18
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10 in-window=1 next-in=1
        send out body=one
        send out body=two
        > 0: flow h=0 dc=1 credit=0 in-window=10 next-in=2
        > 0: flow h=0 dc=1 credit=1 in-window=10 next-in=2",
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
            > 0: flow h=0 dc=1 credit=0 in-window=10 next-in=2
              * Credit limit=2
            > 0: flow h=0 dc=1 credit=1 in-window=10 next-in=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=two
        "#]],
    );
}

#[test]
fn counts_wrap() {
    // [AMQP 2.8.10]
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out idc=4294967294
        > 0: flow h=0 credit=4
        send out body=1
        send out body=2
        send out body=3
        > 0: flow h=0 dc=4294967295 credit=4 next-in=3
        send out body=4
        send out body=5
        send out body=6
        > 0: flow h=0 dc=1 credit=5 drain next-in=6
        drained out",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out idc=4294967294
              < 0: attach out h=0 sender idc=4294967294
            > 0: flow h=0 credit=4
              * Credit limit=2
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=2
            send out body=3
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=3
            > 0: flow h=0 dc=4294967295 credit=4 next-in=3
              * Credit limit=3
            send out body=4
              < 0: transfer h=0 id=3 tag=t format=0 unsettled body=4
            send out body=5
              < 0: transfer h=0 id=4 tag=t format=0 unsettled body=5
            send out body=6
              = no credit
            > 0: flow h=0 dc=1 credit=5 drain next-in=6
              * Credit limit=6 drain
            drained out
              < 0: flow h=0 dc=6 credit=0 drain next-in=0 in-window=100 next-out=6
        "#]],
    );
}

#[test]
fn the_largest_credit_is_just_credit() {
    // [AMQP 2.6.7]
    check_with(
        Config {
            max_unsettled: 5,
            ..config()
        },
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=4294967295
        send out body=1",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            > 0: flow h=0 credit=4294967295
              * Credit limit=5
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
        "#]],
    );
}

#[test]
fn credit_beyond_what_we_can_remember_waits_for_settlements() {
    // [AMQP 2.6.7]
    check_with(
        Config {
            max_unsettled: 4,
            ..config()
        },
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=1000
        send out body=1
        send out body=2
        send out body=3
        send out body=4
        send out body=5
        > 0: disposition first=0 state=accepted settled
        > 0: disposition first=1 state=accepted settled
        send out body=5",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            > 0: flow h=0 credit=1000
              * Credit limit=4
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=2
            send out body=3
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=3
            send out body=4
              < 0: transfer h=0 id=3 tag=t format=0 unsettled body=4
            send out body=5
              = no credit
            > 0: disposition first=0 state=accepted settled
              * Disposed 0 cookie=101 settled state=accepted
              * Credit limit=5
            > 0: disposition first=1 state=accepted settled
              * Disposed 1 cookie=102 settled state=accepted
              * Credit limit=6
            send out body=5
              < 0: transfer h=0 id=4 tag=t format=0 unsettled body=5
        "#]],
    );
}

#[test]
fn rule_17_drain_is_always_answered() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-17
    check(
        Start::Sending,
        "
        > 0: flow h=0 dc=0 credit=10 drain
        send out body=1
        drained out
        > 0: flow h=0 dc=10 credit=0 drain next-in=2
        > 0: flow h=0 dc=10 credit=5 next-in=2
        > 0: flow h=0 dc=10 credit=5 drain echo next-in=2
        drained out
        drained out",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=10 drain
              * Credit limit=10 drain
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            drained out
              < 0: flow h=0 dc=10 credit=0 drain next-in=0 in-window=100 next-out=2
            > 0: flow h=0 dc=10 credit=0 drain next-in=2
              < 0: flow h=0 dc=10 credit=0 drain next-in=0 in-window=100 next-out=2
            > 0: flow h=0 dc=10 credit=5 next-in=2
              * Credit limit=15
            > 0: flow h=0 dc=10 credit=5 drain echo next-in=2
              * Credit limit=15 drain
            drained out
              < 0: flow h=0 dc=15 credit=0 drain next-in=0 in-window=100 next-out=2
            drained out
        "#]],
    );
}

#[test]
fn rule_17_drain_is_answered_by_the_last_credit() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-17
    check(
        Start::Sending,
        "
        > 0: flow h=0 dc=0 credit=1 drain
        send out body=1
        drained out",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=1 drain
              * Credit limit=1 drain
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
              < 0: flow h=0 dc=1 credit=0 drain next-in=0 in-window=100 next-out=2
            drained out
        "#]],
    );
}

#[test]
fn rule_17_drain_is_answered_after_the_last_transfer() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-17
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10 in-window=1 next-in=1
        send out body=one
        send out body=two
        > 0: flow h=0 dc=0 credit=10 drain in-window=0 next-in=2
        drained out
        send out body=three
        > 0: flow in-window=10 next-in=2",
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
            > 0: flow h=0 dc=0 credit=10 drain in-window=0 next-in=2
              * Credit limit=10 drain
            drained out
            send out body=three
              = no credit
            > 0: flow in-window=10 next-in=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=two
              < 0: flow h=0 dc=10 credit=0 drain next-in=0 in-window=100 next-out=3
        "#]],
    );
}

#[test]
fn rule_17_drain_is_answered_when_it_is_called_off() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#6.2
    check(
        Start::Sending,
        "
        > 0: flow h=0 dc=0 credit=10 drain
        > 0: flow h=0 dc=0 credit=4
        drained out
        send out body=1",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=10 drain
              * Credit limit=10 drain
            > 0: flow h=0 dc=0 credit=4
              * Credit limit=4
              < 0: flow h=0 dc=0 credit=4 next-in=0 in-window=100 next-out=1
            drained out
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
        "#]],
    );
}

#[test]
fn rule_17_drain_that_came_before_the_attach_was_answered() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-17
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        > 0: flow h=0 credit=3 drain
        accept out
        drained out
        > 0: attach out2 h=1 receiver
        > 0: flow h=1 credit=0 drain
        accept out2",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            > 0: flow h=0 credit=3 drain
            accept out
              * Credit limit=3 drain
              < 0: attach out h=0 sender idc=0
            drained out
              < 0: flow h=0 dc=3 credit=0 drain next-in=0 in-window=100 next-out=1
            > 0: attach out2 h=1 receiver
              * AttachRequested out2 receiver
            > 0: flow h=1 credit=0 drain
            accept out2
              < 0: attach out2 h=1 sender idc=0
              < 0: flow h=1 dc=0 credit=0 drain next-in=0 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn an_echo_is_answered_with_how_things_stand() {
    // [AMQP 2.7.4]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: flow h=0 dc=1 credit=9 echo next-in=2
        > 0: attach in h=1 sender
        accept in
        credit in 5
        > 0: transfer h=1 id=0 tag=a settled body=1
        > 0: flow h=1 dc=1 echo next-in=2 next-out=1",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: flow h=0 dc=1 credit=9 echo next-in=2
              < 0: flow h=0 dc=1 credit=9 next-in=0 in-window=100 next-out=2
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            credit in 5
              < 0: flow h=1 dc=0 credit=5 next-in=0 in-window=100 next-out=2
            > 0: transfer h=1 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            > 0: flow h=1 dc=1 echo next-in=2 next-out=1
              < 0: flow h=1 dc=1 credit=4 next-in=1 in-window=100 next-out=2
        "#]],
    );
}

#[test]
fn our_credit_is_sent_at_once_and_replaces_the_old() {
    // [AMQP 2.6.7]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a settled body=1
        credit in 3
        credit in 0",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            credit in 3
              < 0: flow h=0 dc=1 credit=3 next-in=1 in-window=100 next-out=1
            credit in 0
              < 0: flow h=0 dc=1 credit=0 next-in=1 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn rule_19_a_sender_that_overruns_its_credit_is_tolerated() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#rule-19
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        accept in
        credit in 1
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: transfer h=0 id=2 tag=c settled body=3
        dispose 1 accepted
        credit in 1",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=0 receiver
            credit in 1
              < 0: flow h=0 dc=0 credit=1 next-in=0 in-window=100 next-out=1
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: transfer h=0 id=2 tag=c settled body=3
              * Delivery 2 settled body=3
            dispose 1 accepted
              < 0: disposition receiver first=1 last=1 settled state=accepted
            credit in 1
              < 0: flow h=0 dc=3 credit=1 next-in=3 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn a_senders_own_idea_of_its_credit_is_ignored() {
    // [AMQP 2.6.7]; docs/spec/amqp.md#6.2
    check(
        Start::Receiving,
        "
        > 0: flow h=0 dc=0 credit=99
        > 0: transfer h=0 id=0 tag=a settled body=1
        > 0: flow h=0 dc=0 credit=3 echo next-out=1",
        &expect![[r#"
            > 0: flow h=0 dc=0 credit=99
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            > 0: flow h=0 dc=0 credit=3 echo next-out=1
              < 0: flow h=0 dc=1 credit=9 next-in=1 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn our_drain_ends_when_the_sender_has_used_the_credit() {
    // [AMQP 2.6.7]
    check(
        Start::Receiving,
        "
        credit in 5 drain
        > 0: transfer h=0 id=0 tag=a settled body=1
        > 0: flow h=0 dc=5 credit=0 drain next-out=1
        > 0: flow h=0 dc=5 credit=0 drain next-out=1
        credit in 1",
        &expect![[r#"
            credit in 5 drain
              < 0: flow h=0 dc=0 credit=5 drain next-in=0 in-window=100 next-out=1
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            > 0: flow h=0 dc=5 credit=0 drain next-out=1
              * Drained
            > 0: flow h=0 dc=5 credit=0 drain next-out=1
            credit in 1
              < 0: flow h=0 dc=5 credit=1 next-in=1 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn our_drain_ends_with_the_last_delivery() {
    // [AMQP 2.6.7]
    check(
        Start::Receiving,
        "
        credit in 1 drain
        > 0: transfer h=0 id=0 tag=a settled body=1
        > 0: flow h=0 dc=1 credit=0 drain next-out=1",
        &expect![[r#"
            credit in 1 drain
              < 0: flow h=0 dc=0 credit=1 drain next-in=0 in-window=100 next-out=1
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
              * Drained
            > 0: flow h=0 dc=1 credit=0 drain next-out=1
        "#]],
    );
}

#[test]
fn our_drain_without_credit_is_answered_too() {
    // [AMQP 2.6.7]
    check(
        Start::Receiving,
        "
        credit in 0 drain
        > 0: flow h=0 dc=0 credit=0 drain",
        &expect![[r#"
            credit in 0 drain
              < 0: flow h=0 dc=0 credit=0 drain next-in=0 in-window=100 next-out=1
            > 0: flow h=0 dc=0 credit=0 drain
              * Drained
        "#]],
    );
}

#[test]
fn rule_20_no_frame_follows_the_peers_end() {
    // [AMQP 2.5.5]; docs/spec/amqp.md#rule-20
    check(
        Start::Sending,
        "
        send out body=1
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        > 0: attach late h=2 receiver
        > 0: flow h=0 dc=1 credit=9 drain next-in=2
        acts dispose 0 accepted & refuse late amqp:not-found
        > 0: end
        accept late
        refuse late amqp:not-found
        settle 0 accepted
        dispose 0 accepted
        send out body=2
        drained out
        credit in 10
        detach out closed
        end",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: attach late h=2 receiver
              * AttachRequested late receiver
            > 0: flow h=0 dc=1 credit=9 drain next-in=2
              * Credit limit=10 drain
            acts dispose 0 accepted & refuse late amqp:not-found
              < 0: attach late h=2 sender idc=0 null
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=2 closed error=amqp:not-found
            > 0: end
              * Detached closed unsettled=[101]
              * Detached closed
              * Detached closed
              * Ended s0
              < 0: end
            accept late
            refuse late amqp:not-found
            settle 0 accepted
            dispose 0 accepted
            send out body=2
              = no credit
            drained out
            credit in 10
            detach out closed
            end
        "#]],
    );
}

#[test]
fn rule_20_no_frame_follows_the_peers_detach() {
    // [AMQP 2.6.5]; docs/spec/amqp.md#rule-20
    check(
        Start::Sending,
        "
        send out body=1
        > 0: flow h=0 dc=1 credit=9 drain next-in=2
        > 0: detach h=0 closed
        settle 0 accepted
        send out body=2
        drained out
        detach out closed
        refuse out amqp:not-found",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: flow h=0 dc=1 credit=9 drain next-in=2
              * Credit limit=10 drain
            > 0: detach h=0 closed
              * Detached closed unsettled=[101]
              < 0: detach h=0 closed
            settle 0 accepted
            send out body=2
              = no credit
            drained out
            detach out closed
            refuse out amqp:not-found
        "#]],
    );
}

#[test]
fn the_credit_that_is_left_can_be_asked_for() {
    // [AMQP 2.6.7]
    check(
        Start::Sending,
        "
        left out
        send out body=1
        left out
        > 0: flow h=0 dc=1 credit=3 drain next-in=2
        drained out
        left out
        > 0: attach in h=1 sender
        accept in
        credit in 4
        left in",
        &expect![[r#"
            left out
              = to receive 0, to send 10
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            left out
              = to receive 0, to send 9
            > 0: flow h=0 dc=1 credit=3 drain next-in=2
              * Credit limit=4 drain
            drained out
              < 0: flow h=0 dc=4 credit=0 drain next-in=0 in-window=100 next-out=2
            left out
              = to receive 0, to send 0
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            credit in 4
              < 0: flow h=1 dc=0 credit=4 next-in=0 in-window=100 next-out=2
            left in
              = to receive 4, to send 0
        "#]],
    );
}

#[test]
fn messages_are_not_acquired_within_a_transaction() {
    // [AMQP 4.4.3]; docs/spec/amqp.md#8.1
    check(
        Start::Sending,
        "
        > 0: flow h=0 credit=10 txn-id=t",
        &expect![[r#"
            > 0: flow h=0 credit=10 txn-id=t
              * Detached closed error=amqp:not-implemented
              < 0: detach h=0 closed error=amqp:not-implemented
        "#]],
    );
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        > 0: flow h=0 credit=10 txn-id=t
        accept out",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            > 0: flow h=0 credit=10 txn-id=t
            accept out
              * Detached closed error=amqp:not-implemented
              < 0: attach out h=0 sender idc=0
              < 0: detach h=0 closed error=amqp:not-implemented
        "#]],
    );
}
