//! Transfer: deliveries in both directions. [AMQP 2.6.12-14, 2.7.5]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn a_delivery_in_one_frame_arrives() {
    // [AMQP 2.6.12]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=hello
        > 0: transfer h=0 id=1 tag=b settled body=hello",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=hello
              * Delivery 0 body=hello
            > 0: transfer h=0 id=1 tag=b settled body=hello
              * Delivery 1 settled body=hello
        "#]],
    );
}

#[test]
fn a_delivery_in_many_frames_arrives_once() {
    // [AMQP 2.6.14]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=hel
        > 0: transfer h=0 more
        > 0: transfer h=0 id=0 tag=a body=lo",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=hel
            > 0: transfer h=0 more
            > 0: transfer h=0 id=0 tag=a body=lo
              * Delivery 0 body=hello
        "#]],
    );
}

#[test]
fn any_frame_settles_a_delivery() {
    // [AMQP 2.7.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=0 more settled body=2
        > 0: transfer h=0 unsettled body=3
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=0 more settled body=2
            > 0: transfer h=0 unsettled body=3
              * Delivery 0 settled body=123
            dispose 0 accepted
        "#]],
    );
}

#[test]
fn a_disposition_settles_an_unfinished_delivery() {
    // [AMQP 2.6.12]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: disposition sender first=0 settled
        > 0: transfer h=0 body=2",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: disposition sender first=0 settled
            > 0: transfer h=0 body=2
              * Delivery 0 settled body=12
        "#]],
    );
}

#[test]
fn deliveries_of_two_links_interleave() {
    // [AMQP 2.6.14]
    check(
        Start::Receiving,
        "
        > 0: attach in2 h=1 sender
        accept in2
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=1 id=1 tag=b body=2
        > 0: transfer h=0 body=3
        acts dispose 0 accepted & dispose 1 accepted",
        &expect![[r#"
            > 0: attach in2 h=1 sender
              * AttachRequested in2 sender
            accept in2
              < 0: attach in2 h=1 receiver
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=1 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: transfer h=0 body=3
              * Delivery 0 body=13
            acts dispose 0 accepted & dispose 1 accepted
              < 0: disposition receiver first=0 last=1 settled state=accepted
        "#]],
    );
}

#[test]
fn deliveries_of_one_link_do_not_interleave() {
    // [AMQP 2.6.14, 2.8.15]: invalid-field
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=0 id=1 tag=b body=2
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
            > 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn a_later_frame_does_not_change_the_tag() {
    // [AMQP 2.7.5, 2.8.15]: invalid-field
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=0 id=0 tag=b body=2",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=0 id=0 tag=b body=2
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn an_aborted_delivery_is_forgotten_but_counted() {
    // [AMQP 2.7.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=0 aborted
        dispose 0 accepted
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: flow h=0 echo next-out=3",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=0 aborted
            dispose 0 accepted
            > 0: transfer h=0 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: flow h=0 echo next-out=3
              < 0: flow h=0 dc=2 credit=8 next-in=3 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn a_first_frame_without_delivery_id_is_invalid() {
    // [AMQP 2.7.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 tag=a body=1",
        &expect![[r#"
            > 0: transfer h=0 tag=a body=1
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_first_frame_without_delivery_tag_is_invalid() {
    // [AMQP 2.7.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 body=1",
        &expect![[r#"
            > 0: transfer h=0 id=0 body=1
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_delivery_id_that_goes_back_ends_the_session() {
    // [AMQP 2.6.12]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=5 tag=a settled body=1
        > 0: transfer h=0 id=9 tag=b settled body=1
        > 0: transfer h=0 id=9 tag=c settled body=1",
        &expect![[r#"
            > 0: transfer h=0 id=5 tag=a settled body=1
              * Delivery 5 settled body=1
            > 0: transfer h=0 id=9 tag=b settled body=1
              * Delivery 9 settled body=1
            > 0: transfer h=0 id=9 tag=c settled body=1
              * Detached closed error=amqp:invalid-field
              * Ended s0 error=amqp:invalid-field
              < 0: end error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn delivery_ids_wrap() {
    // [AMQP 2.8.8]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=4294967295 tag=a body=1
        > 0: transfer h=0 id=0 tag=b body=1
        acts dispose 4294967295 accepted & dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=4294967295 tag=a body=1
              * Delivery 4294967295 body=1
            > 0: transfer h=0 id=0 tag=b body=1
              * Delivery 0 body=1
            acts dispose 4294967295 accepted & dispose 0 accepted
              < 0: disposition receiver first=4294967295 last=0 settled state=accepted
        "#]],
    );
}

#[test]
fn a_resumed_delivery_is_not_implemented() {
    // [AMQP 2.6.13]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a resume body=1",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a resume body=1
              * Detached closed error=amqp:not-implemented
              < 0: detach h=0 closed error=amqp:not-implemented
        "#]],
    );
}

#[test]
fn a_transfer_to_our_sender_is_not_allowed() {
    // [AMQP 2.6.12]
    check(
        Start::Sending,
        "
        > 0: transfer h=0 id=0 tag=a body=1",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Detached closed error=amqp:not-allowed
              < 0: detach h=0 closed error=amqp:not-allowed
        "#]],
    );
}

#[test]
fn a_message_above_max_message_size_is_the_owners_to_reject_and_the_link_stays() {
    // [AMQP 2.8.18]: message-size-exceeded
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        accept in max-message-size=10
        credit in 5
        > 0: transfer h=0 id=0 tag=a body=0123456789
        > 0: transfer h=0 id=1 tag=b more body=0123456
        > 0: transfer h=0 more body=789
        > 0: transfer h=0 more body=X
        dispose 1 rejected
        > 0: transfer h=0 more body=0123456789
        left in
        > 0: transfer h=0 body=Y
        > 0: transfer h=0 id=2 tag=c body=0123456789X
        > 0: transfer h=0 id=3 tag=d body=fits
        left in
        partial",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in max-message-size=10
              < 0: attach in h=0 receiver max-message-size=10
            credit in 5
              < 0: flow h=0 dc=0 credit=5 next-in=0 in-window=100 next-out=1
            > 0: transfer h=0 id=0 tag=a body=0123456789
              * Delivery 0 body=0123456789
            > 0: transfer h=0 id=1 tag=b more body=0123456
            > 0: transfer h=0 more body=789
            > 0: transfer h=0 more body=X
              * TooLarge 1
            dispose 1 rejected
              < 0: disposition receiver first=1 last=1 settled state=rejected
            > 0: transfer h=0 more body=0123456789
            left in
              = to receive 3, to send 0
            > 0: transfer h=0 body=Y
            > 0: transfer h=0 id=2 tag=c body=0123456789X
              * TooLarge 2
            > 0: transfer h=0 id=3 tag=d body=fits
              * Delivery 3 body=fits
            left in
              = to receive 1, to send 0
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn an_oversize_delivery_may_be_aborted_or_go_with_its_link() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        accept in max-message-size=3
        > 0: transfer h=0 id=0 tag=a more body=0123
        dispose 0 rejected
        > 0: transfer h=0 aborted
        > 0: transfer h=0 id=1 tag=b more body=0123
        > 0: detach h=0 closed
        dispose 1 rejected
        partial",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in max-message-size=3
              < 0: attach in h=0 receiver max-message-size=3
            > 0: transfer h=0 id=0 tag=a more body=0123
              * TooLarge 0
            dispose 0 rejected
              < 0: disposition receiver first=0 last=0 settled state=rejected
            > 0: transfer h=0 aborted
            > 0: transfer h=0 id=1 tag=b more body=0123
              * TooLarge 1
            > 0: detach h=0 closed
              * Detached closed
              < 0: detach h=0 closed
            dispose 1 rejected
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn a_settled_message_above_max_message_size_is_the_owners_to_detach_for() {
    // No sender would get a rejection. (docs/spec/amqp.md#5.5)
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        accept in max-message-size=3
        > 0: transfer h=0 id=0 tag=a settled more body=0123
        detach in closed error=amqp:link:message-size-exceeded
        > 0: transfer h=0 settled body=4
        > 0: transfer h=0 id=1 tag=b settled body=fit
        > 0: detach h=0 closed
        partial",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in max-message-size=3
              < 0: attach in h=0 receiver max-message-size=3
            > 0: transfer h=0 id=0 tag=a settled more body=0123
              * TooLarge 0 settled
            detach in closed error=amqp:link:message-size-exceeded
              < 0: detach h=0 closed error=amqp:link:message-size-exceeded
            > 0: transfer h=0 settled body=4
            > 0: transfer h=0 id=1 tag=b settled body=fit
            > 0: detach h=0 closed
              * Detached closed
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn a_held_message_above_max_message_size_is_the_owners_to_reject() {
    // [AMQP 2.8.18]: message-size-exceeded
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: transfer h=0 id=0 tag=a body=ok
        > 0: transfer h=0 id=1 tag=b body=0123456789X
        > 0: transfer h=0 id=2 tag=c body=ok
        accept in max-message-size=10",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: transfer h=0 id=0 tag=a body=ok
            > 0: transfer h=0 id=1 tag=b body=0123456789X
            > 0: transfer h=0 id=2 tag=c body=ok
            accept in max-message-size=10
              * Delivery 0 body=ok
              * TooLarge 1
              * Delivery 2 body=ok
              < 0: attach in h=0 receiver max-message-size=10
        "#]],
    );
}

#[test]
fn a_settled_held_message_above_max_message_size_is_the_owners_to_detach_for() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: transfer h=0 id=0 tag=a settled body=0123456789X
        > 0: transfer h=0 id=1 tag=b body=ok
        accept in max-message-size=10
        detach in closed error=amqp:link:message-size-exceeded
        partial",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: transfer h=0 id=0 tag=a settled body=0123456789X
            > 0: transfer h=0 id=1 tag=b body=ok
            accept in max-message-size=10
              * TooLarge 0 settled
              * Delivery 1 body=ok
              < 0: attach in h=0 receiver max-message-size=10
            detach in closed error=amqp:link:message-size-exceeded
              < 0: detach h=0 closed error=amqp:link:message-size-exceeded
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn deliveries_that_repeat_an_id_are_each_answered_on_a_link_that_lets_them() {
    // (docs/spec/amqp.md#7.1)
    check(
        Start::Receiving,
        "
        repeats in
        > 0: transfer h=0 id=5 tag=a body=1
        > 0: transfer h=0 id=5 tag=a body=2
        > 0: transfer h=0 id=4 tag=b body=3
        acts dispose 5 accepted & dispose 5 accepted & dispose 4 accepted & dispose 5 accepted
        > 0: transfer h=0 id=5 tag=a body=4
        dispose 5 accepted
        > 0: transfer h=0 id=6 tag=c body=5
        dispose 6 accepted",
        &expect![[r#"
            repeats in
            > 0: transfer h=0 id=5 tag=a body=1
              * Delivery 5 body=1
            > 0: transfer h=0 id=5 tag=a body=2
              * Delivery 5 body=2
            > 0: transfer h=0 id=4 tag=b body=3
              * Delivery 4 body=3
            acts dispose 5 accepted & dispose 5 accepted & dispose 4 accepted & dispose 5 accepted
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: disposition receiver first=4 last=4 settled state=accepted
            > 0: transfer h=0 id=5 tag=a body=4
              * Delivery 5 body=4
            dispose 5 accepted
              < 0: disposition receiver first=5 last=5 settled state=accepted
            > 0: transfer h=0 id=6 tag=c body=5
              * Delivery 6 body=5
            dispose 6 accepted
              < 0: disposition receiver first=6 last=6 settled state=accepted
        "#]],
    );
}

#[test]
fn a_settled_or_aborted_delivery_that_repeats_an_id_leaves_the_other_unsettled() {
    check(
        Start::Receiving,
        "
        repeats in
        > 0: transfer h=0 id=5 tag=a body=1
        > 0: transfer h=0 id=5 tag=a settled body=2
        > 0: transfer h=0 id=5 tag=a aborted
        dispose 5 accepted
        dispose 5 accepted",
        &expect![[r#"
            repeats in
            > 0: transfer h=0 id=5 tag=a body=1
              * Delivery 5 body=1
            > 0: transfer h=0 id=5 tag=a settled body=2
              * Delivery 5 settled body=2
            > 0: transfer h=0 id=5 tag=a aborted
            dispose 5 accepted
              < 0: disposition receiver first=5 last=5 settled state=accepted
            dispose 5 accepted
        "#]],
    );
}

#[test]
fn a_delivery_of_several_frames_repeats_no_id() {
    check(
        Start::Receiving,
        "
        repeats in
        > 0: transfer h=0 id=5 tag=a body=1
        > 0: transfer h=0 id=5 tag=a more body=2
        dispose 5 accepted",
        &expect![[r#"
            repeats in
            > 0: transfer h=0 id=5 tag=a body=1
              * Delivery 5 body=1
            > 0: transfer h=0 id=5 tag=a more body=2
            dispose 5 accepted
              * Detached closed error=amqp:invalid-field
              * Ended s0 error=amqp:invalid-field
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: end error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn an_id_is_repeated_only_on_a_link_that_lets_it() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=5 tag=a body=1
        > 0: transfer h=0 id=5 tag=a body=2
        dispose 5 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=5 tag=a body=1
              * Delivery 5 body=1
            > 0: transfer h=0 id=5 tag=a body=2
            dispose 5 accepted
              * Detached closed error=amqp:invalid-field
              * Ended s0 error=amqp:invalid-field
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: end error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn repeated_ids_go_with_their_link() {
    check(
        Start::Receiving,
        "
        repeats in
        > 0: transfer h=0 id=5 tag=a body=1
        > 0: transfer h=0 id=5 tag=a body=2
        > 0: detach h=0 closed
        acts dispose 5 accepted & dispose 5 accepted",
        &expect![[r#"
            repeats in
            > 0: transfer h=0 id=5 tag=a body=1
              * Delivery 5 body=1
            > 0: transfer h=0 id=5 tag=a body=2
              * Delivery 5 body=2
            > 0: detach h=0 closed
            acts dispose 5 accepted & dispose 5 accepted
              * Detached closed
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: disposition receiver first=5 last=5 settled state=accepted
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn a_max_message_size_of_zero_is_no_limit() {
    // [AMQP 2.7.3]
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        accept in max-message-size=0
        > 0: transfer h=0 id=0 tag=a size=5000",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in max-message-size=0
              < 0: attach in h=0 receiver max-message-size=0
            > 0: transfer h=0 id=0 tag=a size=5000
              * Delivery 0 size=5000
        "#]],
    );
}

#[test]
fn unfinished_deliveries_share_a_bound() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check_with(
        Config {
            max_partial_bytes: 1_000,
            ..config()
        },
        Start::Receiving,
        "
        > 0: attach in2 h=1 sender
        accept in2
        > 0: transfer h=0 id=0 tag=a more size=400
        > 0: transfer h=1 id=1 tag=b more size=400
        > 0: detach h=1 closed
        > 0: transfer h=0 size=200",
        &expect![[r#"
            > 0: attach in2 h=1 sender
              * AttachRequested in2 sender
            accept in2
              < 0: attach in2 h=1 receiver
            > 0: transfer h=0 id=0 tag=a more size=400
            > 0: transfer h=1 id=1 tag=b more size=400
              * Detached closed error=amqp:resource-limit-exceeded
              < 0: detach h=1 closed error=amqp:resource-limit-exceeded
            > 0: detach h=1 closed
            > 0: transfer h=0 size=200
              * Delivery 0 size=600
        "#]],
    );
}

#[test]
fn a_large_message_is_cut_for_the_peer() {
    // [AMQP 2.6.14]
    check(
        Start::Fresh,
        "
        > AMQP > open max-frame-size=512
        > 0: begin
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10
        send out size=1200
        send out body=small",
        &expect![[r#"
            > AMQP > open max-frame-size=512
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            > 0: flow h=0 credit=10
              * Credit limit=10
            send out size=1200
              < 0: transfer h=0 id=0 tag=t format=0 unsettled more size=485
              < 0: transfer h=0 unsettled more size=487
              < 0: transfer h=0 unsettled size=228
            send out body=small
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=small
        "#]],
    );
}

#[test]
fn a_cut_message_waits_for_the_window_in_the_middle() {
    // [AMQP 2.5.6, 2.6.14]
    check(
        Start::Fresh,
        "
        > AMQP > open max-frame-size=512
        > 0: begin
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10 in-window=2 next-in=1
        send out size=1200
        send out body=small
        status
        > 0: flow in-window=2 next-in=3
        status",
        &expect![[r#"
            > AMQP > open max-frame-size=512
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            accept out
              < 0: attach out h=0 sender idc=0
            > 0: flow h=0 credit=10 in-window=2 next-in=1
              * Credit limit=10
            send out size=1200
              < 0: transfer h=0 id=0 tag=t format=0 unsettled more size=485
              < 0: transfer h=0 unsettled more size=487
            send out body=small
            status
              = finished=false deadline=None buffered=233
            > 0: flow in-window=2 next-in=3
              < 0: transfer h=0 unsettled size=228
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=small
            status
              = finished=false deadline=None buffered=0
        "#]],
    );
}

#[test]
fn a_delivery_carries_its_state() {
    // [AMQP 2.7.5, 4.4.2]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a state=transactional body=1
        dispose 0 transactional",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a state=transactional body=1
              * Delivery 0 state=transactional(state=accepted) body=1
            dispose 0 transactional
              < 0: disposition receiver first=0 last=0 settled state=transactional(state=accepted)
        "#]],
    );
}

#[test]
fn our_delivery_carries_its_state() {
    // [AMQP 2.7.5, 4.4.3]
    check(
        Start::Sending,
        "
        send out state=transactional body=1",
        &expect![[r#"
            send out state=transactional body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled state=transactional(state=accepted) body=1
        "#]],
    );
}

#[test]
fn a_client_may_overrun_the_unsettled_bound_no_further() {
    // [AMQP 2.8.18]: transfer-limit-exceeded
    check_with(
        Config {
            max_unsettled: 2,
            ..config()
        },
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: transfer h=0 id=2 tag=c body=3
        wait 2000",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: transfer h=0 id=2 tag=c body=3
            wait 2000
              * Detached closed error=amqp:link:transfer-limit-exceeded
              < 0: detach h=0 closed error=amqp:link:transfer-limit-exceeded
        "#]],
    );
}

#[test]
fn a_later_frame_does_not_change_the_message_format() {
    // [AMQP 2.7.5]; docs/spec/amqp.md#4.6
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a format=1 more body=1
        > 0: transfer h=0 more body=2
        > 0: transfer h=0 format=1 body=3
        > 0: transfer h=0 id=1 tag=b more body=1
        > 0: transfer h=0 format=7 body=2
        acts dispose 0 accepted & dispose 1 accepted
        > 0: transfer h=0 id=2 tag=c format=1 more body=1
        > 0: transfer h=0 format=0 body=2",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a format=1 more body=1
            > 0: transfer h=0 more body=2
            > 0: transfer h=0 format=1 body=3
              * Delivery 0 body=123
            > 0: transfer h=0 id=1 tag=b more body=1
            > 0: transfer h=0 format=7 body=2
              * Delivery 1 body=12
            acts dispose 0 accepted & dispose 1 accepted
              < 0: disposition receiver first=0 last=1 settled state=accepted
            > 0: transfer h=0 id=2 tag=c format=1 more body=1
            > 0: transfer h=0 format=0 body=2
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_link_that_settles_first_carries_no_delivery_that_settles_second() {
    // [AMQP 2.7.5]; docs/spec/amqp.md#4.6
    check(
        Start::Begun,
        "
        > 0: attach open h=0 sender
        accept open
        > 0: transfer h=0 id=0 tag=a second body=1
        > 0: attach in h=1 sender first
        accept in
        > 0: transfer h=1 id=1 tag=a second settled body=1
        > 0: transfer h=1 id=2 tag=b second body=1",
        &expect![[r#"
            > 0: attach open h=0 sender
              * AttachRequested open sender
            accept open
              < 0: attach open h=0 receiver
            > 0: transfer h=0 id=0 tag=a second body=1
              * Delivery 0 body=1
            > 0: attach in h=1 sender first
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=1 tag=a second settled body=1
              * Delivery 1 settled body=1
            > 0: transfer h=1 id=2 tag=b second body=1
              * Detached closed error=amqp:invalid-field
              < 0: detach h=1 closed error=amqp:invalid-field
        "#]],
    );
}
