//! Rules together: copies, actions, failures, names, the tester.
//! (docs/spec/entities.md#17.1, #17.2, #17.9)

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::Value;
use expect_test::{Expect, expect};
use filter::{
    Action, Candidate, Correlation, CorrelationFilter, Environment, Facts, Filter, Message,
    Outcome, Parameters, Rule, RuleExists, RuleSet, RuleSubset, SqlFilter, TopicRules, test,
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
    assert!(outcome.plain.is_some());
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
            "Rule 'bad filter': a text cannot be used with a number here.".to_owned(),
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
    assert!(evaluate(&rules).plain.is_some(), "nothing changed");
    assert_eq!(
        rules.get("RULE").map(|rule| rule.name.as_str()),
        Some("Rule")
    );
    assert!(rules.remove("rule").is_some());
    assert!(rules.remove("rule").is_none());
    assert!(rules.add(rule("rULE", "FALSE", None)).is_ok());
    assert_eq!(evaluate(&rules).plain, None);
    assert_eq!(rules.iter().count(), 1);
}

#[test]
fn true_and_false_filters_are_what_they_say() {
    let of = |filter| Rule {
        name: "r".into(),
        filter,
        action: None,
    };
    assert_eq!(evaluate(&set([of(Filter::True)])).plain, Some(0));
    assert_eq!(evaluate(&set([of(Filter::False)])).plain, None);
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
    check_candidate(Candidate::Sql(filter), action, expected);
}

fn check_candidate(filter: Candidate<'_>, action: Option<&str>, expected: Expect) {
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
        expect!["FilterException: a text cannot be used with a number here"],
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
            "error in the action: at character 5: the system property Size cannot be changed by an action"
        ],
    );
    check_tester(
        "n = 5",
        Some("SET sys.Label = 1"),
        expect!["RuleActionException: the system property Label cannot be set to a number"],
    );
}

#[test]
fn early_and_late_rules_together_make_what_all_of_them_make() {
    let mut rules = TopicRules::new();
    for (subscription, name, filter, action) in [
        (1, "plain", "n = 5", None),
        (1, "late", "sys.SequenceNumber = 7", None),
        (
            1,
            "late action",
            "n = 5",
            Some("SET number = sys.SequenceNumber"),
        ),
        (1, "early action", "n = 5", Some("SET number = 1")),
        (2, "late", "sys.SequenceNumber = 8", None),
        (3, "late failure", "sys.SequenceNumber / 0 = 1", None),
        (3, "early failure", "n / 0 = 1", None),
        (4, "early", "n = 5", None),
    ] {
        rules.add(subscription, rule(name, filter, action)).unwrap();
    }
    let correlation = |action: Option<&str>| Rule {
        name: action.unwrap_or("plain").to_owned(),
        filter: Filter::Correlation(Arc::new(
            CorrelationFilter::new(Correlation {
                properties: vec![("n".to_owned(), Value::Long(5))],
                ..Correlation::default()
            })
            .unwrap(),
        )),
        action: action.map(|text| Action::parse(text, &Parameters::NONE).unwrap()),
    };
    for (subscription, action) in [
        (5, None),
        (5, Some("SET id = sys.SequenceNumber")),
        (6, None),
    ] {
        rules.add(subscription, correlation(action)).unwrap();
    }
    assert!(rules.any_late() && rules.any_costly());
    let bytes = sample().encode();
    let facts = |number| Facts {
        sequence_number: number,
        ..Facts::default()
    };
    let evaluate = |subset, number| {
        let message = Message::read(&bytes, facts(number)).unwrap();
        let environment = Environment::default();
        rules
            .evaluate_subset(subset, &message, environment)
            .outcomes
    };
    let mut together: BTreeMap<i32, Outcome> = BTreeMap::new();
    let early = evaluate(RuleSubset::Early, None);
    for (subscription, outcome) in early.into_iter().chain(evaluate(RuleSubset::Late, Some(7))) {
        let all = together.entry(subscription).or_default();
        all.plain = all.plain.or(outcome.plain);
        all.changed.extend(outcome.changed);
        all.failed.extend(outcome.failed);
        all.changed.sort_by_key(|changed| changed.place);
        all.failed.sort_by_key(|failed| failed.place);
    }
    let all: BTreeMap<_, _> = evaluate(RuleSubset::All, Some(7)).into_iter().collect();
    assert_eq!(together, all);
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
}

#[test]
fn rules_that_select_everything_as_it_is_cost_nothing_beforehand() {
    let mut rules = TopicRules::new();
    let everything = Rule {
        name: "all".to_owned(),
        filter: Filter::True,
        action: None,
    };
    rules.add(1, everything).unwrap();
    rules
        .add(2, rule("late", "sys.SequenceNumber > 1", None))
        .unwrap();
    assert!(!rules.any_costly() && rules.any_late());
    rules.add(3, rule("early", "n > 1", None)).unwrap();
    assert!(rules.any_costly());
    rules.remove(3, "EARLY").unwrap();
    rules.remove(2, "late").unwrap();
    assert!(!rules.any_costly() && !rules.any_late());
}

#[test]
fn the_tester_knows_every_kind_of_filter() {
    let action = Some("SET x = 1");
    check_candidate(Candidate::True, None, expect!["match"]);
    check_candidate(
        Candidate::True,
        action,
        expect![[r#"
            match
            set x = Long(1)"#]],
    );
    check_candidate(Candidate::False, action, expect!["no match"]);
    let correlation = |n| {
        Candidate::Correlation(Correlation {
            properties: vec![("n".to_owned(), Value::Int(n))],
            ..Correlation::default()
        })
    };
    check_candidate(correlation(5), None, expect!["match"]);
    check_candidate(correlation(6), None, expect!["no match"]);
    check_candidate(
        Candidate::Correlation(Correlation::default()),
        None,
        expect!["error in the filter: a correlation filter needs at least one field"],
    );
}
