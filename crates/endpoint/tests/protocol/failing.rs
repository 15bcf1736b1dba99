//! Failing: a connection that the peer's error ends, once its deliveries are answered. [AMQP 2.4.3]

use expect_test::expect;

use super::support::{Start, check};

#[test]
fn a_close_for_an_error_of_the_peer_waits_for_answers_to_its_deliveries() {
    check(
        Start::Sending,
        "
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        > 0: transfer h=1 id=1 tag=b body=1
        > 0: transfer h=1 id=2 tag=c body=1 more
        > hex 0000000702000000
        > 0: transfer h=1 id=3 tag=d body=1
        dispose 0 accepted
        status
        dispose 1 accepted
        status",
        &expect![[r#"
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            > 0: transfer h=1 id=1 tag=b body=1
              * Delivery 1 body=1
            > 0: transfer h=1 id=2 tag=c body=1 more
            > hex 0000000702000000
            > 0: transfer h=1 id=3 tag=d body=1
            dispose 0 accepted
              < 0: disposition receiver first=0 last=0 settled state=accepted
            status
              = finished=false deadline=Some(2000) buffered=0
            dispose 1 accepted
              * Closed error=amqp:connection:framing-error
              < 0: disposition receiver first=1 last=1 settled state=accepted
              < close error=amqp:connection:framing-error
            status
              = finished=false deadline=Some(2000) buffered=0
        "#]],
    );
}

#[test]
fn answers_that_do_not_come_hold_a_close_up_for_two_seconds() {
    check(
        Start::Sending,
        "
        > 0: attach in h=1 sender
        accept in
        > 0: transfer h=1 id=0 tag=a body=1
        > hex 0000000702000000
        status
        wait 1999
        status
        wait 1
        status
        wait 2000
        status",
        &expect![[r#"
            > 0: attach in h=1 sender
              * AttachRequested in sender
            accept in
              < 0: attach in h=1 receiver
            > 0: transfer h=1 id=0 tag=a body=1
              * Delivery 0 body=1
            > hex 0000000702000000
            status
              = finished=false deadline=Some(2000) buffered=0
            wait 1999
            status
              = finished=false deadline=Some(2000) buffered=0
            wait 1
              * Closed error=amqp:connection:framing-error
              < close error=amqp:connection:framing-error
            status
              = finished=false deadline=Some(4000) buffered=0
            wait 2000
            status
              = finished=true deadline=None buffered=0
        "#]],
    );
}
