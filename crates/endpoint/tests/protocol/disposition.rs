//! Disposition: outcomes and settlement in both directions. [AMQP 2.6.12, 2.7.6, 3.4]

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn accepted_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=accepted
        settle 0 accepted
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 accepted",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=accepted
              * Disposed 0 cookie=101 state=accepted
            settle 0 accepted
              < 0: disposition sender first=0 last=0 settled state=accepted
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 accepted
              < 0: disposition receiver first=0 last=0 settled state=accepted
        "#]],
    );
}

#[test]
fn released_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=released
        settle 0 released
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 released",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=released
              * Disposed 0 cookie=101 state=released
            settle 0 released
              < 0: disposition sender first=0 last=0 settled state=released
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 released
              < 0: disposition receiver first=0 last=0 settled state=released
        "#]],
    );
}

#[test]
fn rejected_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=rejected
        settle 0 rejected
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 rejected",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=rejected
              * Disposed 0 cookie=101 state=rejected
            settle 0 rejected
              < 0: disposition sender first=0 last=0 settled state=rejected
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 rejected
              < 0: disposition receiver first=0 last=0 settled state=rejected
        "#]],
    );
}

#[test]
fn modified_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=modified
        settle 0 modified
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 modified",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=modified
              * Disposed 0 cookie=101 state=modified
            settle 0 modified
              < 0: disposition sender first=0 last=0 settled state=modified
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 modified
              < 0: disposition receiver first=0 last=0 settled state=modified
        "#]],
    );
}

#[test]
fn received_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=received
        settle 0 received
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 received",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=received
              * Disposed 0 cookie=101 state=received
            settle 0 received
              < 0: disposition sender first=0 last=0 settled state=received
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 received
              < 0: disposition receiver first=0 last=0 settled state=received
        "#]],
    );
}

#[test]
fn transactional_is_carried_through_both_ways() {
    // [AMQP 3.4, 4.5.8]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=transactional
        settle 0 transactional
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        dispose 0 transactional",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=transactional
              * Disposed 0 cookie=101 state=transactional(state=accepted)
            settle 0 transactional
              < 0: disposition sender first=0 last=0 settled state=transactional(state=accepted)
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 transactional
              < 0: disposition receiver first=0 last=0 settled state=transactional(state=accepted)
        "#]],
    );
}

#[test]
fn declared_answers_a_declare() {
    // [AMQP 4.5.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=declare
        dispose 0 declared",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=declare
              * Delivery 0 body=declare
            dispose 0 declared
              < 0: disposition receiver first=0 last=0 settled state=declared
        "#]],
    );
}

#[test]
fn a_rejection_carries_its_error() {
    // [AMQP 3.4.3]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=rejected-for-cause
        settle 0 rejected-for-cause",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=rejected-for-cause
              * Disposed 0 cookie=101 state=rejected error=com.microsoft:message-lock-lost
            settle 0 rejected-for-cause
              < 0: disposition sender first=0 last=0 settled state=rejected error=com.microsoft:message-lock-lost
        "#]],
    );
}

#[test]
fn a_settled_disposition_forgets_the_delivery() {
    // [AMQP 2.6.12]
    check(
        Start::Sending,
        "
        send out body=1
        > 0: disposition first=0 state=accepted settled
        settle 0 accepted
        > 0: disposition first=0 state=accepted settled",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: disposition first=0 state=accepted settled
              * Disposed 0 cookie=101 settled state=accepted
            settle 0 accepted
            > 0: disposition first=0 state=accepted settled
        "#]],
    );
}

#[test]
fn a_delivery_settled_by_us_is_forgotten() {
    // [AMQP 2.6.12]
    check(
        Start::Sending,
        "
        send out body=1
        settle 0 accepted
        > 0: disposition first=0 state=accepted",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            settle 0 accepted
              < 0: disposition sender first=0 last=0 settled state=accepted
            > 0: disposition first=0 state=accepted
        "#]],
    );
}

#[test]
fn a_state_may_be_sent_before_settlement() {
    // [AMQP 2.6.12]
    check(
        Start::Sending,
        "
        send out body=1
        settle 0 transactional unsettled
        > 0: disposition first=0 state=released
        settle 0 released",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            settle 0 transactional unsettled
              < 0: disposition sender first=0 last=0 state=transactional(state=accepted)
            > 0: disposition first=0 state=released
              * Disposed 0 cookie=101 state=released
            settle 0 released
              < 0: disposition sender first=0 last=0 settled state=released
        "#]],
    );
}

#[test]
fn a_settled_delivery_is_never_disposed_of() {
    // [AMQP 2.6.12]
    check(
        Start::Sending,
        "
        send out settled body=1
        > 0: disposition first=0 state=accepted",
        &expect![[r#"
            send out settled body=1
              < 0: transfer h=0 id=0 tag=t format=0 settled body=1
            > 0: disposition first=0 state=accepted
        "#]],
    );
}

#[test]
fn a_range_covers_what_is_unsettled() {
    // [AMQP 2.7.6]
    check(
        Start::Sending,
        "
        send out body=0
        send out body=1
        send out body=2
        send out body=3
        > 0: disposition first=1 last=1 state=released settled
        > 0: disposition first=0 last=2 state=accepted
        > 0: disposition first=2 last=2147483649 state=modified settled",
        &expect![[r#"
            send out body=0
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=0
            send out body=1
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=2
            send out body=3
              < 0: transfer h=0 id=3 tag=t format=0 unsettled body=3
            > 0: disposition first=1 last=1 state=released settled
              * Disposed 1 cookie=102 settled state=released
            > 0: disposition first=0 last=2 state=accepted
              * Disposed 0 cookie=101 state=accepted
              * Disposed 2 cookie=103 state=accepted
            > 0: disposition first=2 last=2147483649 state=modified settled
              * Disposed 2 cookie=103 settled state=modified
              * Disposed 3 cookie=104 settled state=modified
        "#]],
    );
}

#[test]
fn a_range_that_goes_backwards_ends_the_session() {
    // [AMQP 2.7.6]
    check(
        Start::Sending,
        "
        > 0: disposition first=5 last=4 state=accepted",
        &expect![[r#"
            > 0: disposition first=5 last=4 state=accepted
              * Detached closed error=amqp:invalid-field
              * Ended s0 error=amqp:invalid-field
              < 0: end error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_range_of_half_the_circle_ends_the_session() {
    // [AMQP 2.8.8]
    check(
        Start::Sending,
        "
        > 0: disposition first=0 last=2147483648 state=accepted",
        &expect![[r#"
            > 0: disposition first=0 last=2147483648 state=accepted
              * Detached closed error=amqp:invalid-field
              * Ended s0 error=amqp:invalid-field
              < 0: end error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_range_across_all_links_of_the_session() {
    // [AMQP 2.7.6]
    check(
        Start::Sending,
        "
        > 0: attach out2 h=1 receiver
        accept out2
        > 0: flow h=1 credit=1
        send out body=0
        send out2 body=1
        > 0: disposition first=0 last=1 state=accepted settled",
        &expect![[r#"
            > 0: attach out2 h=1 receiver
              * AttachRequested out2 receiver
            accept out2
              < 0: attach out2 h=1 sender idc=0
            > 0: flow h=1 credit=1
              * Credit limit=1
            send out body=0
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=0
            send out2 body=1
              < 0: transfer h=1 id=1 tag=t format=0 unsettled body=1
            > 0: disposition first=0 last=1 state=accepted settled
              * Disposed 0 cookie=101 settled state=accepted
              * Disposed 1 cookie=102 settled state=accepted
        "#]],
    );
}

#[test]
fn an_unknown_delivery_is_ignored() {
    // [AMQP 2.7.6]
    check(
        Start::Sending,
        "
        > 0: disposition first=77 last=99 state=accepted
        > 0: disposition sender first=77 settled
        dispose 5 accepted
        settle 5 accepted",
        &expect![[r#"
            > 0: disposition first=77 last=99 state=accepted
            > 0: disposition sender first=77 settled
            dispose 5 accepted
            settle 5 accepted
        "#]],
    );
}

#[test]
fn neighbours_with_one_outcome_share_a_disposition() {
    // [AMQP 2.7.6]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=7 tag=a body=1 > 0: transfer h=0 id=8 tag=b body=1 > 0: transfer h=0 id=9 tag=c body=1 > 0: transfer h=0 id=10 tag=d body=1 > 0: transfer h=0 id=11 tag=e body=1
        acts dispose 7 accepted & dispose 8 accepted & dispose 9 accepted & dispose 10 released & dispose 11 released unsettled",
        &expect![[r#"
            > 0: transfer h=0 id=7 tag=a body=1 > 0: transfer h=0 id=8 tag=b body=1 > 0: transfer h=0 id=9 tag=c body=1 > 0: transfer h=0 id=10 tag=d body=1 > 0: transfer h=0 id=11 tag=e body=1
              * Delivery 7 body=1
              * Delivery 8 body=1
              * Delivery 9 body=1
              * Delivery 10 body=1
              * Delivery 11 body=1
            acts dispose 7 accepted & dispose 8 accepted & dispose 9 accepted & dispose 10 released & dispose 11 released unsettled
              < 0: disposition receiver first=7 last=9 settled state=accepted
              < 0: disposition receiver first=10 last=10 settled state=released
              < 0: disposition receiver first=11 last=11 state=released
        "#]],
    );
}

#[test]
fn answers_are_coalesced_as_well() {
    // [AMQP 2.7.6]; docs/spec/amqp.md#5.2
    check(
        Start::Sending,
        "
        send out body=0
        send out body=1
        send out body=2
        > 0: disposition first=0 last=2 state=modified
        acts settle 0 modified & settle 1 modified & settle 2 accepted",
        &expect![[r#"
            send out body=0
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=0
            send out body=1
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=2
            > 0: disposition first=0 last=2 state=modified
              * Disposed 0 cookie=101 state=modified
              * Disposed 1 cookie=102 state=modified
              * Disposed 2 cookie=103 state=modified
            acts settle 0 modified & settle 1 modified & settle 2 accepted
              < 0: disposition sender first=0 last=1 settled state=modified
              < 0: disposition sender first=2 last=2 settled state=accepted
        "#]],
    );
}

#[test]
fn a_disposition_is_not_overtaken_by_a_detach() {
    // [AMQP 2.6.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        acts dispose 0 accepted & detach in closed",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            acts dispose 0 accepted & detach in closed
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn a_disposition_is_not_overtaken_by_an_end() {
    // [AMQP 2.5.5]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        acts dispose 0 accepted & end",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            acts dispose 0 accepted & end
              * Detached closed
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: end
        "#]],
    );
}

#[test]
fn a_disposition_is_not_overtaken_by_a_close() {
    // [AMQP 2.4.3]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        acts dispose 0 accepted & close",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            acts dispose 0 accepted & close
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < close
        "#]],
    );
}

#[test]
fn a_delivery_is_disposed_of_once() {
    // [AMQP 2.6.12]
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        dispose 0 accepted
        dispose 0 released",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 accepted
              < 0: disposition receiver first=0 last=0 settled state=accepted
            dispose 0 released
        "#]],
    );
}

#[test]
fn a_state_is_sent_and_the_sender_settles() {
    // [AMQP 2.6.12]: receiver-settle-mode second
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        dispose 0 accepted unsettled
        > 0: disposition sender first=0 state=accepted settled
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            dispose 0 accepted unsettled
              < 0: disposition receiver first=0 last=0 state=accepted
            > 0: disposition sender first=0 state=accepted settled
              * Updated 0 settled state=accepted
            dispose 0 accepted
        "#]],
    );
}

#[test]
fn a_delivery_that_is_not_answered_in_time_goes_with_its_link() {
    // [AMQP 2.6.5]; docs/spec/amqp.md#rule-20
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: detach h=0 closed
        wait 1999
        wait 1
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: detach h=0 closed
            wait 1999
            wait 1
              * Detached closed
              < 0: detach h=0 closed
            dispose 0 accepted
        "#]],
    );
}

#[test]
fn deliveries_of_a_link_that_is_detached_and_not_closed_can_be_settled() {
    // [AMQP 2.6.4, 2.7.6]; docs/spec/amqp.md#3.8
    check(
        Start::Sending,
        "
        send out body=1
        send out body=2
        > 0: detach h=0
        > 0: disposition first=0 state=accepted
        settle 0 accepted
        > 0: disposition first=0 state=accepted
        > 0: disposition first=1 settled state=released",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=2
            > 0: detach h=0
              * Detached
              < 0: detach h=0
            > 0: disposition first=0 state=accepted
              * Disposed 0 cookie=101 state=accepted
            settle 0 accepted
              < 0: disposition sender first=0 last=0 settled state=accepted
            > 0: disposition first=0 state=accepted
            > 0: disposition first=1 settled state=released
              * Disposed 1 cookie=102 settled state=released
        "#]],
    );
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=0 id=1 tag=b more body=2
        > 0: detach h=0
        dispose 0 accepted
        dispose 1 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 id=1 tag=b more body=2
            > 0: detach h=0
            dispose 0 accepted
              * Detached
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=0
            dispose 1 accepted
        "#]],
    );
}

#[test]
fn an_outcome_of_a_delivery_that_a_detach_had_no_room_to_keep_is_reported() {
    // docs/spec/amqp.md#3.8
    let config = Config {
        max_unsettled: 8,
        ..config()
    };
    check_with(
        config,
        Start::Sending,
        "
        send out body=1
        send out body=2
        send out body=3
        > 0: disposition first=2 settled state=accepted
        send out body=4
        > 0: detach h=0
        > 0: disposition first=1 state=transactional
        > 0: disposition first=1 state=received
        > 0: disposition first=4 state=accepted",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            send out body=2
              < 0: transfer h=0 id=1 tag=t format=0 unsettled body=2
            send out body=3
              < 0: transfer h=0 id=2 tag=t format=0 unsettled body=3
            > 0: disposition first=2 settled state=accepted
              * Disposed 2 cookie=103 settled state=accepted
              * Credit limit=9
            send out body=4
              < 0: transfer h=0 id=3 tag=t format=0 unsettled body=4
            > 0: detach h=0
              * Detached unsettled=[101, 102, 104]
              * Credit limit=10
              < 0: detach h=0
            > 0: disposition first=1 state=transactional
              * Missed state=transactional(state=accepted)
            > 0: disposition first=1 state=received
            > 0: disposition first=4 state=accepted
        "#]],
    );
}

#[test]
fn deliveries_of_a_link_that_is_detached_for_an_error_are_forgotten() {
    // docs/spec/amqp.md#3.8
    check(
        Start::Sending,
        "
        send out body=1
        > 0: detach h=0 error=amqp:internal-error
        > 0: disposition first=0 state=accepted",
        &expect![[r#"
            send out body=1
              < 0: transfer h=0 id=0 tag=t format=0 unsettled body=1
            > 0: detach h=0 error=amqp:internal-error
              * Detached error=amqp:internal-error unsettled=[101]
              < 0: detach h=0
            > 0: disposition first=0 state=accepted
        "#]],
    );
}
