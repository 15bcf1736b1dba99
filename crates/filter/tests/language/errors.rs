//! Errors: texts that are refused when a rule is created, with position and reason.

use amqp::Value;
use expect_test::{Expect, expect};
use filter::{Action, Parameters, Selector, SqlFilter};

fn check(text: &str, expected: Expect) {
    let error = SqlFilter::parse(text, &Parameters::NONE).unwrap_err();
    expected.assert_eq(&error.to_string());
}

fn check_action(text: &str, expected: Expect) {
    let error = Action::parse(text, &Parameters::NONE).unwrap_err();
    expected.assert_eq(&error.to_string());
}

fn check_selector(text: &str, expected: Expect) {
    let error = Selector::parse(text).unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_filter_has_a_text_of_1024_characters_at_most() {
    check("", expect!["at character 1: the text is empty"]);
    check("  ", expect!["at character 3: the text is empty"]);
    let filled = |length: usize| format!("a = '{}'", "ä".repeat(length - 6));
    assert!(SqlFilter::parse(&filled(1_024), &Parameters::NONE).is_ok());
    check(
        &filled(1_025),
        expect!["at character 1025: the text is longer than 1024 characters"],
    );
}

#[test]
fn what_does_not_belong_is_named() {
    check(
        "a = ",
        expect!["at character 5: a value is expected, not the end"],
    );
    check(
        "a = 1 b",
        expect!["at character 7: an operator or the end is expected, not b"],
    );
    check(
        "a == 1",
        expect![[r#"at character 4: a value is expected, not "=""#]],
    );
    check(
        "(a = 1",
        expect![[r#"at character 7: ")" is expected, not the end"#]],
    );
    check(
        "a = 1)",
        expect![[r#"at character 6: an operator or the end is expected, not ")""#]],
    );
    check("a IS 5", expect!["at character 6: NULL is expected, not 5"]);
    check(
        "a NOT = 5",
        expect![[r#"at character 7: IN or LIKE is expected, not "=""#]],
    );
    check(
        "a IN 5",
        expect![[r#"at character 6: "(" is expected, not 5"#]],
    );
    check(
        "a IN ()",
        expect![[r#"at character 7: a value is expected, not ")""#]],
    );
    check(
        "a + 1 IS NULL",
        expect!["at character 1: a property is expected, not a calculated value"],
    );
    check(
        "EXISTS(1)",
        expect!["at character 8: a property is expected, not 1"],
    );
    check(
        "a = 'ä' AND b = §",
        expect!["at character 17: '§' is not expected"],
    );
    check(
        "a = NOT b",
        expect!["at character 5: a value is expected, not NOT"],
    );
    check(
        "a BETWEEN 1 AND 2",
        expect!["at character 3: an operator or the end is expected, not BETWEEN"],
    );
    check(
        "a = 1; b = 2",
        expect![[r#"at character 6: an operator or the end is expected, not ";""#]],
    );
    check(
        "AND = 1",
        expect!["at character 1: a value is expected, not AND"],
    );
}

#[test]
fn what_has_no_end_is_found_at_its_start() {
    check(
        "a = 'b",
        expect!["at character 5: the text in quotes has no end"],
    );
    check(
        "[a = 1",
        expect!["at character 1: the delimited name has no end"],
    );
    check(
        "\"a = 1",
        expect!["at character 1: the delimited name has no end"],
    );
    check(
        "[] = 1",
        expect!["at character 1: a delimited name is empty"],
    );
}

#[test]
fn numbers_and_names_have_their_forms() {
    check(
        "a = 9223372036854775808",
        expect!["at character 5: the number is out of range"],
    );
    check(
        "a = 99999999999999999999999",
        expect!["at character 5: the number is out of range"],
    );
    check(
        "a = 1E999",
        expect!["at character 5: the number is out of range"],
    );
    check("a = 1b", expect!["at character 6: 'b' is not expected"]);
    check("a = 1.2.3", expect!["at character 8: '.' is not expected"]);
    check("_a = 1", expect!["at character 1: '_' is not expected"]);
    check("a = 0x10", expect!["at character 6: 'x' is not expected"]);
    assert!(SqlFilter::parse("a = -9223372036854775808", &Parameters::NONE).is_ok());
    assert!(SqlFilter::parse("a = .5", &Parameters::NONE).is_ok());
}

#[test]
fn conditions_are_no_values_and_values_no_conditions() {
    check(
        "a = b = c",
        expect!["at character 1: the condition that starts here is used as a value"],
    );
    check(
        "(a = 1) + 1 = 2",
        expect!["at character 2: the condition that starts here is used as a value"],
    );
    check(
        "1",
        expect!["at character 1: the value that starts here is used as a condition"],
    );
    check(
        "a AND 'b'",
        expect!["at character 7: the value that starts here is used as a condition"],
    );
    check(
        "NOT a + 1",
        expect!["at character 5: the value that starts here is used as a condition"],
    );
    check(
        "newid()",
        expect!["at character 1: the value that starts here is used as a condition"],
    );
    check(
        "a IN (b = 1)",
        expect!["at character 7: the condition that starts here is used as a value"],
    );
}

#[test]
fn unknown_names_are_refused() {
    check(
        "sys.Nothing = 1",
        expect![[r#"at character 5: there is no system property "Nothing""#]],
    );
    check(
        "order.total = 1",
        expect![[
            r#"at character 1: there is no scope "order"; a name with a dot is written in brackets"#
        ]],
    );
    check(
        "a = @b",
        expect!["at character 5: no value is given for the parameter @b"],
    );
    check(
        "upper(a) = 'A'",
        expect![[r#"at character 1: there is no function "upper""#]],
    );
    check(
        "sys. = 1",
        expect![[r#"at character 6: a property's name is expected, not "=""#]],
    );
    let values = [("list".to_owned(), Value::List(Vec::new()))];
    let error = SqlFilter::parse("a = @list", &Parameters::new(&values)).unwrap_err();
    expect!["at character 5: the value given for the parameter @list is of a type that filters do not know"].assert_eq(&error.to_string());
}

#[test]
fn patterns_that_can_not_be_are_refused() {
    check(
        "a LIKE 'b' ESCAPE 'cd'",
        expect!["at character 19: an escape must be a single character"],
    );
    check(
        "a LIKE 'b' ESCAPE ''",
        expect!["at character 19: an escape must be a single character"],
    );
    check(
        "a LIKE 'b!' ESCAPE '!'",
        expect!["at character 8: the pattern ends with its escape character"],
    );
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(SqlFilter::parse(&nested(60), &Parameters::NONE).is_ok());
    check(
        &nested(100),
        expect!["at character 65: nested deeper than 64"],
    );
    check(
        &format!("{} a", "NOT ".repeat(200)),
        expect!["at character 257: nested deeper than 64"],
    );
    check(
        &format!("{}1 = 1", "- ".repeat(500)),
        expect!["at character 129: nested deeper than 64"],
    );
}

#[test]
fn actions_change_what_may_be_changed() {
    check_action("", expect!["at character 1: the text is empty"]);
    check_action(
        "SET sys.SequenceNumber = 1",
        expect![
            "at character 5: the system property SequenceNumber cannot be changed by an action"
        ],
    );
    check_action(
        "SET a = 1; REMOVE sys.Size",
        expect!["at character 19: the system property Size cannot be changed by an action"],
    );
    check_action(
        "SET sys.Nothing = 1",
        expect![[r#"at character 9: there is no system property "Nothing""#]],
    );
    check_action(
        "SET a = b = 1",
        expect!["at character 9: the condition that starts here is used as a value"],
    );
    check_action(
        "SET a 1",
        expect![[r#"at character 7: "=" is expected, not 1"#]],
    );
    check_action(
        "SET a = 1;; SET b = 2",
        expect![[r#"at character 11: SET or REMOVE is expected, not ";""#]],
    );
    check_action(
        "a = 1",
        expect!["at character 1: SET or REMOVE is expected, not a"],
    );
    check_action(
        "REMOVE 'a'",
        expect!["at character 8: a property is expected, not 'a'"],
    );
    assert!(Action::parse(&"SET a = 1;".repeat(32), &Parameters::NONE).is_ok());
    check_action(
        &"SET a = 1;".repeat(33),
        expect!["at character 321: more than 32 statements"],
    );
    check_action(
        &format!("SET a = '{}'", "x".repeat(1_015)),
        expect!["at character 1025: the text is longer than 1024 characters"],
    );
}

#[test]
fn selectors_have_their_own_rules() {
    check_selector(
        "a = 'b' AND",
        expect!["at character 12: a value is expected, not the end"],
    );
    check_selector(
        "sys.Label = 'x'",
        expect!["at character 4: '.' is not expected"],
    );
    check_selector("[a] = 1", expect!["at character 1: '[' is not expected"]);
    check_selector("a != 1", expect!["at character 3: '!' is not expected"]);
    check_selector("a % 2 = 0", expect!["at character 3: '%' is not expected"]);
    check_selector(
        "a = NULL",
        expect!["at character 5: a value is expected, not NULL"],
    );
    check_selector(
        "a IN (1, 2)",
        expect!["at character 7: a text in quotes is expected, not another value"],
    );
    check_selector(
        "a + 1 IN ('x')",
        expect!["at character 1: a property is expected, not a calculated value"],
    );
    check_selector(
        "a LIKE b",
        expect!["at character 8: a text in quotes is expected, not another value"],
    );
    check_selector(
        "a LIKE 'x' ESCAPE 'yz'",
        expect!["at character 19: an escape must be a single character"],
    );
    check_selector(
        "'a' < b",
        expect!["at character 1: selectors compare texts and booleans by = and <> only"],
    );
    check_selector(
        "a > TRUE",
        expect!["at character 5: selectors compare texts and booleans by = and <> only"],
    );
    check_selector(
        "a + 'x' = 1",
        expect!["at character 5: selectors calculate with numbers only"],
    );
    check_selector(
        "a BETWEEN 'x' AND 'y'",
        expect!["at character 11: selectors calculate with numbers only"],
    );
    check_selector(
        "a BETWEEN 1 OR 2",
        expect!["at character 13: AND is expected, not OR"],
    );
    check_selector(
        "JMSDestination = 'q'",
        expect!["at character 1: selectors cannot refer to JMSDestination"],
    );
    check_selector(
        "EXISTS(a)",
        expect![[r#"at character 7: an operator or the end is expected, not "(""#]],
    );
    check_selector("a = 08", expect!["at character 5: '0' is not expected"]);
}
