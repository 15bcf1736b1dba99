//! Scheduled messages that are browsed in the order in which they are due.

use expect_test::expect;

use crate::script::check;

#[test]
fn scheduled_messages_are_shown_by_due_time_then_by_number() {
    check(
        "
        0s send a+30s b+10s c+20s d e+10s
        0s peek-due 0s 0 10
        0s peek-due 0s 0 2
        0s peek-due 10s 6 2
        0s peek-due 0s 0 9 bytes=2
        0s peek-due 30s 2 9
        0s peek-due 0s 0 0
        11s peek-due 0s 0 10
        11s peek-due 0s 0 10 in=nowhere
        ",
        expect![[r#"
            0s sent from #1
            0s peek: #2 b Scheduled, #5 e Scheduled, #3 c Scheduled, #1 a Scheduled
            0s peek: #2 b Scheduled, #5 e Scheduled
            0s peek: #3 c Scheduled, #1 a Scheduled
            0s peek: #2 b Scheduled, #5 e Scheduled
            0s peek: 
            0s peek: 
            11s peek: #3 c Scheduled, #1 a Scheduled
            11s peek: the entity does not exist
        "#]],
    );
}

#[test]
fn what_is_activated_or_cancelled_while_it_is_read_is_left_out() {
    check(
        "
        0s send a+10s b+20s c+30s
        9s reads late
        9s peek-due 0s 0 9
        9s asked
        9s answer
        9s asked
        10s cancel #3
        10s answer last
        10s answer
        ",
        expect![[r#"
            0s sent from #1
            9s asked for 9 of Schedule 10s #1..max
            9s asked for Scheduled #1 #2 #3
            10s cancel #3: done
            10s peek: #2 b Scheduled
        "#]],
    );
}

#[test]
fn entries_and_messages_that_cannot_be_read_are_passed_over() {
    check(
        "
        0s send a+10s b+20s c+30s d+40s
        0s reads late
        1s peek-due 0s 0 9
        1s answer lost 1 25s
        1s asked
        1s answer
        1s answer
        2s peek-due 10s 2 9
        2s answer lost 0 25s
        2s asked
        2s answer
        2s answer damaged
        2s asked
        2s answer damaged
        2s asked
        2s answer
        3s peek-due 0s 0 9
        3s answer mangled 2
        3s answer
        4s peek-due 0s 0 9
        4s answer lost 0 100y
        4s answer
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 1 of Schedule 10s #1..max
            1s peek: #1 a Scheduled
            2s asked for 9 of Schedule 25s #0..max
            2s asked for Scheduled #3
            2s asked for Scheduled #4
            2s peek: #4 d Scheduled
            3s peek: #1 a Scheduled, #3 c Scheduled, #4 d Scheduled
            4s peek: 
        "#]],
    );
}

#[test]
fn a_schedule_that_the_disk_does_not_give_is_refused() {
    check(
        "
        0s send a+10s
        0s reads late
        1s peek-due 0s 0 9
        1s answer broken
        2s peek-due 0s 0 9
        2s answer
        2s answer broken
        3s peek-due 0s 0 9
        3s remove
        3s answer
        ",
        expect![[r#"
            0s sent from #1
            1s peek: the disk refused: no answer
            2s peek: the disk refused: no answer
            3s q is gone
            3s removed
            3s peek: the entity does not exist
        "#]],
    );
}
