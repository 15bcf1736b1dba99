//! Tests of plans.

use super::*;

fn wanted(json: &str, authoritative: bool) -> DesiredNamespace {
    DesiredNamespace {
        authoritative,
        ..serde_json::from_str(json).unwrap()
    }
}

/// A namespace as a file says: one where a file without rules has become the rule it stands for.
fn namespace(json: &str) -> Namespace {
    let DesiredNamespace {
        queues,
        topics,
        policies,
        ..
    } = wanted(json, false);
    let mut namespace = Namespace {
        queues,
        topics,
        policies,
        version: None,
    };
    for topic in &mut namespace.topics {
        for subscription in &mut topic.subscriptions {
            let rules = subscription.rules.take();
            subscription.rules = rules.or_else(|| Some(vec![RuleDescription::default_rule()]));
        }
    }
    namespace
}

/// What a plan says, a line for each change and refusal.
fn lines(plan: &Plan) -> Vec<String> {
    let changes = plan.changes.iter().map(Change::to_string);
    let refused = plan.refused.iter();
    let refused = refused.map(|refused| format!("no: {refused}"));
    changes.chain(refused).collect()
}

fn check(before: &str, after: &str, authoritative: bool, expected: &[&str]) {
    let plan = Plan::new(&namespace(before), &wanted(after, authoritative));
    assert_eq!(lines(&plan), expected);
}

const SHOP: &str = r#"{
    "queues": [{"name": "orders"}, {"name": "dead"}],
    "topics": [{"name": "events", "subscriptions": [
        {"name": "all"},
        {"name": "big", "rules": [{"name": "a", "filter": {"sql": "n > 1"}}, {"name": "b"}]}]}]}"#;

#[test]
fn a_namespace_that_is_as_the_file_says_needs_nothing() {
    check(SHOP, SHOP, false, &[]);
    check(SHOP, SHOP, true, &[]);
}

#[test]
fn what_is_missing_is_made_with_what_is_unusual_about_it() {
    check(
        "{}",
        r#"{"queues": [{"name": "orders", "lock-duration": "PT30S"}],
            "topics": [{"name": "t", "subscriptions": [{"name": "s", "rules": [{"name": "r"}]}]}]}"#,
        false,
        &[
            "create queue orders: lock-duration PT1M -> PT30S",
            "create topic t",
            "create subscription t/Subscriptions/s",
            "create rule t/Subscriptions/s/Rules/r: filter - -> true",
        ],
    );
}

#[test]
fn what_is_different_is_changed_and_names_have_no_case() {
    check(
        SHOP,
        r#"{"queues": [{"name": "ORDERS", "max-delivery-count": 3, "forward-dead-lettered-messages-to": "dead"}],
            "topics": [{"name": "events", "subscriptions": [
                {"name": "big", "rules": [{"name": "A", "filter": {"sql": "n > 2"}}]}]}]}"#,
        false,
        &[
            "update queue ORDERS: forward-dead-lettered-messages-to - -> dead, max-delivery-count 10 -> 3",
            "update rule events/Subscriptions/big/Rules/A: filter {\"sql\":\"n > 1\"} -> {\"sql\":\"n > 2\"}",
        ],
    );
}

#[test]
fn only_what_changes_is_to_be_ensured() {
    let after = SHOP.replace("n > 1", "n > 2");
    let plan = Plan::new(&namespace(SHOP), &wanted(&after, false));
    assert!(plan.queues.is_empty());
    let [topic] = &plan.topics[..] else {
        panic!("one topic")
    };
    let [subscription] = &topic.subscriptions[..] else {
        panic!("one subscription")
    };
    let rules: Vec<_> = subscription.rules.iter().flatten().collect();
    assert_eq!(
        (&*subscription.name, rules.len(), &*rules[0].name),
        ("big", 1, "a")
    );
}

#[test]
fn what_the_file_does_not_know_goes_only_if_it_is_to_be_all_there_is() {
    let file = r#"{"queues": [{"name": "orders"}],
        "topics": [{"name": "events", "subscriptions": [{"name": "big", "rules": [{"name": "b"}]}]}]}"#;
    check(SHOP, file, false, &[]);
    check(
        SHOP,
        file,
        true,
        &[
            "delete rule events/Subscriptions/big/Rules/a",
            "delete subscription events/Subscriptions/all",
            "delete queue dead",
        ],
    );
    check(
        SHOP,
        "{}",
        true,
        &[
            "delete topic events",
            "delete queue orders",
            "delete queue dead",
        ],
    );
}

#[test]
fn a_subscription_without_rules_in_the_file_selects_everything_if_it_is_to_be_all_there_is() {
    let file = r#"{"queues": [{"name": "orders"}, {"name": "dead"}],
        "topics": [{"name": "events", "subscriptions": [{"name": "all"}, {"name": "big"}]}]}"#;
    check(SHOP, file, false, &[]);
    check(
        SHOP,
        file,
        true,
        &[
            "create rule events/Subscriptions/big/Rules/$Default: filter - -> true",
            "delete rule events/Subscriptions/big/Rules/a",
            "delete rule events/Subscriptions/big/Rules/b",
        ],
    );
}

#[test]
fn what_can_not_change_is_refused_with_the_property() {
    let fixed = "cannot be changed after creation; delete it to change that";
    check(
        SHOP,
        r#"{"queues": [{"name": "orders", "requires-session": true}, {"name": "events"}],
            "topics": [{"name": "dead"}, {"name": "events", "requires-duplicate-detection": true}]}"#,
        false,
        &[
            &format!("no: orders: requires-session false -> true {fixed}"),
            "no: events: it is a topic, so no queue can be there",
            "no: dead: it is a queue, so no topic can be there",
            &format!("no: events: requires-duplicate-detection false -> true {fixed}"),
        ],
    );
}

#[test]
fn an_idle_time_beside_a_forward_is_kept_as_the_file_says() {
    let file = r#"{"queues": [{"name": "orders", "forward-to": "dead", "auto-delete-on-idle": "PT5M"}, {"name": "dead"}]}"#;
    check(file, file, false, &[]);
    let stored = r#"{"queues": [{"name": "orders", "forward-to": "dead"}, {"name": "dead"}]}"#;
    let change = "update queue orders: auto-delete-on-idle never -> PT5M";
    check(stored, file, false, &[change]);
}

#[test]
fn policies_are_made_changed_and_removed_by_layer_and_name() {
    let policy = |layer: &str, ttl: u64| {
        format!(
            r#"{{"name": "p", "layer": "{layer}", "pattern": "^a", "definition": {{"message-ttl": {ttl}}}}}"#
        )
    };
    let file = |policies: &[String]| format!(r#"{{"policies": [{}]}}"#, policies.join(","));
    let (user, operator) = (policy("user", 1), policy("operator", 1));
    let both = file(&[user.clone(), operator]);
    check(&both, &both, true, &[]);
    let changed = file(&[policy("user", 2)]);
    let update = r#"update policy p: definition {"message-ttl":1} -> {"message-ttl":2}"#;
    check(&both, &changed, false, &[update]);
    check(&both, &changed, true, &[update, "delete operator policy p"]);
    let made = r#"create policy p: apply-to - -> all, definition - -> {"message-ttl":1}, pattern - -> ^a, priority - -> 0"#;
    check("{}", &file(&[user]), false, &[made]);
}
