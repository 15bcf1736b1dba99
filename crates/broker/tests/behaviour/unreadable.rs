//! Unreadable: rows that the store cannot read are passed over, and receivers are told.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_after};

#[test]
fn rows_before_and_behind_damaged_ones_are_delivered_and_receivers_are_told_once() {
    check(
        "
        0s send a b c d e
        0s reads late
        1s restart
        1s attach r1
        1s limit r1 9
        1s asked
        1s answer unreadable 1 2 5
        1s asked
        1s answer
        1s answer
        2s asked
        2s answer unreadable 0 2 5
        2s asked
        3s attach r2
        3s limit r2 9
        3s asked
        3s answer
        3s answer
        4s send f
        4s answer
        4s answer
        5s complete r2 #5
        5s limit r2 9 drain
        5s attach r3
        5s limit r3 1
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 4096 of Active #1..#6
            1s asked for 1 of Active #1..#6
            1s r1 gets #1 a until 31s
            2s asked for 4096 of Active #2..#6
            2s r1 evicted: the store is damaged: messages #2 to #4 cannot be read
            2s asked for 
            3s asked for 4096 of Active #5..#6
            3s r2 gets #5 e until 33s
            4s sent from #6
            4s r2 gets #6 f until 34s
            5s complete r2 #5: done
            5s r2 evicted: the store is damaged: messages #2 to #4 cannot be read
        "#]],
    );
}

#[test]
fn stragglers_that_cannot_be_read_are_passed_over_one_by_one() {
    check_after(
        BrokerSettings::default(),
        "
        0s queue lock=1h
        0s send a b
        0s attach r1
        0s limit r1 2
        0s send x*2000
        0s attach r2 delete
        0s limit r2 1999
        0s reads late
        1s restart
        1s attach r1
        1s limit r1 9
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s attach r1
        1s limit r1 9
        1s asked
        1s answer
        1s asked
        1s answer
        1s asked
        1s answer
        ",
        2003,
        expect![[r#"
            1s asked for Active #1 #2
            1s asked for Active #1
            1s r1 evicted: the store is damaged: messages #1 to #1 cannot be read
            1s asked for Active #2
            1s asked for Active #2
            1s r1 gets #2 b until 3601s
            1s asked for 4096 of Active #2002..#2003
            1s r1 gets #2002 x until 3601s
        "#]],
    );
}

#[test]
fn a_browser_is_told_and_goes_on_behind_damaged_rows() {
    check(
        "
        0s send a b c d
        0s reads late
        1s restart
        1s attach r1 copy
        1s limit r1 9
        1s answer unreadable 1 2 4
        1s asked
        1s answer
        1s answer unreadable 0 2 4
        2s attach r1 copy
        2s limit r1 9
        2s answer unreadable 1 2 4
        2s answer
        2s answer unreadable 0 2 4
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 1 of Active #1..#5 with bodies
            1s r1 gets #1 a
            1s r1 evicted: the store is damaged: messages #2 to #3 cannot be read
            2s r1 gets #1 a
            2s r1 gets #4 d
        "#]],
    );
}

#[test]
fn a_selection_goes_on_behind_damaged_rows() {
    check(
        "
        0s send a b c d encoded n=1
        0s reads late
        1s restart
        1s attach r1 where n = 1
        1s limit r1 9
        1s asked
        1s answer unreadable 1 2 4
        1s asked
        1s answer
        1s answer unreadable 0 2 4
        2s attach r1 where n = 1
        2s limit r1 9
        2s asked
        2s answer
        2s asked
        2s answer
        2s asked
        2s answer
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 4096 of Active #1..#5, 256 of Active #1..#5 with bodies
            1s asked for 1 of Active #1..#5, 1 of Active #1..#5 with bodies
            1s r1 gets #1 a n=1 until 31s
            1s r1 evicted: the store is damaged: messages #2 to #3 cannot be read
            2s asked for 4096 of Active #4..#5, 256 of Active #4..#5 with bodies
            2s r1 gets #4 d n=1 until 32s
            2s asked for 
            2s asked for 
        "#]],
    );
}

#[test]
fn a_sweep_goes_on_behind_damaged_rows() {
    check(
        "
        0s send a b c d ttl=5s
        0s reads late
        1s restart
        6s asked
        6s answer unreadable 1 2 4
        6s asked
        6s answer
        6s answer unreadable 0 2 4
        6s asked
        6s answer
        7s asked
        7s rows
        ",
        expect![[r#"
            0s sent from #1
            6s asked for 1024 of Active #0..#1024
            6s asked for 1 of Active #0..#1024
            6s asked for 1024 of Active #4..#1024
            7s asked for 
            7s 2 rows and 2 bodies
        "#]],
    );
}

#[test]
fn a_holder_is_given_the_rest_of_its_session_and_told_then() {
    check(
        "
        0s queue sessions
        0s send a:A b:A c:A
        1s reads late
        1s restart
        1s accept r1 A
        1s limit r1 9
        1s answer
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        1s answer
        1s asked
        1s answer
        1s answer
        1s answer
        2s accept r1 A
        2s asked
        ",
        expect![[r#"
            0s sent from #1
            1s r1 holds A until 31s
            1s asked for Active #1 #2 #3
            1s asked for Active #1 #2 #3
            1s asked for Active #1
            1s asked for 256 of Session 9413270669427828315ms #2..9413270669427828315ms #4
            1s asked for Active #2 #3
            1s r1 gets #2 b until 31s
            1s r1 gets #3 c until 31s
            1s r1 evicted: the store is damaged: messages #1 to #1 cannot be read
            2s r1 holds A until 32s
            2s asked for 
        "#]],
    );
}

#[test]
fn a_holder_is_told_that_its_session_cannot_be_read() {
    check(
        "
        0s queue sessions
        0s send a:A b:A c:A
        1s reads late
        1s restart
        1s accept r1 A
        1s limit r1 9
        1s asked
        1s answer damaged
        2s asked
        ",
        expect![[r#"
            0s sent from #1
            1s r1 holds A until 31s
            1s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max, 256 of Session 9413270669427828315ms #1..9413270669427828315ms #4
            1s r1 evicted: the store is damaged: messages #1 to #3 cannot be read
            2s asked for 512 groups of Session after None, 8 of Session 9413270669427828315ms #1..9413270669427828315ms #4, 1024 of SessionExpiry 0s #0..max
        "#]],
    );
}

#[test]
fn sessions_of_other_groups_are_handed_out_and_waiters_are_told_once() {
    // The pieces become shorter, down to one group, before one begins behind the damage.
    let damaged = "1s answer damaged\n".repeat(11);
    check(
        &format!(
            "
            0s queue sessions
            0s send a:A b:B
            1s reads late
            1s restart
            1s accept r1 next 60s
            1s accept r2 next 60s
            1s accept r3 next 60s
            1s list 0 9
            1s answer last
            1s asked
            {damaged}
            1s asked
            1s reads now
            1s answer
            1s wait
            5s accept r4 next 10s
            6s send c:C
            6s accept r5 next 10s
            6s list 0 9
            7s accept r6 D
            17s wait
            "
        ),
        expect![[r#"
            0s sent from #1
            1s asked for 1024 groups of Session after None
            1s asked for 1 groups of Session after Some(b"\0\0\0\0\0\0\0\x01")
            1s list 0 9: the store is damaged: there are sessions that cannot be read
            1s r1 holds A until 31s
            1s r2 holds B until 31s
            1s r3 refused: unreadable
            6s sent from #3
            6s r4 holds C until 36s
            6s list 0 9: the store is damaged: there are sessions that cannot be read
            7s r6 holds D until 37s
            16s r5 refused: unreadable
        "#]],
    );
}

#[test]
fn a_survey_ends_though_all_of_it_is_damaged() {
    let damaged = "1s answer damaged\n".repeat(10 + 65);
    check(
        &format!(
            "
            0s queue sessions
            0s send a:A
            1s reads late
            1s restart
            1s accept r1 next 60s
            1s answer last
            {damaged}
            2s reads now
            3s accept r2 A
            3s limit r2 1
            "
        ),
        expect![[r#"
            0s sent from #1
            1s r1 refused: unreadable
            3s r2 holds A until 33s
            3s r2 gets #1 a until 33s
        "#]],
    );
}

#[test]
fn a_session_whose_entries_are_damaged_is_passed_over() {
    check(
        "
        0s queue sessions
        0s send a:A b:B
        1s reads late
        1s restart
        1s accept r1 next 60s
        1s accept r2 next 60s
        1s answer
        1s asked
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        1s answer
        1s asked
        2s accept r3 A
        2s limit r3 9
        2s asked
        2s answer damaged
        2s asked
        2s answer damaged
        2s answer damaged
        2s accept r4 next 5s
        8s wait
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 8 of Session 9413270669427828315ms #1..9413270669427828315ms #3
            1s asked for 1 of Session 9413270669427828315ms #1..9413270669427828315ms #3
            1s asked for 8 of Session 7955381128454826704ms #2..7955381128454826704ms #3
            1s r1 holds B until 31s
            1s r2 refused: unreadable
            1s asked for 
            2s r3 holds A until 32s
            2s asked for 256 of Session 9413270669427828315ms #1..9413270669427828315ms #3
            2s r3 evicted: the store is damaged: messages #1 to #2 cannot be read
            2s asked for 
            7s r4 refused: unreadable
        "#]],
    );
}

#[test]
fn a_browser_rests_when_it_cannot_find_what_is_damaged() {
    check(
        "
        0s send a b
        0s reads late
        1s restart
        1s attach r1 copy
        1s limit r1 9
        1s answer damaged
        1s answer damaged
        1s asked
        1s answer damaged
        1s asked
        2s asked
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 1 of Active #1..#3
            1s asked for 
            2s asked for 1 of Active #1..#3
            2s r1 gets #2 b
        "#]],
    );
}
