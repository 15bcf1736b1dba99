//! Policies: which one applies, what it says, and that it holds at once. (docs/spec/rabbitmq.md#13)

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

#[test]
fn the_lower_of_queue_policy_and_message_decides() {
    check(
        "
        0s queue ttl=30s
        0s policy p on=q message-ttl=20000
        0s send a
        0s send ttl=10s b
        0s send ttl=40s c
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s sent from #3
            0s peek: #1 a expires 20s, #2 b expires 10s, #3 c expires 20s
        "#]],
    );
}

#[test]
fn the_highest_priority_that_fits_applies_and_of_equals_the_smaller_name() {
    check(
        "
        0s queue name=orders
        0s policy low on=ord max-length=5
        0s policy high on=^o priority=2 max-length=6
        0s policy other on=^x priority=9 max-length=7
        0s applied
        0s policy also on=^o priority=2 max-length=8
        0s applied
        0s clear-policy also
        0s clear-policy high
        0s applied
        0s clear-policy low
        0s applied
        0s clear-policy low
        ",
        expect![[r#"
            0s applied high/ {"max-length":6}
            0s applied also/ {"max-length":8}
            0s applied low/ {"max-length":5}
            0s applied none
            0s clear-policy low: the entity does not exist
        "#]],
    );
}

#[test]
fn a_policy_with_a_key_of_another_kind_does_not_apply_at_all() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s queue name=q
        0s policy p on=. expires=60000 message-ttl=5000
        0s applied in=t
        0s applied in=t/Subscriptions/s
        0s applied in=q
        0s policy p on=. apply-to=topics message-ttl=5000
        0s applied in=t
        0s applied in=q
        ",
        expect![[r#"
            0s applied none
            0s applied p/ {"expires":60000,"message-ttl":5000}
            0s applied p/ {"expires":60000,"message-ttl":5000}
            0s applied p/ {"message-ttl":5000}
            0s applied none
        "#]],
    );
}

#[test]
fn an_operator_policy_caps_what_users_and_their_policies_set() {
    check(
        "
        0s queue max-length=9
        0s policy user on=q max-length=7 delivery-limit=3 overflow=drop-head
        0s policy cap on=q operator max-length=4 delivery-limit=-1 overflow=reject-publish
        0s applied
        0s send a b c d
        0s send e
        ",
        expect![[r#"
            0s applied user/cap {"delivery-limit":3,"max-length":4,"overflow":"reject-publish"}
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 4 allows
        "#]],
    );
}

#[test]
fn a_shorter_time_to_live_reaches_messages_that_are_there() {
    check(
        "
        0s send a b
        5s send ttl=8s c
        6s policy p on=q message-ttl=10000
        9s counters
        10s counters
        13s counters
        ",
        expect![[r#"
            0s sent from #1
            5s sent from #3
            9s active 3 dead 0 deferred 0 bytes 3
            10s active 1 dead 0 deferred 0 bytes 1
            13s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_policy_that_goes_spares_nothing() {
    check(
        "
        0s send a
        0s policy p on=q message-ttl=10000
        1s send b
        2s clear-policy p
        3s send c
        11s counters
        1h counters
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            3s sent from #3
            11s active 1 dead 0 deferred 0 bytes 1
            3600s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_restart_spares_nothing_either() {
    check(
        "
        0s send a
        0s policy p on=q message-ttl=10000
        2s clear-policy p
        3s restart
        9s counters
        11s counters
        ",
        expect![[r#"
            0s sent from #1
            9s active 1 dead 0 deferred 0 bytes 1
            11s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_that_are_there_stay_if_the_policy_says_so() {
    check(
        "
        0s send a
        0s policy p on=q message-ttl=10000 railbus-retroactive=false
        0s send b
        20s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            20s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn messages_are_reached_that_are_older_than_a_shorter_time_of_the_queues_own() {
    check(
        "
        0s send a
        1s queue ttl=10s
        1s send b
        2s policy p on=q message-ttl=20000
        11s counters
        19s counters
        20s counters
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2
            11s active 1 dead 0 deferred 0 bytes 1
            19s active 1 dead 0 deferred 0 bytes 1
            20s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_that_a_policy_has_spared_are_reached_once_it_does_not() {
    check(
        "
        0s send a
        0s policy p on=q message-ttl=10000 railbus-retroactive=false
        5s policy p on=q message-ttl=10000
        9s counters
        10s counters
        ",
        expect![[r#"
            0s sent from #1
            9s active 1 dead 0 deferred 0 bytes 1
            10s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_user_spares_messages_from_a_policy_of_users_alone() {
    check(
        "
        0s send a
        0s policy user on=q message-ttl=5000 railbus-retroactive=false
        0s policy cap on=q operator message-ttl=10000
        9s counters
        10s counters
        ",
        expect![[r#"
            0s sent from #1
            9s active 1 dead 0 deferred 0 bytes 1
            10s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_message_that_is_locked_when_its_time_is_shortened_expires_as_its_lock_ends() {
    check(
        "
        0s queue dead-letter-expired lock=1m
        0s attach r1
        0s limit r1 1
        0s send a
        1s policy p on=q message-ttl=5000
        10s counters
        11s abandon r1 #1
        11s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 60s
            10s active 1 dead 0 deferred 0 bytes 1
            11s abandon r1 #1: done
            11s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn messages_on_the_disk_are_reached_too() {
    check_with(
        BrokerSettings {
            window: 2,
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s send a*40
        0s policy p on=q message-ttl=10000
        9s counters
        10s counters
        ",
        expect![[r#"
            0s sent from #1
            9s active 40 dead 0 deferred 0 bytes 40
            10s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn a_policy_survives_a_restart_and_holds_for_queues_that_come_later() {
    check(
        "
        0s queue name=a
        0s policy p on=^[ab]$ expires=5000
        1s restart
        2s queue name=b
        2s applied in=b
        6s queues
        7s queues
        ",
        expect![[r#"
            2s applied p/ {"expires":5000}
            6s a is gone
            6s queues: b
            7s b is gone
            7s queues: 
        "#]],
    );
}

#[test]
fn what_a_client_has_set_wins_over_keys_of_our_own() {
    check(
        "
        0s queue name=set lock=10s
        0s queue name=free lock=60s
        0s policy p on=. railbus-lock-duration=20000
        0s attach r1 in=set
        0s limit r1 1
        0s attach r2 in=free
        0s limit r2 1
        0s send in=set a
        0s send in=free b
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 10s
            0s sent from #1
            0s r2 gets #1 b until 20s
        "#]],
    );
}

#[test]
fn an_update_of_an_entity_keeps_what_policies_say() {
    check(
        "
        0s policy p on=q max-length=1
        0s queue max-delivery=3
        0s send a b
        0s counters
        0s clear-policy p
        0s send c d
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s active 1 dead 1 deferred 0 bytes 2
            0s sent from #3
            0s active 3 dead 1 deferred 0 bytes 4
        "#]],
    );
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    check(
        "
        0s policy p on=q message-ttl=-1
        0s policy p on=q expires=0
        0s policy p on=q message-ttl=soon
        0s policy p on=q nosuch=0
        0s policy p on=( max-length=1
        0s policy p on=(a{900}){900} max-length=1
        0s policy p on=q
        0s policy p on=q overflow=x
        0s policy p on=q federation-upstream=x
        0s policy p on=q operator railbus-lock-duration=5000
        0s applied
        ",
        expect![[r#"
            0s policy p: -1 is not a valid message TTL
            0s policy p: 0 is not a valid queue expiry
            0s policy p: <<"soon">> is not a valid message TTL
            0s policy p: [{<<"nosuch">>,0}] are not recognised policy settings
            0s policy p: pattern should be regular expression but is invalid: unclosed group
            0s policy p: pattern should be regular expression but is invalid: Compiled regex exceeds size limit of 262144 bytes.
            0s policy p: no policy provided
            0s policy p: <<"x">> is not a valid overflow value
            0s policy p: federation-upstream: this broker does not support it yet
            0s policy p: [{<<"railbus-lock-duration">>,5000}] are not recognised policy settings
            0s applied none
        "#]],
    );
}

#[test]
fn each_policy_applies_to_the_queues_of_its_type_and_keys() {
    check(
        "
        0s queue name=c classic
        0s queue name=q quorum
        0s queue name=s
        0s policy classic on=. apply-to=classic_queues max-length=1
        0s policy quorum on=. apply-to=quorum_queues max-length=2
        0s applied in=c
        0s applied in=q
        0s applied in=s
        0s clear-policy classic
        0s policy mode on=. queue-mode=lazy
        0s policy limit on=. priority=2 delivery-limit=4 max-length=3
        0s applied in=c
        0s applied in=q
        0s applied in=s
        ",
        expect![[r#"
            0s applied classic/ {"max-length":1}
            0s applied quorum/ {"max-length":2}
            0s applied quorum/ {"max-length":2}
            0s applied mode/ {"queue-mode":"lazy"}
            0s applied limit/ {"delivery-limit":4,"max-length":3}
            0s applied limit/ {"delivery-limit":4,"max-length":3}
        "#]],
    );
}

#[test]
fn a_classic_queue_keeps_its_own_overflow_and_a_quorum_queue_takes_that_of_a_policy() {
    check(
        "
        0s queue name=c classic=overflow reject-publish max-length=1
        0s queue name=d classic max-length=1
        0s queue name=q quorum=overflow reject-publish max-length=1
        0s policy drop on=c|q overflow=drop-head
        0s policy reject on=d overflow=reject-publish
        0s send in=c a
        0s send in=c b
        0s send in=d a
        0s send in=d b
        0s send in=q a
        0s send in=q b
        ",
        expect![[r#"
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 1 allows
            0s sent from #1
            0s send refused: the queue holds as much as its max-length of 1 allows
            0s sent from #1
            0s sent from #2
        "#]],
    );
}

#[test]
fn a_policy_dead_letters_what_classic_queues_refuse_and_quorum_queues_only_refuse() {
    check(
        "
        0s queue name=dlq
        0s router dlx fanout
        0s bind dlx - to=dlq
        0s queue name=c classic max-length=1 dead-router=dlx
        0s queue name=q quorum max-length=1 dead-router=dlx
        0s policy p on=c|q overflow=reject-publish-dlx
        1s send a b in=c
        2s send a in=c
        2s send b in=c
        3s send a in=q
        3s send b in=q
        4s peek 1 9 in=dlq
        ",
        expect![[r#"
            0s router dlx fanout: done
            0s bind dlx - to=dlq: done
            1s send refused: the queue holds as much as its max-length of 1 allows
            2s sent from #3
            2s send refused: the queue holds as much as its max-length of 1 allows
            3s sent from #1
            3s send refused: the queue holds as much as its max-length of 1 allows
            4s peek: #1 a DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length." x-exchange="dlx" x-routing-key="c" died in c MaxLength 1 from dead letters of c, #2 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length." x-exchange="dlx" x-routing-key="c" died in c MaxLength 1 from dead letters of c, #3 b DeadLetterReason="MaxLengthExceeded" DeadLetterErrorDescription="The queue exceeded its maximum length." x-exchange="dlx" x-routing-key="c" first #4 died in c MaxLength 1 from dead letters of c
        "#]],
    );
}

#[test]
fn a_policy_limits_the_length_and_the_lives_of_a_subscription() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s policy p on=s$ max-length=1 message-ttl=5000
        0s send in=t encoded a b
        0s counters in=t/Subscriptions/s
        4s counters in=t/Subscriptions/s
        5s counters in=t/Subscriptions/s
        ",
        expect![[r#"
            0s sent from #1
            0s active 1 dead 1 deferred 0 bytes 50
            4s active 1 dead 1 deferred 0 bytes 50
            5s active 0 dead 1 deferred 0 bytes 25
        "#]],
    );
}

#[test]
fn a_policy_limits_and_delays_the_deliveries_of_a_subscription() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s policy p on=s$ delivery-limit=1 delayed-retry-type=failed delayed-retry-min=1000
        0s send in=t encoded a
        0s attach r1 in=t/Subscriptions/s
        0s limit r1 5
        1s abandon r1 #1 in=t/Subscriptions/s
        2s abandon r1 #1 in=t/Subscriptions/s
        3s counters in=t/Subscriptions/s
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            1s abandon r1 #1 in=t/Subscriptions/s: done
            2s r1 gets #1 a count 1 until 32s
            2s abandon r1 #1 in=t/Subscriptions/s: done
            3s active 0 dead 1 deferred 0 bytes 25
        "#]],
    );
}

#[test]
fn a_subscription_that_nobody_uses_goes_as_its_policy_says() {
    check(
        "
        0s topic t
        0s subscription s of=t
        0s policy p on=s$ expires=10000
        5s send in=t encoded a
        9s queues
        10s queues
        ",
        expect![[r#"
            5s sent from #1
            9s queues: t t/Subscriptions/s
            10s t/Subscriptions/s is gone
            10s queues: t
        "#]],
    );
}

#[test]
fn a_message_that_waits_for_its_next_delivery_has_the_policys_time_to_live() {
    check(
        "
        0s queue name=q backoff=40s,40s,1
        0s send a in=q
        0s attach r1 in=q
        0s limit r1 1
        0s abandon r1 #1 in=q
        10s policy p on=q message-ttl=30000
        20s counters in=q
        41s counters in=q
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s abandon r1 #1 in=q: done
            20s active 0 dead 0 deferred 0 bytes 1 scheduled 1
            41s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_of_a_restored_snapshot_have_the_policys_time_to_live() {
    check(
        "
        0s queue name=q
        0s send a in=q
        0s snapshot s
        1s policy p on=q message-ttl=30000
        2s restore s
        3s counters in=q
        40s counters in=q
        ",
        expect![[r#"
            0s sent from #1
            0s snapshot s: s has 1 entities, 1 messages
            2s q is gone
            2s restore s: done
            3s active 1 dead 0 deferred 0 bytes 1
            40s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}
