//! Ends, faults and transfers that come right behind deliveries: they take effect after them.
//! (docs/spec/amqp.md#3.3)

use expect_test::expect;

use super::support::{Start, check};

#[test]
fn deliveries_in_the_same_read_are_taken_and_answered_before_a_detach() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a body=1 \
         > 0: transfer h=0 id=1 tag=b settled body=2 > 0: detach h=0 closed
        accept in
        dispose 0 accepted",
        &expect![[r#"
            > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a body=1 > 0: transfer h=0 id=1 tag=b settled body=2 > 0: detach h=0 closed
              * AttachRequested in sender
            accept in
              * Delivery 0 body=1
              * Delivery 1 settled body=2
              < 0: attach in h=0 receiver
            dispose 0 accepted
              * Detached closed
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn deliveries_in_the_same_read_are_taken_and_answered_before_an_end() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1 > 0: end > 0: flow h=0 dc=0 credit=1
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1 > 0: end > 0: flow h=0 dc=0 credit=1
              * Delivery 0 body=1
            dispose 0 accepted
              * Detached closed
              * Ended s0
              * Closed error=amqp:illegal-state
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: end
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn deliveries_in_the_same_read_are_taken_and_answered_before_a_close() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1 > 0: close
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1 > 0: close
              * Delivery 0 body=1
            dispose 0 accepted
              * Closed
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < close
        "#]],
    );
}

#[test]
fn input_behind_an_end_that_waits_is_handled_after_it() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1 > 0: detach h=0 closed
        > 0: attach in h=0 sender
        dispose 0 accepted
        accept in",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1 > 0: detach h=0 closed
              * Delivery 0 body=1
            > 0: attach in h=0 sender
            dispose 0 accepted
              * Detached closed
              * AttachRequested in sender
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=0 closed
            accept in
              < 0: attach in h=0 receiver
        "#]],
    );
}

#[test]
fn an_end_takes_effect_without_answers_that_take_too_long() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: close
        wait 1999
        wait 1
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: close
            wait 1999
            wait 1
              * Closed
              < close
            dispose 0 accepted
        "#]],
    );
}

#[test]
fn an_unfinished_delivery_does_not_hold_up_its_link() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: detach h=0 closed",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: detach h=0 closed
              * Detached closed
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn our_own_end_wins_over_one_that_waits() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: detach h=0 closed
        close
        > 0: close",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: detach h=0 closed
            close
              < close
            > 0: close
              * Closed
        "#]],
    );
}

#[test]
fn input_behind_an_end_that_waits_is_taken_before_the_stream_ends() {
    check(
        Start::Receiving,
        "
        > 0: attach other h=1 sender
        accept other
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: detach h=0 closed > 0: transfer h=1 id=1 tag=b settled body=2
        eof",
        &expect![[r#"
            > 0: attach other h=1 sender
              * AttachRequested other sender
            accept other
              < 0: attach other h=1 receiver
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: detach h=0 closed > 0: transfer h=1 id=1 tag=b settled body=2
            eof
              * Detached closed
              * Delivery 1 settled body=2
              * Closed
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn a_transfer_does_not_overtake_those_behind_an_attach_in_the_same_read() {
    check(
        Start::Receiving,
        "
        > 0: attach other h=1 sender > 0: transfer h=1 id=0 tag=a settled body=1 \
         > 0: transfer h=0 id=1 tag=b settled body=2 > 0: transfer h=1 id=2 tag=c settled body=3
        accept other",
        &expect![[r#"
            > 0: attach other h=1 sender > 0: transfer h=1 id=0 tag=a settled body=1 > 0: transfer h=0 id=1 tag=b settled body=2 > 0: transfer h=1 id=2 tag=c settled body=3
              * AttachRequested other sender
            accept other
              * Delivery 0 settled body=1
              * Delivery 1 settled body=2
              * Delivery 2 settled body=3
              < 0: attach other h=1 receiver
        "#]],
    );
}

#[test]
fn a_transfer_waits_for_the_answer_to_an_attach_however_long_it_takes() {
    check(
        Start::Receiving,
        "
        > 0: attach other h=1 sender
        > 0: transfer h=0 id=0 tag=a settled body=1
        > 0: transfer h=1 id=1 tag=b settled body=2
        > 0: transfer h=0 id=2 tag=c settled body=3
        wait 5000
        refuse other amqp:not-found",
        &expect![[r#"
            > 0: attach other h=1 sender
              * AttachRequested other sender
            > 0: transfer h=0 id=0 tag=a settled body=1
              * Delivery 0 settled body=1
            > 0: transfer h=1 id=1 tag=b settled body=2
            > 0: transfer h=0 id=2 tag=c settled body=3
            wait 5000
            refuse other amqp:not-found
              * Delivery 2 settled body=3
              < 0: attach other h=1 receiver null
              < 0: detach h=1 closed error=amqp:not-found
        "#]],
    );
}

#[test]
fn a_close_waits_for_the_answer_to_an_attach_with_deliveries_however_long_it_takes() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 > 0: close
        wait 5000
        accept in",
        &expect![[r#"
            > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 > 0: close
              * AttachRequested in sender
            wait 5000
            accept in
              * Delivery 0 settled body=1
              * Closed
              < 0: attach in h=0 receiver
              < close
        "#]],
    );
}

#[test]
fn answers_have_their_time_from_the_answer_to_the_attach() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a body=1 > 0: detach h=0 closed
        wait 5000
        accept in
        wait 1999
        wait 1",
        &expect![[r#"
            > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a body=1 > 0: detach h=0 closed
              * AttachRequested in sender
            wait 5000
            accept in
              * Delivery 0 body=1
              < 0: attach in h=0 receiver
            wait 1999
            wait 1
              * Detached closed
              < 0: detach h=0 closed
        "#]],
    );
}

#[test]
fn deliveries_are_answered_before_the_end_of_a_session_for_a_fault() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=7 id=1 tag=b body=2
        > 0: transfer h=0 id=2 tag=c body=3
        wait 1999
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=7 id=1 tag=b body=2
            > 0: transfer h=0 id=2 tag=c body=3
            wait 1999
            dispose 0 accepted
              * Detached closed error=amqp:session:unattached-handle
              * Ended s0 error=amqp:session:unattached-handle
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
}

#[test]
fn deliveries_are_answered_before_the_detach_of_their_link_for_a_fault() {
    check(
        Start::Receiving,
        "
        > 0: attach other h=1 sender
        accept other
        > 0: transfer h=1 id=0 tag=a body=1
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: transfer h=0 resume id=2 tag=c body=3 > 0: transfer h=1 id=3 tag=d body=4
        dispose 1 accepted",
        &expect![[r#"
            > 0: attach other h=1 sender
              * AttachRequested other sender
            accept other
              < 0: attach other h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: transfer h=0 resume id=2 tag=c body=3 > 0: transfer h=1 id=3 tag=d body=4
            dispose 1 accepted
              * Detached closed error=amqp:not-implemented
              * Delivery 3 body=4
              < 0: disposition receiver first=1 last=1 settled state=accepted
              < 0: detach h=0 closed error=amqp:not-implemented
        "#]],
    );
}

#[test]
fn a_fault_takes_effect_without_answers_that_take_too_long() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=0 resume id=1 tag=b body=2
        wait 1999
        wait 1
        dispose 0 accepted",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 resume id=1 tag=b body=2
            wait 1999
            wait 1
              * Detached closed error=amqp:not-implemented
              < 0: detach h=0 closed error=amqp:not-implemented
            dispose 0 accepted
        "#]],
    );
}

#[test]
fn a_fault_does_not_wait_for_an_unfinished_delivery() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more body=1
        > 0: transfer h=0 id=1 tag=b body=2",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more body=1
            > 0: transfer h=0 id=1 tag=b body=2
              * Detached closed error=amqp:invalid-field
              < 0: detach h=0 closed error=amqp:invalid-field
        "#]],
    );
}

#[test]
fn a_fault_waits_for_the_answer_to_an_attach_with_deliveries() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 \
         > 0: transfer h=7 id=1 tag=b body=2
        wait 5000
        accept in",
        &expect![[r#"
            > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 > 0: transfer h=7 id=1 tag=b body=2
              * AttachRequested in sender
            wait 5000
            accept in
              * Delivery 0 settled body=1
              * Detached closed error=amqp:session:unattached-handle
              * Ended s0 error=amqp:session:unattached-handle
              < 0: attach in h=0 receiver
              < 0: end error=amqp:session:unattached-handle
        "#]],
    );
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 > 5: end
        wait 5000
        accept in",
        &expect![[r#"
            > 0: attach in h=0 sender > 0: transfer h=0 id=0 tag=a settled body=1 > 5: end
              * AttachRequested in sender
            wait 5000
            accept in
              * Delivery 0 settled body=1
              * Closed error=amqp:illegal-state
              < 0: attach in h=0 receiver
              < close error=amqp:illegal-state
        "#]],
    );
}

#[test]
fn deliveries_are_answered_before_their_link_is_stolen() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: attach in h=1 sender
        dispose 0 accepted
        accept in",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: attach in h=1 sender
            dispose 0 accepted
              * Detached closed error=amqp:link:stolen
              * AttachRequested in sender
              < 0: disposition receiver first=0 last=0 settled state=accepted
              < 0: detach h=0 closed error=amqp:link:stolen
            accept in
              < 0: attach in h=1 receiver
        "#]],
    );
}

#[test]
fn the_stream_ends_at_once_with_a_fault_that_waits() {
    check(
        Start::Receiving,
        "
        > 0: attach other h=1 sender
        accept other
        > 0: transfer h=0 id=0 tag=a body=1
        > 0: transfer h=0 resume id=1 tag=b body=2 > 0: transfer h=1 id=2 tag=c settled body=3
        eof",
        &expect![[r#"
            > 0: attach other h=1 sender
              * AttachRequested other sender
            accept other
              < 0: attach other h=1 receiver
            > 0: transfer h=0 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=0 resume id=1 tag=b body=2 > 0: transfer h=1 id=2 tag=c settled body=3
            eof
              * Detached closed error=amqp:not-implemented
              * Delivery 2 settled body=3
              * Closed
              < 0: detach h=0 closed error=amqp:not-implemented
        "#]],
    );
}

#[test]
fn input_is_untaken_until_the_attach_before_it_is_answered() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        untaken
        > 0: transfer h=0 id=0 tag=a settled body=1
        untaken
        accept in
        untaken
        > 0: transfer h=0 id=1 tag=b body=2
        > 0: detach h=0 closed
        untaken
        dispose 1 accepted
        untaken",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            untaken
              = untaken=false
            > 0: transfer h=0 id=0 tag=a settled body=1
            untaken
              = untaken=true
            accept in
              * Delivery 0 settled body=1
              < 0: attach in h=0 receiver
            untaken
              = untaken=false
            > 0: transfer h=0 id=1 tag=b body=2
              * Delivery 1 body=2
            > 0: detach h=0 closed
            untaken
              = untaken=true
            dispose 1 accepted
              * Detached closed
              < 0: disposition receiver first=1 last=1 settled state=accepted
              < 0: detach h=0 closed
            untaken
              = untaken=false
        "#]],
    );
}
