//! Dynamic nodes: what a link gets, which links may use it, and when it goes.
//! (docs/spec/amqp.md#3.7)

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with, run};

#[test]
fn another_connection_answers_a_request_by_the_node_of_its_sender() {
    check(
        "
        0s queue name=requests
        0s make replies r1/1
        0s attach r1/1 in=replies
        0s limit r1/1 10
        0s open replies r2/5 send
        0s send answer in=replies
        0s complete r1/1 #1 in=replies
        0s counters in=replies
        0s queues
        0s rows
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s r2/5 has the Queue replies
            0s sent from #1
            0s r1/1 gets #1 answer until 60s
            0s complete r1/1 #1 in=replies: done
            0s active 0 dead 0 deferred 0 bytes 0
            0s queues: requests
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn nothing_of_a_node_is_written_and_nothing_about_it_waits_for_the_disk() {
    check(
        "
        0s queue
        0s sync manual
        0s make replies r1/1
        0s send a b c in=replies
        0s attach r1/1 in=replies
        0s limit r1/1 10
        0s abandon r1/1 #1 in=replies
        0s reject r1/1 #2 in=replies
        0s close r1/1
        0s rows
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s sent from #1
            0s r1/1 gets #1 a until 60s
            0s r1/1 gets #2 b until 60s
            0s r1/1 gets #3 c until 60s
            0s abandon r1/1 #1 in=replies: done
            0s r1/1 gets #1 a count 1 until 60s
            0s reject r1/1 #2 in=replies: done
            0s r1/1 evicted: the entity does not exist
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_node_has_the_rules_of_any_queue() {
    check(
        "
        0s queue
        0s make replies r1/1
        0s send a ttl=1s in=replies
        0s send b+2s in=replies
        0s send c in=replies
        3s attach r1/1 in=replies
        3s limit r1/1 10
        4s defer r1/1 #3 in=replies
        4s fetch r1 #3 in=replies
        4s peek 1 10 in=replies
        40s counters in=replies
        40s restart
        40s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s sent from #1
            0s sent from #2
            0s sent from #3
            3s r1/1 gets #3 c until 63s
            3s r1/1 gets #4 b until 63s
            4s defer r1/1 #3 in=replies: done
            4s fetch r1 #3 in=replies: #3 c count 1 Deferred until 64s
            4s peek: #3 c count 1 Deferred, #4 b
            40s active 1 dead 0 deferred 1 bytes 2
            40s dynamic: 
        "#]],
    );
}

#[test]
fn a_node_goes_when_the_link_that_made_it_is_closed() {
    check(
        "
        0s queue
        0s make replies r1/1
        0s open replies r2/1 receive
        0s attach r2/1 in=replies
        0s open replies r3/1 send
        0s send a in=replies
        0s close r3/1
        0s dynamic
        0s close r1/1
        0s dynamic
        0s send b in=replies
        0s open replies r3/1 send
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s r2/1 has the Queue replies
            0s r3/1 has the Queue replies
            0s sent from #1
            0s dynamic: replies
            0s r2/1 loses its node
            0s r2/1 evicted: the entity does not exist
            0s dynamic: 
            0s send refused: the entity does not exist
            0s r3/1 has no replies: the node does not exist
        "#]],
    );
}

#[test]
fn a_node_goes_with_the_connection_that_made_it() {
    check(
        "
        0s queue
        0s make one r1/1
        0s make two r1/2 until=no-links
        0s make three r1/3 until=no-messages
        0s send a in=three
        0s open two r2/1 send
        0s disconnect r1
        0s dynamic
        0s disconnect r2
        0s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue one
            0s r1/2 has the Queue two
            0s r1/3 has the Queue three
            0s sent from #1
            0s r2/1 has the Queue two
            0s dynamic: three two
            0s dynamic: three
        "#]],
    );
}

#[test]
fn a_node_without_links_stays_as_long_as_it_has_messages_if_its_policy_says_so() {
    check(
        "
        0s queue
        0s make links r1/1 until=no-links
        0s make messages r1/2 until=no-messages
        0s make both r1/3 until=nothing
        0s open both r2/3 receive
        0s attach r2/3 in=both
        0s limit r2/3 10
        0s send a in=both
        0s send b ttl=5s in=messages
        0s send c in=links
        0s close r1/1
        0s close r1/2
        0s close r1/3
        0s dynamic
        1s complete r2/3 #1 in=both
        1s dynamic
        1s close r2/3
        1s dynamic
        6s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue links
            0s r1/2 has the Queue messages
            0s r1/3 has the Queue both
            0s r2/3 has the Queue both
            0s sent from #1
            0s r2/3 gets #1 a until 60s
            0s sent from #1
            0s sent from #1
            0s dynamic: both messages
            1s complete r2/3 #1 in=both: done
            1s dynamic: both messages
            1s r2/3 evicted: the entity does not exist
            1s dynamic: messages
            6s dynamic: 
        "#]],
    );
}

#[test]
fn a_locked_message_counts_as_a_message() {
    check(
        "
        0s queue
        0s make node r1/1 until=no-messages
        0s send a in=node
        0s attach r2 in=node
        0s limit r2 1
        0s close r1/1
        0s dynamic
        1s complete r2 #1 in=node
        1s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue node
            0s sent from #1
            0s r2 gets #1 a until 60s
            0s dynamic: node
            1s complete r2 #1 in=node: done
            1s r2 evicted: the entity does not exist
            1s dynamic: 
        "#]],
    );
}

#[test]
fn only_its_connection_receives_from_an_exclusive_node() {
    check(
        "
        0s queue
        0s make mine r1/1 exclusive
        0s open mine r1/2 receive
        0s open mine r2/1 receive
        0s open mine r2/1 send
        ",
        expect![[r#"
            0s r1/1 has the Queue mine
            0s r1/2 has the Queue mine
            0s r2/1 has no mine: only the connection that made the node receives from it
            0s r2/1 has the Queue mine
        "#]],
    );
}

#[test]
fn each_receiver_of_a_topic_has_a_subscription_while_its_link_is_there() {
    check(
        "
        0s queue
        0s make news r1/1 topic
        0s open news r1/2 receive as=one
        0s attach r1/2 delete in=one
        0s limit r1/2 10
        0s open news r1/3 receive as=two
        0s attach r1/3 in=two
        0s send a encoded in=news
        0s limit r1/3 10
        0s complete r1/3 #1 in=two
        0s close r1/3
        0s send b encoded in=news
        0s dynamic
        0s close r1/1
        0s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Topic news
            0s r1/2 has the Subscription one
            0s r1/3 has the Subscription two
            0s sent from #1
            0s r1/2 gets #1 a
            0s r1/3 gets #1 a until 60s
            0s complete r1/3 #1 in=two: done
            0s r1/3 evicted: the entity does not exist
            0s sent from #2
            0s r1/2 gets #2 b
            0s dynamic: news one
            0s r1/2 loses its node
            0s r1/2 evicted: the entity does not exist
            0s dynamic: 
        "#]],
    );
}

#[test]
fn a_subscription_with_messages_goes_without_the_store() {
    check(
        "
        0s queue
        0s make news r1/1 topic until=nothing
        0s open news r1/2 receive as=one
        0s open news r1/3 receive as=two
        0s send a b c encoded in=news
        0s close r1/2
        0s close r1/1
        0s dynamic
        0s attach r1/3 in=two
        0s limit r1/3 10
        0s complete r1/3 #1 #2 in=two
        0s close r1/3
        1s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Topic news
            0s r1/2 has the Subscription one
            0s r1/3 has the Subscription two
            0s sent from #1
            0s dynamic: news two
            0s r1/3 gets #1 a until 60s
            0s r1/3 gets #2 b until 60s
            0s r1/3 gets #3 c until 60s
            0s complete r1/3 #1 #2 in=two: done
            0s r1/3 evicted: the entity does not exist
            1s dynamic: 
        "#]],
    );
}

#[test]
fn a_link_that_attaches_again_has_another_node() {
    check(
        "
        0s queue
        0s make first r1/1
        0s make second r1/1
        0s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue first
            0s r1/1 has the Queue second
            0s dynamic: second
        "#]],
    );
}

#[test]
fn a_connection_has_so_many_nodes() {
    let settings = BrokerSettings {
        nodes_per_connection: 2,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s queue
        0s make one r1/1
        0s make two r1/2
        0s make three r1/3
        0s make other r2/1
        0s close r1/1
        0s make three r1/3
        0s dynamic
        ",
        expect![[r#"
            0s r1/1 has the Queue one
            0s r1/2 has the Queue two
            0s r1/3 has no three: the connection has made 2 dynamic nodes that are still there
            0s r2/1 has the Queue other
            0s r1/3 has the Queue three
            0s dynamic: other three two
        "#]],
    );
}

#[test]
fn all_nodes_share_an_amount_of_memory() {
    let settings = BrokerSettings {
        node_bytes: 10_000,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s queue
        0s make one r1/1
        0s make two r1/2
        0s send a b c in=one
        0s send d in=one
        0s send e in=one
        0s send f
        0s close r1/2
        0s send d in=one
        ",
        expect![[r#"
            0s r1/1 has the Queue one
            0s r1/2 has the Queue two
            0s sent from #1
            0s sent from #4
            0s send refused: the entity holds 10244 bytes of 10000
            0s sent from #1
            0s sent from #5
        "#]],
    );
}

#[test]
fn what_is_changed_of_a_message_takes_memory_as_long_as_it_is_there() {
    let settings = BrokerSettings {
        node_bytes: 10_000,
        ..BrokerSettings::default()
    };
    check_with(
        settings,
        "
        0s queue
        0s make one r1/1
        0s attach r1/1 in=one
        0s limit r1/1 1
        0s send a ttl=5s in=one
        0s abandon r1/1 #1 note=x*9000 in=one
        0s send b in=one
        0s make two r2/1
        6s send b in=one
        6s make two r2/1
        ",
        expect![[r#"
            0s r1/1 has the Queue one
            0s sent from #1
            0s r1/1 gets #1 a expires 5s until 60s
            0s abandon r1/1 #1 note=x*9000 in=one: done
            0s send refused: the entity holds 13624 bytes of 10000
            0s r2/1 has no two: dynamic nodes take 10000 bytes of memory
            6s sent from #2
            6s r2/1 has the Queue two
        "#]],
    );
}

#[test]
fn a_transaction_sends_to_a_node_and_to_a_stored_queue() {
    check(
        "
        0s queue
        0s make replies r1/1
        0s attach r1/1 in=replies
        0s limit r1/1 10
        0s sync manual
        0s declare t r2
        0s in t send a in=replies
        0s in t send b
        0s commit t
        0s sync
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s declare t: done
            0s in t send a in=replies: held
            0s in t send b: held
            0s commit t: done
            0s r1/1 gets #1 a until 60s
        "#]],
    );
}

#[test]
fn a_node_takes_no_place_in_the_namespace() {
    check(
        "
        0s queue
        0s make replies r1/1
        0s queue name=railbus.temporary.x
        0s queues
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s queues: q railbus.temporary.x
        "#]],
    );
}

#[test]
fn many_messages_of_a_node_are_read_back_in_pieces() {
    let settings = BrokerSettings {
        window: 4,
        body_bytes: 64,
        ..BrokerSettings::default()
    };
    let names = (0..100).map(|number| format!("m{number}"));
    let send = names.collect::<Vec<_>>().join(" ");
    let script = format!(
        "
        0s queue
        0s make node r1/1
        0s send {send} in=node
        0s attach r1/1 delete in=node
        0s limit r1/1 100
        0s rows
        0s counters in=node
        "
    );
    let said = run(settings, &script);
    let got = said.lines().filter(|line| line.contains(" gets "));
    assert_eq!(got.count(), 100, "{said}");
    assert!(
        said.ends_with("active 0 dead 0 deferred 0 bytes 0\n"),
        "{said}"
    );
}
