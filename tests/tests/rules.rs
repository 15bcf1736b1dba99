//! Rules: tested before they are used, over HTTP and from the command line.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use e2e::{Broker, Setup, broker, http};
use serde_json::{Value, json};

const PATH: &str = "/$railbus/rules/test";

fn ask(broker: &Broker, headers: &[&str], body: &str) -> (u16, Value) {
    let (status, text) = http::request(broker.address(), "POST", PATH, headers, body);
    (status, serde_json::from_str(&text).expect("JSON"))
}

fn message() -> Value {
    json!({"subject": "red", "properties": {"amount": 150, "region": "eu", "level": {"type": "int", "value": 3}}})
}

#[test]
fn a_rule_is_tested_over_http() {
    let broker = Setup::new().start();
    let check = |rule: Value, expected: Value| {
        let mut test = rule;
        test["message"] = message();
        let (status, report) = ask(&broker, &[], &test.to_string());
        assert_eq!((status, report), (200, expected));
    };
    check(
        json!({"filter": {"sql": "amount > 100 AND sys.Label = 'red'"}}),
        json!({"verdict": "match", "changes": []}),
    );
    check(
        json!({"filter": {"sql": "amount > 200"}}),
        json!({"verdict": "no-match", "reason": "the filter is false", "changes": []}),
    );
    check(
        json!({"filter": {"sql": "weight > 200"}}),
        json!({"verdict": "no-match", "reason": "the filter is unknown", "changes": []}),
    );
    check(
        json!({"filter": {"correlation": {"subject": "red", "properties": {"level": 3}}}}),
        json!({"verdict": "match", "changes": []}),
    );
    check(
        json!({"filter": {"sql": "region > 5"}}),
        json!({
            "verdict": "error",
            "reason": "the filter cannot be evaluated: a text cannot be used with a number here",
            "dead-letter-reason": "FilterException",
            "changes": [],
        }),
    );
    check(
        json!({"filter": true, "action": "SET sys.Label = 'blue'; SET level = level + 1; REMOVE region"}),
        json!({"verdict": "match", "changes": [
            {"property": "sys.Label", "before": "red", "after": "blue"},
            {"property": "level", "before": {"type": "int", "value": 3}, "after": {"type": "int", "value": 4}},
            {"property": "region", "before": "eu", "after": null},
        ]}),
    );
}

#[test]
fn what_is_no_rule_is_refused_with_reason_and_position() {
    let broker = Setup::new().start();
    let (status, refusal) = ask(
        &broker,
        &[],
        &json!({"filter": {"sql": "amount >"}, "message": message()}).to_string(),
    );
    assert_eq!(status, 400);
    assert_eq!(
        (&refusal["in"], &refusal["position"]),
        (&json!("filter"), &json!(9))
    );
    assert!(
        refusal["error"]
            .as_str()
            .is_some_and(|text| text.contains("at character 9"))
    );
    for body in ["", "{}", "[[[", r#"{"message": {"subjetc": "a"}}"#] {
        let (status, refusal) = ask(&broker, &[], body);
        assert_eq!(status, 400, "{body}");
        assert!(refusal["error"].is_string(), "{refusal}");
    }
    let (status, _) = ask(&broker, &[], &" ".repeat(600 << 10));
    assert_eq!(status, 413);
    assert_eq!(http::get(broker.address(), PATH).0, 405);
}

#[test]
fn only_manage_may_test_a_rule() {
    let rules = "
        [[auth.rules]]
        name = 'owner'
        primary-key = 'hush-hush'
        rights = ['manage']
        [[auth.rules]]
        name = 'sender'
        primary-key = 'hush-hush'
        rights = ['send', 'listen']
    ";
    let broker = Setup::new().configure(rules).start();
    let body = json!({"message": {}}).to_string();
    // sender:hush-hush
    for headers in [&[][..], &["authorization: Basic c2VuZGVyOmh1c2gtaHVzaA=="]] {
        assert_eq!(ask(&broker, headers, &body).0, 401, "{headers:?}");
    }
    // owner:hush-hush
    let owner = ["authorization: Basic b3duZXI6aHVzaC1odXNo"];
    assert_eq!(ask(&broker, &owner, &body).0, 200);
}

/// Runs `railbus rule test --message -` with no broker anywhere.
fn rule_test(arguments: &[&str], message: &str) -> Output {
    let mut process = Command::new(broker::program())
        .args(["rule", "test", "--message", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is there");
    let mut stdin = process.stdin.take().expect("stdin is piped");
    // A program that does not like its arguments does not read.
    drop(stdin.write_all(message.as_bytes()));
    drop(stdin);
    process.wait_with_output().expect("it ends")
}

fn check(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let output = rule_test(arguments, &message().to_string());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert_eq!(out, stdout);
    assert!(
        err.starts_with(stderr) && err.is_empty() == stderr.is_empty(),
        "{err}"
    );
}

#[test]
fn a_rule_is_tested_from_the_command_line_without_a_broker() {
    check(&["--expression", "amount > 100"], 0, "match\n", "");
    check(
        &["--expression", "amount > 200"],
        1,
        "no match: the filter is false\n",
        "",
    );
    check(
        &[
            "--correlation",
            r#"{"subject": "red", "properties": {"level": 3}}"#,
        ],
        0,
        "match\n",
        "",
    );
    check(
        &[
            "--expression",
            "amount > 100",
            "--action",
            "SET region = 'us'; SET tax = 1.5",
        ],
        0,
        "match\nproperty  before  after\nregion    'eu'    'us'\ntax       -       1.5\n",
        "",
    );
    check(
        &["--expression", "amount > 200", "--json"],
        1,
        "{\"verdict\":\"no-match\",\"reason\":\"the filter is false\",\"changes\":[]}\n",
        "",
    );
}

#[test]
fn the_command_line_says_what_is_wrong() {
    check(
        &["--expression", "region > 5"],
        2,
        "error: the filter cannot be evaluated: a text cannot be used with a number here\n\
         a subscription would dead-letter the message as FilterException\n",
        "",
    );
    check(
        &["--expression", "amount >"],
        2,
        "",
        "railbus: the filter: at character 9: ",
    );
    check(
        &["--action", "SET amount"],
        2,
        "",
        "railbus: the action: at character 11: ",
    );
    check(
        &["--correlation", "{\"color\": 1}"],
        2,
        "",
        "railbus: --correlation is not what a correlation filter consists of: unknown field `color`",
    );
    check(&[], 2, "", "error: the following required arguments");
    let wrong = rule_test(
        &["--action", "REMOVE a"],
        "{\n\"properties\": {\n\"a\": []}}",
    );
    let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        stderr.starts_with("railbus: stdin:3: properties.a: "),
        "{stderr}"
    );
    assert_eq!(wrong.status.code(), Some(2));
}
