//! Session ids: what is one session, whatever the letter case of its id, and what is shown of it.

use expect_test::expect;

use crate::script::check;

#[test]
fn ids_that_differ_in_case_are_one_session_listed_under_the_first() {
    check(
        "
        0s queue sessions
        0s send a:Order b:ORDER c:other d:order
        0s list 0 9
        0s accept r1 ORDER
        0s accept r2 oRdEr
        0s limit r1 9
        0s set-state r1 order hello
        0s state r1 OrdeR
        0s renew-session r1 orDER
        0s peek-session ORDER 1 9
        1s complete r1 #1 #2
        1s send e:oRDER
        1s detach r1
        2s list 0 9
        2s accept r3 next 5s
        2s limit r3 9
        2s state r3 ORDER
        3s restart
        3s list 0 9
        3s accept r1 order
        3s limit r1 9
        3s state r1 Order
        ",
        expect![[r#"
            0s sent from #1
            0s list 0 9: Order other then skip 2
            0s r1 holds Order until 30s
            0s r2 refused: held
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #4 d until 30s
            0s set state of order: done
            0s state of OrdeR: hello
            0s renew orDER: until 30s
            0s peek ORDER: #1 a, #2 b, #4 d
            1s complete r1 #1 #2: done
            1s sent from #5
            1s r1 gets #5 e until 30s
            2s list 0 9: Order other then skip 2
            2s r3 holds other until 32s
            2s r3 gets #3 c until 32s
            2s state of ORDER: the session is not held
            3s list 0 9: order other then skip 2
            3s r1 holds order until 33s
            3s r1 gets #4 d until 33s
            3s r1 gets #5 e until 33s
            3s state of Order: hello
        "#]],
    );
}

#[test]
fn letters_beyond_ascii_are_folded_one_by_one() {
    check(
        "
        0s queue sessions
        0s send a:ÄPFEL b:äpfel c:straße d:strasse
        0s list 0 9
        0s accept r1 Äpfel
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #1
            0s list 0 9: strasse straße ÄPFEL then skip 3
            0s r1 holds ÄPFEL until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
        "#]],
    );
}

#[test]
fn scheduled_deferred_and_deleted_messages_belong_to_it_too() {
    check(
        "
        0s queue sessions
        0s send a:Order b:ORDER
        0s send c:oRDER+5s
        0s accept r1 order
        0s limit r1 1
        0s defer r1 #1
        0s peek-session ORDER 1 9
        0s fetch r1 ORDER #1
        5s limit r1 9
        6s detach r1
        6s delete 9 session=ORDER
        6s counters
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #3
            0s r1 holds Order until 30s
            0s r1 gets #1 a until 30s
            0s defer r1 #1: done
            0s peek ORDER: #1 a count 1 Deferred, #2 b, #3 c Scheduled
            0s fetch r1 ORDER #1: #1 a count 1 Deferred until 30s
            5s r1 gets #2 b until 30s
            5s r1 gets #4 c until 30s
            6s delete 9 session=ORDER: 2
            6s active 0 dead 0 deferred 1 bytes 1
        "#]],
    );
}

#[test]
fn a_queue_of_an_older_store_compares_ids_exactly_until_it_has_no_session() {
    check(
        "
        0s queue sessions
        0s send a:order
        0s restart older
        0s send b:ORDER
        0s list 0 9
        1s restart
        1s accept r1 order
        1s accept r2 ORDER
        1s limit r1 9
        1s limit r2 9
        1s complete r1 #1
        1s complete r2 #2
        2s detach r1
        2s detach r2
        3s send c:order d:ORDER
        3s list 0 9
        4s restart
        4s accept r1 Order
        4s limit r1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s list 0 9: ORDER order then skip 2
            1s r1 holds order until 31s
            1s r2 holds ORDER until 31s
            1s r1 gets #1 a until 31s
            1s r2 gets #2 b until 31s
            1s complete r1 #1: done
            1s complete r2 #2: done
            3s sent from #3
            3s list 0 9: order then skip 1
            4s r1 holds order until 34s
            4s r1 gets #3 c until 34s
            4s r1 gets #4 d until 34s
        "#]],
    );
}

#[test]
fn ids_are_not_folded_while_a_read_may_find_a_session() {
    check(
        "
        0s queue sessions
        0s send a:order ttl=3s
        0s reads late
        0s restart older
        1s asked
        3s asked
        3s answer last
        3s answer last
        3s send b:order c:ORDER
        3s counters
        3s answer
        4s answer
        4s answer
        5s reads now
        5s list 0 9
        ",
        expect![[r#"
            0s sent from #1
            1s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max
            3s asked for 1024 groups of Session after None, 1024 of SessionExpiry 0s #0..max, 1024 of Active #0..#1024
            3s sent from #2
            3s active 2 dead 0 deferred 0 bytes 2
            5s list 0 9: ORDER order then skip 2
        "#]],
    );
}
