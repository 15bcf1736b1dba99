//! Keys of single entities at the interface of the web console: what they sign in to, see and
//! change, and what they do not.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use e2e::{Broker, PATIENCE, Setup, http, secrets};
use serde_json::{Value as Json, json};

const RULES: &str = "
[[auth.rules]]
name = 'owner'
primary-key = 'key-of-owner'
rights = ['send', 'listen', 'manage']

[[auth.rules]]
name = 'listener'
primary-key = 'key-of-listener'
rights = ['listen']
entity = 'orders'

[[auth.rules]]
name = 'sender'
primary-key = 'key-of-sender'
rights = ['send']
entity = 'orders'

[[auth.rules]]
name = 'manager'
primary-key = 'key-of-manager'
rights = ['send', 'listen', 'manage']
entity = 'events'

[[auth.rules]]
name = 'nowhere'
primary-key = 'key-of-nowhere'
rights = ['send', 'listen', 'manage']
entity = 'nothing'

[[topics]]
name = 'events'
[[topics.subscriptions]]
name = 'all'
";

/// The headers that show a name and key, by the name of the rule.
fn basic(rule: &str) -> &'static str {
    match rule {
        "owner" => "authorization: Basic b3duZXI6a2V5LW9mLW93bmVy",
        "listener" => "authorization: Basic bGlzdGVuZXI6a2V5LW9mLWxpc3RlbmVy",
        "sender" => "authorization: Basic c2VuZGVyOmtleS1vZi1zZW5kZXI=",
        "manager" => "authorization: Basic bWFuYWdlcjprZXktb2YtbWFuYWdlcg==",
        "shop" => "authorization: Basic c2hvcDprZXktb2Ytc2hvcA==",
        _ => "authorization: Basic bm93aGVyZTprZXktb2Ytbm93aGVyZQ==",
    }
}

/// A browser that has signed in.
struct Page<'a> {
    broker: &'a Broker,
    /// The host that it asks.
    host: &'static str,
    cookie: String,
    session: Json,
}

/// Sends a request as a page does. Returns the answer as it stands.
fn exchange(broker: &Broker, host: &str, request: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n");
    let rest = format!("connection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    http::exchange(broker.address(), &(head + &rest))
}

fn status_of(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    status.expect("an answer has a status")
}

fn body_of(answer: &str) -> Json {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("the body is JSON")
}

impl<'a> Page<'a> {
    fn sign_in(broker: &'a Broker, rule: &str) -> Result<Self, u16> {
        Self::sign_in_at(broker, "localhost", basic(rule))
    }

    fn sign_in_at(broker: &'a Broker, host: &'static str, shown: &str) -> Result<Self, u16> {
        secrets::note_header(shown);
        let path = "POST /$railbus/session";
        let begun = exchange(broker, host, path, &format!("{shown}\r\n"), "");
        if status_of(&begun) != 200 {
            return Err(status_of(&begun));
        }
        let cookie = begun.lines().find_map(|it| it.strip_prefix("set-cookie: "));
        let (cookie, _) = cookie.and_then(|it| it.split_once(';')).expect("a cookie");
        let session = body_of(&begun);
        Ok(Self {
            broker,
            host,
            cookie: cookie.to_owned(),
            session,
        })
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        self.ask_at(self.host, method, path, body)
    }

    fn ask_at(&self, host: &str, method: &str, path: &str, body: &str) -> String {
        let csrf = self.session["csrf"].as_str().expect("a token");
        let headers = format!("cookie: {}\r\nx-railbus-csrf: {csrf}\r\n", self.cookie);
        let request = format!("{method} /$railbus/{path}");
        exchange(self.broker, host, &request, &headers, body)
    }

    fn get(&self, path: &str) -> Json {
        let answer = self.ask("GET", path, "");
        assert_eq!(status_of(&answer), 200, "{path}: {answer}");
        body_of(&answer)
    }

    /// The paths of the entities that counts tell of.
    fn paths(&self, query: &str) -> Vec<String> {
        let counts = self.get(&format!("counts{query}"));
        let rows = counts["entities"].as_array().expect("rows");
        assert_eq!(counts["total"], rows.len());
        let path = |row: &Json| row["path"].as_str().expect("a path").to_owned();
        rows.iter().map(path).collect()
    }

    fn check(&self, expected: u16, requests: &[(&str, &str, &str)]) {
        for (method, path, body) in requests {
            let answer = self.ask(method, path, body);
            assert_eq!(status_of(&answer), expected, "{method} {path}: {answer}");
        }
    }
}

#[test]
fn a_key_that_listens_to_a_queue_sees_that_alone() {
    let broker = Setup::new().configure(RULES).start();
    let owner = Page::sign_in(&broker, "owner").expect("it has a key");
    for path in ["orders", "others"] {
        let path = format!("entities/{path}/messages");
        owner.check(201, &[("POST", &path, r#"{"body": "a"}"#)]);
    }
    let page = Page::sign_in(&broker, "listener").expect("a key");
    for (name, value) in [
        ("listen", true),
        ("send", false),
        ("manage", false),
        ("entities-only", true),
    ] {
        assert_eq!(page.session[name], value, "{name}");
    }
    assert_eq!(page.paths(""), ["orders"]);
    assert_eq!(page.paths("?search=o"), ["orders"]);
    assert_eq!(page.paths("?path=ORDERS"), ["orders"]);
    assert!(page.paths("?path=others").is_empty());
    let overview = page.get("overview");
    assert_eq!(
        overview["entities"],
        json!({"queues": 1, "topics": 0, "subscriptions": 0})
    );
    assert_eq!(overview["messages"]["active"], 1);
    assert_eq!(owner.get("overview")["messages"]["active"], 2);
    // These are the broker's.
    for name in ["connections", "commits", "refused", "free-bytes"] {
        assert!(overview.get(name).is_none(), "{name}");
    }
    page.check(
        200,
        &[
            ("GET", "entities/orders", ""),
            ("GET", "entities/Orders/messages", ""),
            ("GET", "entities/orders/reasons", ""),
            ("GET", "entities/orders/receivers", ""),
            ("GET", "entities/orders/explain", ""),
            ("GET", "namespaces/default/entities/orders", ""),
        ],
    );
    page.check(
        401,
        &[
            ("GET", "entities", ""),
            ("GET", "entities/", ""),
            ("GET", "entities/others", ""),
            ("GET", "entities/others/messages", ""),
            ("GET", "entities/others%2F..%2Forders", ""),
            ("GET", "entities/events/Subscriptions/all/Rules", ""),
            ("GET", "entities/nothing", ""),
            ("GET", "namespaces/default/history", ""),
            ("GET", "namespaces/other/counts", ""),
            ("GET", "connections", ""),
            ("GET", "clock", ""),
            ("POST", "plan", "{}"),
            ("POST", "apply", "{}"),
            ("POST", "rules/test", "{}"),
            ("POST", "entities/orders/messages", "{}"),
            ("POST", "entities/orders/purge", "{}"),
            ("POST", "entities/orders/settle", "{}"),
            ("PATCH", "entities/orders", "{}"),
            ("DELETE", "entities/orders", ""),
        ],
    );
}

#[test]
fn a_key_that_sends_to_a_queue_does_that_alone() {
    let broker = Setup::new().configure(RULES).start();
    let page = Page::sign_in(&broker, "sender").expect("a key");
    assert_eq!(page.session["send"], true);
    assert_eq!(page.session["listen"], false);
    let body = r#"{"body": "a"}"#;
    page.check(201, &[("POST", "entities/orders/messages", body)]);
    page.check(
        401,
        &[
            ("POST", "entities/others/messages", body),
            ("GET", "entities/orders/messages", ""),
            ("GET", "entities/orders", ""),
            ("GET", "counts", ""),
            ("GET", "overview", ""),
            ("GET", "events", ""),
        ],
    );
}

#[test]
fn a_key_that_manages_a_topic_changes_it_and_what_is_below_it() {
    let broker = Setup::new().configure(RULES).start();
    let page = Page::sign_in(&broker, "manager").expect("a key");
    assert_eq!(page.paths(""), ["events", "events/Subscriptions/all"]);
    let below = "entities/events/Subscriptions";
    let rule = r#"{"filter": {"sql": "a = 1"}}"#;
    let (big, other) = (format!("{below}/all/Rules/big"), format!("{below}/other"));
    page.check(201, &[("PUT", &big, rule), ("PUT", &other, "{}")]);
    let purge = format!("{below}/all/purge");
    page.check(
        200,
        &[
            ("POST", &purge, "{}"),
            (
                "PATCH",
                "entities/events",
                r#"{"default-message-time-to-live": "PT1H"}"#,
            ),
            ("DELETE", &other, ""),
        ],
    );
    page.check(
        401,
        &[
            ("PUT", "entities/new", "{}"),
            ("PUT", "entities/events2", "{}"),
            ("PUT", "entities/events/new", "{}"),
            // Forwarding to another entity needs the right to manage that one too.
            (
                "PATCH",
                "entities/events/Subscriptions/all",
                r#"{"forward-to": "orders"}"#,
            ),
            (
                "PUT",
                "entities/events/Subscriptions/third",
                r#"{"forward-dead-lettered-messages-to": "orders"}"#,
            ),
            ("DELETE", "entities/orders", ""),
            ("POST", "entities/orders/purge", "{}"),
            ("GET", "policies", ""),
            ("POST", "backups", "{}"),
            ("GET", "namespaces", ""),
        ],
    );
    let log = broker.log();
    let line = log
        .lines()
        .find(|line| line.contains("audit: PUT") && line.contains("/Rules/big"));
    assert!(
        line.is_some_and(|it| it.contains("client=\"manager\"")),
        "{log}"
    );
}

#[test]
fn the_stream_of_such_a_key_has_its_entity_alone() {
    let broker = Setup::new().configure(RULES).start();
    for (rule, queues) in [("listener", 1), ("manager", 0), ("owner", 2)] {
        let page = Page::sign_in(&broker, rule).expect("it has a key");
        let stream = TcpStream::connect(broker.address()).expect("the broker listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is open");
        let path = "/$railbus/events";
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\ncookie: {}\r\n\r\n",
            page.cookie
        );
        (&stream)
            .write_all(head.as_bytes())
            .expect("the broker reads");
        let mut lines = BufReader::new(stream)
            .lines()
            .map(|line| line.expect("a line"));
        let event = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let event: Json = serde_json::from_str(&event.expect("an event")).expect("JSON");
        assert_eq!(event["entities"]["queues"], queues, "{rule}: {event}");
        assert_eq!(
            event.get("connections").is_some(),
            rule == "owner",
            "{rule}"
        );
    }
}

#[test]
fn a_key_of_an_entity_that_is_not_there_does_not_sign_in() {
    let broker = Setup::new().configure(RULES).start();
    assert_eq!(Page::sign_in(&broker, "nowhere").err(), Some(401));
    let owner = Page::sign_in(&broker, "owner").expect("it has a key");
    owner.check(201, &[("PUT", "entities/nothing", "{}")]);
    let page = Page::sign_in(&broker, "nowhere").expect("a key");
    assert_eq!(page.paths(""), ["nothing"]);
    // It may delete its entity, and sees nothing from then on.
    page.check(200, &[("DELETE", "entities/nothing", "")]);
    page.check(401, &[("GET", "counts", ""), ("GET", "overview", "")]);
}

#[test]
fn a_session_of_another_namespace_is_none_here() {
    let broker = Setup::new().configure(RULES).start();
    let owner = Page::sign_in(&broker, "owner").expect("it has a key");
    let key = json!({"name": "shop", "primary-key": "key-of-shop", "rights": ["listen"]});
    let with_key = json!({"keys": [key]}).to_string();
    owner.check(
        201,
        &[
            ("PUT", "namespaces/shop", &with_key),
            ("PUT", "namespaces/third", "{}"),
            ("PUT", "namespaces/shop/entities/baskets", "{}"),
        ],
    );
    let sign_in = |host: &'static str| Page::sign_in_at(&broker, host, basic("shop"));
    let shop = sign_in("shop.localhost").expect("a key");
    assert_eq!(shop.paths(""), ["baskets"]);
    for (page, host) in [(&shop, "third.localhost"), (&owner, "shop.localhost")] {
        for (method, path) in [
            ("GET", "counts"),
            ("GET", "entities/orders"),
            ("GET", "entities/baskets"),
            ("POST", "session"),
        ] {
            let answer = page.ask_at(host, method, path, "");
            assert_eq!(status_of(&answer), 401, "{host} {path}: {answer}");
        }
    }
    // A host that names no namespace leaves the choice to the session.
    let answer = shop.ask_at("localhost", "GET", "counts", "");
    assert!(
        answer.contains("baskets") && !answer.contains("orders"),
        "{answer}"
    );
    let answer = shop.ask_at("localhost", "GET", "namespaces/default/counts", "");
    assert_eq!(status_of(&answer), 401, "{answer}");
}
