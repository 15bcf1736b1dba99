//! Topics of every simulated broker, and their subscriptions.
//!
//! The first is published to by clients, the second by a queue and by a subscription of the first.

use broker::QueueSettings;

use super::{DETECTS, Definition, What, plain};
use crate::rule::{Rule, Selects};

/// Detects duplicates, and has subscriptions of all kinds.
pub const FIRST: &str = "news";
/// What others forward to.
pub const SECOND: &str = "more";

/// Both of them, each before its subscriptions.
pub(super) fn definitions() -> Vec<Definition> {
    let topic = |path, settings| Definition {
        path,
        settings,
        what: What::Topic,
    };
    let detects = QueueSettings {
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: 10_000,
        ..QueueSettings::default()
    };
    let short = QueueSettings {
        default_message_time_to_live: 20_000,
        ..QueueSettings::default()
    };
    let mut all = vec![topic(FIRST, detects), topic(SECOND, short)];
    all.extend(of_first());
    all.extend(of_second());
    all
}

fn keeps(selects: Selects) -> Rule {
    Rule::new(selects, false, 0)
}

fn raises(selects: Selects, serial: u64) -> Rule {
    Rule::new(selects, true, serial)
}

fn of_first() -> Vec<Definition> {
    let odd = Selects::Remainder { by: 2, left: 1 };
    let third = Selects::Remainder { by: 3, left: 1 };
    let expires = QueueSettings {
        default_message_time_to_live: 8_000,
        dead_lettering_on_message_expiration: true,
        ..plain()
    };
    let onward = |to: &str| QueueSettings {
        forward_to: Some(to.to_owned()),
        ..plain()
    };
    let dead_onward = QueueSettings {
        forward_dead_lettered_messages_to: Some("plain".to_owned()),
        ..plain()
    };
    let by_session = QueueSettings {
        requires_session: true,
        ..plain()
    };
    let changing = vec![
        keeps(Selects::Equal(2)),
        raises(third, 1),
        raises(Selects::Equal(4), 2),
    ];
    let failing = vec![keeps(Selects::Above(3)), raises(Selects::Equal(3), 1)];
    let both = vec![keeps(odd), raises(third, 1)];
    vec![
        subscription("news/Subscriptions/all", plain(), Vec::new()),
        subscription("news/Subscriptions/some", expires, vec![keeps(third)]),
        subscription("news/Subscriptions/changed", plain(), changing),
        subscription("news/Subscriptions/failing", dead_onward, failing.clone()),
        not_told(subscription(
            "news/Subscriptions/silent",
            onward(SECOND),
            failing,
        )),
        subscription("news/Subscriptions/onward", onward(DETECTS), both),
        subscription(
            "news/Subscriptions/by-session",
            by_session,
            vec![keeps(odd)],
        ),
    ]
}

fn of_second() -> Vec<Definition> {
    let odd = Selects::Remainder { by: 2, left: 1 };
    let onward = QueueSettings {
        forward_to: Some("plain".to_owned()),
        ..plain()
    };
    let twice = vec![keeps(Selects::All), raises(odd, 1)];
    vec![
        subscription(
            "more/Subscriptions/failing",
            plain(),
            vec![keeps(Selects::Above(5))],
        ),
        subscription("more/Subscriptions/onward", onward, twice),
    ]
}

/// Subscriptions that come and go, of both topics.
pub(super) fn temporary() -> Vec<Definition> {
    let odd = Selects::Remainder { by: 2, left: 1 };
    let onward = QueueSettings {
        forward_to: Some("plain".to_owned()),
        ..plain()
    };
    let idle = QueueSettings {
        auto_delete_on_idle: 20_000,
        ..plain()
    };
    let both = vec![keeps(Selects::Above(2)), raises(odd, 1)];
    vec![
        subscription("news/Subscriptions/temporary", plain(), both),
        subscription("news/Subscriptions/passing", onward, vec![keeps(odd)]),
        subscription("more/Subscriptions/idle", idle, Vec::new()),
    ]
}

/// One whose failures are dead-lettered.
fn subscription(path: &'static str, settings: QueueSettings, rules: Vec<Rule>) -> Definition {
    let (topic, name) = path
        .split_once("/Subscriptions/")
        .expect("a subscription's path");
    let what = What::Subscription {
        topic,
        name,
        rules,
        dead_letters_failures: true,
    };
    Definition {
        path,
        settings,
        what,
    }
}

fn not_told(mut definition: Definition) -> Definition {
    if let What::Subscription {
        dead_letters_failures,
        ..
    } = &mut definition.what
    {
        *dead_letters_failures = false;
    }
    definition
}
