//! Tests of how topics are read from files of our own shape.

use broker::{FilterDescription, QueueSettings, Status, SubscriptionSettings, Value};

use super::file_tests::check;

/// All properties of a topic.
const EVERYTHING: &str = r#"
    [[topics]]
    name = "events"
    default-message-time-to-live = "P1D"
    max-size-in-megabytes = 2
    max-message-size = "64KiB"
    requires-duplicate-detection = true
    duplicate-detection-history-time-window = "PT1M"
    status = "send-disabled"
    auto-delete-on-idle = "PT5M"

    [[topics.subscriptions]]
    name = "all"
    lock-duration = "PT30S"
    max-delivery-count = 5
    default-message-time-to-live = "PT1H"
    dead-lettering-on-message-expiration = true
    dead-lettering-on-filter-evaluation-exceptions = false
    expiry = "cloud"
    requires-session = true
    forward-dead-lettered-messages-to = "dead"
    status = "receive-disabled"
    auto-delete-on-idle = "PT10M"

    [[topics.subscriptions.rules]]
    name = "big"
    filter = { sql = "amount > 100" }
    action = "SET big = TRUE"

    [[topics.subscriptions.rules]]
    name = "red"
    [topics.subscriptions.rules.filter.correlation]
    subject = "red"
    content-type = "text/plain"
    properties = { n = 5, typed = { type = "int", value = 5 }, due = 2026-01-01T00:00:00Z }

    [[topics.subscriptions.rules]]
    name = "none"
    filter = false

    [[topics.subscriptions.rules]]
    name = "rest"

    [[topics.subscriptions]]
    name = "plain"
    forward-to = "orders"
"#;

#[test]
fn every_property_of_topics_and_subscriptions_is_read() {
    let entities = check("t.toml", EVERYTHING).unwrap();
    let topic = &entities.topics[0];
    let settings = QueueSettings {
        default_message_time_to_live: 86_400_000,
        max_size: 2 << 20,
        max_message_size: Some(65_536),
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: 60_000,
        status: Status::SendDisabled,
        auto_delete_on_idle: 300_000,
        ..QueueSettings::default()
    };
    assert_eq!((&*topic.path, &topic.settings), ("events", &settings));
    let [all, plain] = &topic.subscriptions[..] else {
        panic!("two subscriptions");
    };
    let settings = SubscriptionSettings {
        queue: QueueSettings {
            lock_duration: 30_000,
            max_delivery_count: 5,
            default_message_time_to_live: 3_600_000,
            dead_lettering_on_message_expiration: true,
            expiry: Some(broker::Expiry::Cloud),
            requires_session: true,
            forward_dead_lettered_messages_to: Some("dead".to_owned()),
            status: Status::ReceiveDisabled,
            auto_delete_on_idle: 600_000,
            ..QueueSettings::default()
        },
        dead_lettering_on_filter_evaluation_exceptions: false,
    };
    assert_eq!((&*all.name, &all.settings), ("all", &settings));
    let settings = SubscriptionSettings {
        queue: QueueSettings {
            forward_to: Some("orders".to_owned()),
            ..QueueSettings::default()
        },
        dead_lettering_on_filter_evaluation_exceptions: true,
    };
    assert_eq!((&plain.settings, &plain.rules), (&settings, &None));
}

#[test]
fn every_kind_of_rule_is_read() {
    let entities = check("t.toml", EVERYTHING).unwrap();
    let subscription = &entities.topics[0].subscriptions[0];
    let [big, red, none, rest] = &subscription.rules.as_ref().unwrap()[..] else {
        panic!("four rules");
    };
    assert_eq!(big.name, "big");
    let sql = FilterDescription::Sql("amount > 100".to_owned());
    assert_eq!(big.filter, sql);
    assert_eq!(big.action.as_deref(), Some("SET big = TRUE"));
    let FilterDescription::Correlation(fields) = &red.filter else {
        panic!("a correlation filter");
    };
    assert_eq!(fields.label.as_deref(), Some("red"));
    assert_eq!(fields.content_type.as_deref(), Some("text/plain"));
    let expected = [
        ("due", Value::Timestamp(1_767_225_600_000)),
        ("n", Value::Long(5)),
        ("typed", Value::Int(5)),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(fields.properties, expected);
    assert_eq!(none.filter, FilterDescription::False);
    assert_eq!(rest.filter, FilterDescription::True);
}

#[test]
fn json_says_the_same() {
    let json = r#"{"topics": [{"name": "t", "subscriptions": [{"name": "s", "rules": [
        {"name": "a", "filter": {"correlation": {"subject": "x", "properties": {"n": 1.5}}}},
        {"name": "b", "filter": {"sql": "n > 5"}, "action": "REMOVE n"}, {"name": "c", "filter": true}]}]}]}"#;
    let toml = r#"
        [[topics]]
        name = "t"
        [[topics.subscriptions]]
        name = "s"
        [[topics.subscriptions.rules]]
        name = "a"
        filter = { correlation = { subject = "x", properties = { n = 1.5 } } }
        [[topics.subscriptions.rules]]
        name = "b"
        filter = { sql = "n > 5" }
        action = "REMOVE n"
        [[topics.subscriptions.rules]]
        name = "c"
    "#;
    let json = check("t.json", json).unwrap();
    assert_eq!(json.topics, check("t.toml", toml).unwrap().topics);
}

#[test]
fn an_error_names_line_and_path() {
    let subscription = "[[topics]]\nname = 't'\n[[topics.subscriptions]]\nname = 's'\n";
    let location = "topics[0].subscriptions[0]";
    let check = |lines: &str, expected: &str| {
        let error = check("t.toml", &format!("{subscription}{lines}")).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        "lock-duration = 'PT1H'\n",
        &format!("t.toml:5: {location}.lock-duration: PT1H is above the maximum of PT5M"),
    );
    check(
        "max-size-in-megabytes = 1\n",
        &format!("t.toml:5: {location}.max-size-in-megabytes: unknown field"),
    );
    check(
        "[[topics.subscriptions]]\nname = 'S'\n",
        "t.toml:6: topics[0].subscriptions[1].name: the subscription `S` is there already, as \
         topics[0].subscriptions[0]",
    );
    check(
        "[[topics]]\nname = 't/'\n",
        "t.toml:6: topics[1].name: 't/' contains character(s) that is not allowed",
    );
}

#[test]
fn an_error_in_a_rule_names_line_and_path() {
    let start = "[[topics]]\nname = 't'\n[[topics.subscriptions]]\nname = 's'\n\
                 [[topics.subscriptions.rules]]\nname = 'r'\n";
    let rule = "topics[0].subscriptions[0].rules[0]";
    let check = |lines: &str, expected: &str| {
        let error = check("t.toml", &format!("{start}{lines}")).unwrap_err();
        let expected = expected.replace("RULE", rule);
        assert!(error.starts_with(&expected), "{error}");
    };
    check(
        "filter = { sql = 'n >' }\n",
        "t.toml:7: RULE.filter: the rule 'r': at character 4:",
    );
    check(
        "filter = { sql = 'n > 1' }\naction = 'SET n'\n",
        "t.toml:8: RULE.action: the rule 'r': at character 6:",
    );
    check(
        "filter = { correlation = {} }\n",
        "t.toml:7: RULE.filter: the rule 'r': a correlation filter needs at least one field",
    );
    check(
        "filter = { correlation = { properties = { b = { type = 'binary', value = '' } } } }\n",
        "t.toml:7: RULE.filter: the rule 'r': the property \"b\" has a value that no message's can equal",
    );
    check(
        "[topics.subscriptions.rules.filter.correlation.properties]\nn = 1\nb = { type = 'byte', value = 500 }\n",
        "t.toml:9: RULE.filter.correlation.properties.b: 500 is no byte",
    );
    check(
        "filter = 'n > 1'\n",
        "t.toml:7: RULE.filter: invalid type: string \"n > 1\", expected true, false, {\"sql\"",
    );
    check(
        "[[topics.subscriptions.rules]]\nname = 'R'\n",
        "t.toml:8: topics[0].subscriptions[0].rules[1].name: the rule `R` is there already, as RULE",
    );
    check(
        "[[topics.subscriptions.rules]]\nname = 'a/b'\n",
        "t.toml:8: topics[0].subscriptions[0].rules[1].name: 'a/b' contains character(s) that is not allowed by Service Bus.",
    );
}
