//! The audit log: one line for each change, with its client.

use std::fs;
use std::io::Write as _;

use amqp::Value;
use e2e::{Broker, Credentials, Peer, Setup, ask_node, http, peer, request_node};
use serde_json::{Value as Json, json};

const RULES: &str = "
virtual-clock = true

[[auth.rules]]
name = 'owner'
primary-key = 'key-of-owner'
rights = ['send', 'listen', 'manage']

[[topics]]
name = 'events'
[[topics.subscriptions]]
name = 'all'
";

const OWNER: Credentials = Credentials {
    rule: "owner",
    key: "key-of-owner",
};
/// The same, as HTTP shows them.
const BASIC: &str = "authorization: Basic b3duZXI6a2V5LW9mLW93bmVy";

fn ask(broker: &Broker, method: &str, path: &str, body: &str, expected: u16) {
    let (status, answer) = http::request(broker.address(), method, path, &[BASIC], body);
    assert_eq!(status, expected, "{method} {path}: {answer}");
}

/// The lines of the audit log on stderr.
fn lines(broker: &Broker) -> Vec<String> {
    let log = broker.log();
    let lines = log.lines().filter_map(|line| line.split_once("audit: "));
    lines.map(|(_, line)| line.to_owned()).collect()
}

#[test]
fn each_change_over_http_is_one_line_with_its_client() {
    let broker = Setup::new().configure(RULES).start();
    let entity = "/$railbus/entities/audited";
    ask(&broker, "PUT", entity, "{}", 201);
    ask(&broker, "GET", entity, "", 200);
    ask(&broker, "PUT", entity, "[]", 400);
    ask(&broker, "POST", "/$railbus/plan", "{}", 200);
    let namespace = r#"{"queues": [{"name": "one"}, {"name": "two"}]}"#;
    ask(&broker, "POST", "/$railbus/apply", namespace, 200);
    let messages = "/$railbus/entities/one/messages";
    ask(&broker, "POST", messages, r#"{"body": "a"}"#, 201);
    ask(&broker, "POST", messages, r#"{"body": "b"}"#, 201);
    let purge = "/$railbus/entities/one/purge";
    ask(&broker, "POST", purge, r#"{"dry-run": true}"#, 200);
    ask(&broker, "POST", purge, "", 200);
    ask(&broker, "POST", purge, "", 200);
    let clock = r#"{"advance": "PT1H"}"#;
    ask(&broker, "POST", "/$railbus/clock", clock, 200);
    ask(&broker, "DELETE", "/audited?api-version=2021-05", "", 200);
    let lines = lines(&broker);
    let expected = [
        "PUT /$railbus/entities/audited ",
        "create queue one ",
        "create queue two ",
        "purge one: 2 active messages ",
        "advance clock by PT1H ",
        "DELETE /audited ",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}, not {expected}");
        assert!(line.contains(" peer=127.0.0.1:"), "{line}");
        assert!(line.contains(" client=\"owner\""), "{line}");
    }
}

#[test]
fn each_kind_of_change_over_http_has_a_line() {
    let broker = Setup::new().configure(RULES).start();
    let policy = r#"{"pattern": "^o", "definition": {"max-length": 5}}"#;
    let sql = r#"{"filter": {"sql": "n = 1"}}"#;
    let topic = r#"{"type": "topic"}"#;
    let changes = [
        ("PUT", "/$railbus/policies/nolayer/short", policy, 400),
        (
            "PUT",
            "/$railbus/entities/events/Subscriptions/all/Rules/mine",
            sql,
            201,
        ),
        ("PUT", "/$railbus/policies/user/short", policy, 201),
        ("DELETE", "/$railbus/policies/user/short", "", 200),
        ("PUT", "/api/exchanges/%2F/routes", topic, 201),
        ("PUT", "/api/queues/%2F/routed", "{}", 201),
        ("POST", "/api/bindings/%2F/e/routes/q/routed", "{}", 201),
        ("DELETE", "/api/exchanges/%2F/routes", "", 204),
        ("PUT", "/api/vhosts/other", "", 201),
        (
            "POST",
            "/$railbus/namespaces/other/snapshots",
            r#"{"name": "now"}"#,
            201,
        ),
        ("POST", "/$railbus/namespaces/other/reset", "", 200),
        ("DELETE", "/$railbus/namespaces/other", "", 200),
    ];
    let mut expected = Vec::new();
    for (method, path, body, status) in changes {
        ask(&broker, method, path, body, status);
        if status < 300 {
            expected.push(format!("{method} {path} "));
        }
    }
    let lines = lines(&broker);
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&expected), "{line}, not {expected}");
    }
}

#[test]
fn a_change_of_keys_and_fault_rules_names_each_of_them() {
    let broker = Setup::new().configure(RULES).start();
    let namespace = "/$railbus/namespaces/shop";
    let key = |name: &str, secret: &str| json!({"name": name, "primary-key": secret});
    let keys = |keys: &[Json]| json!({ "keys": keys }).to_string();
    let made = keys(&[key("one", "a"), key("two", "b"), key("same", "c")]);
    ask(&broker, "PUT", namespace, &made, 201);
    let changed = keys(&[key("one", "d"), key("same", "c"), key("new", "e")]);
    ask(&broker, "PUT", namespace, &changed, 200);
    let faults = "/$railbus/namespaces/shop/faults";
    let rule = |name: &str, delay: u32| json!({"name": name, "effect": {"delay-ms": delay}});
    let rules = |rules: &[Json]| json!({ "faults": rules }).to_string();
    ask(&broker, "POST", faults, &rule("slow", 1).to_string(), 200);
    let replaced = rules(&[rule("slow", 2), rule("other", 1)]);
    ask(&broker, "PUT", faults, &replaced, 200);
    ask(&broker, "PUT", faults, &rules(&[rule("slow", 2)]), 200);
    ask(&broker, "DELETE", faults, "", 200);
    let lines = lines(&broker);
    let expected = [
        "create namespace 'shop' ",
        "create key one of namespace 'shop' ",
        "create key two of namespace 'shop' ",
        "create key same of namespace 'shop' ",
        "change namespace 'shop' ",
        "change key one of namespace 'shop' ",
        "create key new of namespace 'shop' ",
        "delete key two of namespace 'shop' ",
        "create fault rule slow of namespace 'shop' ",
        "change fault rule slow of namespace 'shop' ",
        "create fault rule other of namespace 'shop' ",
        "delete fault rule other of namespace 'shop' ",
        "delete fault rule slow of namespace 'shop' ",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}, not {expected}");
    }
}

#[test]
fn a_client_that_leaves_before_its_answer_has_its_lines() {
    let broker = Setup::new().configure(RULES).start();
    let queues: Vec<_> = (0..500)
        .map(|n| json!({ "name": format!("q{n}") }))
        .collect();
    let body = json!({ "queues": queues }).to_string();
    let length = body.len();
    let request = format!(
        "POST /$railbus/apply HTTP/1.1\r\nhost: localhost\r\n{BASIC}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut client = peer::connect(broker.address());
    client
        .write_all(request.as_bytes())
        .expect("the broker reads");
    // If it left before its request was taken, it would change nothing.
    let last = "/$railbus/entities/q499";
    while http::request(broker.address(), "GET", last, &[BASIC], "").0 != 200 {}
    drop(client);
    broker.wait_for_log("audit: create queue q499 ");
    assert_eq!(lines(&broker).len(), 500);
}

#[test]
fn a_change_over_amqp_whose_answer_is_lost_has_a_line() {
    let broker = Setup::new().configure(RULES).start();
    let faults = "/$railbus/namespaces/default/faults";
    let lost = r#"{"name": "lost", "match": {"operations": ["add-rule"]}, "effect": {"disconnect": "after"}}"#;
    ask(&broker, "POST", faults, lost, 200);
    let filter = Value::Map(vec![("expression".into(), "1=1".into())]);
    let body = Value::Map(vec![
        ("rule-name".into(), "some".into()),
        (
            "rule-description".into(),
            Value::Map(vec![("sql-filter".into(), filter)]),
        ),
    ]);
    let mut owner = Peer::begin(broker.address(), OWNER);
    assert!(owner.try_open(), "the key is right");
    let add = [("operation", "com.microsoft:add-rule")];
    let node = "events/Subscriptions/all/$management";
    let _answer = ask_node(&mut owner, node, &add, &body);
    broker.wait_for_log("audit: create rule events/Subscriptions/all/some");
    let rule = "/$railbus/entities/events/Subscriptions/all/Rules/some";
    ask(&broker, "GET", rule, "", 200);
    let lines = lines(&broker);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[1].contains(" client=\"owner\""), "{}", lines[1]);
}

#[test]
fn a_deletion_of_messages_over_amqp_has_a_line_with_their_number() {
    let broker = Setup::new().configure(RULES).start();
    ask(&broker, "PUT", "/$railbus/entities/one", "{}", 201);
    let messages = "/$railbus/entities/one/messages";
    for body in [r#"{"body": "a"}"#, r#"{"body": "b"}"#] {
        ask(&broker, "POST", messages, body, 201);
    }
    let body = Value::Map(vec![
        ("message-count".into(), Value::Int(100)),
        ("enqueued-time-utc".into(), Value::Timestamp(i64::MAX)),
    ]);
    let delete = [("operation", "com.microsoft:batch-delete-messages")];
    // The second finds none, and changes nothing.
    for _ in 0..2 {
        let mut owner = Peer::begin(broker.address(), OWNER);
        assert!(owner.try_open(), "the key is right");
        request_node(&mut owner, "one/$management", &delete, &body);
    }
    let lines = lines(&broker);
    let deleted: Vec<_> = lines.iter().filter(|it| it.starts_with("purge")).collect();
    let [line] = deleted[..] else {
        panic!("one line, not {lines:#?}");
    };
    assert!(line.starts_with("purge one: 2 messages "), "{line}");
    assert!(line.contains(" client=\"owner\""), "{line}");
}

#[test]
fn a_change_by_a_session_names_the_key_that_began_it() {
    let broker = Setup::new().configure(RULES).start();
    let origin = "origin: http://localhost";
    let request = |method: &str, path: &str, headers: &str| {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        let request = format!("{head}content-length: 2\r\n{origin}\r\n{headers}\r\n\r\n{{}}");
        http::exchange(broker.address(), &request)
    };
    let begun = request("POST", "/$railbus/session", BASIC);
    let cookie = begun.lines().find_map(|it| it.strip_prefix("set-cookie: "));
    let (cookie, _) = cookie.and_then(|it| it.split_once(';')).expect("a cookie");
    let (_, body) = begun.split_once("\r\n\r\n").expect("a body");
    let session: Json = serde_json::from_str(body).expect("JSON");
    let csrf = session["csrf"].as_str().expect("a token");
    let headers = format!("cookie: {cookie}\r\nx-railbus-csrf: {csrf}");
    let answer = request("PUT", "/$railbus/entities/made", &headers);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let lines = lines(&broker);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains(" client=\"owner\""), "{}", lines[0]);
}

#[test]
fn a_rule_that_is_added_over_amqp_is_a_line_in_the_file_that_is_configured() {
    let setup = Setup::new().configure(&format!("audit-log = 'audit.log'\n{RULES}"));
    let broker = setup.start();
    let filter = Value::Map(vec![("expression".into(), "1=1".into())]);
    let description = Value::Map(vec![("sql-filter".into(), filter)]);
    let body = Value::Map(vec![
        ("rule-name".into(), "some".into()),
        ("rule-description".into(), description),
    ]);
    let add = [("operation", "com.microsoft:add-rule")];
    let node = "events/Subscriptions/all/$management";
    // The second is refused, since there is such a rule.
    for _ in 0..2 {
        let mut owner = Peer::begin(broker.address(), OWNER);
        assert!(owner.try_open(), "the key is right");
        request_node(&mut owner, node, &add, &body);
    }
    assert!(lines(&broker).is_empty());
    let log = fs::read_to_string(setup.directory().join("audit.log")).expect("there is a log");
    let lines: Vec<Json> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is an object"))
        .collect();
    let [line] = &lines[..] else {
        panic!("one line, not {log}");
    };
    assert_eq!(line["target"], "audit");
    let fields = &line["fields"];
    let message = "audit: create rule events/Subscriptions/all/some";
    assert_eq!(fields["message"], message);
    assert_eq!(fields["client"], "owner");
}
