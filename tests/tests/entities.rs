//! `/$railbus/entities`: entities and rules shown and changed over our own interface.

use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value, json};

fn ask(broker: &Broker, method: &str, path: &str, body: impl Into<Value>) -> (u16, Value) {
    ask_with(broker, method, path, &[], &body.into())
}

fn ask_with(
    broker: &Broker,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &Value,
) -> (u16, Value) {
    let path = format!("/$railbus/entities{path}");
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let (status, body) = http::request(broker.address(), method, &path, headers, &body);
    (status, serde_json::from_str(&body).expect("JSON"))
}

#[test]
fn everything_is_shown_with_what_is_in_it() {
    let broker = Setup::new()
        .configure("[[topics]]\nname = 'events'\n[[topics.subscriptions]]\nname = 'all'")
        .start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("events");
    _ = peer.send(sender, b"hello");
    let (status, all) = ask(&broker, "GET", "", Value::Null);
    assert_eq!(status, 200);
    let names: Vec<_> = all["queues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["orders", "others"]);
    let all = &all["topics"][0]["subscriptions"][0];
    assert_eq!(all["state"]["active"], 1);
    assert_eq!(all["rules"], json!([{"name": "$Default", "filter": true}]));
    let (status, queue) = ask(&broker, "GET", "/OTHERS", Value::Null);
    assert_eq!(
        (status, &queue["kind"], &queue["name"]),
        (200, &json!("queue"), &json!("others"))
    );
    assert_eq!(queue["lock-duration"], "PT5S");
    assert_eq!(queue["state"]["active"], 0);
    let (_, topic) = ask(&broker, "GET", "/events", Value::Null);
    assert_eq!(topic["subscriptions"][0]["name"], "all");
    let (_, rule) = ask(
        &broker,
        "GET",
        "/events/subscriptions/all/rules/%24Default",
        Value::Null,
    );
    assert_eq!(rule, json!({"name": "$Default", "filter": true}));
    for path in [
        "/nothing",
        "/events/Subscriptions/x",
        "/events/Subscriptions/all/Rules/x",
        "/x/Subscriptions/all/Rules",
    ] {
        assert_eq!(ask(&broker, "GET", path, Value::Null).0, 404, "{path}");
    }
}

#[test]
fn entities_are_made_changed_and_deleted() {
    let broker = Setup::new().start();
    let new = ["if-none-match: *"];
    let (status, queue) = ask(&broker, "PUT", "/a/b", json!({"lock-duration": "PT30S"}));
    assert_eq!(
        (status, &queue["kind"], &queue["lock-duration"]),
        (201, &json!("queue"), &json!("PT30S"))
    );
    assert_eq!(ask_with(&broker, "PUT", "/a/b", &new, &json!({})).0, 409);
    let (status, queue) = ask(
        &broker,
        "PATCH",
        "/a/b",
        json!({"max-delivery-count": 2, "forward-to": "orders"}),
    );
    assert_eq!((status, &queue["lock-duration"]), (200, &json!("PT30S")));
    assert_eq!(
        (&queue["max-delivery-count"], &queue["forward-to"]),
        (&json!(2), &json!("orders"))
    );
    let (_, queue) = ask(&broker, "PATCH", "/a/b", json!({"forward-to": null}));
    assert_eq!(queue.get("forward-to"), None);
    let (status, queue) = ask(&broker, "PUT", "/a/b", queue);
    assert_eq!((status, &queue["max-delivery-count"]), (200, &json!(2)));
    assert_eq!(ask(&broker, "PUT", "/t", json!({"kind": "topic"})).0, 201);
    let rules = json!({"rules": [{"name": "x", "filter": {"sql": "n > 1"}}, {"name": "y"}]});
    let (status, subscription) = ask(&broker, "PUT", "/t/Subscriptions/s", rules);
    assert_eq!(
        (status, subscription["rules"].as_array().unwrap().len()),
        (201, 2)
    );
    let path = "/t/Subscriptions/s/Rules/x";
    let (status, rule) = ask(&broker, "PATCH", path, json!({"action": "SET a = 1"}));
    assert_eq!(
        (status, rule),
        (
            200,
            json!({"name": "x", "filter": {"sql": "n > 1"}, "action": "SET a = 1"})
        )
    );
    assert_eq!(ask(&broker, "DELETE", path, Value::Null).0, 200);
    assert_eq!(ask(&broker, "DELETE", path, Value::Null).0, 404);
    assert_eq!(ask(&broker, "DELETE", "/a/b", Value::Null).0, 200);
    assert_eq!(ask(&broker, "GET", "/a/b", Value::Null).0, 404);
}

#[test]
fn what_can_not_be_is_refused_in_one_sentence() {
    let broker = Setup::new().start();
    let check = |method: &str, path: &str, body: Value, status: u16, part: &str| {
        let (found, answer) = ask(&broker, method, path, body);
        let error = answer["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(found, status, "{error}");
        assert!(error.contains(part), "{error}");
    };
    for (path, name) in [
        ("/a%20b", "a b"),
        ("/a!b", "a!b"),
        ("/a//b", "a//b"),
        ("/a/../b", "a/../b"),
        ("/a%2F%2Fb", "a//b"),
        ("//a", "/a"),
        ("/$a", "$a"),
    ] {
        let text = format!("'{name}' contains character(s) that is not allowed");
        check("PUT", path, json!({}), 400, &text);
        check("GET", path, Value::Null, 404, "does not exist");
    }
    let long = format!("/{}", "x".repeat(261));
    check("PUT", &long, json!({}), 400, "has 1 to 260 characters");
    check("POST", "/orders//purge", json!({}), 404, "does not exist");
    check(
        "PUT",
        "/a",
        json!({"lock-duration": "PT1H"}),
        400,
        "above the maximum of PT5M",
    );
    check(
        "PUT",
        "/a",
        json!({"speed": 1}),
        400,
        "unknown field `speed`",
    );
    check(
        "PUT",
        "/a",
        json!({"kind": "bus"}),
        400,
        "neither queue nor topic",
    );
    check(
        "PUT",
        "/a",
        json!({"forward-to": "a"}),
        400,
        "'a' does not exist",
    );
    check(
        "PUT",
        "/a",
        json!({"forward-to": "b"}),
        400,
        "'b' does not exist",
    );
    check(
        "PUT",
        "/orders",
        json!({"kind": "topic"}),
        400,
        "kind is topic, but the entity is a queue",
    );
    check(
        "PATCH",
        "/orders",
        json!({"requires-session": true}),
        400,
        "cannot be changed",
    );
    check("PATCH", "/orders", json!([]), 400, "not a JSON object");
    check("PATCH", "/b", json!({}), 404, "does not exist");
    check("PUT", "/x/Subscriptions/s", json!({}), 404, "");
    check(
        "PUT",
        "",
        json!({}),
        405,
        "the methods of this path are GET, HEAD",
    );
    check(
        "DELETE",
        "",
        Value::Null,
        405,
        "the methods of this path are GET, HEAD",
    );
    check("POST", "/orders", json!({}), 405, "");
    check(
        "PUT",
        "/x/Subscriptions/s/Rules/r",
        json!({"filter": {"sql": "n >"}}),
        400,
        "at character 4",
    );
}

#[test]
fn listen_may_see_entities_and_only_manage_may_change_them() {
    let rules = "
        [[auth.rules]]
        name = 'sender'
        primary-key = 'hush-hush'
        rights = ['send', 'listen']
    ";
    let broker = Setup::new().configure(rules).start();
    // sender:hush-hush
    let sender = "authorization: Basic c2VuZGVyOmh1c2gtaHVzaA==";
    let status =
        |method, path, headers: &[&str]| ask_with(&broker, method, path, headers, &Value::Null).0;
    for (method, path, of_sender) in [
        ("GET", "", 200),
        ("GET", "/orders", 200),
        ("PUT", "/orders", 401),
        ("DELETE", "/orders", 401),
    ] {
        assert_eq!(status(method, path, &[]), 401, "{method} {path}");
        assert_eq!(
            status(method, path, &[sender]),
            of_sender,
            "{method} {path}"
        );
    }
}

#[test]
fn a_subscription_is_made_with_all_of_its_rules_or_not_at_all() {
    let broker = Setup::new().start();
    let rules = |from: usize, to: usize| {
        let rule = |index| json!({"name": format!("r{index}"), "filter": {"sql": "n > 1"}});
        (from..to).map(rule).collect::<Vec<_>>()
    };
    let put = |path: &str, body| ask(&broker, "PUT", path, body);
    assert_eq!(put("/t", json!({"kind": "topic"})).0, 201);
    let full = put("/t/Subscriptions/full", json!({"rules": rules(0, 1_999)}));
    assert_eq!(full.0, 201);
    let path = "/t/Subscriptions/more";
    let (status, refused) = put(path, json!({"rules": rules(0, 2)}));
    let expected = json!({"error": "a topic can have 2000 SQL filters"});
    assert_eq!((status, refused), (409, expected));
    assert_eq!(ask(&broker, "GET", path, Value::Null).0, 404);
    let mut bad = rules(0, 2);
    bad[1]["filter"]["sql"] = "n >".into();
    assert_eq!(put(path, json!({"rules": bad})).0, 400);
    assert_eq!(ask(&broker, "GET", path, Value::Null).0, 404);
    assert_eq!(put(path, json!({"rules": rules(0, 1)})).0, 201);
}
