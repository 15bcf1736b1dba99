//! RabbitMQ's HTTP interface by virtual host, each of which is a namespace.

use e2e::http::{rabbitmq as api, rabbitmq_as as api_as};
use e2e::{Broker, Setup, http};
use serde_json::{Value, json};

const NONE: Value = Value::Null;

/// A broker with the namespace `shop` besides its own.
fn broker() -> Broker {
    let broker = Setup::new().start();
    make(&broker, "shop", "{}");
    broker
}

fn make(broker: &Broker, namespace: &str, definition: &str) {
    let path = format!("/$railbus/namespaces/{namespace}");
    let (status, answer) = http::request(broker.address(), "PUT", &path, &[], definition);
    assert_eq!(status, 201, "{answer}");
}

fn check(broker: &Broker, method: &str, path: &str, body: &Value, status: u16) -> Value {
    let (answered, answer) = api(broker, method, path, body);
    assert_eq!(answered, status, "{method} {path}: {answer}");
    answer
}

/// Each entry of a list by its virtual host and its name, if it has that name.
fn found(list: &Value, name: &str) -> Vec<String> {
    let entries = list.as_array().expect("a list").iter();
    let named = entries.filter(|entry| entry["name"] == name);
    named
        .map(|entry| entry["vhost"].as_str().expect("a text").to_owned())
        .collect()
}

#[test]
fn a_virtual_host_has_what_its_namespace_has() {
    let broker = broker();
    for vhost in ["shop", "%2F"] {
        let path = |kind: &str, name: &str| format!("{kind}/{vhost}/{name}");
        check(&broker, "PUT", &path("queues", "q"), &json!({}), 201);
        check(&broker, "PUT", &path("queues", "q"), &json!({}), 204);
        check(&broker, "PUT", &path("exchanges", "x"), &json!({}), 201);
        let binding = path("bindings", "e/x/q/q");
        check(&broker, "POST", &binding, &json!({}), 201);
        let policy = json!({"pattern": "", "definition": {"max-length": 5}});
        check(&broker, "PUT", &path("policies", "p"), &policy, 201);
        check(
            &broker,
            "PUT",
            &path("operator-policies", "o"),
            &policy,
            201,
        );
    }
    for (kind, name) in [
        ("queues", "q"),
        ("exchanges", "x"),
        ("policies", "p"),
        ("operator-policies", "o"),
    ] {
        for (path, expected) in [
            ("", &["/", "shop"][..]),
            ("/%2f", &["/"]),
            ("/shop", &["shop"]),
            ("/default", &["default"]),
        ] {
            let list = check(&broker, "GET", &format!("{kind}{path}"), &NONE, 200);
            assert_eq!(found(&list, name), expected, "{kind}{path}");
        }
        let path = format!("{kind}/shop/{name}");
        let shown = check(&broker, "GET", &path, &NONE, 200);
        assert_eq!(shown["vhost"], "shop", "{path}");
        check(&broker, "DELETE", &path, &NONE, 204);
        check(&broker, "GET", &path, &NONE, 404);
        check(&broker, "GET", &format!("{kind}/%2F/{name}"), &NONE, 200);
    }
    let left = check(&broker, "GET", "bindings/shop", &NONE, 200);
    assert_eq!(left, json!([]));
}

#[test]
fn texts_name_the_virtual_host() {
    let broker = broker();
    check(&broker, "PUT", "queues/shop/q", &json!({}), 201);
    check(&broker, "PUT", "exchanges/shop/x", &json!({}), 201);
    let expires = json!({"arguments": {"x-expires": 5}});
    let topic = json!({"type": "topic"});
    for (method, path, body, status, reason) in [
        (
            "PUT",
            "queues/shop/q",
            &expires,
            400,
            "inequivalent arg 'x-expires' for queue 'q' in vhost 'shop': received the value '5' of \
             type 'long' but current is none",
        ),
        (
            "PUT",
            "exchanges/shop/x",
            &topic,
            400,
            "inequivalent arg 'type' for exchange 'x' in vhost 'shop': received 'topic' but \
             current is 'direct'",
        ),
        (
            "POST",
            "bindings/shop/e/x/q/none",
            &json!({}),
            404,
            "no queue 'none' in vhost 'shop'",
        ),
        ("GET", "queues/none", &NONE, 404, "vhost_not_found"),
        ("PUT", "queues/Shop/q", &json!({}), 404, "vhost_not_found"),
        ("GET", "definitions/none", &NONE, 404, "vhost_not_found"),
    ] {
        let answer = check(&broker, method, path, body, status);
        assert_eq!(answer["reason"], reason, "{method} {path}");
    }
}

#[test]
fn virtual_hosts_are_listed() {
    let broker = broker();
    let names = |list: &Value| -> Vec<Value> {
        let list = list.as_array().expect("a list").iter();
        list.map(|it| it["name"].clone()).collect()
    };
    let all = check(&broker, "GET", "vhosts", &NONE, 200);
    assert_eq!(names(&all), ["/", "shop"]);
    let shown = check(&broker, "GET", "vhosts/shop", &NONE, 200);
    assert_eq!(shown, all[1]);
    let missing = check(&broker, "GET", "vhosts/none", &NONE, 404);
    assert_eq!(missing["error"], "Object Not Found");
}

#[test]
fn definitions_are_of_one_virtual_host_or_of_all() {
    let broker = broker();
    check(&broker, "PUT", "queues/shop/q", &json!({}), 201);
    let cap = json!({"pattern": "", "definition": {"expires": 5000}});
    check(&broker, "PUT", "operator-policies/shop/cap", &cap, 201);
    let of_shop = check(&broker, "GET", "definitions/shop", &NONE, 200);
    assert_eq!(of_shop["queues"][0]["name"], "q");
    assert!(of_shop["queues"][0].get("vhost").is_none(), "{of_shop}");
    assert!(of_shop.get("vhosts").is_none(), "{of_shop}");
    make(&broker, "copy", "{}");
    check(&broker, "POST", "definitions/copy", &of_shop, 204);
    let copied = check(&broker, "GET", "definitions/copy", &NONE, 200);
    assert_eq!(copied, of_shop);

    let all = check(&broker, "GET", "definitions", &NONE, 200);
    let named = json!([{"name": "/"}, {"name": "copy"}, {"name": "shop"}]);
    assert_eq!(all["vhosts"], named);
    assert_eq!(found(&all["queues"], "q"), ["copy", "shop"]);
    assert_eq!(found(&all["parameters"], "cap"), ["copy", "shop"]);
    check(&broker, "DELETE", "queues/shop/q", &NONE, 204);
    check(&broker, "POST", "definitions", &all, 204);
    check(&broker, "GET", "queues/shop/q", &NONE, 200);
    check(&broker, "GET", "queues/%2F/q", &NONE, 404);

    let unknown = json!({"queues": [{"name": "z"}, {"name": "z", "vhost": "none"}]});
    let answer = check(&broker, "POST", "definitions", &unknown, 400);
    assert_eq!(answer["reason"], "there is no vhost 'none'");
    check(&broker, "GET", "queues/%2F/z", &NONE, 404);
    check(&broker, "POST", "definitions/none", &json!({}), 404);
}

#[test]
fn a_client_of_a_namespace_has_no_other_one() {
    let broker = broker();
    let key = r#"{"keys": [{"name": "RootManageSharedAccessKey", "primary-key": "key-of-other"}]}"#;
    make(&broker, "other", key);
    check(&broker, "PUT", "queues/other/q", &json!({}), 201);
    let right = "Authorization: Basic Um9vdE1hbmFnZVNoYXJlZEFjY2Vzc0tleTprZXktb2Ytb3RoZXI=";
    let wrong = "Authorization: Basic Um9vdE1hbmFnZVNoYXJlZEFjY2Vzc0tleTp3cm9uZw==";
    for (header, path, expected) in [
        // A key of the default namespace has that name, so the path alone says whose key it is.
        (right, "queues/other/q", 200),
        (right, "queues/shop", 401),
        (right, "queues/%2F", 401),
        (right, "queues", 401),
        (wrong, "queues/other/q", 401),
    ] {
        let (status, answer) = api_as(&broker, "GET", path, &[header], &NONE);
        assert_eq!(status, expected, "{path}: {answer}");
    }
    let of_other = |path: &str| {
        let request = format!(
            "GET /api/{path} HTTP/1.1\r\nHost: other.localhost\r\nConnection: close\r\n\
             {right}\r\n\r\n"
        );
        let answer = http::exchange(broker.address(), &request);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").to_owned();
        (status, serde_json::from_str::<Value>(body).expect("JSON"))
    };
    let (_, vhosts) = of_other("vhosts");
    assert_eq!(vhosts[0]["name"], "/");
    assert_eq!(vhosts.as_array().map(Vec::len), Some(1));
    for (path, vhost) in [
        ("queues", "/"),
        ("queues/%2F", "/"),
        ("queues/other", "other"),
    ] {
        let (_, list) = of_other(path);
        assert_eq!(found(&list, "q"), [vhost], "{path}");
    }
    for path in ["queues/shop", "queues/default"] {
        let (status, answer) = of_other(path);
        assert_eq!(
            (&*status, &answer["reason"]),
            ("404", &json!("vhost_not_found"))
        );
    }
}

#[test]
fn lists_are_answered_by_page() {
    let broker = broker();
    for (vhost, name) in [("%2F", "a1"), ("shop", "a1"), ("shop", "a2"), ("shop", "b")] {
        let path = format!("queues/{vhost}/{name}");
        check(&broker, "PUT", &path, &json!({}), 201);
    }
    for (path, items, pages) in [
        ("queues?page=1&name=A1", 2, 1),
        ("queues/shop?page=2&page_size=2", 1, 2),
        ("exchanges/%2F?page=1&page_size=1", 1, 6),
        ("vhosts?page=1&page_size=1", 1, 2),
    ] {
        let page = check(&broker, "GET", path, &NONE, 200);
        assert_eq!(
            page["items"].as_array().map(Vec::len),
            Some(items),
            "{page}"
        );
        assert_eq!(page["page_count"], pages, "{path}: {page}");
    }
    let answer = check(&broker, "GET", "queues?page=1&page_size=501", &NONE, 400);
    assert_eq!(answer["error"], "invalid_pagination_parameters");
}
