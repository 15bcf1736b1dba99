//! How much is known of a held session: little to begin with, more as its holder takes it, and no
//! more for all sessions of a queue than there is room for.

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::check_with;

fn small() -> BrokerSettings {
    BrokerSettings {
        window: 6,
        session_window: 2,
        ..BrokerSettings::default()
    }
}

#[test]
fn a_holder_that_takes_much_has_more_read_at_once() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:A c:A d:A e:A f:A g:A h:A i:A j:A k:A l:A m:A n:A o:A
        0s reads late
        0s accept r1 A
        0s limit r1 99
        1s asked
        1s answer
        1s asked
        1s answer
        2s asked
        2s answer
        2s asked
        2s answer
        3s asked
        3s answer
        3s asked
        3s answer
        4s asked
        ",
        expect![[r#"
            0s sent from #1
            0s r1 holds A until 30s
            1s asked for 2 of Session 9413270669427828315ms #1..9413270669427828315ms #16
            1s asked for Active #1 #2
            1s r1 gets #1 a until 30s
            1s r1 gets #2 b until 30s
            2s asked for 4 of Session 9413270669427828315ms #3..9413270669427828315ms #16
            2s asked for Active #3 #4 #5 #6
            2s r1 gets #3 c until 30s
            2s r1 gets #4 d until 30s
            2s r1 gets #5 e until 30s
            2s r1 gets #6 f until 30s
            3s asked for 5 of Session 9413270669427828315ms #7..9413270669427828315ms #16
            3s asked for Active #7 #8 #9 #10 #11
            3s r1 gets #7 g until 30s
            3s r1 gets #8 h until 30s
            3s r1 gets #9 i until 30s
            3s r1 gets #10 j until 30s
            3s r1 gets #11 k until 30s
            4s asked for 4 of Session 9413270669427828315ms #12..9413270669427828315ms #16
            4s r1 gets #12 l until 30s
            4s r1 gets #13 m until 30s
            4s r1 gets #14 n until 30s
            4s r1 gets #15 o until 30s
        "#]],
    );
}

#[test]
fn there_is_only_so_much_more_for_all_sessions_of_a_queue() {
    check_with(
        small(),
        "
        0s queue sessions
        0s send a:A b:A c:A d:A e:A f:A g:A h:A
        0s send i:B j:B k:B l:B m:B n:B o:B p:B q:B r:B s:B t:B u:B v:B
        0s accept r1 A
        0s limit r1 99
        1s reads late
        1s accept r2 B
        1s limit r2 99
        1s asked
        1s answer
        1s answer
        2s asked
        2s answer
        2s answer
        3s asked
        3s answer
        3s detach r1
        3s answer
        4s asked
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #9
            0s r1 holds A until 30s
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
            0s r1 gets #3 c until 30s
            0s r1 gets #4 d until 30s
            0s r1 gets #5 e until 30s
            0s r1 gets #6 f until 30s
            0s r1 gets #7 g until 30s
            0s r1 gets #8 h until 30s
            1s r2 holds B until 31s
            1s asked for 2 of Session 7955381128454826704ms #9..7955381128454826704ms #23
            1s r2 gets #9 i until 31s
            1s r2 gets #10 j until 31s
            2s asked for 4 of Session 7955381128454826704ms #11..7955381128454826704ms #23
            2s r2 gets #11 k until 31s
            2s r2 gets #12 l until 31s
            2s r2 gets #13 m until 31s
            2s r2 gets #14 n until 31s
            3s asked for 3 of Session 7955381128454826704ms #15..7955381128454826704ms #23
            3s r2 gets #15 o until 31s
            3s r2 gets #16 p until 31s
            3s r2 gets #17 q until 31s
            4s asked for 5 of Session 7955381128454826704ms #18..7955381128454826704ms #23
            4s r2 gets #18 r until 31s
            4s r2 gets #19 s until 31s
            4s r2 gets #20 t until 31s
            4s r2 gets #21 u until 31s
            4s r2 gets #22 v until 31s
        "#]],
    );
}
