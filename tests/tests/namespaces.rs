//! Namespaces of configuration files: there from the start, and again after a restart.

use std::fs;

use access::Secret;
use broker::Wall;
use e2e::cli::railbus;
use e2e::{Broker, Setup, http};
use rustix::process::Signal;

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
