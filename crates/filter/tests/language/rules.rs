//! Rules together: copies, actions, failures, names, the tester. (Entities contract 17.1, 17.2, 17.9)

use amqp::Value;
use expect_test::{Expect, expect};
use filter::{
    Action, Environment, Facts, Filter, Message, Outcome, Parameters, Rule, RuleExists, RuleSet,
    SqlFilter, TopicRules, test,
};

use crate::messages::sample;

fn rule(name: &str, filter: &str, action: Option<&str>) -> Rule {
    Rule {
        name: name.to_owned(),
        filter: Filter::Sql(SqlFilter::parse(filter, &Parameters::NONE).unwrap()),
        action: action.map(|text| Action::parse(text, &Parameters::NONE).unwrap()),
    }
}

fn evaluate(rules: &RuleSet) -> Outcome {
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    rules.evaluate(&message, Environment::default())
}

fn set(rules: impl IntoIterator<Item = Rule>) -> RuleSet {
    let mut set = RuleSet::new();
    for rule in rules {
        set.add(rule).unwrap();
    }
    set
}

#[test]
fn no_rules_select_nothing() {
    assert_eq!(evaluate(&RuleSet::new()), Outcome::default());
}

#[test]
fn rules_without_action_share_a_copy_and_each_with_one_has_its_own() {
    let rules = set([
        rule("one", "n = 5", None),
        rule("two", "TRUE", None),
        rule("three", "s = 'abc'", None),
        rule("four", "n = 5", Some("SET a = 1")),
        rule("five", "n = 5", Some("SET b = 1")),
        rule("six", "n = 6", Some("SET c = 1")),
        rule("seven", "missing = 1", Some("SET c = 1")),
    ]);
    let outcome = evaluate(&rules);
    assert_eq!(outcome.copies(), 3);
    assert!(outcome.plain);
    let changed: Vec<_> = outcome
        .changed
        .iter()
        .map(|copy| copy.changes.user())
        .collect();
    let name = |name: &str| ("RuleName".to_owned(), Some(Value::from(name)));
    let one = |name: &str| (name.to_owned(), Some(Value::Long(1)));
    assert_eq!(
        changed,
        [[one("a"), name("four")], [one("b"), name("five")]]
    );
    assert_eq!(outcome.dead_letter(), None);
}

#[test]
fn the_copy_is_named_by_the_rule_whatever_the_action_says() {
    let rules = set([rule("mine", "TRUE", Some("SET RuleName = 'other'"))]);
    let outcome = evaluate(&rules);
    let user = outcome.changed[0].changes.user();
    assert_eq!(user, [("RuleName".to_owned(), Some(Value::from("mine")))]);
}

#[test]
fn one_failure_is_told_and_the_other_rules_go_on() {
    let rules = set([
        rule("bad filter", "s > 1", None),
        rule("good", "n = 5", None),
        rule("bad action", "n = 5", Some("SET sys.Label = n / 0")),
    ]);
    let outcome = evaluate(&rules);
    assert_eq!(outcome.copies(), 1);
    let failed: Vec<_> = outcome
        .failed
        .iter()
        .map(|failed| (failed.reason(), failed.description()))
        .collect();
    let expected = [
        (
            "FilterException",
            "Rule 'bad filter': a text can not be used with a number here.".to_owned(),
        ),
        (
            "RuleActionException",
            "Rule 'bad action': a number is divided by zero.".to_owned(),
        ),
    ];
    assert_eq!(failed, expected);
    assert_eq!(
        outcome
            .dead_letter()
            .map(|failed| failed.rule.name.as_str()),
        Some("bad filter")
    );
}

#[test]
fn names_are_one_whatever_their_case() {
    let mut rules = set([rule("Rule", "TRUE", None)]);
    assert_eq!(rules.add(rule("rULE", "FALSE", None)), Err(RuleExists));
    assert!(evaluate(&rules).plain, "nothing changed");
    assert_eq!(
        rules.get("RULE").map(|rule| rule.name.as_str()),
        Some("Rule")
    );
    assert!(rules.remove("rule").is_some());
    assert!(rules.remove("rule").is_none());
    assert!(rules.add(rule("rULE", "FALSE", None)).is_ok());
    assert!(!evaluate(&rules).plain);
    assert_eq!(rules.iter().count(), 1);
}

#[test]
fn true_and_false_filters_are_what_they_say() {
    let of = |filter| Rule {
        name: "r".into(),
        filter,
        action: None,
    };
    assert!(evaluate(&set([of(Filter::True)])).plain);
    assert!(!evaluate(&set([of(Filter::False)])).plain);
}

#[test]
fn a_topic_tells_its_subscriptions_apart() {
    let mut topic = TopicRules::new();
    topic.add(1, rule("r", "n = 5", None)).unwrap();
    topic.add(2, rule("r", "n = 6", None)).unwrap();
    topic.add(3, rule("r", "s > 1", None)).unwrap();
    topic
        .add(4, rule("r", "TRUE", Some("SET x = newid()")))
        .unwrap();
    topic
        .add(5, rule("r", "TRUE", Some("SET x = newid()")))
        .unwrap();
    let snapshot = topic.clone();
    topic.remove_all(1);
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let outcomes = snapshot.evaluate(&message, Environment::default());
    let subscriptions: Vec<_> = outcomes
        .iter()
        .map(|(subscription, _)| *subscription)
        .collect();
    assert_eq!(subscriptions, [1, 3, 4, 5]);
    let id = |place: usize| outcomes[place].1.changed[0].changes.user()[0].clone();
    assert_ne!(id(2), id(3), "new ids are new for each rule");
    assert_eq!(topic.evaluate(&message, Environment::default()).len(), 3);
    assert_eq!(topic.len(), 4);
}

fn check_tester(filter: &str, action: Option<&str>, expected: Expect) {
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let verdict = test(
        filter,
        action,
        &Parameters::NONE,
        &message,
        Environment::default(),
    );
    expected.assert_eq(&verdict.to_string());
}

#[test]
fn the_tester_says_what_a_rule_would_do() {
    check_tester("n = 5", None, expect!["match"]);
    check_tester("n = 6", None, expect!["no match"]);
    check_tester(
        "missing = 6",
        None,
        expect!["no match: the filter is unknown"],
    );
    check_tester(
        "s < 6",
        None,
        expect!["FilterException: a text can not be used with a number here"],
    );
    check_tester(
        "n == 6",
        None,
        expect![[r#"error in the filter: at character 4: a value is expected, not "=""#]],
    );
    check_tester(
        "n = 5",
        Some("SET x = n + 1; REMOVE s; SET sys.Label = 'new'; REMOVE sys.To"),
        expect![[r#"
            match
            set sys.Label = "new"
            remove sys.To
            remove s
            set x = Long(6)"#]],
    );
    check_tester(
        "n = 5",
        Some("SET sys.Size = 1"),
        expect![
            "error in the action: at character 5: the system property Size can not be changed by an action"
        ],
    );
    check_tester(
        "n = 5",
        Some("SET sys.Label = 1"),
        expect!["RuleActionException: the system property Label can not be set to a number"],
    );
}
