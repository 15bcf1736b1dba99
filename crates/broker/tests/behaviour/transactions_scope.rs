//! Transactions with a scope: which entities one may touch.

use expect_test::expect;

use crate::script::check;

#[test]
fn operations_with_a_scope_are_on_one_entity() {
    check(
        "
        0s queue
        0s queue name=q2
        0s send a
        0s attach r1
        0s limit r1 10
        0s declare t1 r1/7
        1s in t1 send b in=q2 scope=q2 misread
        1s in t1 complete r1 #1 scope=q
        1s in t1 send c in=q scope=q misread
        1s in t1 cancel #7 scope=q
        1s in t1 send d in=q scope=q2
        1s in t1 send e in=q
        2s commit t1
        2s counters
        2s counters in=q2
        ",
        expect![[r#"
            0s sent from #1
            0s r1 gets #1 a until 30s
            0s declare t1: done
            1s in t1 send b in=q2 scope=q2 misread: held
            1s in t1 complete r1 #1 scope=q: local transactions cannot span multiple top-level entities such as queue or topic
            1s in t1 send c in=q scope=q misread: local transactions cannot span multiple top-level entities such as queue or topic
            1s in t1 cancel #7 scope=q: local transactions cannot span multiple top-level entities such as queue or topic
            1s in t1 send d in=q scope=q2: held
            1s in t1 send e in=q: held
            2s commit t1: done
            2s r1 gets #2 d until 32s
            2s r1 gets #3 e until 32s
            2s active 3 dead 0 deferred 0 bytes 3
            2s active 1 dead 0 deferred 0 bytes 1
        "#]],
    );
}

#[test]
fn a_refused_first_operation_does_not_say_what_a_transaction_is_about() {
    check(
        "
        0s queue
        0s queue name=q2
        0s declare t1 r1/7
        1s in t1 complete r1 #1 scope=q
        1s in t1 send b in=q2 scope=q2
        2s commit t1
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 complete r1 #1 scope=q: the lock is not held
            1s in t1 send b in=q2 scope=q2: held
            2s commit t1: done
        "#]],
    );
}

#[test]
fn a_transaction_fails_for_its_scope_if_its_client_is_not_told() {
    check(
        "
        0s queue
        0s queue name=q2
        0s declare t1 r1/7
        1s in t1 send a in=q scope=q
        1s in t1 send b in=q2 scope=q2 unheard
        2s commit t1
        2s counters
        ",
        expect![[r#"
            0s declare t1: done
            1s in t1 send a in=q scope=q: held
            1s in t1 send b in=q2 scope=q2 unheard: local transactions cannot span multiple top-level entities such as queue or topic
            2s commit t1: the transaction was rolled back: local transactions cannot span multiple top-level entities such as queue or topic
            2s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}
