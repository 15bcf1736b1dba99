//! Messages over HTTP: sent, received and settled by requests, beside clients of AMQP.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Instant;

use amqp::DeliveryState;
use e2e::{Broker, PATIENCE, Peer, Setup, http, message};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A response, with the names of its headers in lower case.
struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found == name)?;
        Some(&found.1)
    }

    fn broker_properties(&self) -> Value {
        let header = self.header("brokerproperties").expect("there are some");
        serde_json::from_str(header).expect("JSON")
    }

    /// The path of its location.
    fn location(&self) -> String {
        let location = self.header("location").expect("there is one");
        let (_, rest) = location.split_once("://").expect("a whole address");
        format!("/{}", rest.split_once('/').expect("a path").1)
    }
}

fn ask(broker: &Broker, method: &str, path: &str, headers: &[&str], body: &str) -> Response {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let answer = http::exchange(
        broker.address(),
        &format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:5300\r\nconnection: close\r\n\
             content-length: {length}\r\n{lines}\r\n{body}"
        ),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    Response {
        status: status.expect("an answer has a status"),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    }
}

fn post(broker: &Broker, path: &str, headers: &[&str], body: &str) -> u16 {
    ask(broker, "POST", path, headers, body).status
}

fn take(broker: &Broker, queue: &str) -> Response {
    ask(
        broker,
        "POST",
        &format!("/{queue}/messages/head?timeout=0"),
        &[],
        "",
    )
}

#[test]
fn a_message_is_sent_locked_and_completed_with_all_that_it_says() {
    let broker = Setup::new().start();
    let headers = [
        "content-type: text/plain; charset=utf-8",
        r#"brokerproperties: {"MessageId":"m-1","CorrelationId":"c","Label":"hello","To":"t","ReplyTo":"r","TimeToLive":90,"Unknown":1}"#,
        r#"priority: "high""#,
        "amount: 17",
        "ratio: 0.5",
        "urgent: true",
        r#"due: "Wed, 01 Jul 2026 12:00:00 GMT""#,
    ];
    assert_eq!(post(&broker, "/Orders/messages", &headers, "the body"), 201);
    let got = take(&broker, "orders");
    assert_eq!((got.status, got.body.as_str()), (201, "the body"));
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("priority", r#""high""#),
        ("amount", "17"),
        ("ratio", "0.5"),
        ("urgent", "true"),
        ("due", r#""Wed, 01 Jul 2026 12:00:00 GMT""#),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    let told = got.broker_properties();
    for (name, value) in [
        ("MessageId", json!("m-1")),
        ("CorrelationId", json!("c")),
        ("Label", json!("hello")),
        ("To", json!("t")),
        ("ReplyTo", json!("r")),
        ("TimeToLive", json!(90.0)),
        ("DeliveryCount", json!(1)),
        ("SequenceNumber", json!(1)),
        ("State", json!("Active")),
    ] {
        assert_eq!(told[name], value, "{name}");
    }
    for name in ["EnqueuedTimeUtc", "LockedUntilUtc"] {
        assert!(
            told[name]
                .as_str()
                .is_some_and(|time| time.ends_with(" GMT")),
            "{told}"
        );
    }
    let location = got.location();
    let token = told["LockToken"].as_str().expect("it is locked");
    assert_eq!(location, format!("/orders/messages/1/{token}"));
    assert_eq!(
        ask(&broker, "POST", &location, &[], "").status,
        200,
        "renewed"
    );
    // By its id as well as by its number.
    let by_id = location.replace("/1/", "/m-1/");
    assert_eq!(
        ask(&broker, "DELETE", &by_id, &[], "").status,
        200,
        "completed"
    );
    for method in ["DELETE", "PUT", "POST"] {
        assert_eq!(
            ask(&broker, method, &location, &[], "").status,
            404,
            "{method}"
        );
    }
    assert_eq!(take(&broker, "orders").status, 204);
}

#[test]
fn a_message_without_an_id_gets_one_that_stays() {
    let broker = Setup::new().start();
    let batch = "content-type: application/vnd.microsoft.servicebus.json";
    assert_eq!(post(&broker, "/orders/messages", &[], "alone"), 201);
    let two = json!([{"Body": "first"}, {"Body": "second"}]).to_string();
    assert_eq!(post(&broker, "/orders/messages", &[batch], &two), 201);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let told = take(&broker, "orders");
        let properties = told.broker_properties();
        let id = properties["MessageId"].as_str().expect("an id").to_owned();
        let is_digit = |it: char| it.is_ascii_digit() || ('a'..='f').contains(&it);
        assert!(id.len() == 32 && id.chars().all(is_digit), "{id}");
        assert!(!ids.contains(&id), "{ids:?}");
        ids.push(id);
        assert_eq!(
            ask(&broker, "PUT", &told.location(), &[], "").status,
            200,
            "unlocked"
        );
        // It comes again first, with the id that it had.
        let again = take(&broker, "orders");
        assert_eq!(
            again.broker_properties()["MessageId"],
            properties["MessageId"]
        );
    }
}

#[test]
fn a_message_may_have_the_content_type_of_atom() {
    let broker = Setup::new().start();
    for kind in [
        "application/atom+xml",
        "application/atom+xml;type=entry;charset=utf-8",
    ] {
        let header = format!("content-type: {kind}");
        let headers = [header.as_str()];
        assert_eq!(post(&broker, "/orders/messages", &headers, "<a/>"), 201);
        let locked = ask(
            &broker,
            "POST",
            "/orders/messages/head?timeout=0",
            &headers,
            "",
        );
        assert_eq!((locked.status, locked.body.as_str()), (201, "<a/>"));
        assert_eq!(locked.header("content-type"), Some(kind));
        let settled = ask(&broker, "DELETE", &locked.location(), &headers, "");
        assert_eq!(settled.status, 200);
        let empty = ask(
            &broker,
            "DELETE",
            "/orders/messages/head?timeout=0",
            &headers,
            "",
        );
        assert_eq!(empty.status, 204);
    }
}

/// What a message route is does not depend on the content type, though Atom's is administration's.
#[test]
fn every_message_route_takes_the_content_types_of_atom() {
    let topics = "
[[topics]]
name = 'events'
[[topics.subscriptions]]
name = 'all'
";
    let broker = Setup::new().configure(topics).start();
    for kind in [
        "application/atom+xml",
        "application/atom+xml;type=entry;charset=utf-8",
    ] {
        let header = format!("content-type: {kind}");
        let headers = [header.as_str()];
        let status = |method: &str, path: &str| ask(&broker, method, path, &headers, "").status;
        for (sent_to, node) in [
            ("orders", "orders"),
            ("events", "events/Subscriptions/all"),
            ("orders", "orders/$DeadLetterQueue"),
            ("events", "events/subscriptions/all/$deadletterqueue"),
        ] {
            let to = format!("/{sent_to}/messages");
            assert_eq!(post(&broker, &to, &headers, "<a/>"), 201);
            if let Some((living, _)) = node.split_once("/$") {
                dead_letter(&broker, living);
            }
            let head = format!("/{node}/messages/head?timeout=0");
            let locked = ask(&broker, "POST", &head, &headers, "");
            assert_eq!((locked.status, &*locked.body), (201, "<a/>"), "{node}");
            let renewed = status("POST", &locked.location());
            assert_eq!(renewed, 200, "renewed at {node}");
            let unlocked = status("PUT", &locked.location());
            assert_eq!(unlocked, 200, "unlocked at {node}");
            let gone = status("POST", &locked.location());
            assert_eq!(gone, 404, "the lock is gone at {node}");
            let again = ask(&broker, "POST", &head, &headers, "");
            assert_eq!(again.status, 201, "{node}");
            let completed = status("DELETE", &again.location());
            assert_eq!(completed, 200, "completed at {node}");
            assert_eq!(status("DELETE", &head), 204, "{node} is empty");
        }
    }
}

/// Dead-letters the first message of a queue or subscription.
fn dead_letter(broker: &Broker, node: &str) {
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver(node, 1);
    let received = peer.receive(receiver);
    let rejected = DeliveryState::Rejected(None);
    assert!(peer.settle(&received, rejected).is_some());
}

#[test]
fn a_message_that_is_unlocked_comes_again_with_a_higher_count() {
    let broker = Setup::new().start();
    assert_eq!(post(&broker, "/orders/messages", &[], "again"), 201);
    for count in 1..=3 {
        let got = take(&broker, "orders");
        assert_eq!(got.broker_properties()["DeliveryCount"], json!(count));
        assert_eq!(take(&broker, "orders").status, 204, "locked");
        assert_eq!(ask(&broker, "PUT", &got.location(), &[], "").status, 200);
    }
}

#[test]
fn a_lock_holds_on_after_its_request_even_where_lost_connections_drop_theirs() {
    let broker = Setup::new()
        .configure("locks-on-disconnect = 'drop'")
        .start();
    assert_eq!(post(&broker, "/orders/messages", &[], "held"), 201);
    let got = take(&broker, "orders");
    assert_eq!(take(&broker, "orders").status, 204, "locked");
    assert_eq!(ask(&broker, "DELETE", &got.location(), &[], "").status, 200);
}

#[test]
fn a_message_that_is_received_and_deleted_is_gone() {
    let broker = Setup::new().start();
    assert_eq!(post(&broker, "/orders/messages", &[], "once"), 201);
    let got = ask(
        &broker,
        "DELETE",
        "/orders/messages/head?timeout=5",
        &[],
        "",
    );
    assert_eq!((got.status, got.body.as_str()), (200, "once"));
    assert_eq!(got.header("location"), None);
    assert_eq!(got.broker_properties()["LockToken"], Value::Null);
    let gone = ask(
        &broker,
        "DELETE",
        "/orders/messages/head?timeout=0",
        &[],
        "",
    );
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
}

#[test]
fn a_receive_waits_for_a_message() {
    let broker = Setup::new().start();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&broker, "POST", "/orders/messages/head", &[], ""));
        assert_eq!(post(&broker, "/orders/messages", &[], "at last"), 201);
        let got = waiting.join().expect("it is answered");
        assert_eq!((got.status, got.body.as_str()), (201, "at last"));
    });
}

#[test]
fn who_may_not_any_more_gets_nothing_at_the_end_of_a_wait() {
    let rule = |name: &str, key: &str, rights: &str| {
        format!("[[auth.rules]]\nname = '{name}'\nprimary-key = '{key}'\nrights = [{rights}]\n")
    };
    let owner = rule("owner", "key-of-the-owner", "'manage'");
    let with = |key| owner.clone() + &rule("taker", key, "'listen'");
    let setup = Setup::new().configure(&with("key-of-the-taker"));
    let broker = setup.start();
    let owner = "authorization: Basic b3duZXI6a2V5LW9mLXRoZS1vd25lcg==";
    let taker = "authorization: Basic dGFrZXI6a2V5LW9mLXRoZS10YWtlcg==";
    let take = |who| ask(&broker, "DELETE", "/orders/messages/head", &[who], "");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| take(taker));
        let attached = "railbus_entity_receivers{entity=\"orders\"} 1\n";
        let asked = Instant::now();
        while !ask(&broker, "GET", "/metrics", &[owner], "")
            .body
            .contains(attached)
        {
            assert!(asked.elapsed() < PATIENCE, "nobody is attached");
        }
        let file = setup.directory().join("railbus.toml");
        fs::write(file, with("another-key-of-the-taker")).expect("the directory is ours");
        broker.signal(Signal::HUP);
        broker.wait_for_log("reloaded: the rule taker has changed");
        assert_eq!(post(&broker, "/orders/messages", &[owner], "kept"), 201);
        let got = waiting.join().expect("it is answered");
        assert_eq!((got.status, got.body.contains("kept")), (401, false));
    });
    let got = take(owner);
    assert_eq!((got.status, got.body.as_str()), (200, "kept"));
}

#[test]
fn who_leaves_while_waiting_takes_nothing_along() {
    let broker = Setup::new().start();
    for method in ["POST", "DELETE"] {
        let mut leaving = TcpStream::connect(broker.address()).expect("the broker listens");
        let request = format!(
            "{method} /orders/messages/head HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
        );
        leaving
            .write_all(request.as_bytes())
            .expect("the broker reads");
        // The broker closes its side once it has noticed.
        leaving
            .shutdown(Shutdown::Write)
            .expect("the socket is open");
        leaving
            .set_read_timeout(Some(PATIENCE))
            .expect("the socket is open");
        let mut answer = Vec::new();
        leaving.read_to_end(&mut answer).expect("the broker closes");
        assert!(answer.is_empty(), "there was nothing to answer");
    }
    assert_eq!(post(&broker, "/orders/messages", &[], "kept"), 201);
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert_eq!(received.body(), b"kept");
}

#[test]
fn a_batch_is_taken_whole_or_refused_whole() {
    let broker = Setup::new().start();
    let batch = "content-type: application/vnd.microsoft.servicebus.json";
    let body = json!([
        {"Body": "first", "BrokerProperties": {"Label": "M1", "TimeToLiveTimeSpan": "0.00:00:40"}},
        {"Body": "second", "UserProperties": {"Priority": "Low", "Amount": 3, "Ratio": 0.5, "Urgent": false}},
    ]);
    assert_eq!(
        post(&broker, "/orders/messages", &[batch], &body.to_string()),
        201
    );
    let first = take(&broker, "orders");
    assert_eq!(
        (first.body.as_str(), &first.broker_properties()["Label"]),
        ("first", &json!("M1"))
    );
    assert_eq!(first.broker_properties()["TimeToLive"], json!(40.0));
    let second = take(&broker, "orders");
    assert_eq!(second.body, "second");
    for (name, value) in [
        ("priority", "\"Low\""),
        ("amount", "3"),
        ("ratio", "0.5"),
        ("urgent", "false"),
    ] {
        assert_eq!(second.header(name), Some(value));
    }
    let bad = json!([
        {"Body": "good"},
        {"Body": "bad", "BrokerProperties": {"MessageId": "x".repeat(129)}},
    ]);
    assert_eq!(
        post(&broker, "/orders/messages", &[batch], &bad.to_string()),
        400
    );
    assert_eq!(post(&broker, "/orders/messages", &[batch], "[{]"), 400);
    assert_eq!(
        take(&broker, "orders").status,
        204,
        "nothing of it is there"
    );
}

#[test]
fn clients_of_amqp_and_of_http_understand_each_other() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"from amqp"), DeliveryState::Accepted);
    assert_eq!(take(&broker, "orders").body, "from amqp");
    assert_eq!(post(&broker, "/orders/messages", &[], "from http"), 201);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert_eq!(message::body(&received.payload), b"from http");
}

#[test]
fn subscriptions_and_dead_letters_are_received_too() {
    let topics = "
[[topics]]
name = 'events'
[[topics.subscriptions]]
name = 'all'
";
    let broker = Setup::new().configure(topics).start();
    assert_eq!(post(&broker, "/events/messages", &[], "news"), 201);
    let got = take(&broker, "events/Subscriptions/all");
    assert_eq!((got.status, got.body.as_str()), (201, "news"));
    assert_eq!(ask(&broker, "DELETE", &got.location(), &[], "").status, 200);
    assert_eq!(
        post(&broker, "/events/subscriptions/all/messages", &[], ""),
        400
    );

    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"no good"), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    let rejected = DeliveryState::Rejected(None);
    assert!(peer.settle(&received, rejected).is_some());
    let dead = take(&broker, "orders/$DeadLetterQueue");
    assert_eq!((dead.status, dead.body.as_str()), (201, "no good"));
    assert_eq!(
        ask(&broker, "DELETE", &dead.location(), &[], "").status,
        200
    );
    assert_eq!(
        post(&broker, "/orders/$deadletterqueue/messages", &[], ""),
        400
    );
}

#[test]
fn what_can_not_be_done_is_refused_with_the_contracts_status() {
    let sessions = "[[queues]]\nname = 'sessions'\nrequires-session = true";
    let broker = Setup::new().configure(sessions).start();
    let token = "9c4d0b2e-8f3a-4c66-9a65-3a0d1a6a2b11";
    let large = "x".repeat(300 * 1024);
    let table = [
        ("POST", "/nowhere/messages".to_owned(), "", 410),
        ("POST", "/nowhere/messages/head".to_owned(), "", 410),
        ("DELETE", "/nowhere/messages/head".to_owned(), "", 410),
        ("DELETE", format!("/nowhere/messages/1/{token}"), "", 410),
        ("DELETE", format!("/orders/messages/1/{token}"), "", 404),
        ("PUT", format!("/orders/messages/1/{token}"), "", 404),
        ("POST", format!("/orders/messages/1/{token}"), "", 404),
        ("DELETE", "/orders/messages/1/2".to_owned(), "", 404),
        ("PUT", "/orders/messages/1/2".to_owned(), "", 404),
        ("POST", "/orders/messages/1/2".to_owned(), "", 404),
        ("POST", "/orders/messages".to_owned(), &*large, 403),
        ("POST", "/sessions/messages".to_owned(), "", 400),
        ("POST", "/sessions/messages/head".to_owned(), "", 400),
        ("GET", "/orders/messages".to_owned(), "", 400),
        ("GET", "/orders/messages/head".to_owned(), "", 400),
    ];
    for (method, path, body, expected) in table {
        let response = ask(&broker, method, &path, &[], body);
        assert_eq!(response.status, expected, "{method} {path}");
        let code = format!("<Error><Code>{expected}</Code><Detail>");
        assert!(response.body.contains(&code), "{}", response.body);
    }
    for header in [
        "brokerproperties: {",
        r#"brokerproperties: {"TimeToLive": 0}"#,
        r#"brokerproperties: {"SessionId": "a", "PartitionKey": "b"}"#,
        r#"brokerproperties: {"ScheduledEnqueueTimeUtc": "soon"}"#,
    ] {
        assert_eq!(
            post(&broker, "/orders/messages", &[header], ""),
            400,
            "{header}"
        );
    }
}

#[test]
fn without_an_entity_only_posts_are_of_messages() {
    let broker = Setup::new().start();
    let atom = ["content-type: application/atom+xml"];
    assert_eq!(post(&broker, "/nowhere/messages", &atom, "<a/>"), 410);
    let feed = ask(&broker, "GET", "/nowhere/messages", &[], "");
    assert_eq!(feed.status, 200);
    assert!(
        feed.body.contains("Publicly Listed Services"),
        "{}",
        feed.body
    );
}

#[test]
fn a_message_has_as_many_properties_as_a_request_has_headers() {
    let broker = Setup::new().start();
    let headers: Vec<_> = (0..200).map(|n| format!("property-{n}: {n}")).collect();
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    assert_eq!(post(&broker, "/orders/messages", &headers, "x"), 201);
    let taken = take(&broker, "orders");
    assert_eq!(taken.header("property-199"), Some("199"));
}

#[test]
fn one_connection_carries_many_requests() {
    let broker = Setup::new().start();
    let mut stream = TcpStream::connect(broker.address()).expect("the broker listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("the socket is open");
    for _ in 0..3 {
        let request =
            "POST /orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\nx";
        stream
            .write_all(request.as_bytes())
            .expect("the broker reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the broker answers");
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 201 "));
    }
}
