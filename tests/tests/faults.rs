//! Faults on purpose: each effect as a client of the real process sees it.

use std::io::{Read, Write};
use std::net::TcpStream;

use access::Secret;
use amqp::{DeliveryState, Error, Role};
use broker::Wall;
use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value as Json, json};

const FAULTS: &str = "/$railbus/namespaces/default/faults";

fn ask(broker: &Broker, method: &str, path: &str, body: &Json) -> (u16, String) {
    http::request(broker.address(), method, path, &[], &body.to_string())
}

/// One rule for the first operation that fits.
fn inject(broker: &Broker, effect: &Json, mut matches: Json) {
    matches["times"] = 1.into();
    let rule = json!({"name": "a rule", "match": matches, "effect": effect});
    let (status, text) = ask(broker, "PUT", FAULTS, &json!({"faults": [rule]}));
    assert_eq!(status, 200, "{text}");
}

fn advance(broker: &Broker, by: &str) {
    let (status, text) = ask(broker, "POST", "/$railbus/clock", &json!({"advance": by}));
    assert_eq!(status, 200, "{text}");
}

fn condition(error: Option<Error>) -> String {
    error.expect("it says why").condition.to_string()
}

fn check_accepted(broker: &Broker) {
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"again"), DeliveryState::Accepted);
}

#[test]
fn a_link_is_detached_and_a_connection_is_closed_with_the_named_condition() {
    let broker = Setup::new().start();
    let send = || json!({"operations": ["send"]});
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    inject(&broker, &json!({"detach": "server-busy"}), send());
    let _ = peer.send_only(sender, b"lost");
    assert_eq!(
        condition(peer.detached(sender)),
        "com.microsoft:server-busy"
    );

    // The session goes with its link.
    let sender = peer.sender("orders");
    inject(&broker, &json!({"end": "internal-error"}), send());
    let _ = peer.send_only(sender, b"lost");
    assert_eq!(condition(peer.detached(sender)), "amqp:internal-error");

    let sender = peer.sender("orders");
    inject(&broker, &json!({"close": "connection-forced"}), send());
    let _ = peer.send_only(sender, b"lost");
    assert_eq!(condition(peer.closed()), "amqp:connection:forced");
    check_accepted(&broker);
}

#[test]
fn an_expired_token_has_the_link_detached_for_renewal() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    inject(
        &broker,
        &json!("expire-token"),
        json!({"operations": ["send"]}),
    );
    let _ = peer.send_only(sender, b"lost");
    let error = peer.detached(sender).expect("it says why");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    let text = error.description.expect("it says why");
    assert!(text.contains("Code: RenewToken"), "{text}");
}

#[test]
fn credit_is_withheld_for_its_time() {
    let broker = Setup::new().arguments(&["--virtual-clock"]).start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    inject(&broker, &json!({"withhold-credit-ms": 60_000}), json!({}));
    assert_eq!(peer.send(sender, b"first"), DeliveryState::Accepted);
    peer.wait_for_send_credit(sender, false);
    advance(&broker, "PT1M");
    peer.wait_for_send_credit(sender, true);
    assert_eq!(peer.send(sender, b"second"), DeliveryState::Accepted);
}

#[test]
fn a_throttle_lets_sends_through_by_the_virtual_clock() {
    let broker = Setup::new().arguments(&["--virtual-clock"]).start();
    let matches = json!({"operations": ["send"]});
    let rule = json!({"name": "slow", "match": matches, "effect": {"throttle-per-second": 1}});
    let (status, text) = ask(&broker, "POST", FAULTS, &rule);
    assert_eq!(status, 200, "{text}");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let sent: Vec<_> = (0..3).map(|_| peer.send_only(sender, b"m")).collect();
    assert_eq!(peer.outcome(sent[0]), DeliveryState::Accepted);
    for later in &sent[1..] {
        advance(&broker, "PT1S");
        assert_eq!(peer.outcome(*later), DeliveryState::Accepted);
    }
}

#[test]
fn a_rule_for_a_client_or_a_key_leaves_the_others_alone() {
    let broker = Setup::new().start();
    let refuse = json!({"refuse": "quota-exceeded"});
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for (matches, fits) in [
        (json!({"client": "e2e"}), true),
        (json!({"client": "other"}), false),
        (json!({"key": "RootManageSharedAccessKey"}), true),
        (json!({"key": "other"}), false),
    ] {
        inject(&broker, &refuse, matches.clone());
        let is_refused = peer.send(sender, b"m") != DeliveryState::Accepted;
        assert_eq!(is_refused, fits, "{matches}");
    }
}

#[test]
fn a_rule_for_a_key_is_for_what_is_asked_over_http_too() {
    let broker = Setup::new().start();
    let name = "RootManageSharedAccessKey";
    let key = Secret::new("SAS_KEY_VALUE".to_owned());
    let token = access::sign("http://localhost/", name, &key, Wall(4_000_000_000_000));
    let header = format!("Authorization: {token}");
    let create = |queue: &str, headers: &[&str]| {
        let path = format!("/$railbus/entities/{queue}");
        http::request(broker.address(), "PUT", &path, headers, "{}").0
    };
    let busy = json!({"refuse": "server-busy"});
    let matches = |key: &str| json!({"key": key, "operations": ["create-entity"]});
    inject(&broker, &busy, matches("other"));
    assert_eq!(create("a", &[&header]), 201);
    inject(&broker, &busy, matches(name));
    assert_eq!(create("b", &[]), 201, "it shows no key");
    assert_eq!(create("c", &[&header]), 503);
    assert_eq!(create("c", &[&header]), 201, "once");
}

#[test]
fn a_rule_for_administration_is_answered_as_its_error() {
    let broker = Setup::new().start();
    inject(
        &broker,
        &json!({"refuse": "server-busy"}),
        json!({"operations": ["create-entity"], "entity": "new"}),
    );
    let said = railbus(&broker, &["queue", "create", "new"]);
    assert_ne!(said.code, 0);
    assert!(said.err.contains("the server is busy"), "{}", said.err);
    assert_eq!(railbus(&broker, &["queue", "create", "new"]).code, 0);
    let mut peer = Peer::connect(broker.address());
    assert!(peer.try_attach(Role::Sender, "new").is_ok());
}

/// The value of a metric without labels.
fn metric(broker: &Broker, name: &str) -> Option<String> {
    let (status, page) = http::get(broker.address(), "/metrics");
    assert_eq!(status, 200, "{page}");
    let mut lines = page.lines();
    lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(' ')?.to_owned()))
}

#[test]
fn the_command_adds_lists_and_clears_rules_and_metrics_count_them() {
    let broker = Setup::new().start();
    let fault = |arguments: &[&str]| {
        let all: Vec<_> = ["fault"].iter().chain(arguments).copied().collect();
        railbus(&broker, &all)
    };
    let rules = "railbus_fault_rules";
    let injected = "railbus_injected_faults_total";
    assert_eq!(metric(&broker, rules).as_deref(), Some("0"));
    let effect = r#"{"refuse":"server-busy"}"#;
    let matches = r#"{"operations":["send"],"times":1}"#;
    let added = fault(&["add", "busy", effect, "--match", matches]);
    assert_eq!(added.code, 0, "{}", added.err);
    assert_eq!(metric(&broker, rules).as_deref(), Some("1"));
    assert_eq!(metric(&broker, injected).as_deref(), Some("0"));
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_ne!(peer.send(sender, b"m"), DeliveryState::Accepted);
    assert_eq!(peer.send(sender, b"m"), DeliveryState::Accepted);
    assert_eq!(metric(&broker, injected).as_deref(), Some("1"));
    let listed = fault(&["list", "--json"]);
    let listed: Json = serde_json::from_str(&listed.out).expect("JSON");
    assert_eq!(listed[0]["name"], "busy");
    assert_eq!(
        (&listed[0]["matched"], &listed[0]["injected"]),
        (&2.into(), &1.into())
    );
    let refused = fault(&["add", "bad", "\"explode\""]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("explode"), "{}", refused.err);
    assert_eq!(fault(&["clear"]).code, 0);
    assert_eq!(metric(&broker, rules).as_deref(), Some("0"));
    assert_eq!(fault(&["list", "--json"]).out.trim(), "[]");
}

#[test]
fn a_rule_for_a_key_sees_the_session_of_a_browser() {
    let rule = "[[auth.rules]]\nname = 'owner'\nprimary-key = 'key-of-owner'\nrights = ['manage']";
    let broker = Setup::new().configure(rule).start();
    // Basic with `owner` and its key.
    let basic = "Authorization: Basic b3duZXI6a2V5LW9mLW93bmVy";
    let sign_in = format!(
        "POST /$railbus/session HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n{basic}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let answer = http::exchange(broker.address(), &sign_in);
    let cookie = answer.split_once("railbus-session=").expect("a cookie").1;
    let cookie = cookie.split(';').next().expect("its value");
    let cookie = format!("Cookie: railbus-session={cookie}");
    let get = || {
        http::request(
            broker.address(),
            "GET",
            "/$railbus/overview",
            &[&cookie],
            "",
        )
        .0
    };
    for (key, expected) in [("other", 200), ("anonymous", 200), ("owner", 503)] {
        let rule = json!({
            "name": "busy",
            "match": {"http": "GET /$railbus/overview", "key": key},
            "effect": {"refuse": "server-busy"},
        });
        let rules = json!({"faults": [rule]}).to_string();
        let put = http::request(broker.address(), "PUT", FAULTS, &[basic], &rules);
        assert_eq!(put.0, 200, "{}", put.1);
        assert_eq!(get(), expected, "{key}");
    }
}

#[test]
fn rules_of_railbus_toml_hold_from_the_start_and_again_after_a_restart() {
    let setup = Setup::new().configure(
        "[[faults]]\nname = 'busy'\nmatch = { operations = ['send'], times = 1 }\neffect = { refuse = 'server-busy' }",
    );
    for _ in 0..2 {
        let broker = setup.start();
        broker.wait_for_log("operations fail on purpose");
        let mut peer = Peer::connect(broker.address());
        let sender = peer.sender("orders");
        assert_ne!(peer.send(sender, b"m"), DeliveryState::Accepted);
        assert_eq!(peer.send(sender, b"m"), DeliveryState::Accepted);
        assert!(broker.stop().success());
        setup.forget_log();
    }
    let (_, text) = Setup::new()
        .configure("[[faults]]\nname = 'bad'\neffect = 'explode'")
        .refused();
    assert!(
        text.contains("faults[0].effect: unknown variant `explode`"),
        "{text}"
    );
}

/// What a request is answered; nothing if the connection ends without an answer.
fn raw(broker: &Broker, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(broker.address()).expect("it listens");
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    // A connection may be reset that has sent what was not read.
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn active_over_http(broker: &Broker) -> u64 {
    let (status, text) = http::request(
        broker.address(),
        "GET",
        "/$railbus/entities/orders",
        &[],
        "",
    );
    assert_eq!(status, 200, "{text}");
    let entity: Json = serde_json::from_str(&text).expect("the broker answers in JSON");
    let active = entity["state"]["active"].as_u64();
    active.expect("a queue has a count")
}

#[test]
fn an_http_request_is_refused_or_dropped_by_its_method_and_path() {
    let broker = Setup::new().start();
    let sends = || json!({"http": "post /{entity}/messages"});
    inject(&broker, &json!({"refuse": "server-busy"}), sends());
    assert!(raw(&broker, "GET /$railbus/overview", "").starts_with("HTTP/1.1 200 "));
    let refused = raw(&broker, "POST /orders/messages", "lost");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("<Code>503</Code>"), "{refused}");
    for (time, left) in [("before", 0), ("after", 1)] {
        inject(&broker, &json!({"disconnect": time}), sends());
        assert_eq!(raw(&broker, "POST /orders/messages", "x"), "", "{time}");
        assert_eq!(active_over_http(&broker), left, "{time}");
    }
    let sent = raw(&broker, "POST /orders/messages", "again");
    assert!(sent.starts_with("HTTP/1.1 201 "), "{sent}");

    // The broker's own interface has errors of its own; rules can be taken away whatever they say.
    inject(
        &broker,
        &json!({"refuse": "not-found"}),
        json!({"http": "* /**"}),
    );
    let refused = raw(&broker, "GET /%24railbus/overview", "");
    assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
    assert!(refused.contains("{\"error\":\"the entity is not found, as a fault rule says\"}"));
    assert_eq!(ask(&broker, "DELETE", FAULTS, &json!({})).0, 200);
    let bad = json!({"name": "a", "effect": "lose-lock", "match": {"http": "GET /"}});
    let (status, text) = ask(&broker, "POST", FAULTS, &bad);
    assert_eq!(status, 400);
    assert!(text.contains("the effect of a rule with http"), "{text}");
}
