//! Bounds: the limits of a peer while they are narrowed, and the deliveries that it loses.

use endpoint::Config;
use expect_test::expect;

use super::support::script::config;
use super::support::{Start, check, check_with};

#[test]
fn a_confined_peer_gets_few_sessions_until_it_is_free() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check(
        Start::Begun,
        "
        set-bounds sessions=2
        > 1: begin
        set-bounds off
        > 2: begin
        set-bounds sessions=2
        > 3: begin",
        &expect![[r#"
            set-bounds sessions=2
            > 1: begin
              * Begun s1
              < 1: begin remote=1 window=100
            set-bounds off
            > 2: begin
              * Begun s2
              < 2: begin remote=2 window=100
            set-bounds sessions=2
            > 3: begin
              * Closed error=amqp:resource-limit-exceeded
              < close error=amqp:resource-limit-exceeded
        "#]],
    );
}

#[test]
fn a_confined_peer_gets_few_links_over_all_sessions() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check(
        Start::Receiving,
        "
        set-bounds links=2
        > 1: begin
        > 1: attach a h=0 sender
        > 0: attach b h=1 sender
        > 0: detach h=1 closed
        set-bounds off
        > 0: attach b h=1 sender",
        &expect![[r#"
            set-bounds links=2
            > 1: begin
              * Begun s1
              < 1: begin remote=1 window=100
            > 1: attach a h=0 sender
              * AttachRequested a sender
            > 0: attach b h=1 sender
              < 0: attach b h=1 receiver null
              < 0: detach h=1 closed error=amqp:resource-limit-exceeded
            > 0: detach h=1 closed
            set-bounds off
            > 0: attach b h=1 sender
              * AttachRequested b sender
        "#]],
    );
}

#[test]
fn a_confined_peer_may_leave_little_unfinished() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check(
        Start::Receiving,
        "
        set-bounds partial=1000
        > 0: transfer h=0 id=0 tag=a more size=700
        set-bounds off
        > 0: transfer h=0 more size=700
        set-bounds partial=1000
        > 0: transfer h=0 more size=1
        partial",
        &expect![[r#"
            set-bounds partial=1000
            > 0: transfer h=0 id=0 tag=a more size=700
            set-bounds off
            > 0: transfer h=0 more size=700
            set-bounds partial=1000
            > 0: transfer h=0 more size=1
              * Detached closed error=amqp:resource-limit-exceeded
              < 0: detach h=0 closed error=amqp:resource-limit-exceeded
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn bounds_never_allow_more_than_the_configuration() {
    check_with(
        Config {
            max_sessions: 1,
            channel_max: 9,
            max_partial_bytes: 1_000,
            ..config()
        },
        Start::Receiving,
        "
        set-bounds sessions=5 links=5 partial=5000
        > 0: transfer h=0 id=0 tag=a more size=1000",
        &expect![[r#"
            set-bounds sessions=5 links=5 partial=5000
            > 0: transfer h=0 id=0 tag=a more size=1000
              * Detached closed error=amqp:resource-limit-exceeded
              < 0: detach h=0 closed error=amqp:resource-limit-exceeded
        "#]],
    );
}

#[test]
fn the_state_of_an_unfinished_delivery_counts_until_it_is_finished() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a more size=100
        partial
        > 0: transfer h=0 more state=transactional
        partial
        > 0: transfer h=0 more state=accepted
        partial
        > 0: transfer h=0 size=100
        partial",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a more size=100
            partial
              = 356 bytes
            > 0: transfer h=0 more state=transactional
            partial
              = 996 bytes
            > 0: transfer h=0 more state=accepted
            partial
              = 596 bytes
            > 0: transfer h=0 size=100
              * Delivery 0 state=accepted size=200
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn the_state_of_a_delivery_that_waits_for_the_owner_counts() {
    check(
        Start::Begun,
        "
        > 0: attach in h=0 sender
        > 0: transfer h=0 id=0 tag=a size=100
        partial
        > 0: transfer h=0 id=1 tag=b state=transactional size=100
        partial
        accept in
        partial",
        &expect![[r#"
            > 0: attach in h=0 sender
              * AttachRequested in sender
            > 0: transfer h=0 id=0 tag=a size=100
            partial
              = 356 bytes
            > 0: transfer h=0 id=1 tag=b state=transactional size=100
            partial
              = 1352 bytes
            accept in
              * Delivery 0 size=100
              * Delivery 1 state=transactional(state=accepted) size=100
              < 0: attach in h=0 receiver
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn the_largest_unfinished_delivery_is_given_up_first() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    check(
        Start::Receiving,
        "
        > 0: attach in2 h=1 sender
        accept in2
        > 0: attach in3 h=2 sender
        accept in3
        > 0: transfer h=0 id=0 tag=a more size=10
        > 0: transfer h=1 id=1 tag=b more size=3000
        > 0: transfer h=2 id=2 tag=c more size=2000
        shed 1
        > 0: transfer h=1 size=10
        shed 2300
        > 0: transfer h=2 size=10
        partial",
        &expect![[r#"
            > 0: attach in2 h=1 sender
              * AttachRequested in2 sender
            accept in2
              < 0: attach in2 h=1 receiver
            > 0: attach in3 h=2 sender
              * AttachRequested in3 sender
            accept in3
              < 0: attach in3 h=2 receiver
            > 0: transfer h=0 id=0 tag=a more size=10
            > 0: transfer h=1 id=1 tag=b more size=3000
            > 0: transfer h=2 id=2 tag=c more size=2000
            shed 1
              * Detached closed error=amqp:resource-limit-exceeded
              < 0: detach h=1 closed error=amqp:resource-limit-exceeded
            > 0: transfer h=1 size=10
            shed 2300
              * Detached closed error=amqp:resource-limit-exceeded
              * Detached closed error=amqp:resource-limit-exceeded
              < 0: detach h=2 closed error=amqp:resource-limit-exceeded
              < 0: detach h=0 closed error=amqp:resource-limit-exceeded
            > 0: transfer h=2 size=10
            partial
              = 0 bytes
        "#]],
    );
}

#[test]
fn without_unfinished_deliveries_there_is_nothing_to_give_up() {
    check(
        Start::Receiving,
        "
        > 0: transfer h=0 id=0 tag=a size=3000
        shed 1000
        partial",
        &expect![[r#"
            > 0: transfer h=0 id=0 tag=a size=3000
              * Delivery 0 size=3000
            shed 1000
            partial
              = 0 bytes
        "#]],
    );
}
