//! Closing: a link whose owner answers the peer's close itself.

use expect_test::expect;

use super::support::{Start, check};

#[test]
fn a_close_that_the_owner_answers_itself_waits_for_its_answer() {
    // [AMQP 2.6.6]; docs/spec/amqp.md#13.3
    check(
        Start::Begun,
        "
        > 0: attach a h=5 receiver
        accept a
        hold-close a
        > 0: detach h=5 closed
        > 0: flow h=5 credit=3
        answer-close a error=amqp:not-allowed
        > 0: attach a h=5 receiver
        accept a
        hold-close a
        > 0: detach h=5
        > 0: attach b h=6 receiver
        accept b
        hold-close b
        > 0: detach h=6 closed
        answer-close b
        > 0: attach c h=7 receiver
        accept c
        hold-close c
        > 0: detach h=7 closed
        > 0: end",
        &expect![[r#"
            > 0: attach a h=5 receiver
              * AttachRequested a receiver
            accept a
              < 0: attach a h=0 sender idc=0
            hold-close a
            > 0: detach h=5 closed
              * Detached closed
            > 0: flow h=5 credit=3
            answer-close a error=amqp:not-allowed
              < 0: detach h=0 closed error=amqp:not-allowed
            > 0: attach a h=5 receiver
              * AttachRequested a receiver
            accept a
              < 0: attach a h=0 sender idc=0
            hold-close a
            > 0: detach h=5
              * Detached
              < 0: detach h=0
            > 0: attach b h=6 receiver
              * AttachRequested b receiver
            accept b
              < 0: attach b h=0 sender idc=0
            hold-close b
            > 0: detach h=6 closed
              * Detached closed
            answer-close b
              < 0: detach h=0 closed
            > 0: attach c h=7 receiver
              * AttachRequested c receiver
            accept c
              < 0: attach c h=0 sender idc=0
            hold-close c
            > 0: detach h=7 closed
              * Detached closed
            > 0: end
              * Ended s0
              < 0: end
        "#]],
    );
}
