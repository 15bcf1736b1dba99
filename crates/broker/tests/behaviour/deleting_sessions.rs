//! Deleting messages of sessions: of all that have no holder, or of one by its id.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn small() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        body_bytes: 0,
        turn_work: 4,
        ..BrokerSettings::default()
    }
}

#[test]
fn messages_of_all_sessions_go_in_order() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:C
        1s send e:A f:B
        1s delete 3
        1s counters
        1s delete 9 before=1s
        1s peek 1 9
        1s delete 9
        1s rows
        1s list 0 9
        ",
        expect![[r#"
            0s sent from #1
            1s sent from #5
            1s delete 3: 3
            1s active 3 dead 0 deferred 0 bytes 3
            1s delete 9 before=1s: 1
            1s peek: #5 e, #6 f
            1s delete 9: 2
            1s 0 rows and 0 bodies
            1s list 0 9:  then skip 0
        "#]],
    );
}

#[test]
fn of_one_session_only_its_own_messages_go() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:A e:A f:A
        0s delete 1 session=A
        0s delete 9 session=A
        0s delete 9 session=Z
        0s accept r1 A
        0s accept r2 B
        0s limit r2 5
        1s send g:A
        1s limit r1 5
        ",
        expect![[r#"
            0s sent from #1
            0s delete 1 session=A: 1
            0s delete 9 session=A: 4
            0s delete 9 session=Z: 0
            0s r1 holds A until 30s
            0s r2 holds B until 30s
            0s r2 gets #2 b until 30s
            1s sent from #7
            1s r1 gets #7 g until 30s
        "#]],
    );
}

#[test]
fn a_held_session_is_passed_over_by_all_but_its_holder() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:B e:A
        0s accept r1 A
        0s limit r1 1
        0s delete 9 session=A
        0s delete 9
        0s counters
        0s delete 9 by=r1 session=A
        0s peek 1 9
        0s complete r1 #1
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s delete 9 session=A: 0
            0s delete 9: 2
            0s active 3 dead 0 deferred 0 bytes 3
            0s delete 9 by=r1 session=A: 2
            0s peek: #1 a
            0s complete r1 #1: done
            0s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn what_a_holder_gives_back_can_be_deleted_although_deletions_had_passed_it() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:B e:A f:B
        0s accept r1 A
        0s limit r1 2
        0s delete 9
        0s delete 9 by=r1 session=A
        0s release r1 #1
        0s delete 9 by=r1 session=A
        0s detach r1
        0s delete 9
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #3 c until 30s
            0s delete 9: 3
            0s delete 9 by=r1 session=A: 1
            0s release r1 #1: done
            0s delete 9 by=r1 session=A: 1
            0s delete 9: 1
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_session_that_is_released_while_a_deletion_reads_is_left_for_the_next() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A
        0s accept r1 A
        0s limit r1 1
        0s reads late
        0s delete 9
        0s asked
        0s detach r1
        0s answer
        0s answer
        0s answer
        0s reads now
        0s answer
        0s delete 9
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s asked for 4 of Active #2..#4
            0s delete 9: 2
            0s delete 9: 1
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn locked_deferred_and_scheduled_messages_of_a_session_stay() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:A c:A
        0s send d:A+60s
        0s accept r1 A
        0s limit r1 2
        0s defer r1 #1
        0s delete 9 session=A by=r1
        0s detach r1
        0s delete 9 session=A
        0s counters
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #4
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s defer r1 #1: done
            0s delete 9 session=A by=r1: 1
            0s delete 9 session=A: 1
            0s active 0 dead 0 deferred 1 bytes 2 scheduled 1
            0s 2 rows and 2 bodies
        "#]],
    );
}

#[test]
fn after_a_restart_sessions_need_not_be_known_yet() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:B
        0s delete 1
        0s restart
        0s reads late
        0s delete 1
        0s delete 1 session=B
        0s answer
        0s answer
        0s answer
        0s answer
        0s reads now
        0s answer
        0s counters
        0s delete 9
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s delete 1: 1
            0s delete 1: 1
            0s delete 1 session=B: 1
            0s active 1 dead 0 deferred 0 bytes 1
            0s delete 9: 1
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn what_arrived_since_a_restart_does_not_hide_what_was_there_before() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A
        0s restart
        0s reads late
        0s send b:A
        0s delete 9 session=A
        0s answer
        0s answer
        0s answer
        0s reads now
        0s answer
        0s rows
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s delete 9 session=A: 2
            0s 0 rows and 0 bodies
        "#]],
    );
}

#[test]
fn a_deletion_does_not_walk_over_what_earlier_ones_deleted() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:B c:A d:B e:B f:B g:A
        0s accept r1 A
        0s limit r1 1
        0s delete 9
        0s delete 9 by=r1 session=A
        0s send h:B i:A
        0s reads late
        0s delete 9
        0s asked
        0s answer
        0s delete 9 by=r1 session=A
        0s asked
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s delete 9: 4
            0s delete 9 by=r1 session=A: 2
            0s sent from #8
            0s asked for 4 of Active #8..#10
            0s delete 9: 1
            0s asked for 4 of Session 9413270669427828315ms #8..9413270669427828315ms #10
            0s delete 9 by=r1 session=A: 1
        "#]],
    );
}

#[test]
fn an_expired_message_of_a_session_is_not_counted() {
    check_with(
        small(),
        "
        0s queue sessions dead-letter-expired
        0s send a:A ttl=1s
        0s send b:A
        !2s delete 9
        2s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            2s delete 9: 1
            2s active 0 dead 1 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_read_that_fails_is_told_unless_something_went_before() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:A c:A d:A e:A f:A
        0s reads late
        0s delete 9
        0s answer broken
        0s delete 9 session=A
        0s answer
        0s answer
        0s answer broken
        0s reads now
        0s answer
        0s counters
        ",
        expect![[r#"
            0s sent from #1
            0s delete 9: the disk refused: no answer
            0s delete 9 session=A: 4
            0s active 2 dead 0 deferred 0 bytes 2
        "#]],
    );
}

#[test]
fn a_dead_letter_queue_has_no_sessions() {
    check(
        "
        0s queue sessions
        0s send a:A
        0s accept r1 A
        0s limit r1 1
        0s reject r1 #1
        0s delete 9 dead session=A
        0s delete 9 dead
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s reject r1 #1: done
            0s delete 9 dead session=A: the entity has no sessions
            0s delete 9 dead: 1
        "#]],
    );
}
