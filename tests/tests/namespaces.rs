//! Namespaces of configuration files: there from the start, and again after a restart.

use std::fs;

use access::Secret;
use amqp::{DeliveryState, Role};
use broker::Wall;
use e2e::cli::railbus;
use e2e::{Broker, Credentials, Peer, Setup, http};
use rustix::process::Signal;
use serde_json::{Value as Json, json};

const FILE: &str = r#"
[[namespaces]]
name = "shop"
hosts = ["shop.example.com"]
[[namespaces.queues]]
name = "baskets"
"#;

/// The status of a queue, for a client that has connected to a host.
fn status(broker: &Broker, host: &str, queue: &str) -> String {
    let request = format!(
        "GET /$railbus/entities/{queue} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    );
    let answer = http::exchange(broker.address(), &request);
    let status = answer.split(' ').nth(1).expect("a status line");
    status.to_owned()
}

/// Which of the queues a host has.
fn check(broker: &Broker, host: &str, has: &[&str], has_not: &[&str]) {
    for queue in has {
        assert_eq!(status(broker, host, queue), "200", "{host} {queue}");
    }
    for queue in has_not {
        assert_eq!(status(broker, host, queue), "404", "{host} {queue}");
    }
}

#[test]
fn the_session_of_one_namespace_is_none_of_another() {
    let keys = "
[[auth.rules]]
name = 'owner'
primary-key = 'key-of-owner'
rights = ['manage']
[[namespaces]]
name = 'shop'
";
    let broker = Setup::new().configure(keys).start();
    // Basic with `owner` and its key.
    let sign_in = "POST /$railbus/session HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\
                   Authorization: Basic b3duZXI6a2V5LW9mLW93bmVy\r\nContent-Length: 0\r\n\
                   Connection: close\r\n\r\n";
    let answer = http::exchange(broker.address(), sign_in);
    let cookie = answer.split_once("railbus-session=").expect("a cookie").1;
    let cookie = cookie.split(';').next().expect("its value");
    for (host, expected) in [("localhost", "200"), ("shop.localhost", "401")] {
        let request = format!(
            "GET /$railbus/counts HTTP/1.1\r\nHost: {host}\r\nCookie: railbus-session={cookie}\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = http::exchange(broker.address(), &request);
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{host}: {answer}");
    }
}

#[test]
fn namespaces_of_a_file_are_there_from_the_start() {
    let setup = Setup::new().arguments(&["--entities", "shop.toml"]);
    let path = setup.directory().join("shop.toml");
    fs::write(&path, FILE).expect("the directory is ours");
    let broker = setup.start();
    for host in ["shop.localhost", "shop.example.com:5672"] {
        check(&broker, host, &["baskets"], &["orders"]);
    }
    check(&broker, "localhost", &["orders"], &["baskets"]);
    let said = railbus(&broker, &["namespace", "reset", "shop"]);
    assert_eq!(said.code, 0, "{}", said.err);
    check(&broker, "shop.localhost", &["baskets"], &[]);
    assert!(broker.stop().success());

    let file = FILE.replace("shop.example.com", "other.example.com");
    let file = file.replace("baskets", "orders");
    fs::write(&path, &file).expect("the directory is ours");
    let broker = setup.start();
    check(&broker, "other.example.com", &["baskets", "orders"], &[]);
    // Now it is the name of another host, as one that leads a browser to this one.
    assert_eq!(status(&broker, "shop.example.com", "orders"), "400");
    let said = railbus(&broker, &["namespace", "reset", "shop"]);
    assert_eq!(said.code, 0, "{}", said.err);
    check(&broker, "shop.localhost", &["orders"], &["baskets"]);

    fs::write(&path, FILE).expect("the directory is ours");
    broker.signal(Signal::HUP);
    broker.wait_for_log("namespaces cannot change while the broker runs");
}

#[test]
fn a_virtual_host_is_the_namespace_of_its_name() {
    let setup = Setup::new().arguments(&["--entities", "shop.toml"]);
    fs::write(setup.directory().join("shop.toml"), FILE).expect("the directory is ours");
    let broker = setup.start();
    for (virtual_host, has, has_not) in [("shop", "baskets", "orders"), ("/", "orders", "baskets")]
    {
        let mut peer = Peer::in_virtual_host(broker.address(), virtual_host);
        assert!(peer.try_open(), "{virtual_host}");
        let sender = peer.sender(&format!("/queues/{has}"));
        let sent = peer.send(sender, b"message");
        assert_eq!(sent, DeliveryState::Accepted, "{virtual_host}");
        let error = peer.refused(Role::Sender, &format!("/queues/{has_not}"));
        assert_eq!(error.condition.as_str(), "amqp:not-found", "{virtual_host}");
    }
    for unknown in ["Shop", "none", "%2F", ""] {
        let mut peer = Peer::in_virtual_host(broker.address(), unknown);
        let error = peer.closed().expect("an error");
        assert_eq!(error.condition.as_str(), "amqp:not-allowed", "{unknown}");
    }
}

#[test]
fn what_a_namespace_has_is_below_its_name_for_those_who_manage_the_default_one() {
    let setup = Setup::new().arguments(&["--entities", "shop.toml"]);
    fs::write(setup.directory().join("shop.toml"), FILE).expect("the directory is ours");
    let broker = setup.start();
    let ask = |host: &str, request: &str| {
        let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        http::exchange(broker.address(), &request)
    };
    let own = "/$railbus/namespaces/shop";
    for path in [
        "entities/baskets",
        "counts",
        "overview",
        "entities/baskets/messages",
    ] {
        let answer = ask("localhost", &format!("GET {own}/{path}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(!answer.contains("orders"), "{path}: {answer}");
    }
    let answer = ask("localhost", &format!("GET {own}/counts"));
    assert!(answer.contains("\"path\":\"baskets\""), "{answer}");
    let answer = ask("localhost", &format!("GET {own}/counts?path=Baskets"));
    assert!(answer.contains("\"total\":1"), "{answer}");
    let answer = ask("localhost", &format!("GET {own}/counts?path=orders"));
    assert!(answer.contains("\"total\":0"), "{answer}");
    // A token for a path of the default namespace is none for that of another.
    let tokens = [
        ("/$railbus/entities/baskets", "401"),
        ("/$railbus/namespaces/shop", "200"),
    ];
    for (path, status) in tokens {
        let key = Secret::new("SAS_KEY_VALUE".to_owned());
        let resource = format!("http://localhost{path}");
        let name = "RootManageSharedAccessKey";
        let token = access::sign(&resource, name, &key, Wall(4_000_000_000_000));
        let request = format!(
            "GET {own}/entities/baskets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: {token}\r\n\r\n"
        );
        let answer = http::exchange(broker.address(), &request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let answer = ask("localhost", &format!("DELETE {own}/entities/baskets"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    check(&broker, "shop.localhost", &[], &["baskets"]);
    broker.wait_for_log("DELETE /$railbus/namespaces/shop/entities/baskets");

    let answer = ask("localhost", "GET /$railbus/namespaces/nowhere/counts");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let answer = ask("shop.localhost", &format!("GET {own}/counts"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let others = "GET /$railbus/namespaces/default/entities/orders";
    let answer = ask("shop.localhost", others);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn an_emulators_file_may_have_several_namespaces() {
    let setup = Setup::new().arguments(&["--entities", "Config.json"]);
    let text = r#"{"UserConfig": {"Namespaces": [
        {"Name": "sbemulatorns", "Queues": [{"Name": "a"}]},
        {"Name": "Second", "Queues": [{"Name": "b"}]}]}}"#;
    fs::write(setup.directory().join("Config.json"), text).expect("the directory is ours");
    let broker = setup.start();
    check(&broker, "localhost", &["a"], &["b"]);
    check(&broker, "second.localhost", &["b"], &["a"]);
}

/// What a request about namespaces is answered.
fn ask(broker: &Broker, method: &str, path: &str, body: &Json) -> (u16, String) {
    let path = format!("/$railbus/namespaces{path}");
    http::request(broker.address(), method, &path, &[], &body.to_string())
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let broker = Setup::new().start();
    let shown = |broker: &Broker| {
        ["", "/default/snapshots", "/default/faults"]
            .map(|path| ask(broker, "GET", path, &json!(null)))
    };
    let before = shown(&broker);
    let fault = |effect| json!({"name": "f", "effect": effect});
    for (method, path, body, status, text) in [
        ("PUT", "/a%2Fb", json!({}), 400, "a name has 1 to 63"),
        (
            "POST",
            "/default/restore",
            json!({"snapshot": "gone"}),
            404,
            "no snapshot 'gone'",
        ),
        (
            "POST",
            "/default/fork",
            json!({"name": "b", "snapshot": "gone"}),
            404,
            "no snapshot 'gone'",
        ),
        (
            "POST",
            "/default/faults",
            fault("explode"),
            400,
            "unknown variant `explode`",
        ),
        (
            "PUT",
            "/default/faults",
            json!({"faults": [fault("explode")]}),
            400,
            "explode",
        ),
    ] {
        let (found, answer) = ask(&broker, method, path, &body);
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
        assert!(answer.contains(text), "{method} {path} {body}: {answer}");
    }
    assert_eq!(shown(&broker), before);
}

#[test]
fn without_room_on_the_disk_no_namespace_is_forked() {
    // More than any disk has, so it is nearly full.
    let setup = Setup::new().configure("[limits]\nreserve-bytes = '1EiB'");
    let broker = setup.start();
    let before = ask(&broker, "GET", "", &json!(null));
    for (path, body) in [
        ("/default/fork", json!({"name": "copy"})),
        ("/default/snapshots", json!({"name": "base"})),
    ] {
        let (status, answer) = ask(&broker, "POST", path, &body);
        assert_eq!(status, 507, "{path}: {answer}");
        assert!(answer.contains("the disk is nearly full"), "{answer}");
    }
    assert_eq!(ask(&broker, "GET", "", &json!(null)), before);
    let said = railbus(&broker, &["namespace", "fork", "default", "copy"]);
    assert_ne!(said.code, 0);
    assert!(said.err.contains("the disk is nearly full"), "{}", said.err);
}

/// Makes all that there can be. (docs/namespaces.md#limits)
#[test]
fn the_namespace_after_ten_thousand_is_refused() {
    let broker = Setup::new().arguments(&["--ephemeral"]).start();
    let mut made = 0;
    let (status, answer) = loop {
        let answer = ask(&broker, "PUT", &format!("/n{made}"), &json!({}));
        match answer {
            (201, _) => made += 1,
            refused => break refused,
        }
    };
    assert_eq!((made, status), (10_000, 409), "{answer}");
    assert!(answer.contains("there can be 10000 namespaces"), "{answer}");
    let removed = ask(&broker, "DELETE", "/n7", &json!(null));
    assert_eq!(removed.0, 200, "{}", removed.1);
    let (status, answer) = ask(&broker, "PUT", "/one-more", &json!({}));
    assert_eq!(status, 201, "{answer}");
}

#[test]
fn the_beginning_of_an_audience_chooses_a_namespace() {
    let broker = Setup::new().start();
    let (status, answer) = ask(&broker, "PUT", "/team", &json!({}));
    assert_eq!(status, 201, "{answer}");
    let entity = "/team/entities/team/inbox";
    let (status, answer) = ask(&broker, "PUT", entity, &json!({}));
    assert_eq!(status, 201, "{answer}");
    // No other namespace may make up a key of that name, by which neither would be found.
    let keys = json!({"keys": [{"name": "b", "primary-key": "c2hvcnQgYnV0IGxvbmcgZW5vdWdo"}]});
    let (status, answer) = ask(&broker, "PUT", "/a", &keys);
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = ask(&broker, "PUT", "/b", &json!({}));
    assert_eq!(status, 409, "{answer}");
    let expected = "namespace 'b': namespace 'a' has a key of that name; name keys of its own";
    assert!(answer.contains(expected), "{answer}");
    let sign = |resource: &str| {
        let key = Secret::new("SAS_KEY_VALUE".to_owned());
        access::sign(
            resource,
            "RootManageSharedAccessKey",
            &key,
            Wall(4_000_000_000_000),
        )
    };
    for (resource, expected) in [("team/inbox", "200"), ("other/inbox", "401")] {
        let token = sign(&format!("http://localhost/{resource}"));
        let request = format!(
            "GET /team/inbox?api-version=2021-05 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: {token}\r\n\r\n"
        );
        let answer = http::exchange(broker.address(), &request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{resource}: {answer}"
        );
    }
}

#[test]
fn a_namespace_has_limits_of_its_own() {
    let broker = Setup::new().start();
    let create = [
        "namespace",
        "create",
        "small",
        "--max-entities",
        "1",
        "--max-connections",
        "1",
        "--max-bytes",
        "1KiB",
    ];
    let said = railbus(&broker, &create);
    assert_eq!(said.code, 0, "{}", said.err);
    for arguments in [&["namespace", "list"][..], &["namespace", "show", "small"]] {
        let said = railbus(&broker, arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("small"), "{arguments:?}: {}", said.out);
    }
    let (_, shown) = ask(&broker, "GET", "/small", &json!(null));
    let shown: Json = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["max-entities"], 1);
    assert_eq!(shown["max-connections"], 1);
    assert_eq!(shown["max-bytes"], 1024);
    let make = |queue: &str| {
        let request = format!(
            "PUT /$railbus/entities/{queue} HTTP/1.1\r\nHost: small.localhost\r\n\
             Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        http::exchange(broker.address(), &request)
    };
    let made = make("orders");
    assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
    let explain = ["explain", "orders", "--namespace", "small"];
    let said = railbus(&broker, &explain);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("empty: "), "{}", said.out);
    let said = railbus(&broker, &["explain", "nix", "--namespace", "small"]);
    assert!(said.err.contains("404"), "{}", said.err);
    let refused = make("more");
    assert!(!refused.starts_with("HTTP/1.1 2"), "{refused}");
    assert!(
        refused.contains("there can be 1 queues and topics"),
        "{refused}"
    );

    let keys = json!({"keys": [{"name": "app", "primary-key": "c2hvcnQgYnV0IGxvbmcgZW5vdWdo"}]});
    let (status, answer) = ask(&broker, "PUT", "/small", &keys);
    assert_eq!(status, 200, "{answer}");
    let app = || Credentials {
        rule: "app",
        key: "c2hvcnQgYnV0IGxvbmcgZW5vdWdo",
    };
    let mut first = Peer::begin(broker.address(), app());
    assert!(first.try_open());
    let mut second = Peer::begin(broker.address(), app());
    let error = second.closed().expect("it says why");
    assert_eq!(error.condition.as_str(), "amqp:resource-limit-exceeded");
    let text = error.description.unwrap_or_default();
    assert!(text.contains("the maximum of 1 connections"), "{text}");
    // Connections of other namespaces do not count, and a place is free again in the end.
    let mut other = Peer::connect(broker.address());
    let sender = other.sender("orders");
    assert_eq!(other.send(sender, b"x"), DeliveryState::Accepted);
    let sender = first.sender("orders");
    assert_eq!(first.send(sender, b"x"), DeliveryState::Accepted);
    let DeliveryState::Rejected(refused) = first.send(sender, &[0; 1024]) else {
        panic!("there is no room for it");
    };
    let refused = refused.expect("it says why");
    assert_eq!(
        refused.condition.as_str(),
        "amqp:resource-limit-exceeded",
        "{refused:?}"
    );
    let text = refused.description.unwrap_or_default();
    assert!(text.contains("and 1024 are allowed"), "{text}");
    let (status, answer) = ask(&broker, "PUT", "/small", &json!({"max-connections": null}));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"max-connections\":null"), "{answer}");
    assert!(Peer::begin(broker.address(), app()).try_open());
    let (status, answer) = ask(&broker, "PUT", "/small", &json!({"max-entities": 0}));
    assert_eq!(status, 400, "{answer}");
}

#[test]
fn a_key_of_the_default_namespace_alone_makes_an_entity_that_begins_like_another_namespace() {
    let rule = "[[auth.rules]]\nname = 'owner'\nprimary-key = 'key-of-owner'\nrights = ['manage']\n\
                [[namespaces]]\nname = 'shop'";
    let broker = Setup::new().configure(rule).start();
    let key = Secret::new("key-of-owner".to_owned());
    let resource = "http://localhost/shop/eu";
    let token = access::sign(resource, "owner", &key, Wall(4_000_000_000_000));
    let header = format!("Authorization: {token}");
    let get = "/shop/eu?api-version=2021-05";
    let (status, answer) = http::request(broker.address(), "GET", get, &[&header], "");
    // As of every entity that is not there, and no refusal. (docs/spec/admin.md#6)
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("Publicly Listed Services"), "{answer}");
}
