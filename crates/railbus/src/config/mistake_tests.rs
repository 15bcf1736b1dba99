//! Tests of what files of entities say that they hardly mean: unknown members, keys that come
//! twice, filters without effect, nothing at all. (docs/spec/admin.md#12)

use broker::{FilterDescription, Tier};

use super::entities::read_entities;
use super::file_tests::{check, emulator, topics};

#[test]
fn an_unknown_member_of_a_correlation_filter_is_refused_by_its_name() {
    let filter = r#"{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [
        {"Name": "r", "Properties": {"FilterType": "Correlation",
        "CorrelationFilter": {"To": "a", "Subject": "b"}}}]}]}"#;
    let error = topics(filter).unwrap_err();
    let location = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0]";
    assert_eq!(
        error,
        format!(
            "Config.json:3: {location}.Properties.CorrelationFilter.Subject: this member is not known in a correlation filter; there are CorrelationId, MessageId, To, ReplyTo, Label, SessionId, ReplyToSessionId, ContentType, Properties"
        )
    );
    let own = "[[topics]]\nname = 't'\n[[topics.subscriptions]]\nname = 's'\n\
        [[topics.subscriptions.rules]]\nname = 'r'\nfilter = {correlation = {sub = 'b'}}\n";
    let error = check("t.toml", own).unwrap_err();
    assert!(
        error.starts_with("t.toml:7: topics[0].subscriptions[0].rules[0].filter"),
        "{error}"
    );
    assert!(error.contains("unknown field `sub`"), "{error}");
}

#[test]
fn a_filter_that_the_type_does_not_choose_is_worth_a_warning() {
    let both = |kind: &str| {
        let text = format!(
            r#"{{"Name": "t", "Subscriptions": [{{"Name": "s", "Rules": [{{"Name": "r",
            "Properties": {{"FilterType": "{kind}", "SqlFilter": {{"SqlExpression": "n > 5"}},
            "CorrelationFilter": {{"To": "a"}}}}}}]}}]}}"#
        );
        topics(&text).unwrap()
    };
    let location = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties";
    let entities = both("Sql");
    let rules = entities.topics[0].subscriptions[0].rules.as_ref().unwrap();
    assert_eq!(rules[0].filter, FilterDescription::Sql("n > 5".to_owned()));
    assert_eq!(
        entities.warnings,
        [format!(
            "Config.json:3: {location}.CorrelationFilter: this filter has no effect, since the FilterType is Sql"
        )]
    );
    let entities = both("correlation");
    let rules = entities.topics[0].subscriptions[0].rules.as_ref().unwrap();
    assert!(matches!(rules[0].filter, FilterDescription::Correlation(_)));
    assert_eq!(
        entities.warnings,
        [format!(
            "Config.json:2: {location}.SqlFilter: this filter has no effect, since the FilterType is Correlation"
        )]
    );
    let own = "[[topics]]\nname = 't'\n[[topics.subscriptions]]\nname = 's'\n\
        [[topics.subscriptions.rules]]\nname = 'r'\nfilter = {sql = '1=1', correlation = {to = 'b'}}\n";
    let error = check("t.toml", own).unwrap_err();
    assert!(
        error.starts_with("t.toml:7: topics[0].subscriptions[0].rules[0].filter"),
        "{error}"
    );
}

#[test]
fn a_key_that_comes_twice_is_refused() {
    let namespace = "UserConfig.Namespaces[0].Queues[0]";
    assert_eq!(
        emulator("{\"Name\": \"a\",\n\"Name\": \"b\"}").unwrap_err(),
        format!(
            "Config.json:4: {namespace}.Name: this key is there twice, first in line 3 as `Name`"
        )
    );
    assert_eq!(
        emulator("{\"Name\": \"a\",\n\"name\": \"b\"}").unwrap_err(),
        format!(
            "Config.json:4: {namespace}.name: this key is there twice, first in line 3 as `Name`"
        )
    );
    assert_eq!(
        emulator(
            "{\"Name\": \"a\", \"Properties\": {\"MaxDeliveryCount\": 1,\n\"maxDeliveryCount\": 2}}"
        )
        .unwrap_err(),
        format!(
            "Config.json:4: {namespace}.Properties.maxDeliveryCount: this key is there twice, first in line 3 as `MaxDeliveryCount`"
        )
    );
    // Names of application properties are the user's.
    let rule = |properties: &str| {
        topics(&format!(
            r#"{{"Name": "t", "Subscriptions": [{{"Name": "s", "Rules": [{{"Name": "r", "Properties":
            {{"FilterType": "Correlation", "CorrelationFilter": {{"Properties": {properties}}}}}}}]}}]}}"#
        ))
    };
    assert!(rule(r#"{"a": 1, "A": 2}"#).is_ok());
    assert!(rule(r#"{"a": 1, "a": 2}"#).unwrap_err().contains("twice"));
    assert_eq!(
        check(
            "q.json",
            "{\"queues\": [{\"name\": \"a\",\n\"name\": \"b\"}]}"
        )
        .unwrap_err(),
        "q.json:2: queues[0].name: this key is there twice, first in line 1 as `name`"
    );
    let error = check("q.toml", "[[queues]]\nname = 'a'\nname = 'b'\n").unwrap_err();
    assert!(error.starts_with("q.toml:3: "), "{error}");
}

#[test]
fn a_namespace_of_the_basic_tier_refuses_a_file_with_more_than_it_has() {
    let check = |name: &str, text: &str, expected: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let error = read_entities(&file, Tier::Basic).unwrap_err().to_string();
        let error = error.replace(&format!("{}/", directory.path().display()), "");
        assert_eq!(error, expected);
    };
    check(
        "q.toml",
        "[[queues]]\nname = 'a'\n[[queues]]\nname = 'b'\nrequires-session = true\n",
        "q.toml:4: queues[1].name: a namespace of the Basic tier does not have RequiresSession",
    );
    check(
        "Config.json",
        "{\"UserConfig\": {\"Namespaces\": [{\"Name\": \"n\",\n\"Topics\": [{\"Name\": \"t\"}]}]}}",
        "Config.json:2: UserConfig.Namespaces[0].Topics[0].Name: a namespace of the Basic tier does not have topics",
    );
}

#[test]
fn a_file_without_entities_is_worth_a_warning() {
    let expected = |name: &str| format!("{name}:1: the file declares no queue and no topic");
    assert_eq!(emulator("").unwrap().warnings, [expected("Config.json")]);
    assert_eq!(
        check("q.json", "{}").unwrap().warnings,
        [expected("q.json")]
    );
    assert_eq!(check("q.toml", "").unwrap().warnings, [expected("q.toml")]);
}

#[test]
fn a_topic_and_a_queue_can_not_share_a_name() {
    let text = r#"{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "a"}],
        "Topics": [{"Name": "A"}]}]}}"#;
    assert_eq!(
        check("Config.json", text).unwrap_err(),
        "Config.json:2: UserConfig.Namespaces[0].Topics[0].Name: the entity `A` is there already, as UserConfig.Namespaces[0].Queues[0]",
    );
}

#[test]
fn a_member_that_is_not_known_is_worth_a_warning() {
    let entities = emulator(r#"{"Name": "a", "Properties": {"Speed": 1}}"#).unwrap();
    assert_eq!(
        entities.warnings,
        [
            "Config.json:3: UserConfig.Namespaces[0].Queues[0].Properties.Speed: this member is not known and has no effect"
        ]
    );
}
