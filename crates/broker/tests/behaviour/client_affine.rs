//! Client-affine subscriptions: what a consumer of a topic gets, which consumers may share it, and
//! when it goes. (docs/spec/amqp.md#13.3, #13.4)

use expect_test::expect;

use crate::script::check;

#[test]
fn a_durable_subscription_keeps_messages_while_its_consumer_is_away_and_over_a_restart() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s client=c durable
        0s send one in=t
        0s disconnect r1
        1s send two in=t
        1s restart
        2s subscribe r2/2 of=t name=s client=c durable
        2s limit r2/2 10
        2s complete r2/2 #1 in=t/Subscriptions/s$c$D
        2s complete r2/2 #2 in=t/Subscriptions/s$c$D
        2s queues
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s sent from #1
            1s sent from #2
            2s r2/2 consumes t/Subscriptions/s$c$D
            2s complete r2/2 #1 in=t/Subscriptions/s$c$D: the lock is not held
            2s complete r2/2 #2 in=t/Subscriptions/s$c$D: the lock is not held
            2s queues: t t/Subscriptions/s$c$D
        "#]],
    );
}

#[test]
fn an_unshared_subscription_has_one_consumer() {
    check(
        "
        0s topic t
        0s topic other
        0s subscribe r1/2 of=t name=s client=c durable
        0s subscribe r2/2 of=t name=s client=c durable
        0s subscribe r2/2 of=t name=s client=c durable where n = 1
        0s subscribe r2/2 of=other name=s client=c durable
        0s subscribe r2/2 of=t name=s client=c durable shared
        0s subscribe r2/2 of=t name=s client=d durable
        0s detach r1/2
        0s subscribe r3/2 of=t name=s client=c durable shared
        0s subscribe r3/2 of=t name=s client=c durable
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s r2/2 has no subscription: Cannot create a new consumer on subscriber s$c$D because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s r2/2 has no subscription: Cannot create a new consumer on subscriber s$c$D because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s r2/2 has no subscription: Cannot create a new consumer on subscriber s$c$D because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s r2/2 has no subscription: Cannot create a new consumer on subscriber s$c$D because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s r2/2 consumes t/Subscriptions/s$d$D
            0s r3/2 has no subscription: Cannot create a new consumer on subscriber s$c$D because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s r3/2 consumes t/Subscriptions/s$c$D
        "#]],
    );
}

#[test]
fn consumers_of_a_shared_subscription_take_turns() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s shared
        0s subscribe r2/2 of=t name=s shared
        0s subscribe r2/3 of=t name=s shared where n > 1
        0s limit r1/2 1
        0s limit r2/2 1
        0s send one two in=t
        0s detach r1/2
        0s queues
        0s detach r2/2
        0s queues
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$$ND
            0s r2/2 consumes t/Subscriptions/s$$ND
            0s r2/3 has no subscription: Cannot create a new consumer on subscriber s$$ND because there is already a subscriber using the same name with an active consumer on the same or different topic.
            0s sent from #1
            0s queues: t t/Subscriptions/s$$ND
            0s t/Subscriptions/s$$ND is gone
            0s queues: t
        "#]],
    );
}

#[test]
fn a_consumer_without_a_name_has_a_subscription_that_goes_with_it() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t client=c
        0s subscribe r1/3 of=t client=c
        0s limit r1/2 10
        0s limit r1/3 10
        0s send one in=t
        0s disconnect r1
        0s queues
        1s send two in=t
        1s rows
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/~$c$ND
            0s r1/3 consumes t/Subscriptions/~$c$ND
            0s sent from #1
            0s t/Subscriptions/a1a5091fe8b85b7f3b7f9acec30e842c$c$ND is gone
            0s t/Subscriptions/1e1a71ef88e11b18416f21b972e14c98$c$ND is gone
            0s queues: t
            1s sent from #2
            1s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn no_subscription_that_is_not_durable_outlives_a_restart() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s shared
        0s subscribe r1/3 of=t name=s durable shared
        0s send one in=t
        1s restart
        1s wait
        1s queues
        2s subscribe r2/2 of=t name=s shared
        2s limit r2/2 10
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$$ND
            0s r1/3 consumes t/Subscriptions/s$$D
            0s sent from #1
            1s t/Subscriptions/s$$ND is gone
            1s queues: t t/Subscriptions/s$$D
            2s r2/2 consumes t/Subscriptions/s$$ND
        "#]],
    );
}

#[test]
fn another_selector_makes_a_subscription_anew() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s client=c durable
        0s send old in=t
        0s detach r1/2
        1s subscribe r1/2 of=t name=s client=c durable where JMSPriority > 100
        1s limit r1/2 10
        1s send new encoded in=t
        2s detach r1/2
        2s subscribe r1/2 of=t name=s client=c durable where JMSPriority < 100
        2s limit r1/2 10
        2s send newer encoded in=t
        3s detach r1/2
        3s topic other
        3s subscribe r1/2 of=other name=s client=c durable
        3s queues
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s sent from #1
            1s t/Subscriptions/s$c$D is gone
            1s r1/2 consumes t/Subscriptions/s$c$D
            1s sent from #2
            2s t/Subscriptions/s$c$D is gone
            2s r1/2 consumes t/Subscriptions/s$c$D
            2s sent from #3
            2s r1/2 gets #1 newer first #3 until 62s
            3s t/Subscriptions/s$c$D is gone
            3s r1/2 consumes other/Subscriptions/s$c$D
            3s queues: t other other/Subscriptions/s$c$D
        "#]],
    );
}

#[test]
fn a_subscription_is_deleted_by_request_unless_it_has_consumers() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s client=c durable
        0s subscribe r1/3 of=t name=n client=c shared
        0s unsubscribe s client=c
        0s unsubscribe n client=c
        0s detach r1/2
        0s unsubscribe s client=c
        0s unsubscribe s client=c
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s r1/3 consumes t/Subscriptions/n$c$ND
            0s unsubscribe s: the subscription has consumers
            0s unsubscribe n: the entity does not exist
            0s t/Subscriptions/s$c$D is gone
            0s unsubscribe s: done
            0s unsubscribe s: the entity does not exist
        "#]],
    );
}

#[test]
fn an_administrator_may_delete_a_subscription_under_its_consumers() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s client=c durable
        0s remove in=t/Subscriptions/s$c$D
        0s subscribe r1/2 of=t name=s client=c durable shared
        0s remove in=t
        0s unsubscribe s client=c
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s r1/2 evicted: the entity does not exist
            0s t/Subscriptions/s$c$D is gone
            0s removed
            0s r1/2 consumes t/Subscriptions/s$c$D
            0s r1/2 evicted: the entity does not exist
            0s t/Subscriptions/s$c$D is gone
            0s t is gone
            0s removed
            0s unsubscribe s: the entity does not exist
        "#]],
    );
}

#[test]
fn a_subscription_may_go_when_it_has_been_idle() {
    check(
        "
        0s topic t
        0s subscribe r1/2 of=t name=s client=c durable idle=300s
        0s limit r1/2 1
        100s detach r1/2
        399s queues
        401s queues
        ",
        expect![[r#"
            0s r1/2 consumes t/Subscriptions/s$c$D
            399s queues: t t/Subscriptions/s$c$D
            400s t/Subscriptions/s$c$D is gone
            401s queues: t
        "#]],
    );
}

#[test]
fn a_name_that_no_subscription_can_have_is_refused() {
    check(
        "
        0s topic t
        0s queue name=q
        0s subscribe r1/2 of=t name=a/b client=c durable
        0s subscribe r1/2 of=t name=s client=a/b durable
        0s subscribe r1/2 of=q name=s client=c durable
        ",
        expect![[r#"
            0s r1/2 has no subscription: 'a/b' contains character(s) that is not allowed by Service Bus. Entity segments can contain only letters, numbers, periods (.), hyphens (-), and underscores (_).
            0s r1/2 has no subscription: the client id 'a/b' contains '/', '\' or a control character
            0s r1/2 has no subscription: the topic does not exist
        "#]],
    );
}
