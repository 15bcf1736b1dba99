//! Snapshots: what a namespace had at one moment is there again after a restore, whatever has
//! happened meanwhile.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_restore_brings_back_what_was_settled_since_and_removes_what_has_come() {
    check(
        "
        0s send one two three
        1s snapshot base
        2s attach r1
        2s limit r1 2
        3s complete r1 #1
        4s send four
        5s snapshots
        6s restore base
        7s peek 1 9 in=q
        8s attach r2 in=q
        8s limit r2 9
        9s send five in=q
        ",
        expect![[r#"
            0s sent from #1
            1s snapshot base: base has 1 entities, 3 messages
            2s r1 gets #1 one until 32s
            2s r1 gets #2 two until 32s
            3s complete r1 #1: done
            4s sent from #4
            5s snapshots: base has 1 entities, 3 messages
            6s r1 evicted: the namespace was restored from a snapshot
            6s q is gone
            6s restore base: done
            7s peek: #1 one, #2 two, #3 three
            8s r2 gets #1 one until 38s
            8s r2 gets #2 two until 38s
            8s r2 gets #3 three until 38s
            9s sent from #5
            9s r2 gets #5 five until 39s
        "#]],
    );
}

#[test]
fn taking_a_snapshot_disturbs_no_lock_and_a_restore_voids_it() {
    check(
        "
        0s send one two
        1s attach r1
        1s limit r1 2
        2s snapshot base
        3s complete r1 #1
        4s restore base
        5s complete r1 #2
        6s attach r2 in=q
        6s limit r2 9
        ",
        expect![[r#"
            0s sent from #1
            1s r1 gets #1 one until 31s
            1s r1 gets #2 two until 31s
            2s snapshot base: base has 1 entities, 2 messages
            3s complete r1 #1: done
            4s r1 evicted: the namespace was restored from a snapshot
            4s q is gone
            4s restore base: done
            5s complete r1 #2: the lock is not held
            6s r2 gets #1 one until 36s
            6s r2 gets #2 two until 36s
        "#]],
    );
}

#[test]
fn each_part_comes_back_with_counts_and_changes() {
    check(
        "
        0s queue lock=5s max-delivery=3
        0s send a b c d late+60s
        2s attach r1
        2s limit r1 3
        3s abandon r1 #1 tried=yes
        4s defer r1 #2
        5s reject r1 #3 reason=bad
        5s detach r1
        6s snapshot base
        7s restart
        8s attach r2
        8s limit r2 9
        9s complete r2 #1 #4
        10s attach r3 dead
        10s limit r3 9
        11s complete r3 #3 dead
        12s restore base
        13s counters in=q
        13s attach r4 in=q
        13s limit r4 9
        14s attach r5 dead in=q
        14s limit r5 9
        15s fetch r4 #2 in=q
        61s complete r4 #6 in=q
        62s counters in=q
        ",
        expect![[r#"
            0s sent from #1
            2s r1 gets #1 a until 7s
            2s r1 gets #2 b until 7s
            2s r1 gets #3 c until 7s
            3s abandon r1 #1 tried=yes: done
            4s defer r1 #2: done
            5s reject r1 #3 reason=bad: done
            6s snapshot base: base has 1 entities, 5 messages
            8s r2 gets #1 a count 1 tried="yes" until 13s
            8s r2 gets #4 d until 13s
            9s complete r2 #1 #4: done
            10s r3 gets #3 c reason="bad" until 15s
            11s complete r3 #3 dead: done
            12s r2 evicted: the namespace was restored from a snapshot
            12s r3 evicted: the namespace was restored from a snapshot
            12s q is gone
            12s restore base: done
            13s active 2 dead 1 deferred 1 bytes 8 scheduled 1
            13s r4 gets #1 a count 1 tried="yes" until 18s
            13s r4 gets #4 d until 18s
            14s r5 gets #3 c reason="bad" until 19s
            15s fetch r4 #2 in=q: #2 b count 1 Deferred until 20s
            18s r4 gets #1 a count 2 tried="yes" until 23s
            18s r4 gets #4 d count 1 until 23s
            19s r5 gets #3 c reason="bad" until 24s
            23s r4 gets #4 d count 2 until 28s
            23s r5 gets #1 a count 3 tried="yes" DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 28s
            24s r5 gets #3 c reason="bad" until 29s
            28s r5 gets #1 a count 3 tried="yes" DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 33s
            28s r5 gets #4 d count 3 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 33s
            29s r5 gets #3 c reason="bad" until 34s
            33s r5 gets #1 a count 3 tried="yes" DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 38s
            33s r5 gets #4 d count 3 DeadLetterReason="MaxDeliveryCountExceeded" DeadLetterErrorDescription="Message could not be consumed after 3 delivery attempts." until 38s
            60s r4 gets #6 late until 65s
            61s complete r4 #6 in=q: done
            62s active 0 dead 3 deferred 1 bytes 4
        "#]],
    );
}

#[test]
fn subscriptions_come_back_with_their_rules_and_messages() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        1s send one encoded in=t
        2s snapshot base
        3s attach r1 in=t/Subscriptions/a
        3s limit r1 9
        4s complete r1 #1 in=t/Subscriptions/a
        5s remove in=t/Subscriptions/b
        6s send two encoded in=t
        7s restore base
        8s peek 1 9 in=t/Subscriptions/a
        9s peek 1 9 in=t/Subscriptions/b
        10s send three encoded in=t
        11s peek 1 9 in=t/Subscriptions/a
        12s rules in=t/Subscriptions/b
        13s remove in=t
        14s drop base
        200s snapshots
        ",
        expect![[r#"
            1s sent from #1
            2s snapshot base: base has 3 entities, 2 messages
            3s r1 gets #1 one until 33s
            4s complete r1 #1 in=t/Subscriptions/a: done
            5s t/Subscriptions/b is gone
            5s removed
            6s sent from #2
            6s r1 gets #2 two until 36s
            7s r1 evicted: the namespace was restored from a snapshot
            7s t/Subscriptions/a is gone
            7s t is gone
            7s restore base: done
            8s peek: #1 one
            9s peek: #1 one
            10s sent from #3
            11s peek: #1 one, #3 three
            12s rules: $Default everything
            13s t/Subscriptions/a is gone
            13s t/Subscriptions/b is gone
            13s t is gone
            13s removed
            14s drop base: done
            200s snapshots: 
        "#]],
    );
}

#[test]
fn a_scheduled_message_of_a_topic_goes_out_after_each_restore() {
    check(
        "
        0s topic t
        0s subscription a of=t
        0s subscription b of=t
        1s send late+10s encoded in=t
        2s snapshot base
        20s peek 1 9 in=t/Subscriptions/a
        21s restore base
        22s peek 1 9 in=t/Subscriptions/a
        23s attach r1 in=t/Subscriptions/a
        23s limit r1 1
        24s restore base
        25s peek 1 9 in=t/Subscriptions/b
        26s drop base
        27s remove in=t
        300s snapshots
        ",
        expect![[r#"
            1s sent from #1
            2s snapshot base: base has 3 entities, 1 messages
            20s peek: #1 late first #2
            21s t/Subscriptions/a is gone
            21s t/Subscriptions/b is gone
            21s t is gone
            21s restore base: done
            22s peek: #2 late first #4
            23s r1 gets #2 late first #4 until 53s
            24s r1 evicted: the namespace was restored from a snapshot
            24s t/Subscriptions/a is gone
            24s t/Subscriptions/b is gone
            24s t is gone
            24s restore base: done
            25s peek: #3 late first #6
            26s drop base: done
            27s t/Subscriptions/a is gone
            27s t/Subscriptions/b is gone
            27s t is gone
            27s removed
            300s snapshots: 
        "#]],
    );
}

#[test]
fn what_a_transaction_held_when_a_snapshot_was_taken_is_no_part_of_it() {
    check(
        "
        0s queue
        0s send a late+60s
        1s attach r1
        1s declare t1 r1/7
        1s in t1 send first+40s second+40s third+50s
        2s snapshot base
        3s commit t1
        4s cancel #3
        5s rows
        6s snapshot after
        7s restart
        45s attach r2
        45s limit r2 9
        46s complete r2 #1 #9
        47s restore after
        48s counters in=q
        49s attach r3 in=q
        49s limit r3 9
        53s restore base
        54s counters in=q
        55s drop base
        55s drop after
        62s attach r4 in=q
        62s limit r4 9
        63s complete r4 #1 in=q
        64s complete r4 #12 in=q
        201s remove in=q
        300s snapshots
        301s rows
        ",
        expect![[r#"
            0s sent from #1
            1s declare t1: done
            1s in t1 send first+40s second+40s third+50s: held from #3
            2s snapshot base: base has 1 entities, 2 messages
            3s commit t1: done
            4s cancel #3: done
            5s 6 rows and 4 bodies
            6s snapshot after: after has 1 entities, 4 messages
            45s r2 gets #1 a until 75s
            45s r2 gets #9 second until 75s
            46s complete r2 #1 #9: done
            47s r2 evicted: the namespace was restored from a snapshot
            47s q is gone
            47s restore after: done
            48s active 2 dead 0 deferred 0 bytes 16 scheduled 2
            49s r3 gets #1 a until 79s
            49s r3 gets #10 second until 79s
            50s r3 gets #11 third until 80s
            53s r3 evicted: the namespace was restored from a snapshot
            53s q is gone
            53s restore base: done
            54s active 1 dead 0 deferred 0 bytes 5 scheduled 1
            55s drop base: done
            55s drop after: done
            62s r4 gets #1 a until 92s
            62s r4 gets #12 late until 92s
            63s complete r4 #1 in=q: done
            64s complete r4 #12 in=q: done
            201s r4 evicted: the entity does not exist
            201s q is gone
            201s removed
            300s snapshots: 
            301s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn refusals_say_what_is_wrong_and_change_nothing() {
    check(
        "
        0s send one
        1s restore base
        2s drop base
        3s snapshot base
        4s snapshot base
        5s snapshot No/Name
        6s fork copy nothing
        7s fork default
        8s drop base
        9s restore base
        10s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            1s restore base: the namespace has no snapshot 'base'
            2s drop base: the namespace has no snapshot 'base'
            3s snapshot base: base has 1 entities, 1 messages
            4s snapshot base: the namespace has a snapshot 'base' already
            5s snapshot No/Name: snapshot 'No/Name': a name has 1 to 63 lower-case letters, digits and '-', and begins and ends with a letter or digit
            6s fork copy nothing: the namespace has no snapshot 'nothing'
            7s fork default: namespace 'default': this name is that of the default namespace
            8s drop base: done
            9s restore base: the namespace has no snapshot 'base'
            10s peek: #1 one
        "#]],
    );
}

#[test]
fn nothing_is_copied_when_the_disk_is_nearly_full() {
    check(
        "
        0s send one
        1s snapshot base
        2s disk full
        3s snapshot other
        4s restore base
        5s fork copy
        6s drop base
        7s disk free
        8s snapshots
        9s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            1s snapshot base: base has 1 entities, 1 messages
            3s snapshot other: the disk is nearly full
            4s restore base: the disk is nearly full
            5s fork copy: the disk is nearly full
            6s drop base: done
            8s snapshots: 
            9s peek: #1 one
        "#]],
    );
}

#[test]
fn a_namespace_with_exchanges_has_no_snapshots() {
    check(
        "
        0s send one
        1s snapshot base
        2s bind amq.topic # to=q
        3s snapshot other
        4s restore base
        5s peek 1 9
        ",
        expect![[r#"
            0s sent from #1
            1s snapshot base: base has 1 entities, 1 messages
            2s bind amq.topic # to=q: done
            3s snapshot other: a namespace with exchanges has no snapshots
            4s restore base: a namespace with exchanges has no snapshots
            5s peek: #1 one
        "#]],
    );
}

#[test]
fn a_namespace_without_messages_is_forked_as_often_as_wanted() {
    let lines = (0..=broker::MAX_SNAPSHOTS).map(|number| format!("{number}s fork copy-{number}\n"));
    let script: String = lines.collect();
    let said = crate::script::run(broker::BrokerSettings::default(), &script);
    let last = format!("fork copy-{}: 1 entities\n", broker::MAX_SNAPSHOTS);
    assert!(said.ends_with(&last), "{said}");
}

/// As a suite does that takes one snapshot per test.
#[test]
fn a_full_namespace_has_as_many_snapshots_one_after_the_other_as_wanted() {
    let mut script = "0s send kept\n".to_owned();
    for number in 0..=broker::MAX_SNAPSHOTS {
        script += &format!("{number}s snapshot s\n{number}s drop s\n");
    }
    for number in 0..=broker::MAX_SNAPSHOTS {
        let lines = ["snapshot s", "send of-the-test in=q", "restore s", "drop s"];
        for line in lines {
            script += &format!("{}s {line}\n", 1_000 + number);
        }
    }
    script += "2000s peek 1 9 in=q\n2001s snapshot last\n";
    let said = crate::script::run(broker::BrokerSettings::default(), &script);
    let end = "peek: #1 kept\n2001s snapshot last: last has 1 entities, 1 messages\n";
    assert!(said.ends_with(end), "{said}");
}
