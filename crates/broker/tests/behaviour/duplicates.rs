//! Duplicate detection: a second message with an id is accepted and dropped, for a while.

use broker::BrokerSettings;
use expect_test::expect;
use proptest::prelude::*;

use crate::script::{check, check_with, run};

#[test]
fn a_second_message_with_the_same_id_is_accepted_and_dropped() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s send b@1
        2s send c@2 d e f@
        2s attach r1
        2s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2, known as #1
            2s sent from #2
            2s r1 gets #1 a until 32s
            2s r1 gets #2 c until 32s
            2s r1 gets #3 d until 32s
            2s r1 gets #4 e until 32s
            2s r1 gets #5 f until 32s
        "#]],
    );
}

#[test]
fn what_became_of_the_first_makes_no_difference() {
    check(
        "
        0s queue window=20s
        0s send a@1 b@2
        0s attach r1
        0s limit r1 10
        1s complete r1 #1
        1s reject r1 #2
        2s send a@1 b@2
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            1s complete r1 #1: done
            1s reject r1 #2: done
            2s sent from #3, known as #1 #2
            2s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn the_window_runs_from_the_first_acceptance_and_a_duplicate_does_not_extend_it() {
    check(
        "
        0s queue window=20s
        0s send a@1
        19s send b@1
        19s counters
        20s send c@1
        20s counters
        39s send d@1
        39s counters
        40s send e@1
        40s counters
        ",
        expect![[r#"
            0s sent from #1
            19s sent from #2, known as #1
            19s active 1 dead 0 deferred 0 bytes 1
            20s sent from #2
            20s active 2 dead 0 deferred 0 bytes 2
            39s sent from #3, known as #2
            39s active 2 dead 0 deferred 0 bytes 2
            40s sent from #3
            40s active 3 dead 0 deferred 0 bytes 3
        "#]],
    );
}

#[test]
fn a_batch_is_checked_message_by_message() {
    check(
        "
        0s queue window=20s
        0s send a@1
        0s send a@1 b@2 c@2 d@3
        0s attach r1
        0s limit r1 10
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2, known as #1 #2
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 d until 30s
        "#]],
    );
}

#[test]
fn the_history_survives_a_restart() {
    check(
        "
        0s queue window=20s
        0s send a@1 b@2
        1s restart
        2s send a@1 c@3
        2s counters
        20s restart
        20s send a@1 b@2 c@3
        20s counters
        ",
        expect![[r#"
            0s sent from #1
            2s sent from #3, known as #1
            2s active 3 dead 0 deferred 0 bytes 3
            20s sent from #4, known as #3
            20s active 5 dead 0 deferred 0 bytes 5
        "#]],
    );
}

#[test]
fn sends_that_wait_for_the_store_keep_their_order() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s reads late
        1s attach r1
        1s limit r1 10
        2s send x@1
        2s send y@2
        2s send y@2
        2s send z
        2s counters
        3s asked
        3s answer
        3s answer
        3s answer
        ",
        expect![[r#"
            0s sent from #1
            2s active 1 dead 0 deferred 0 bytes 1
            3s asked for 4096 of Active #1..#2, 4096 of DuplicateId EntryKey { group: b"\0\0\x01\x8b\xcf\xe5h\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", number: SequenceNumber(0) }..EntryKey { group: b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", number: SequenceNumber(18446744073709551615) }, DuplicateId [EntryKey { group: b"\0\0\x01\x8b\xcf\xe5h\0?\xfc\xabq\xa0\x13Em[\xee=\xd6=2\x16[", number: SequenceNumber(0) }], DuplicateId [EntryKey { group: b"\0\0\x01\x8b\xcf\xe5h\0\"|\xb6\xd0\xbf\xb8\x90\xc2\xb4d5\xba\x8c\xe7\xa5\xb9", number: SequenceNumber(0) }], DuplicateId [EntryKey { group: b"\0\0\x01\x8b\xcf\xe5h\0\"|\xb6\xd0\xbf\xb8\x90\xc2\xb4d5\xba\x8c\xe7\xa5\xb9", number: SequenceNumber(0) }]
            3s sent from #2, known as #1
            3s sent from #2
            3s sent from #3, known as #2
            3s sent from #3
            3s r1 gets #1 a until 33s
            3s r1 gets #2 y until 33s
            3s r1 gets #3 z until 33s
        "#]],
    );
}

#[test]
fn an_id_that_was_among_the_latest_is_still_known_when_its_send_has_waited() {
    check_with(
        BrokerSettings {
            window: 2,
            ..BrokerSettings::default()
        },
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s reads late
        1s send x@9
        1s answer broken
        2s reads early
        2s send x@9
        2s reads late
        2s send b@2 c@3 d@4
        2s send y@9 e@5
        2s answer
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            1s send refused: the store cannot be read
            2s sent from #2
            2s sent from #3
            2s sent from #6, known as #2
            2s active 6 dead 0 deferred 0 bytes 6
        "#]],
    );
}

#[test]
fn a_send_is_refused_when_the_history_can_not_be_read() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s restart
        1s reads late
        2s send b@2
        2s answer broken
        2s counters
        3s reads early
        4s send b@2
        4s counters
        ",
        expect![[r#"
            0s sent from #1
            2s send refused: the store cannot be read
            2s active 1 dead 0 deferred 0 bytes 1
            4s sent from #2
            4s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_refused_send_leaves_nothing_in_the_history() {
    check(
        "
        0s queue window=20s max-size=3
        0s send abcd@1
        0s history
        0s send abc@1
        0s history
        ",
        expect![[r#"
            0s send refused: the entity holds 0 bytes of 3
            0s history of 0 ids in 0 periods
            0s sent from #1
            0s history of 1 ids in 1 periods
        "#]],
    );
}

#[test]
fn ids_leave_the_store_some_time_after_their_window() {
    check_with(
        BrokerSettings {
            turn_work: 4,
            ..BrokerSettings::default()
        },
        "
        0s queue window=16s
        0s send a@1 b@2 c@3 d@4 e@5 f@6
        5s send g@7
        16s history
        18s history
        20s send a@1
        20s history
        24s history
        60s history
        ",
        expect![[r#"
            0s sent from #1
            5s sent from #7
            16s history of 7 ids in 2 periods
            18s history of 1 ids in 1 periods
            20s sent from #8
            20s history of 2 ids in 2 periods
            24s history of 1 ids in 1 periods
            60s history of 0 ids in 0 periods
        "#]],
    );
}

#[test]
fn an_id_that_is_accepted_again_outlives_its_first_acceptance() {
    check(
        "
        0s queue window=16s
        0s send a@1
        15s send b@2
        17s send c@1
        19s history
        20s history
        20s restart
        21s send d@1
        31s history
        32s send e@1
        33s send f@1
        ",
        expect![[r#"
            0s sent from #1
            15s sent from #2
            17s sent from #3
            19s history of 2 ids in 2 periods
            20s history of 2 ids in 2 periods
            21s sent from #4, known as #3
            31s history of 2 ids in 2 periods
            32s sent from #4, known as #3
            33s sent from #4
        "#]],
    );
}

#[test]
fn an_era_that_ends_while_the_store_is_asked_is_over() {
    check(
        "
        0s queue window=16s
        0s send a@1
        1s restart
        1s reads fresh
        1s send b@2
        1s send c@1
        30s history
        30s answer
        30s answer
        30s answer
        31s counters
        ",
        expect![[r#"
            0s sent from #1
            30s history of 0 ids in 0 periods
            30s sent from #2
            30s sent from #3
            31s active 3 dead 0 deferred 0 bytes 3
        "#]],
    );
}

#[test]
fn a_window_that_changes_counts_for_what_was_accepted_before() {
    check(
        "
        0s queue window=20s
        0s send a@1
        4s send b@2
        5s queue window=4s
        5s history
        7s send c@2
        7s send d@1
        8s send e@2
        8s queue window=1m
        60s send f@2 g@1
        ",
        expect![[r#"
            0s sent from #1
            4s sent from #2
            5s history of 2 ids in 1 periods
            7s sent from #3, known as #2
            7s sent from #3
            8s sent from #4
            60s sent from #5, known as #4 #3
        "#]],
    );
}

#[test]
fn a_jump_of_the_clock_ends_the_window_and_one_back_does_not() {
    check(
        "
        0s queue window=20s
        0s send a@1
        1s jump -1h
        1s send b@1
        1s counters
        2s jump +2h
        2s send c@1
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #2, known as #1
            1s active 1 dead 0 deferred 0 bytes 1
            2s sent from #2
            2s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[derive(Clone, Debug)]
enum Op {
    Send(Vec<u8>),
    Wait(u64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec(0..8_u8, 1..4).prop_map(Op::Send),
        3 => (1..9_u64).prop_map(Op::Wait),
        1 => Just(Op::Restart),
    ]
}

proptest! {
    #[test]
    fn exactly_the_first_of_each_window_is_kept(
        ops in prop::collection::vec(op(), 1..60),
        window in 1..6_usize,
    ) {
        let settings = BrokerSettings { window, turn_work: 3, ..BrokerSettings::default() };
        let mut script = "0s queue window=20s\n".to_owned();
        let (mut at, mut kept) = (0, 0);
        let mut accepted = std::collections::BTreeMap::new();
        for op in ops {
            match op {
                Op::Send(ids) => {
                    let texts: Vec<_> = ids.iter().map(|id| format!("m@{id}")).collect();
                    script += &format!("{at}s send {}\n", texts.join(" "));
                    for id in ids {
                        if accepted.get(&id).is_none_or(|before| at >= before + 20) {
                            accepted.insert(id, at);
                            kept += 1;
                        }
                    }
                }
                Op::Wait(seconds) => at += seconds,
                Op::Restart => script += &format!("{at}s restart\n"),
            }
        }
        script += &format!("{at}s counters\n{}s history\n", at + 100);
        let said = run(settings, &script);
        let counted = format!("active {kept} dead 0 deferred 0 bytes {kept}\n");
        prop_assert!(said.contains(&counted), "{script}\n{said}\nnot {counted}");
        let swept = said.ends_with("history of 0 ids in 0 periods\n");
        prop_assert!(swept, "{}\n{}", script, said);
    }
}
