//! Levels: messages of a higher priority are given out first, wherever they stand.
//! (docs/spec/rabbitmq.md#10.7)

use broker::BrokerSettings;
use expect_test::expect;

use crate::script::{check, check_with};

fn small_window() -> BrokerSettings {
    BrokerSettings {
        window: 2,
        turn_work: 4,
        ..BrokerSettings::default()
    }
}

#[test]
fn the_highest_level_comes_first_and_within_it_the_oldest_message() {
    check(
        "
        0s queue priorities
        0s send a b
        0s send c priority=4
        0s send d priority=3
        0s send e priority=31
        0s send f priority=200
        0s peek 1 9
        0s attach r1
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #8831277394296833
            0s sent from #8831277394296835
            0s sent from #8866461766385668
            0s sent from #7881299347898373
            0s sent from #7881299347898374
            0s peek: #7881299347898373 e, #7881299347898374 f, #8831277394296833 a, #8831277394296834 b, #8831277394296835 c, #8866461766385668 d
            0s r1 gets #7881299347898373 e until 30s
            0s r1 gets #7881299347898374 f until 30s
            0s r1 gets #8831277394296833 a until 30s
            0s r1 gets #8831277394296834 b until 30s
            0s r1 gets #8831277394296835 c until 30s
            0s r1 gets #8866461766385668 d until 30s
        "#]],
    );
}

#[test]
fn a_queue_with_few_levels_has_its_own_lowest_as_the_default() {
    check(
        "
        0s queue levels=2
        0s send a
        0s send b priority=1
        0s send c priority=9
        0s send d priority=2
        0s attach r1
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #8972014882652161
            0s sent from #8936830510563330
            0s sent from #8901646138474499
            0s sent from #8901646138474500
            0s r1 gets #8901646138474499 c until 30s
            0s r1 gets #8901646138474500 d until 30s
            0s r1 gets #8936830510563330 b until 30s
            0s r1 gets #8972014882652161 a until 30s
        "#]],
    );
}

#[test]
fn a_queue_without_levels_has_the_order_of_arrival() {
    check(
        "
        0s queue
        0s send a priority=1
        0s send b priority=9
        0s attach r1
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #1
            0s sent from #2
            0s r1 gets #1 a until 30s
            0s r1 gets #2 b until 30s
        "#]],
    );
}

#[test]
fn a_message_overtakes_what_is_on_the_disk_only_and_a_restart_changes_nothing() {
    check_with(
        small_window(),
        "
        0s queue priorities
        0s send a*9
        0s send b c d priority=7
        0s send e priority=5
        0s restart
        1s send f priority=9
        1s attach r1
        1s limit r1 7
        2s send g priority=8
        2s restart
        3s attach r1
        3s limit r1 3
        ",
        expect![[r#"
            0s sent from #8831277394296833
            0s sent from #8725724278030346
            0s sent from #8796093022208013
            1s sent from #8655355533852686
            1s r1 gets #8655355533852686 f until 31s
            1s r1 gets #8725724278030346 b until 31s
            1s r1 gets #8725724278030347 c until 31s
            1s r1 gets #8725724278030348 d until 31s
            1s r1 gets #8796093022208013 e until 31s
            1s r1 gets #8831277394296833 a until 31s
            1s r1 gets #8831277394296834 a until 31s
            2s sent from #8690539905941519
            3s r1 gets #8655355533852686 f until 33s
            3s r1 gets #8690539905941519 g until 33s
            3s r1 gets #8725724278030346 b until 33s
        "#]],
    );
}

#[test]
fn a_message_that_comes_back_has_its_place_again() {
    check(
        "
        0s queue priorities
        0s send a
        0s send b priority=9
        0s attach r1
        0s limit r1 2
        0s abandon r1 #8831277394296833
        0s send c priority=1
        0s abandon r1 #8655355533852674
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #8831277394296833
            0s sent from #8655355533852674
            0s r1 gets #8655355533852674 b until 30s
            0s r1 gets #8831277394296833 a until 30s
            0s abandon r1 #8831277394296833: done
            0s sent from #8936830510563331
            0s abandon r1 #8655355533852674: done
            0s r1 gets #8655355533852674 b count 1 until 30s
            0s r1 gets #8831277394296833 a count 1 until 30s
            0s r1 gets #8936830510563331 c until 30s
        "#]],
    );
}

#[test]
fn the_level_of_a_scheduled_message_begins_with_its_time() {
    check(
        "
        0s queue priorities
        0s send a
        0s send b+5s priority=9
        0s send c priority=5
        6s attach r1
        6s limit r1 9
        ",
        expect![[r#"
            0s sent from #8831277394296833
            0s sent from #2
            0s sent from #8796093022208003
            6s r1 gets #8655355533852676 b until 36s
            6s r1 gets #8796093022208003 c until 36s
            6s r1 gets #8831277394296833 a until 36s
        "#]],
    );
}

#[test]
fn a_forwarded_message_keeps_its_priority() {
    check(
        "
        0s queue priorities name=last
        0s queue forward=last name=first
        0s send on=first a
        0s send on=first b priority=9
        0s attach r1 on=last
        0s limit r1 9
        ",
        expect![[r#"
            0s sent from #8831277394296833
            0s sent from #8655355533852674
            0s r1 gets #8655355533852674 b until 30s
            0s r1 gets #8831277394296833 a until 30s
        "#]],
    );
}

#[test]
fn a_deletion_spares_what_arrives_meanwhile() {
    check_with(
        BrokerSettings {
            window: 8,
            ..small_window()
        },
        "
        0s queue priorities
        0s send a*20 priority=5
        0s reads late
        0s delete 99
        0s send b priority=4
        0s send c priority=9
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s answer
        0s counters
        0s reads
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #8796093022208001
            0s sent from #8831277394296853
            0s sent from #8655355533852694
            0s delete 99: 20
            0s active 2 dead 0 deferred 0 bytes 2
            0s peek: #8655355533852694 c, #8831277394296853 b
        "#]],
    );
}

#[test]
fn a_deletion_by_time_passes_newer_messages_of_higher_levels() {
    check(
        "
        0s queue priorities
        0s send a b c
        5s send d priority=9
        6s delete 99 before=2s
        6s peek 1 9
        ",
        expect![[r#"
            0s sent from #8831277394296833
            5s sent from #8655355533852676
            6s delete 99 before=2s: 3
            6s peek: #8655355533852676 d
        "#]],
    );
}

#[test]
fn a_deletion_goes_on_though_newer_messages_fill_the_window() {
    check_with(
        small_window(),
        "
        0s queue priorities
        0s send a*20 priority=5
        0s reads late
        0s delete 99
        0s send b c d e priority=9
        0s reads
        1s wait
        1s peek 1 9
        1s counters
        ",
        expect![[r#"
            0s sent from #8796093022208001
            0s sent from #8655355533852693
            1s peek: #8655355533852693 b, #8655355533852694 c, #8655355533852695 d, #8655355533852696 e, #8796093022208005 a, #8796093022208006 a, #8796093022208007 a, #8796093022208008 a, #8796093022208009 a
            1s delete 99: 20
            1s active 4 dead 0 deferred 0 bytes 4
        "#]],
    );
}

#[test]
fn a_shorter_life_is_found_on_every_level() {
    check_with(
        small_window(),
        "
        0s queue name=q priorities
        0s send a b c priority=31
        0s send d e f
        0s send g priority=0
        1s policy p on=q message-ttl=3000
        2s send h priority=9
        2s counters
        4s counters
        6s counters
        ",
        expect![[r#"
            0s sent from #7881299347898369
            0s sent from #8831277394296836
            0s sent from #8972014882652167
            2s sent from #8655355533852680
            2s active 8 dead 0 deferred 0 bytes 8
            4s active 1 dead 0 deferred 0 bytes 1
            6s active 0 dead 0 deferred 0 bytes 0
        "#]],
    );
}

#[test]
fn messages_beyond_the_length_go_from_the_head() {
    check(
        "
        0s queue priorities max-length=2
        0s send a priority=1
        0s send b priority=9
        0s send c
        0s peek 1 9
        ",
        expect![[r#"
            0s sent from #8936830510563329
            0s sent from #8655355533852674
            0s sent from #8831277394296835
            0s peek: #8831277394296835 c, #8936830510563329 a
        "#]],
    );
}
