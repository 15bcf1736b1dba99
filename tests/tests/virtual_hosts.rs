//! RabbitMQ's HTTP interface by virtual host, each of which is a namespace.

use amqp::DeliveryState;
use e2e::http::{rabbitmq as api, rabbitmq_as as api_as};
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value, json};

const NONE: Value = Value::Null;
/// A key of a namespace, and how a client shows it.
const OWN_KEY: &str = r#"{"keys": [{"name": "shared", "primary-key": "k7f31c0a95d2"}]}"#;
const SHARED: &str = "Authorization: Basic c2hhcmVkOms3ZjMxYzBhOTVkMg==";

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

#[test]
fn an_overview_is_of_all_virtual_hosts_of_the_client() {
    let broker = broker();
    let count = |overview: &Value, kind: &str| overview["object_totals"][kind].as_u64().unwrap();
    let before = check(&broker, "GET", "overview", &NONE, 200);
    for vhost in ["shop", "%2F"] {
        for path in ["queues", "exchanges"] {
            let path = format!("{path}/{vhost}/of-test");
            check(&broker, "PUT", &path, &json!({}), 201);
        }
    }
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("of-test");
    for _ in 0..3 {
        assert_eq!(peer.send(sender, b"a"), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("of-test", 1);
    drop(peer.receive(receiver));
    let overview = check(&broker, "GET", "overview", &NONE, 200);
    let totals = json!({"messages": 3, "messages_ready": 2, "messages_unacknowledged": 1});
    assert_eq!(overview["queue_totals"], totals);
    for kind in ["queues", "exchanges"] {
        assert_eq!(count(&overview, kind), count(&before, kind) + 2, "{kind}");
    }
    assert_eq!(count(&overview, "consumers"), 1);
    // That of the request is one too.
    assert!(count(&overview, "connections") >= 2, "{overview}");
    assert_eq!(count(&overview, "channels"), 0);
    assert_eq!(overview["rabbitmq_version"], "4.3.0");
}

#[test]
fn virtual_hosts_are_made_and_deleted() {
    let broker = broker();
    let made = check(&broker, "PUT", "vhosts/new", &NONE, 201);
    let connection = made["connection-string"].as_str().expect("a text");
    assert!(
        connection.contains("SharedAccessKeyName=new;"),
        "{connection}"
    );
    let tags = json!({"description": "x", "tags": [], "default_queue_type": "classic"});
    check(&broker, "PUT", "vhosts/new", &tags, 204);
    check(&broker, "PUT", "queues/new/q", &json!({}), 201);
    let (_, shown) = http::get(broker.address(), "/$railbus/namespaces/new");
    assert!(shown.contains("\"keys\":[\"new\"]"), "{shown}");
    check(&broker, "DELETE", "vhosts/new", &NONE, 204);
    check(&broker, "GET", "queues/new/q", &NONE, 404);
    check(&broker, "DELETE", "vhosts/new", &NONE, 404);
    for name in ["%2F", "default"] {
        check(&broker, "PUT", &format!("vhosts/{name}"), &NONE, 204);
        let refused = check(&broker, "DELETE", &format!("vhosts/{name}"), &NONE, 400);
        let reason = "the default namespace cannot be deleted; reset it";
        assert_eq!(refused["reason"], reason);
    }
    let quorum = json!({"default_queue_type": "quorum"});
    check(&broker, "PUT", "vhosts/quorum", &quorum, 400);
    check(&broker, "PUT", "vhosts/Not_A_Name", &NONE, 400);
}

#[test]
fn a_key_of_a_virtual_host_makes_and_deletes_none() {
    let broker = Setup::new().start();
    make(&broker, "one", OWN_KEY);
    for (method, path) in [
        ("PUT", "vhosts/two"),
        ("DELETE", "vhosts/one"),
        ("PUT", "vhosts/one"),
    ] {
        let (status, answer) = api_as(&broker, method, path, &[SHARED], &NONE);
        assert_eq!(status, 401, "{method} {path}: {answer}");
        assert_eq!(answer["error"], "not_authorised");
    }
}

#[test]
fn an_import_makes_the_virtual_hosts_of_its_file() {
    let broker = broker();
    let file = json!({
        "users": [{"name": "u"}],
        "vhosts": [
            {"name": "/"}, {"name": "shop"},
            {"name": "second", "metadata": {"default_queue_type": "quorum"}},
        ],
        "permissions": [{"user": "u", "vhost": "second"}],
        "exchanges": [{"name": "x", "vhost": "second", "type": "topic"}],
        "queues": [{"name": "q", "vhost": "second", "durable": true}],
        "bindings": [
            {"source": "x", "vhost": "second", "destination": "q", "destination_type": "queue"},
            {"source": "amq.topic", "vhost": "second", "destination": "x", "destination_type": "exchange"},
        ],
    });
    check(&broker, "POST", "definitions", &file, 204);
    check(&broker, "POST", "definitions", &file, 204);
    check(&broker, "GET", "queues/second/q", &NONE, 200);
    let bindings = check(&broker, "GET", "bindings/second/e/x/q/q", &NONE, 200);
    assert_eq!(bindings.as_array().map(Vec::len), Some(1));
    let wrong = json!({"vhosts": [{"name": "third"}, {"name": "Not_A_Name"}]});
    check(&broker, "POST", "definitions", &wrong, 400);
    check(&broker, "GET", "vhosts/third", &NONE, 404);
}

#[test]
fn an_import_that_cannot_be_makes_nothing() {
    let broker = broker();
    check(&broker, "PUT", "queues/shop/there", &json!({}), 201);
    check(&broker, "PUT", "exchanges/shop/direct", &json!({}), 201);
    let queue = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let binding = |source: &str, kind: &str, destination: &str| json!({"source": source, "destination": destination, "destination_type": kind});
    for (kind, entry, status, reason) in [
        (
            "queues",
            queue("s", json!({"x-queue-type": "stream"})),
            400,
            "unsupported queue type 'stream'",
        ),
        (
            "queues",
            queue("there", json!({"x-expires": 5})),
            400,
            "inequivalent arg 'x-expires' for queue 'there' in vhost 'shop'",
        ),
        (
            "exchanges",
            json!({"name": "direct", "type": "topic"}),
            400,
            "inequivalent arg 'type' for exchange 'direct' in vhost 'shop'",
        ),
        (
            "exchanges",
            json!({"name": "amq.mine", "type": "topic"}),
            401,
            "amq.mine",
        ),
        (
            "bindings",
            binding("none", "queue", "ok"),
            400,
            "no exchange 'none' in vhost 'shop'",
        ),
        (
            "bindings",
            binding("direct", "queue", "none"),
            400,
            "no queue 'none' in vhost 'shop'",
        ),
        (
            "bindings",
            binding("direct", "exchange", "none"),
            400,
            "no exchange 'none' in vhost 'shop'",
        ),
    ] {
        let mut file = json!({
            "queues": [{"name": "ok"}], "exchanges": [{"name": "ok"}], "bindings": [
                binding("ok", "queue", "ok"), binding("direct", "queue", "there"),
            ],
        });
        let list = file[kind].as_array_mut().expect("a list");
        list.push(entry);
        let refused = check(&broker, "POST", "definitions/shop", &file, status);
        let said = refused["reason"].as_str().expect("a text");
        assert!(said.contains(reason), "{reason}: {refused}");
        check(&broker, "GET", "queues/shop/ok", &NONE, 404);
        check(&broker, "GET", "exchanges/shop/ok", &NONE, 404);
    }
}

#[test]
fn a_path_chooses_between_namespaces_that_have_a_key() {
    let broker = Setup::new().start();
    for namespace in ["one", "two"] {
        make(&broker, namespace, OWN_KEY);
        let path = format!("queues/{namespace}/q");
        let (status, answer) = api_as(&broker, "PUT", &path, &[SHARED], &json!({}));
        assert_eq!(status, 201, "{path}: {answer}");
    }
    make(&broker, "three", "{}");
    let read = |path: &str| api_as(&broker, "GET", path, &[SHARED], &NONE);
    assert_eq!(read("queues/one").0, 200);
    assert_eq!(read("queues/three").0, 401);
    assert_eq!(read("queues/none").0, 401);
    for path in ["queues", "queues/%2F"] {
        let (status, answer) = read(path);
        assert_eq!((status, &answer["error"]), (400, &json!("bad_request")));
        let reason = answer["reason"].as_str().expect("a text");
        assert!(reason.contains("more than one namespace"), "{answer}");
    }
}

#[test]
fn a_new_binding_is_found_at_its_location() {
    let broker = broker();
    check(&broker, "PUT", "queues/shop/q.1", &json!({}), 201);
    for (body, location) in [
        (json!({}), "q.1/~"),
        (json!({"routing_key": "a/b"}), "q.1/a%252Fb"),
    ] {
        let request = |method: &str, path: &str| {
            let body = body.to_string();
            let request = format!(
                "{method} /api/bindings/shop/e/amq.topic/q/{path} HTTP/1.1\r\nHost: localhost\r\n\
                 Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            http::exchange(broker.address(), &request)
        };
        let answer = request("POST", "q.1");
        assert!(
            answer.contains(&format!("location: {location}\r\n")),
            "{answer}"
        );
        assert!(request("DELETE", location).starts_with("HTTP/1.1 204"));
    }
}
