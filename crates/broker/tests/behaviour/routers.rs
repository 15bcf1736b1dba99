//! Routers: a message is stored once by each queue that bindings lead to, by all in one commit.

use expect_test::expect;

use crate::script::check;

#[test]
fn each_kind_of_router_compares_in_its_own_way() {
    check(
        "
        0s queue name=a
        0s queue name=b
        1s bind amq.direct k to=a
        1s bind amq.direct k to=b
        1s bind amq.direct other to=b
        1s bind amq.fanout - to=a
        1s bind amq.topic x.*.# to=a
        1s bind amq.topic #.z to=a
        1s bind amq.headers - to=a arg=n:7
        2s publish amq.direct k one
        2s publish amq.direct k,other two
        2s publish amq.direct K none
        2s publish amq.fanout anything three
        2s publish amq.topic x.y.z four
        2s publish amq.topic x none
        2s publish amq.headers - five encoded n=7
        2s publish amq.headers - none encoded n=8
        2s publish - b six
        2s publish - a,b,a seven
        2s publish - missing none
        2s publish amq.nothing k none
        3s attach r1 in=a
        3s limit r1 10
        3s attach r2 in=b
        3s limit r2 10
        ",
        expect![[r"
            1s bind amq.direct k to=a: done
            1s bind amq.direct k to=b: done
            1s bind amq.direct other to=b: done
            1s bind amq.fanout - to=a: done
            1s bind amq.topic x.*.# to=a: done
            1s bind amq.topic #.z to=a: done
            1s bind amq.headers - to=a arg=n:7: done
            2s publish amq.direct k one: stored by 2
            2s publish amq.direct k,other two: stored by 2
            2s publish amq.direct K none: unmatched
            2s publish amq.fanout anything three: stored by 1
            2s publish amq.topic x.y.z four: stored by 1
            2s publish amq.topic x none: unmatched
            2s publish amq.headers - five encoded n=7: stored by 1
            2s publish amq.headers - none encoded n=8: unmatched
            2s publish - b six: stored by 1
            2s publish - a,b,a seven: stored by 2
            2s publish - missing none: unmatched
            2s publish amq.nothing k none: the router 'amq.nothing' does not exist
            3s r1 gets #1 one until 33s
            3s r1 gets #2 two until 33s
            3s r1 gets #3 three until 33s
            3s r1 gets #4 four until 33s
            3s r1 gets #5 five n=7 until 33s
            3s r1 gets #6 seven until 33s
            3s r2 gets #1 one until 33s
            3s r2 gets #2 two until 33s
            3s r2 gets #3 six until 33s
            3s r2 gets #4 seven until 33s
        "]],
    );
}

#[test]
fn routers_lead_to_routers_without_end_and_to_their_alternates() {
    check(
        "
        0s queue name=a
        0s queue name=lost
        1s router one fanout
        1s router two direct else=rest
        1s router rest fanout internal
        1s bind one - router=two
        1s bind two k router=one
        1s bind two k to=a
        1s bind rest - to=lost
        2s publish one k first
        2s publish two x second
        2s publish rest x third
        2s unroute rest
        2s publish two x fourth
        3s attach r1 in=a
        3s limit r1 10
        3s attach r2 in=lost
        3s limit r2 10
        ",
        expect![[r"
            1s router one fanout: done
            1s router two direct else=rest: done
            1s router rest fanout internal: done
            1s bind one - router=two: done
            1s bind two k router=one: done
            1s bind two k to=a: done
            1s bind rest - to=lost: done
            2s publish one k first: stored by 1
            2s publish two x second: stored by 1
            2s publish rest x third: only other routers send to the router 'rest'
            2s unroute rest: done
            2s publish two x fourth: unmatched
            3s r1 gets #1 first until 33s
            3s r2 gets #1 second until 33s
        "]],
    );
}

#[test]
fn copies_share_one_body_until_the_last_of_them_goes_whatever_goes_before() {
    check(
        "
        0s queue name=a
        0s queue name=b
        0s queue name=c
        1s bind amq.fanout - to=a
        1s bind amq.fanout - to=b
        1s bind amq.fanout - to=c
        1s publish amq.fanout - one two
        1s rows
        2s remove in=a
        3s wait
        3s rows
        4s restart
        4s attach r1 in=b
        4s limit r1 10
        4s complete r1 #1 in=b
        4s publish amq.fanout - three
        4s rows
        5s remove in=b
        6s restart
        6s rows
        6s attach r2 in=c
        6s limit r2 10
        6s complete r2 #1 in=c
        6s complete r2 #2 in=c
        6s complete r2 #3 in=c
        6s rows
        ",
        expect![[r#"
            1s bind amq.fanout - to=a: done
            1s bind amq.fanout - to=b: done
            1s bind amq.fanout - to=c: done
            1s publish amq.fanout - one two: stored by 3
            1s publish amq.fanout - one two: stored by 3
            1s 6 rows and 2 bodies
            2s a is gone
            2s removed
            3s 4 rows and 2 bodies
            4s r1 gets #1 one until 34s
            4s r1 gets #2 two until 34s
            4s complete r1 #1 in=b: done
            4s r1 gets #3 three until 34s
            4s publish amq.fanout - three: stored by 2
            4s 5 rows and 3 bodies
            5s r1 evicted: the entity does not exist
            5s b is gone
            5s removed
            6s 3 rows and 3 bodies
            6s r2 gets #1 one until 36s
            6s r2 gets #2 two until 36s
            6s r2 gets #3 three until 36s
            6s complete r2 #1 in=c: done
            6s complete r2 #2 in=c: done
            6s complete r2 #3 in=c: done
            6s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_queue_that_refuses_is_named_and_the_others_have_the_message() {
    check(
        "
        0s queue name=a
        0s queue name=small max-size=10
        0s queue name=groups sessions
        1s bind amq.fanout - to=a
        1s bind amq.fanout - to=small
        1s publish amq.fanout - fits
        1s publish amq.fanout - does-not-fit
        1s bind amq.direct k to=a
        1s bind amq.direct k to=groups
        1s publish amq.direct k alone
        1s publish amq.direct k in:s
        1s rows
        ",
        expect![[r#"
            1s bind amq.fanout - to=a: done
            1s bind amq.fanout - to=small: done
            1s publish amq.fanout - fits: stored by 2
            1s publish amq.fanout - does-not-fit: 'small' has refused the message: the entity holds 4 bytes of 10
            1s bind amq.direct k to=a: done
            1s bind amq.direct k to=groups: done
            1s publish amq.direct k alone: 'groups' has refused the message: the entity requires sessions, and the message has none
            1s publish amq.direct k in:s: stored by 2
            1s 6 rows and 4 bodies
        "#]],
    );
}

#[test]
fn a_queue_that_detects_duplicates_is_asked_first_and_order_is_kept() {
    check(
        "
        0s queue name=a
        0s queue name=once window=10m
        1s bind amq.fanout - to=a
        1s bind amq.fanout - to=once
        1s publish amq.fanout - one@id
        1s publish amq.fanout - again@id
        2s restart
        2s reads late
        2s publish amq.fanout - third@id
        2s publish amq.direct - fourth
        2s publish amq.fanout - fifth@other
        3s answer
        3s answer
        4s reads
        4s attach r1 in=a
        4s limit r1 10
        4s attach r2 in=once
        4s limit r2 10
        ",
        expect![[r#"
            1s bind amq.fanout - to=a: done
            1s bind amq.fanout - to=once: done
            1s publish amq.fanout - one@id: stored by 2
            1s publish amq.fanout - again@id: stored by 2
            3s publish amq.fanout - third@id: stored by 2
            3s publish amq.direct - fourth: unmatched
            3s publish amq.fanout - fifth@other: stored by 2
            4s r1 gets #1 one until 34s
            4s r1 gets #2 again until 34s
            4s r1 gets #3 third until 34s
            4s r1 gets #4 fifth until 34s
            4s r2 gets #1 one until 34s
            4s r2 gets #2 fifth until 34s
        "#]],
    );
}

#[test]
fn bindings_go_with_either_end_and_a_router_with_its_last_one() {
    check(
        "
        0s queue name=a
        0s queue name=b
        1s router kept direct
        1s router one fanout auto-delete
        1s router two fanout auto-delete
        1s bind one - router=two
        1s bind two - to=a
        1s bind kept k to=a
        1s bind kept k to=b
        1s bind kept k router=one
        1s bindings kept
        2s remove in=a
        2s bindings kept
        2s publish two - none
        2s publish one - none
        3s restart
        3s bindings kept
        3s publish kept k found
        3s unbind kept k to=b
        3s unbind kept k to=b
        3s publish kept k none
        ",
        expect![[r#"
            1s router kept direct: done
            1s router one fanout auto-delete: done
            1s router two fanout auto-delete: done
            1s bind one - router=two: done
            1s bind two - to=a: done
            1s bind kept k to=a: done
            1s bind kept k to=b: done
            1s bind kept k router=one: done
            1s bindings kept: k to a, k to b, k to router one
            2s a is gone
            2s removed
            2s bindings kept: k to b
            2s publish two - none: the router 'two' does not exist
            2s publish one - none: the router 'one' does not exist
            3s bindings kept: k to b
            3s publish kept k found: stored by 1
            3s unbind kept k to=b: done
            3s unbind kept k to=b: done
            3s publish kept k none: unmatched
        "#]],
    );
}

#[test]
fn what_cannot_be_is_refused_and_says_why() {
    check(
        "
        0s queue name=a
        0s topic t
        0s subscription s of=t
        1s router x direct
        1s router x direct
        1s router x topic
        1s router x direct internal
        1s router x direct else=y
        1s router amq.x direct
        1s router amq.match headers
        1s router amq.match fanout
        1s router - direct
        1s unroute amq.topic
        1s unroute -
        1s unroute missing
        1s bind missing k to=a
        1s bind x k to=A
        1s bind x k router=missing
        1s bind - k to=a
        1s bind x k router=-
        1s bind x k to=t/Subscriptions/s
        1s bind amq.topic #.#.# to=a
        1s bind amq.match - to=a arg=x-match:some
        1s bind x k to=t
        1s publish x k one
        1s rows
        ",
        expect![[r#"
            1s router x direct: done
            1s router x direct: done
            1s router x topic: the router 'x' is there already and differs: Kind { given: Topic, current: Direct }
            1s router x direct internal: the router 'x' is there already and differs: Internal { given: true, current: false }
            1s router x direct else=y: the router 'x' is there already and differs: Alternate { given: Some("y"), current: None }
            1s router amq.x direct: the router 'amq.x' has a name that begins with 'amq.', which is reserved
            1s router amq.match headers: done
            1s router amq.match fanout: the router 'amq.match' is there already and differs: Kind { given: Fanout, current: Headers }
            1s router - direct: the default router has no bindings that a client makes, and cannot be changed
            1s unroute amq.topic: the router 'amq.topic' has a name that begins with 'amq.', which is reserved
            1s unroute -: the default router has no bindings that a client makes, and cannot be changed
            1s unroute missing: the router 'missing' does not exist
            1s bind missing k to=a: the router 'missing' does not exist
            1s bind x k to=A: the queue or topic 'A' does not exist
            1s bind x k router=missing: the router 'missing' does not exist
            1s bind - k to=a: the default router has no bindings that a client makes, and cannot be changed
            1s bind x k router=-: the default router has no bindings that a client makes, and cannot be changed
            1s bind x k to=t/Subscriptions/s: 't/Subscriptions/s' is a subscription, which only its topic writes to
            1s bind amq.topic #.#.# to=a: a binding key of a topic router has at most two '#'
            1s bind amq.match - to=a arg=x-match:some: x-match is all, any, all-with-x or any-with-x, and not some
            1s bind x k to=t: done
            1s publish x k one: stored by 1
            1s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_message_is_in_all_its_queues_or_in_none_after_a_crash() {
    check(
        "
        0s queue name=a
        0s queue name=b
        1s bind amq.fanout - to=a
        1s bind amq.fanout - to=b
        1s sync manual
        1s publish amq.fanout - lost
        2s restart
        2s rows
        2s publish amq.fanout - stored
        2s sync
        2s rows
        3s restart
        3s rows
        ",
        expect![[r#"
            1s bind amq.fanout - to=a: done
            1s bind amq.fanout - to=b: done
            2s 0 rows and 0 bodies
            2s publish amq.fanout - stored: stored by 2
            2s 2 rows and 1 bodies
            3s 2 rows and 1 bodies
        "#]],
    );
}

#[test]
fn copies_are_forwarded_published_and_scheduled_like_other_messages() {
    check(
        "
        0s queue name=a
        0s queue name=end
        0s queue name=away forward=end
        0s topic t
        0s subscription s of=t
        1s bind amq.fanout - to=a
        1s bind amq.fanout - to=away
        1s bind amq.fanout - to=t
        1s publish amq.fanout - now
        1s publish amq.fanout - later+10s
        1s rows
        2s attach r1 in=end
        2s limit r1 10
        2s attach r2 in=t/Subscriptions/s
        2s limit r2 10
        2s attach r3 in=a
        2s limit r3 10
        3s reject r3 #1 in=a
        12s rows
        ",
        expect![[r#"
            1s bind amq.fanout - to=a: done
            1s bind amq.fanout - to=away: done
            1s bind amq.fanout - to=t: done
            1s publish amq.fanout - now: stored by 3
            1s publish amq.fanout - later+10s: stored by 3
            1s 5 rows and 5 bodies
            2s r1 gets #1 now until 32s
            2s r3 gets #1 now until 32s
            3s reject r3 #1 in=a: done
            10s r3 gets #3 later until 40s
            10s r1 gets #2 later first #3 until 40s
            12s 4 rows and 4 bodies
        "#]],
    );
}

#[test]
fn several_queues_that_detect_duplicates_are_asked_together() {
    check(
        "
        0s queue name=one window=10m
        0s queue name=two window=10m
        1s bind amq.fanout - to=one
        1s bind amq.direct - to=two
        1s bind amq.direct - router=amq.fanout
        1s publish amq.fanout - first@id
        2s restart
        2s reads late
        2s publish amq.direct - again@id
        3s answer
        4s attach r1 in=one
        4s limit r1 10
        4s attach r2 in=two
        4s limit r2 10
        ",
        expect![[r#"
            1s bind amq.fanout - to=one: done
            1s bind amq.direct - to=two: done
            1s bind amq.direct - router=amq.fanout: done
            1s publish amq.fanout - first@id: stored by 1
            3s publish amq.direct - again@id: stored by 2
            4s r2 gets #1 again until 34s
            4s r1 gets #1 first until 34s
        "#]],
    );
}

#[test]
fn a_topic_is_an_alternate_as_a_router_is() {
    check(
        "
        0s topic news
        0s subscription s of=news
        1s router own direct else=news
        1s router governed direct
        1s policy p on=^governed apply-to=exchanges alternate-exchange=news
        2s publish own k one encoded
        2s publish governed k two encoded
        3s attach r1 in=news/Subscriptions/s
        3s limit r1 5
        ",
        expect![[r"
            1s router own direct else=news: done
            1s router governed direct: done
            2s publish own k one encoded: stored by 1
            2s publish governed k two encoded: stored by 1
            3s r1 gets #1 one until 33s
            3s r1 gets #2 two until 33s
        "]],
    );
}

#[test]
fn a_policy_names_the_alternate_of_routers_that_have_none_of_their_own() {
    check(
        "
        0s queue name=lost
        0s queue name=own
        0s router rest fanout
        0s router mine fanout
        0s router one direct
        0s router two direct else=mine
        0s bind rest - to=lost
        0s bind mine - to=own
        1s publish one k a
        1s policy p on=. apply-to=exchanges alternate-exchange=rest
        1s publish one k b
        1s publish two k c
        1s router three topic
        1s publish three k d
        1s publish amq.topic k e
        1s publish - missing f
        2s restart
        2s publish one k g
        2s unroute rest
        2s publish one k h
        2s router rest fanout
        2s bind rest - to=lost
        2s publish one k i
        3s clear-policy p
        3s publish one k j
        4s attach r1 in=lost
        4s limit r1 10
        4s attach r2 in=own
        4s limit r2 10
        ",
        expect![[r#"
            0s router rest fanout: done
            0s router mine fanout: done
            0s router one direct: done
            0s router two direct else=mine: done
            0s bind rest - to=lost: done
            0s bind mine - to=own: done
            1s publish one k a: unmatched
            1s publish one k b: stored by 1
            1s publish two k c: stored by 1
            1s router three topic: done
            1s publish three k d: stored by 1
            1s publish amq.topic k e: stored by 1
            1s publish - missing f: unmatched
            2s publish one k g: stored by 1
            2s unroute rest: done
            2s publish one k h: unmatched
            2s router rest fanout: done
            2s bind rest - to=lost: done
            2s publish one k i: stored by 1
            3s publish one k j: unmatched
            4s r1 gets #1 b until 34s
            4s r1 gets #2 d until 34s
            4s r1 gets #3 e until 34s
            4s r1 gets #4 g until 34s
            4s r1 gets #5 i until 34s
            4s r2 gets #1 c until 34s
        "#]],
    );
}

#[test]
fn the_policy_of_the_highest_priority_decides_on_the_alternate_alone() {
    check(
        "
        0s queue name=lost
        0s router rest fanout
        0s bind rest - to=lost
        0s router one direct
        0s policy low on=^o alternate-exchange=rest message-ttl=5000
        0s applied in=lost
        1s publish one k a
        1s policy high on=^o priority=1 message-ttl=5000
        1s publish one k b
        1s policy high on=^o priority=1 apply-to=queues message-ttl=5000
        1s publish one k c
        1s policy high on=^o priority=1 apply-to=exchanges alternate-exchange=nowhere
        1s publish one k d
        1s policy high on=^x priority=1 alternate-exchange=nowhere
        1s publish one k e
        1s policy low on=^l alternate-exchange=rest message-ttl=5000
        1s applied in=lost
        1s publish one k f
        ",
        expect![[r#"
            0s router rest fanout: done
            0s bind rest - to=lost: done
            0s router one direct: done
            0s applied none
            1s publish one k a: stored by 1
            1s publish one k b: unmatched
            1s publish one k c: stored by 1
            1s publish one k d: unmatched
            1s publish one k e: stored by 1
            1s applied low/ {"alternate-exchange":"rest","message-ttl":5000}
            1s publish one k f: unmatched
        "#]],
    );
}

#[test]
fn a_router_that_is_always_there_has_the_alternate_of_its_policy() {
    check(
        "
        0s queue name=q
        0s publish amq.topic q a
        0s policy p on=^amq.topic alternate-exchange=
        0s publish amq.topic q b
        0s publish amq.direct q c
        1s policy p operator on=. alternate-exchange=
        1s policy r on=. alternate-exchange=5
        ",
        expect![[r#"
            0s publish amq.topic q a: unmatched
            0s publish amq.topic q b: stored by 1
            0s publish amq.direct q c: unmatched
            1s policy p: [{<<"alternate-exchange">>,<<"">>}] are not recognised policy settings
            1s policy r: 5 is not a valid alternate exchange name
        "#]],
    );
}

#[test]
fn copies_that_share_a_body_expire_by_themselves() {
    check(
        "
        0s queue name=a ttl=5s
        0s queue name=b
        0s bind amq.fanout - to=a
        0s bind amq.fanout - to=b
        1s publish amq.fanout - one
        6s counters in=a
        7s attach r1 in=b
        7s limit r1 1
        8s complete r1 #1 in=b
        9s rows
        ",
        expect![[r"
            0s bind amq.fanout - to=a: done
            0s bind amq.fanout - to=b: done
            1s publish amq.fanout - one: stored by 2
            6s active 0 dead 0 deferred 0 bytes 0
            7s r1 gets #1 one until 37s
            8s complete r1 #1 in=b: done
            9s 0 rows and 0 bodies
        "]],
    );
}
