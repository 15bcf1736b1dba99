//! Dead-letter routers: dead letters go where bindings tell, once, with what they have been
//! through.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn recording() -> BrokerSettings {
    BrokerSettings {
        lineage: true,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_dead_letter_goes_once_to_each_queue_that_its_router_tells() {
    check(
        "
        0s queue quorum name=q dead-router=dlx
        0s router dlx fanout
        0s queue name=a
        0s queue name=b
        0s bind dlx - to=a
        0s bind dlx other to=a
        0s bind dlx - to=b
        1s send one in=q
        1s attach r1 in=q
        1s limit r1 1
        2s reject r1 #1 in=q
        3s attach r2 in=a
        3s limit r2 5
        3s attach r3 in=b
        3s limit r3 5
        ",
        expect![[r#"
            0s router dlx fanout: done
            0s bind dlx - to=a: done
            0s bind dlx other to=a: done
            0s bind dlx - to=b: done
            1s sent from #1
            1s r1 gets #1 one until 31s
            2s reject r1 #1 in=q: done
            3s r2 gets #1 one x-exchange="dlx" x-routing-key="q" died in q Rejected 1 from dead letters of q until 33s
            3s r3 gets #1 one x-exchange="dlx" x-routing-key="q" died in q Rejected 1 from dead letters of q until 33s
        "#]],
    );
}

#[test]
fn a_key_of_the_queue_replaces_those_of_the_message() {
    check(
        "
        0s queue quorum name=q dead-router=- dead-key=a ttl=10s dead-letter-expired
        0s queue name=a
        1s bind amq.topic x.# to=q
        1s publish amq.topic x.y one
        12s attach r1 in=a
        12s limit r1 5
        ",
        expect![[r#"
            1s bind amq.topic x.# to=q: done
            1s publish amq.topic x.y one: stored by 1
            12s r1 gets #1 one DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." x-exchange="" x-routing-key="a" died in q Expired 1 from dead letters of q until 42s
        "#]],
    );
}

#[test]
fn a_topic_takes_dead_letters_as_a_router_does() {
    check(
        "
        0s topic news
        0s subscription s of=news
        0s queue quorum name=q dead-router=news
        0s queue quorum name=other dead-router=News
        1s send encoded one in=q
        1s send encoded two in=other
        1s attach r1 in=q
        1s limit r1 1
        1s attach r2 in=other
        1s limit r2 1
        2s reject r1 #1 in=q
        2s reject r2 #1 in=other
        3s attach r3 in=news/Subscriptions/s
        3s limit r3 5
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #1
            1s r1 gets #1 one until 31s
            1s r2 gets #1 two until 31s
            2s reject r1 #1 in=q: done
            2s reject r2 #1 in=other: done
            3s r3 gets #1 one x-exchange="news" x-routing-key="q" died in q Rejected 1 from dead letters of q until 33s
        "#]],
    );
}

#[test]
fn a_dead_letter_is_not_lost_for_a_size_that_its_queue_has_taken() {
    check_with(
        BrokerSettings {
            max_message_size: 1,
            ..BrokerSettings::default()
        },
        "
        0s queue quorum name=q dead-router=dlx max-message=2
        0s router dlx fanout
        0s queue name=a
        0s bind dlx - to=a
        1s send in=q bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        1s attach r1 in=q
        1s limit r1 1
        2s reject r1 #1 in=q
        3s counters in=a
        ",
        expect![[r#"
            0s router dlx fanout: done
            0s bind dlx - to=a: done
            1s sent from #1
            1s r1 gets #1 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb until 31s
            2s reject r1 #1 in=q: done
            3s active 1 dead 0 deferred 0 bytes 66
        "#]],
    );
}

#[test]
fn what_no_queue_takes_is_dropped_or_waits() {
    check(
        "
        0s queue quorum name=q dead-router=missing
        0s queue quorum name=w dead-router=late at-least-once reject-publish
        0s queue name=a
        1s send dropped in=q
        1s send kept in=w
        1s attach r1 in=q
        1s limit r1 1
        1s attach r2 in=w
        1s limit r2 1
        2s reject r1 #1 in=q
        2s reject r2 #1 in=w
        3s router missing fanout
        3s bind missing - to=a
        3s router late fanout
        3s bind late - to=a
        40s wait
        41s attach r3 in=a
        41s limit r3 5
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #1
            1s r1 gets #1 dropped until 31s
            1s r2 gets #1 kept until 31s
            2s reject r1 #1 in=q: done
            2s reject r2 #1 in=w: done
            3s router missing fanout: done
            3s bind missing - to=a: done
            3s router late fanout: done
            3s bind late - to=a: done
            41s r3 gets #1 kept x-exchange="late" x-routing-key="w" died in w Rejected 1 from dead letters of w until 71s
        "#]],
    );
}

#[test]
fn a_message_that_expires_in_a_circle_is_dropped_and_one_that_is_rejected_is_not() {
    check(
        "
        0s queue quorum name=a dead-router=- dead-key=b ttl=10s dead-letter-expired
        0s queue quorum name=b dead-router=- dead-key=a ttl=10s dead-letter-expired
        1s send one in=a
        13s wait
        25s send two in=a
        26s attach r1 in=a
        26s limit r1 1
        27s reject r1 #2 in=a
        38s limit r1 2
        39s reject r1 #3 in=a
        39s attach r2 in=b
        39s limit r2 5
        ",
        expect![[r#"
            1s sent from #1
            25s sent from #2
            26s r1 gets #2 two expires 35s until 56s
            27s reject r1 #2 in=a: done
            38s r1 gets #3 two DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." x-exchange="" x-routing-key="a" first #2 died in b Expired 1 died in a Rejected 1 from dead letters of b expires 47s until 68s
            39s reject r1 #3 in=a: done
            39s r2 gets #3 two x-exchange="" x-routing-key="b" first #2 died in a Rejected 2 died in b Expired 1 from dead letters of a expires 49s until 69s
        "#]],
    );
}

#[test]
fn a_circle_by_a_topic_and_a_forward_ends_when_the_message_dies_there_again() {
    check_with(
        recording(),
        "
        0s queue quorum name=q dead-router=news ttl=10s dead-letter-expired
        0s topic news
        0s subscription s of=news forward=q
        1s send encoded one in=q
        12s attach r1 in=q
        12s limit r1 1
        13s reject r1 #2 in=q
        14s counters in=q
        25s counters in=q
        36s counters in=q
        60s trace in=q #1
        ",
        expect![[r#"
            1s sent from #1
            12s r1 gets #2 one DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." x-exchange="news" x-routing-key="q" first #1 died in q Expired 1 from dead letters of q expires 21s until 42s
            13s reject r1 #2 in=q: done
            14s active 1 dead 0 deferred 0 bytes 27
            25s active 1 dead 0 deferred 0 bytes 27
            36s active 0 dead 0 deferred 0 bytes 0
            60s trace: since 0s
            60s   1s q#1: Accepted { message_id: None, session_id: None }
            60s   11s q#1: Expired
            60s   11s q#1: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   11s q#1: Forwarded to news#0
            60s   11s news#1: Arrived from q#1
            60s   11s news#1: Distributed { copies: 1 }
            60s   11s news/Subscriptions/s#1: Copied from news#1 by $Default
            60s   11s news/Subscriptions/s#1: Forwarded to q#0
            60s   11s q#2: Arrived from news/Subscriptions/s#1
            60s   12s q#2: Locked { connection: (1), delivery_count: 0 }
            60s   13s q#2: Settled { how: Rejected, by: Some((0)) }
            60s   13s q#2: DeadLettered { to: DeadLetter, reason: None }
            60s   13s q#2: Forwarded to news#0
            60s   13s news#2: Arrived from q#2
            60s   13s news#2: Distributed { copies: 1 }
            60s   13s news/Subscriptions/s#2: Copied from news#2 by $Default
            60s   13s news/Subscriptions/s#2: Forwarded to q#0
            60s   13s q#3: Arrived from news/Subscriptions/s#2
            60s   23s q#3: Expired
            60s   23s q#3: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   23s q#3: Forwarded to news#0
            60s   23s news#3: Arrived from q#3
            60s   23s news#3: Distributed { copies: 1 }
            60s   23s news/Subscriptions/s#3: Copied from news#3 by $Default
            60s   23s news/Subscriptions/s#3: Forwarded to q#0
            60s   23s q#4: Arrived from news/Subscriptions/s#3
            60s   33s q#4: Expired
            60s   33s q#4: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   33s q#4: Dropped { why: Unroutable }
        "#]],
    );
}

#[test]
fn a_circle_to_a_queue_without_room_ends_or_keeps_its_message() {
    check_with(
        recording(),
        "
        0s queue quorum name=q dead-router=news max-length=0
        0s queue quorum name=k dead-router=more ttl=10s dead-letter-expired at-least-once reject-publish
        0s topic news
        0s subscription s of=news forward=q
        0s topic more
        0s subscription s of=more forward=k
        1s send encoded one in=q
        1s send encoded two in=k
        2s trace in=q
        100s counters in=k
        ",
        expect![[r#"
            1s sent from #1
            1s sent from #1
            2s trace: since 0s
            2s   1s q#1: Accepted { message_id: None, session_id: None }
            2s   1s q#1: DeadLettered { to: DeadLetter, reason: Some("MaxLengthExceeded") }
            2s   1s q#1: Forwarded to news#0
            2s   1s q#2: Arrived from news/Subscriptions/s#1
            2s   1s q#2: DeadLettered { to: DeadLetter, reason: Some("MaxLengthExceeded") }
            2s   1s q#2: Dropped { why: Unroutable }
            100s active 0 dead 1 deferred 0 bytes 27
        "#]],
    );
}

#[test]
fn a_circle_by_a_router_and_a_forward_of_dead_letters_ends() {
    check_with(
        recording(),
        "
        0s queue quorum name=q dead-router=- dead-key=p ttl=10s dead-letter-expired
        0s queue name=p forward-dead=q ttl=10s dead-letter-expired
        1s send one in=q
        60s trace in=q #1
        ",
        expect![[r#"
            1s sent from #1
            60s trace: since 0s
            60s   1s q#1: Accepted { message_id: None, session_id: None }
            60s   11s q#1: Expired
            60s   11s q#1: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   11s q#1: Forwarded to p#0
            60s   11s p#1: Arrived from q#1
            60s   21s p#1: Expired
            60s   21s p#1: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   21s p#1: Forwarded to q#0
            60s   21s q#2: Arrived from p#1
            60s   31s q#2: Expired
            60s   31s q#2: DeadLettered { to: DeadLetter, reason: Some("TTLExpiredException") }
            60s   31s q#2: Dropped { why: Unroutable }
        "#]],
    );
}

#[test]
fn a_dead_letter_is_where_it_belongs_after_a_restart() {
    check(
        "
        0s queue name=a
        0s queue quorum name=q dead-router=- dead-key=a
        1s send one in=q
        1s attach r1 in=q
        1s limit r1 1
        2s reject r1 #1 x-note=why in=q
        3s restart
        4s attach r2 in=a
        4s limit r2 5
        ",
        expect![[r#"
            1s sent from #1
            1s r1 gets #1 one until 31s
            2s reject r1 #1 x-note=why in=q: done
            4s r2 gets #1 one x-note="why" x-exchange="" x-routing-key="a" died in q Rejected 1 from dead letters of q until 34s
        "#]],
    );
}

#[test]
fn annotations_stay_with_a_message_and_a_later_value_replaces_the_earlier() {
    check(
        "
        0s queue name=q dead-letter-expired ttl=1h
        1s send one in=q
        1s attach r1 in=q
        1s limit r1 3
        2s release r1 #1 x-note=first x-other=kept in=q
        3s release r1 #1 x-note=second in=q
        4s restart
        5s attach r2 in=q
        5s limit r2 1
        6s detach r2
        3700s wait
        3701s attach r3 dead in=q
        3701s limit r3 1
        ",
        expect![[r#"
            1s sent from #1
            1s r1 gets #1 one expires 3601s until 31s
            2s release r1 #1 x-note=first x-other=kept in=q: done
            2s r1 gets #1 one x-note="first" x-other="kept" expires 3601s until 32s
            3s release r1 #1 x-note=second in=q: done
            3s r1 gets #1 one x-note="second" x-other="kept" expires 3601s until 33s
            5s r2 gets #1 one x-note="second" x-other="kept" expires 3601s until 35s
            3701s r3 gets #1 one count 1 DeadLetterReason="TTLExpiredException" DeadLetterErrorDescription="The message expired and was dead lettered." x-note="second" x-other="kept" expires 3601s until 3731s
        "#]],
    );
}

#[test]
fn a_description_of_service_bus_leaves_a_declared_queue_its_router() {
    check(
        "
        0s queue quorum name=q dead-router=dlx dead-key=k
        0s router dlx fanout
        0s queue name=a
        0s bind dlx - to=a
        1s queue name=q lock=40s
        1s send one in=q
        1s attach r1 in=q
        1s limit r1 1
        2s reject r1 #1 in=q
        3s attach r2 in=a
        3s limit r2 5
        ",
        expect![[r#"
            0s router dlx fanout: done
            0s bind dlx - to=a: done
            1s sent from #1
            1s r1 gets #1 one until 41s
            2s reject r1 #1 in=q: done
            3s r2 gets #1 one x-exchange="dlx" x-routing-key="k" died in q Rejected 1 from dead letters of q until 33s
        "#]],
    );
}

#[test]
fn a_queue_of_service_bus_keeps_what_no_queue_takes() {
    check(
        "
        0s router dlx direct
        0s queue name=q
        0s queue name=full max-length=0 reject-publish
        0s bind dlx full to=full
        0s send one two in=q
        0s attach r1 in=q
        0s limit r1 2
        0s reject r1 #1 in=q
        1s policy p on=^q$ dead-letter-exchange=nowhere
        1s reject r1 #2 in=q
        100s counters in=q
        100s policy p on=^q$ dead-letter-exchange=dlx dead-letter-routing-key=full
        200s counters in=q
        200s clear-policy p
        200s attach r2 in=q dead
        200s limit r2 9
        240s counters in=q
        ",
        expect![[r#"
            0s router dlx direct: done
            0s bind dlx full to=full: done
            0s sent from #1
            0s r1 gets #1 one until 30s
            0s r1 gets #2 two until 30s
            0s reject r1 #1 in=q: done
            1s reject r1 #2 in=q: done
            100s active 0 dead 2 deferred 0 bytes 6
            200s active 0 dead 2 deferred 0 bytes 6
            211s r2 gets #1 one until 241s
            211s r2 gets #2 two until 241s
            240s active 0 dead 2 deferred 0 bytes 6
        "#]],
    );
}
