//! Link: attach, detach, names and handles. [AMQP 2.6]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn an_attach_is_answered_when_the_owner_accepts() {
    // [AMQP 2.6.3]
    check(
        Start::Begun,
        "
        > 0: attach a h=5 sender
        accept a max-message-size=1000
        credit a 100
        > 0: attach b h=3 receiver
        accept b",
        &expect![[r#"
            > 0: attach a h=5 sender
              * AttachRequested a sender
            accept a max-message-size=1000
              < 0: attach a h=0 receiver max-message-size=1000
            credit a 100
              < 0: flow h=0 dc=0 credit=100 next-in=0 in-window=100 next-out=1
            > 0: attach b h=3 receiver
              * AttachRequested b receiver
            accept b
              < 0: attach b h=1 sender idc=0
        "#]],
    );
}

#[test]
fn an_initial_delivery_count_may_be_missing() {
    // [AMQP 2.7.3]; docs/spec/amqp.md#3.2
    check(
        Start::Begun,
        "
        > 0: attach a h=0 sender
        accept a
        credit a 3
        > 0: attach b h=1 sender idc=4294967295
        accept b
        credit b 3",
        &expect![[r#"
            > 0: attach a h=0 sender
              * AttachRequested a sender
            accept a
              < 0: attach a h=0 receiver
            credit a 3
              < 0: flow h=0 dc=0 credit=3 next-in=0 in-window=100 next-out=1
            > 0: attach b h=1 sender idc=4294967295
              * AttachRequested b sender
            accept b
              < 0: attach b h=1 receiver
            credit b 3
              < 0: flow h=1 dc=4294967295 credit=3 next-in=0 in-window=100 next-out=1
        "#]],
    );
}

#[test]
fn rule_08_a_refusal_is_an_attach_with_null_termini_and_a_detach() {
    // [AMQP 2.6.3]; docs/spec/amqp.md#rule-8
    check(
        Start::Begun,
        "
        > 0: attach a h=0 sender
        refuse a amqp:not-found
        > 0: detach h=0 closed
        > 0: attach b h=0 receiver
        refuse b amqp:unauthorized-access
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: attach a h=0 sender
              * AttachRequested a sender
            refuse a amqp:not-found
              < 0: attach a h=0 receiver null
              < 0: detach h=0 closed error=amqp:not-found
            > 0: detach h=0 closed
              * Detached closed
            > 0: attach b h=0 receiver
              * AttachRequested b receiver
            refuse b amqp:unauthorized-access
              < 0: attach b h=0 sender idc=0 null
              < 0: detach h=0 closed error=amqp:unauthorized-access
            > 0: detach h=0 closed
              * Detached closed
        "#]],
    );
}

#[test]
fn a_refused_link_drops_what_still_comes() {
    // [AMQP 2.6.3]
    check(
        Start::Begun,
        "
        > 0: attach a h=0 sender
        refuse a amqp:not-found
        > 0: transfer h=0 id=0 tag=a body=late
        > 0: flow h=0 credit=4 echo
        > 0: detach h=0 closed
        > 0: detach h=0 closed
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: attach a h=0 sender
              * AttachRequested a sender
            refuse a amqp:not-found
              < 0: attach a h=0 receiver null
              < 0: detach h=0 closed error=amqp:not-found
            > 0: transfer h=0 id=0 tag=a body=late
            > 0: flow h=0 credit=4 echo
            > 0: detach h=0 closed
              * Detached closed
            > 0: detach h=0 closed
            > 0: detach h=0 closed
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn a_link_that_was_refused_may_be_detached_twice() {
    // fe2o3-amqp does; the session's other links live on.
    check(
        Start::Receiving,
        "
        > 0: attach a h=7 sender
        refuse a amqp:not-found
        > 0: detach h=7 closed
        > 0: detach h=7 closed
        > 0: transfer h=0 id=0 tag=a body=hello",
        &expect![[r#"
            > 0: attach a h=7 sender
              * AttachRequested a sender
            refuse a amqp:not-found
              < 0: attach a h=1 receiver null
              < 0: detach h=1 closed error=amqp:not-found
            > 0: detach h=7 closed
              * Detached closed
            > 0: detach h=7 closed
            > 0: transfer h=0 id=0 tag=a body=hello
              * Delivery 0 body=hello
        "#]],
    );
}

#[test]
fn a_second_detach_is_not_let_pass_once_the_handle_had_another_link() {
    // [AMQP 2.8.17]: unattached-handle
    check(
        Start::Begun,
        "
        > 0: attach a h=0 sender
        refuse a amqp:not-found
        > 0: detach h=0 closed
        > 0: attach b h=0 sender
        > 0: detach h=0 closed
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: attach a h=0 sender
              * AttachRequested a sender
            refuse a amqp:not-found
              < 0: attach a h=0 receiver null
              < 0: detach h=0 closed error=amqp:not-found
            > 0: detach h=0 closed
              * Detached closed
            > 0: attach b h=0 sender
              * AttachRequested b sender
            > 0: detach h=0 closed
              * Detached closed
              < 0: attach b h=0 receiver null
              < 0: detach h=0 closed
            > 0: detach h=0 closed
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn flow_for_an_unanswered_link_is_remembered() {
    // [AMQP 2.6.3]; docs/spec/amqp.md#3.3
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        > 0: flow h=0 credit=3 echo
        > 0: flow h=0 credit=4
        accept out
        send out body=hello",
        &expect![[r#"
            > 0: attach out h=0 receiver
              * AttachRequested out receiver
            > 0: flow h=0 credit=3 echo
            > 0: flow h=0 credit=4
            accept out
              * Credit limit=4
              < 0: attach out h=0 sender idc=0
              < 0: flow h=0 dc=0 credit=4 next-in=0 in-window=100 next-out=1
            send out body=hello
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=hello
        "#]],
    );
}

#[test]
fn transfers_for_an_unanswered_link_are_remembered() {
    // [AMQP 2.6.3]; docs/spec/amqp.md#3.3
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: transfer h=0 id=0 tag=a body=one
        > 0: transfer h=0 id=1 tag=b more body=tw
        > 0: disposition sender first=0 settled
        accept in
        > 0: transfer h=0 body=o
        dispose 0 accepted
        dispose 1 accepted",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: transfer h=0 id=0 tag=a body=one
            > 0: transfer h=0 id=1 tag=b more body=tw
            > 0: disposition sender first=0 settled
            accept in
              * Delivery 0 settled body=one
              < 0: attach in h=0 receiver
            > 0: transfer h=0 body=o
              * Delivery 1 body=two
            dispose 0 accepted
            dispose 1 accepted
              < 0: disposition receiver first=1 last=1 settled state=accepted
        "#]],
    );
}

#[test]
fn a_detach_takes_an_unanswered_attach_back() {
    // [AMQP 2.6.4]; docs/spec/amqp.md#3.4
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: detach h=0 closed
        accept in
        refuse in amqp:not-found
        detach in closed
        > 0: attach in h=0 sender",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: detach h=0 closed
              * Detached closed
              < 0: attach in h=0 receiver null
              < 0: detach h=0 closed
            accept in
            refuse in amqp:not-found
            detach in closed
            > 0: attach in h=0 sender
              * AttachRequested in sender
        "#]],
    );
}

#[test]
fn an_end_takes_an_unanswered_attach_back() {
    // [AMQP 2.5.5]; docs/spec/amqp.md#3.4
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: end
        accept in
        refuse in amqp:not-found",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: end
              * Detached closed
              * Ended s0
              < 0: end
            accept in
            refuse in amqp:not-found
        "#]],
    );
}

#[test]
fn an_answered_link_is_not_answered_again() {
    // [AMQP 2.6.3]
    check(
        Start::Receiving,
        "
        accept in
        refuse in amqp:not-found",
        &expect![[r#"
            accept in
            refuse in amqp:not-found
        "#]],
    );
}

#[test]
fn a_detach_is_answered_in_kind() {
    // [AMQP 2.6.5-6]
    check(
        Start::Receiving,
        "
        > 0: detach h=0
        > 0: attach in h=0 sender
        accept in
        > 0: detach h=0 closed error=amqp:internal-error",
        &expect![[r#"
            > 0: detach h=0
              * Detached
              < 0: detach h=0
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=0 receiver
            > 0: detach h=0 closed error=amqp:internal-error
              * Detached closed error=amqp:internal-error
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn our_detach_waits_for_the_answer() {
    // [AMQP 2.6.5]
    check(
        Start::Sending,
        "
        send out body=one
        detach out closed error=amqp:resource-deleted
        send out body=two
        > 0: disposition first=0 state=accepted settled
        > 0: flow h=0 credit=100
        detach out closed
        > 0: detach h=0 closed
        > 0: detach h=0 closed
        > 0: detach h=0 closed",
        &expect![[r#"
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            detach out closed error=amqp:resource-deleted
              < 0: detach h=0 closed error=amqp:resource-deleted
            send out body=two
              = no credit
            > 0: disposition first=0 state=accepted settled
              * Disposed 0 cookie=101 settled state=accepted
            > 0: flow h=0 credit=100
            detach out closed
            > 0: detach h=0 closed
              * Detached closed
            > 0: detach h=0 closed
            > 0: detach h=0 closed
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn a_detach_reports_what_was_not_settled() {
    // [AMQP 2.6.5]
    check(
        Start::Sending,
        "
        send out body=one
        send out body=two
        send out settled body=three
        > 0: disposition first=0 state=accepted settled
        > 0: detach h=0 closed
        > 0: disposition first=1 state=accepted",
        &expect![[r#"
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            send out body=two
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=two
            send out settled body=three
              < 0: transfer h=0 id=2 tag=t format=0 settled body=three
            > 0: disposition first=0 state=accepted settled
              * Disposed 0 cookie=101 settled state=accepted
            > 0: detach h=0 closed
              * Detached closed unsettled=[102]
              < 0: detach h=0 closed
            > 0: disposition first=1 state=accepted
        "#]],
    );
}

#[test]
fn deliveries_that_never_left_count_as_unsettled() {
    // [AMQP 2.6.5]
    check(
        Start::Begun,
        "
        > 0: attach out h=0 receiver
        accept out
        > 0: flow h=0 credit=10 in-window=1 next-in=1
        send out body=one
        send out body=two
        send out settled body=three
        > 0: detach h=0 closed
        status
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
            send out settled body=three
            > 0: detach h=0 closed
              * Detached closed unsettled=[101, 102]
              < 0: detach h=0 closed
            status
              = finished=false deadline=None buffered=0
            > 0: flow in-window=10 next-in=2
        "#]],
    );
}

#[test]
fn a_handle_in_use_ends_the_session() {
    // [AMQP 2.8.17]: handle-in-use
    check(
        Start::Receiving,
        "
        > 0: attach other h=0 sender",
        &expect![[r#"
            > 0: attach other h=0 sender
              * Detached closed error=amqp:session:handle-in-use
              * Ended s0 error=amqp:session:handle-in-use
              < 0: end error=amqp:session:handle-in-use
        "#]],
    );
}

#[test]
fn a_handle_in_use_stays_so_until_the_peer_has_detached() {
    // [AMQP 2.6.4]
    check(
        Start::Receiving,
        "
        detach in closed
        > 0: attach other h=0 sender",
        &expect![[r#"
            detach in closed
              < 0: detach h=0 closed
            > 0: attach other h=0 sender
              * Detached closed error=amqp:session:handle-in-use
              * Ended s0 error=amqp:session:handle-in-use
              < 0: end error=amqp:session:handle-in-use
        "#]],
    );
}

#[test]
fn a_handle_above_handle_max_breaks_the_framing() {
    // [AMQP 2.7.2]
    check_with(
        Config {
            handle_max: 7,
            ..config()
        },
        Start::Begun,
        "
        > 0: attach a h=8 sender",
        &expect![[r#"
            > 0: attach a h=8 sender
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
        "#]],
    );
}

#[test]
fn a_peer_whose_handle_max_leaves_us_no_handle_loses_the_session() {
    // [AMQP 2.7.2]
    check(
        Start::Opened,
        "
        > 0: begin handle-max=0
        > 0: attach a h=0 sender
        > 0: attach b h=1 sender
        accept a
        accept b",
        &expect![[r#"
            > 0: begin handle-max=0
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach a h=0 sender
              * AttachRequested a sender
            > 0: attach b h=1 sender
              * AttachRequested b sender
            accept a
              < 0: attach a h=0 receiver
            accept b
              * Detached closed error=amqp:resource-limit-exceeded
              * Detached closed error=amqp:resource-limit-exceeded
              * Ended s0 error=amqp:resource-limit-exceeded
              < 0: end error=amqp:resource-limit-exceeded
        "#]],
    );
}

#[test]
fn a_detach_of_an_unattached_handle_ends_the_session() {
    // [AMQP 2.8.17]: unattached-handle
    check(
        Start::Begun,
        "
        > 0: detach h=3 closed
        > 0: end",
        &expect![[r#"
            > 0: detach h=3 closed
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
            > 0: end
        "#]],
    );
}

#[test]
fn a_flow_for_an_unattached_handle_ends_the_session() {
    // [AMQP 2.8.17]: unattached-handle
    check(
        Start::Begun,
        "
        > 0: flow h=3 credit=1",
        &expect![[r#"
            > 0: flow h=3 credit=1
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn a_transfer_on_an_unattached_handle_ends_the_session() {
    // [AMQP 2.8.17]: unattached-handle
    check(
        Start::Begun,
        "
        > 0: transfer h=3 id=0 tag=a",
        &expect![[r#"
            > 0: transfer h=3 id=0 tag=a
              * Ended s0 error=amqp:session:unattached-handle
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn the_same_name_and_role_steals_the_link() {
    // [AMQP 2.6.1, 2.8.18]: stolen
    check(
        Start::Sending,
        "
        send out body=one
        > 0: attach out h=1 receiver
        accept out
        > 0: detach h=0 closed
        > 0: flow h=1 credit=1 next-in=2
        send out body=two",
        &expect![[r#"
            send out body=one
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=one
            > 0: attach out h=1 receiver
              * Detached closed error=amqp:link:stolen unsettled=[101]
              * AttachRequested out receiver
              < 0: detach h=0 closed error=amqp:link:stolen
            accept out
              < 0: attach out h=1 sender idc=0
            > 0: detach h=0 closed
            > 0: flow h=1 credit=1 next-in=2
              * Credit limit=1
            send out body=two
              < 0: transfer h=1 id=1 tag=t format=0 unsettled body=two
        "#]],
    );
}

#[test]
fn a_link_is_stolen_from_another_session_too() {
    // [AMQP 2.6.1]
    check(
        Start::Receiving,
        "
        > 1: begin
        > 1: attach in h=0 sender
        accept in
        > 0: detach h=0 closed",
        &expect![[r#"
            > 1: begin
              * Begun s1
              < 1: begin remote=1 window=100
            > 1: attach in h=0 sender
              * Detached closed error=amqp:link:stolen
              * AttachRequested in sender
              < 0: detach h=0 closed error=amqp:link:stolen
            accept in
              < 1: attach in h=0 receiver
            > 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn an_unanswered_link_is_stolen_too() {
    // [AMQP 2.6.1]
    check(
        Start::Begun,
        "
        > 0: attach a h=0 receiver
        > 0: attach a h=1 receiver
        accept a
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: attach a h=0 receiver
              * AttachRequested a receiver
            > 0: attach a h=1 receiver
              * Detached closed error=amqp:link:stolen
              * AttachRequested a receiver
              < 0: attach a h=0 sender idc=0 null
              < 0: detach h=0 closed error=amqp:link:stolen
            accept a
              < 0: attach a h=1 sender idc=0
            > 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn opposite_roles_may_share_a_name() {
    // [AMQP 2.6.1]
    check(
        Start::Begun,
        "
        > 0: attach a h=0 receiver
        > 0: attach a h=1 sender
        accept a",
        &expect![[r#"
            > 0: attach a h=0 receiver
              * AttachRequested a receiver
            > 0: attach a h=1 sender
              * AttachRequested a sender
            accept a
              < 0: attach a h=0 receiver
        "#]],
    );
}

#[test]
fn a_name_is_free_again_after_a_detach() {
    // [AMQP 2.6.1]
    check(
        Start::Receiving,
        "
        > 0: detach h=0 closed
        > 0: attach in h=0 sender",
        &expect![[r#"
            > 0: detach h=0 closed
              * Detached closed
              < 0: detach h=0 closed
            > 0: attach in h=0 sender
              * AttachRequested in sender
        "#]],
    );
}

#[test]
fn a_link_that_is_on_its_way_out_is_not_stolen() {
    // [AMQP 2.6.1]
    check(
        Start::Receiving,
        "
        detach in closed
        > 0: attach in h=1 sender
        accept in
        > 0: detach h=0 closed",
        &expect![[r#"
            detach in closed
              < 0: detach h=0 closed
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: detach h=0 closed
              * Detached closed
        "#]],
    );
}

#[test]
fn links_beyond_the_limit_are_refused_without_asking() {
    // [AMQP 2.6.3]
    check_with(
        Config {
            max_links_per_session: 1,
            ..config()
        },
        Start::Receiving,
        "
        > 0: attach b h=1 sender
        > 0: detach h=1 closed
        > 0: detach h=0 closed
        > 0: attach b h=1 sender",
        &expect![[r#"
            > 0: attach b h=1 sender
              < 0: attach b h=1 receiver null
              < 0: detach h=1 closed error=amqp:resource-limit-exceeded
            > 0: detach h=1 closed
            > 0: detach h=0 closed
              * Detached closed
              < 0: detach h=0 closed
            > 0: attach b h=1 sender
              * AttachRequested b sender
        "#]],
    );
}

#[test]
fn our_attach_is_answered() {
    // [AMQP 2.6.3]
    check(
        Start::Begun,
        "
        attach mine receiver
        credit mine 5
        > 0: attach mine h=9 sender idc=7
        credit mine 5
        > 0: transfer h=9 id=0 tag=a settled body=one
        detach mine closed
        > 0: detach h=9 closed",
        &expect![[r#"
            attach mine receiver
              < 0: attach mine h=0 receiver
            credit mine 5
              < 0: flow h=0 credit=5 next-in=0 in-window=100 next-out=1
            > 0: attach mine h=9 sender idc=7
              * Attached mine
            credit mine 5
              < 0: flow h=0 dc=7 credit=5 next-in=0 in-window=100 next-out=1
            > 0: transfer h=9 id=0 tag=a settled body=one
              * Delivery 0 settled body=one
            detach mine closed
              < 0: detach h=0 closed
            > 0: detach h=9 closed
              * Detached closed
        "#]],
    );
}

#[test]
fn our_attach_is_refused() {
    // [AMQP 2.6.3]
    check(
        Start::Begun,
        "
        attach mine sender
        > 0: attach mine h=9 receiver null
        send mine body=hello
        > 0: detach h=9 closed error=amqp:not-found",
        &expect![[r#"
            attach mine sender
              < 0: attach mine h=0 sender idc=0
            > 0: attach mine h=9 receiver null
              * Attached mine
            send mine body=hello
              = no credit
            > 0: detach h=9 closed error=amqp:not-found
              * Detached closed error=amqp:not-found
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn our_attach_is_taken_back_before_the_answer() {
    // [AMQP 2.6.4]
    check(
        Start::Begun,
        "
        attach mine sender
        detach mine closed
        > 0: attach mine h=9 receiver
        > 0: detach h=9 closed",
        &expect![[r#"
            attach mine sender
              < 0: attach mine h=0 sender idc=0
            detach mine closed
              < 0: detach h=0 closed
            > 0: attach mine h=9 receiver
            > 0: detach h=9 closed
              * Detached closed
        "#]],
    );
}

#[test]
fn detached_links_that_keep_sending_are_dropped_silently() {
    // [AMQP 2.6.4]
    check(
        Start::Receiving,
        "
        detach in closed error=amqp:link:detach-forced
        > 0: transfer h=0 id=0 tag=a body=late
        > 0: transfer h=0 id=1 tag=b body=late
        > 0: disposition sender first=0 last=1 settled
        > 0: detach h=0 closed",
        &expect![[r#"
            detach in closed error=amqp:link:detach-forced
              < 0: detach h=0 closed error=amqp:link:detach-forced
            > 0: transfer h=0 id=0 tag=a body=late
            > 0: transfer h=0 id=1 tag=b body=late
            > 0: disposition sender first=0 last=1 settled
            > 0: detach h=0 closed
              * Detached closed
        "#]],
    );
}

#[test]
fn an_attach_that_the_peer_can_not_read_refuses_the_link() {
    // [AMQP 2.8.15]: frame-size-too-small
    check(
        Start::Fresh,
        "
        > AMQP > open max-frame-size=512
        > 0: begin
        > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
        accept nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
        &expect![[r#"
            > AMQP > open max-frame-size=512
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
              * AttachRequested nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn sender
            accept nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
              * Detached closed error=amqp:frame-size-too-small
              < 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 receiver null
              < 0: detach h=0 closed error=amqp:frame-size-too-small
        "#]],
    );
}

#[test]
fn a_name_that_not_even_a_refusal_can_carry_ends_the_session() {
    // [AMQP 2.8.15]: frame-size-too-small
    check(
        Start::Fresh,
        "
        > AMQP > open max-frame-size=512
        > 0: begin
        > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
        refuse nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn amqp:not-found",
        &expect![[r#"
            > AMQP > open max-frame-size=512
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
              * AttachRequested nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn sender
            refuse nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn amqp:not-found
              * Detached closed error=amqp:frame-size-too-small
              * Ended s0 error=amqp:frame-size-too-small
              < 0: end error=amqp:frame-size-too-small
        "#]],
    );
}

#[test]
fn a_name_that_is_too_long_to_keep_is_refused() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check(
        Start::Begun,
        "
        > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 sender
              < 0: attach nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn h=0 receiver null
              < 0: detach h=0 closed error=amqp:resource-limit-exceeded
            > 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn an_error_that_is_too_long_for_the_peer_keeps_its_condition() {
    // [AMQP 2.7.1]
    check(
        Start::Fresh,
        "
        > AMQP > open max-frame-size=512
        > 0: begin
        > 0: attach in h=0 sender
        accept in
        detach in closed error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
        > 0: detach h=0 closed
        end error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
        > 0: end
        close error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
        &expect![[r#"
            > AMQP > open max-frame-size=512
              * Opened peer
              < AMQP
              < open max-frame-size=65536 channel-max=4999
            > 0: begin
              * Begun s0
              < 0: begin remote=0 window=100
            > 0: attach in h=0 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=0 receiver
            detach in closed error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
              < 0: detach h=0 closed error=amqp:not-found
            > 0: detach h=0 closed
              * Detached closed
            end error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
              < 0: end error=amqp:not-found
            > 0: end
              * Ended s0
            close error=amqp:not-found why=wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
              < close error=amqp:not-found
        "#]],
    );
}
