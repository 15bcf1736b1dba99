//! Tests of exports.

use entity::of_file;

use super::*;
use crate::config::{Entities, read_entities};

/// A namespace with something of everything.
const FILE: &str = r#"
    [[queues]]
    name = "orders"
    lock-duration = "PT30S"
    max-delivery-count = 5
    default-message-time-to-live = "P14D"
    requires-session = true
    status = "send-disabled"

    [[queues]]
    name = "plain"

    [[topics]]
    name = "events"
    auto-delete-on-idle = "P1D"

    [[topics.subscriptions]]
    name = "all"
    forward-to = "plain"

    [[topics.subscriptions]]
    name = "some"
    dead-lettering-on-filter-evaluation-exceptions = false

    [[topics.subscriptions.rules]]
    name = "big"
    filter = { sql = "amount > 100" }
    action = "SET big = TRUE"

    [[topics.subscriptions.rules]]
    name = "red"
    [topics.subscriptions.rules.filter.correlation]
    subject = "red"
    properties = { n = 5, half = 0.5, is = true, text = "x" }
"#;

fn read(name: &str, text: &str) -> Entities {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    std::fs::write(&file, text).unwrap();
    read_entities(&file, Default::default()).unwrap()
}

fn found(text: &str) -> ExportedEntities {
    let Entities {
        queues,
        topics,
        policies,
        ..
    } = read("a.toml", text);
    let mut found = ExportedEntities {
        queues,
        topics,
        policies,
    };
    for subscription in found
        .topics
        .iter_mut()
        .flat_map(|topic| &mut topic.subscriptions)
    {
        let rules = subscription.rules.take();
        subscription.rules = rules.or_else(|| Some(vec![broker::RuleDescription::default_rule()]));
    }
    found
}

#[test]
fn what_is_exported_makes_the_same() {
    let same = read("a.toml", FILE);
    for (name, written) in [
        ("b.toml", own::toml(&found(FILE))),
        ("b.json", own::json(&found(FILE))),
        ("Config.json", emulator::write(&found(FILE))),
    ] {
        assert_eq!(written.warnings, [""; 0], "{name}");
        let again = read(name, &written.text);
        assert_eq!(again.warnings, [""; 0], "{name}");
        // Settings of a queue that mean nothing for a topic may differ.
        let [again, same] = [&again, &same].map(|it| of_file(&it.queues, &it.topics, &it.policies));
        assert_eq!(again, same, "{name}");
    }
}

#[test]
fn our_own_shape_says_only_what_is_unusual() {
    let written = own::toml(&found(
        "[[queues]]\nname = 'a'\nmax-delivery-count = 3\n[[topics]]\nname = 't'\n[[topics.subscriptions]]\nname = 's'\n",
    ));
    let lines: Vec<_> = written
        .text
        .lines()
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(
        lines,
        [
            "[[queues]]",
            "max-delivery-count = 3",
            "name = \"a\"",
            "[[topics]]",
            "name = \"t\"",
            "[[topics.subscriptions]]",
            "name = \"s\"",
        ]
    );
}

#[test]
fn properties_that_a_file_cannot_express_cause_warnings() {
    let mut found = found(
        "[[queues]]\nname = 'a'\nmax-size-in-megabytes = 5\nexpiry = 'cloud'\n[[topics]]\nname = 't'\n\
         [[topics.subscriptions]]\nname = 's'\n[[topics.subscriptions.rules]]\nname = 'r'\n\
         filter = { correlation = { properties = { n = { type = 'int', value = 5 } } } }\n",
    );
    assert_eq!(
        emulator::write(&found).warnings,
        [
            "a: its size cannot be said in a Config.json",
            "a: its expiry cannot be said in a Config.json",
            "t/s/r: the type of its property n cannot be said in a Config.json",
        ]
    );
    found.topics[0].subscriptions[0].rules = None;
    assert_eq!(
        own::toml(&found).warnings,
        ["t/s has no rule; made from the file it would select everything"]
    );
}

#[test]
fn counts_belong_to_no_file() {
    let json = serde_json::json!({
        "queues": [{"name": "a", "state": {"active": 1}}],
        "topics": [{"name": "t", "state": {}, "subscriptions": [{"name": "s", "state": {}, "rules": []}]}],
    });
    let found = super::read(json).unwrap();
    assert_eq!(found.queues[0].path, "a");
    assert_eq!(found.topics[0].subscriptions[0].rules, None);
}

#[test]
fn subscriptions_of_jms_clients_are_left_out() {
    let json = serde_json::json!({
        "queues": [],
        "topics": [{
            "name": "prices",
            "state": {},
            "subscriptions": [
                {"name": "all", "state": {}},
                {"name": "s$client1$D", "state": {"client-affine": {"client-id": "client1"}}},
            ],
        }],
    });
    let found = super::read(json).unwrap();
    let names = found.topics[0].subscriptions.iter().map(|it| &*it.name);
    assert_eq!(names.collect::<Vec<_>>(), ["all"]);
}
