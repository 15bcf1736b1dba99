//! The broker's own interface against the document that it gives of itself, and messages browsed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use amqp::DeliveryState;
use boon::{Compiler, SchemaIndex, Schemas};
use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};
use serde_json::{Value, json};

const METHODS: [&str; 5] = ["GET", "PUT", "PATCH", "POST", "DELETE"];

/// A broker that is asked for one thing after the other, each of which the document has to know.
struct Interface {
    broker: Broker,
    document: Value,
    /// What was asked for and answered without an error.
    answered: BTreeSet<(String, String)>,
}

impl Interface {
    fn of(broker: Broker) -> Self {
        let (status, body) = http::get(broker.address(), "/$railbus/openapi.json");
        assert_eq!(status, 200);
        Self {
            broker,
            document: serde_json::from_str(&body).expect("JSON"),
            answered: BTreeSet::new(),
        }
    }

    /// Asks for a path of the document with these values in it, and holds the answer to its schema.
    fn ask(
        &mut self,
        method: &str,
        template: &str,
        values: &[(&str, &str)],
        body: &Value,
        expected: u16,
    ) -> Value {
        let (template, query) = template.split_once('?').unwrap_or((template, ""));
        let template = format!("/$railbus/{template}");
        let fill = |path: String, (name, value): &(&str, &str)| {
            path.replace(&format!("{{{name}}}"), value)
        };
        let path = values.iter().fold(template.clone(), fill);
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let asked = format!("{path}?{query}");
        let (status, answer) = http::request(self.broker.address(), method, &asked, &[], &body);
        assert_eq!(status, expected, "{method} {asked}: {answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let operation = &self.document["paths"][&template][method.to_lowercase()];
        let response = &operation["responses"][status.to_string()];
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {template} has no {status}");
        self.check(schema, &answer, &format!("{method} {asked}"));
        if status < 300 {
            self.answered.insert((template, method.to_lowercase()));
        }
        answer
    }

    /// Makes, shows, resets and deletes a namespace, and has operations in it fail on purpose.
    fn name_spaces(&mut self) {
        let none = Value::Null;
        let (one, reset) = ("namespaces/{name}", "namespaces/{name}/reset");
        let (shop, other) = ([("name", "shop")], [("name", "other")]);
        self.ask("PUT", one, &shop, &json!({"like": "default"}), 201);
        self.ask("PUT", one, &shop, &json!({"like": "default"}), 409);
        self.ask(
            "PUT",
            one,
            &shop,
            &json!({"hosts": ["shop.example.com"]}),
            200,
        );
        self.ask("PUT", one, &[("name", "A")], &none, 400);
        self.ask("GET", "namespaces", &[], &none, 200);
        self.ask("GET", one, &shop, &none, 200);
        self.ask("GET", one, &other, &none, 404);
        let faults = "namespaces/{name}/faults";
        let matches = json!({"entity": "orders", "operations": ["send"], "times": 1});
        for effect in [
            json!({"refuse": "server-busy"}),
            json!({"disconnect": "after"}),
            json!({"detach": "detach-forced"}),
            json!({"end": "internal-error"}),
            json!({"close": "connection-forced"}),
            json!({"delay-ms": 5}),
            json!({"throttle-per-second": 5}),
            json!({"withhold-credit-ms": 5}),
            json!("expire-token"),
        ] {
            let rule = json!({"name": "f", "match": matches, "effect": effect});
            self.ask("PUT", faults, &shop, &json!({"faults": [rule]}), 200);
            self.ask("POST", faults, &shop, &rule, 400);
        }
        let rule = json!({"name": "g", "effect": "deliver-again"});
        self.ask("POST", faults, &shop, &rule, 200);
        self.ask("PUT", faults, &shop, &json!({"faults": 1}), 400);
        self.ask("GET", faults, &shop, &none, 200);
        self.ask("GET", faults, &other, &none, 404);
        self.ask("DELETE", faults, &shop, &none, 200);
        self.ask("PUT", one, &shop, &json!({"lineage": true}), 200);
        self.ask("GET", "namespaces/{name}/history?top=5", &shop, &none, 200);
        let history = "namespaces/{name}/history";
        self.ask("GET", &format!("{history}?sequence=1"), &shop, &none, 400);
        self.ask("GET", history, &other, &none, 404);
        let of_message = "namespaces/{name}/messages/{id}/history";
        let message = |name| [("name", name), ("id", "a%2Fb")];
        self.ask("GET", of_message, &message("shop"), &none, 200);
        self.ask("GET", of_message, &message("other"), &none, 404);
        self.snapshots();
        let clock = "namespaces/{name}/clock";
        self.ask("POST", clock, &shop, &json!({"advance": "PT1H"}), 200);
        self.ask("POST", clock, &shop, &json!({"freeze": true}), 400);
        self.ask("POST", clock, &other, &json!({"advance": "PT1H"}), 404);
        self.ask("GET", clock, &shop, &none, 200);
        self.ask("GET", clock, &other, &none, 404);
        self.ask("POST", reset, &shop, &none, 200);
        self.ask("POST", reset, &other, &none, 404);
        self.ask("DELETE", one, &shop, &none, 200);
        self.ask("DELETE", one, &shop, &none, 404);
    }

    /// Takes a snapshot of the namespace `shop`, goes back to it, makes another namespace of it,
    /// and removes it.
    fn snapshots(&mut self) {
        let none = Value::Null;
        let (all, one) = (
            "namespaces/{name}/snapshots",
            "namespaces/{name}/snapshots/{snapshot}",
        );
        let (restore, fork) = ("namespaces/{name}/restore", "namespaces/{name}/fork");
        let (shop, other) = ([("name", "shop")], [("name", "other")]);
        let base = [("name", "shop"), ("snapshot", "base")];
        self.ask("POST", all, &shop, &json!({"name": "base"}), 201);
        self.ask("POST", all, &shop, &json!({"name": "base"}), 409);
        self.ask("POST", all, &shop, &json!({"name": "a/b"}), 400);
        self.ask("POST", all, &other, &json!({"name": "base"}), 404);
        self.ask("GET", all, &shop, &none, 200);
        self.ask("POST", restore, &shop, &json!({"snapshot": "base"}), 200);
        self.ask("POST", restore, &shop, &json!({"snapshot": "gone"}), 404);
        self.ask("POST", restore, &shop, &json!({"name": "base"}), 400);
        let forked = json!({"name": "forked", "snapshot": "base"});
        self.ask("POST", fork, &shop, &forked, 201);
        self.ask("POST", fork, &shop, &forked, 409);
        self.ask("POST", fork, &shop, &json!({"name": "A"}), 400);
        self.ask("DELETE", one, &base, &none, 200);
        self.ask("DELETE", one, &base, &none, 404);
        let namespace = "namespaces/{name}";
        self.ask("DELETE", namespace, &[("name", "forked")], &none, 200);
    }

    /// Begins a session as a page of the broker does, tries its rights, and ends it.
    fn sign_in_and_out(&mut self) {
        let address = self.broker.address();
        let path = "/$railbus/session";
        let exchange = |method: &str, path: &str, headers: &str| {
            http::exchange(
                address,
                &format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                     content-length: 0\r\n{headers}\r\n"
                ),
            )
        };
        let elsewhere = exchange("POST", path, "origin: http://localhost:3000\r\n");
        assert!(elsewhere.starts_with("HTTP/1.1 403 "), "{elsewhere}");
        let origin = "origin: http://localhost\r\n";
        let begun = exchange("POST", path, origin);
        assert!(begun.starts_with("HTTP/1.1 200 "), "{begun}");
        let cookie = begun.lines().find_map(|it| it.strip_prefix("set-cookie: "));
        let (cookie, attributes) = cookie.and_then(|it| it.split_once(';')).expect("a cookie");
        assert!(attributes.contains("HttpOnly") && attributes.contains("SameSite=Strict"));
        let (_, body) = begun.split_once("\r\n\r\n").expect("a body");
        let session: Value = serde_json::from_str(body).expect("JSON");
        let schema = json!({"$ref": "#/components/schemas/Session"});
        self.check(&schema, &session, "a session");
        let csrf = session["csrf"].as_str().expect("a token");
        let purge = "/$railbus/entities/events/Subscriptions/all/purge";
        let cookie = format!("cookie: other=1; {cookie}\r\n{origin}");
        let without = exchange("POST", purge, &cookie);
        assert!(without.starts_with("HTTP/1.1 403 "), "{without}");
        let with = exchange(
            "POST",
            purge,
            &format!("{cookie}x-railbus-csrf: {csrf}\r\n"),
        );
        assert!(with.starts_with("HTTP/1.1 200 "), "{with}");
        let ended = exchange(
            "DELETE",
            path,
            &format!("{cookie}x-railbus-csrf: {csrf}\r\n"),
        );
        assert!(ended.starts_with("HTTP/1.1 200 "), "{ended}");
        let after = exchange(
            "POST",
            purge,
            &format!("{cookie}x-railbus-csrf: {csrf}\r\n"),
        );
        assert!(after.starts_with("HTTP/1.1 401 "), "{after}");
        for method in ["post", "delete"] {
            self.answered.insert((path.to_owned(), method.to_owned()));
        }
    }

    /// Shows a client and what it does, and closes its connection.
    fn operate(&mut self) {
        let (none, orders) = (Value::Null, [("path", "shown")]);
        self.ask("PUT", "entities/{path}", &orders, &json!({}), 201);
        let mut peer = Peer::connect(self.broker.address());
        let sender = peer.sender("shown");
        _ = peer.send(sender, b"shown");
        let receiver = peer.receiver("shown", 5);
        let received = peer.receive(receiver);
        let activity = self.ask("GET", "entities/{path}/receivers", &orders, &none, 200);
        let lock = &activity["locks"]["first"][0];
        assert_eq!(lock["delivery-count"], 0);
        assert!(lock["left-ms"].as_u64().expect("a number") > 0, "{lock}");
        let shown = &activity["receivers"]["first"][0];
        assert_eq!(shown["mode"], "peek-lock");
        assert_eq!(shown["credit"], 4);
        _ = peer.settle(&received, DeliveryState::Accepted);
        let topic = [("path", "events")];
        self.ask("GET", "entities/{path}/receivers", &topic, &none, 400);
        let explain = "entities/{path}/explain";
        let why = self.ask("GET", explain, &orders, &none, 200);
        assert_eq!(why["reasons"][0]["code"], "empty");
        let of_one = format!("{explain}?part=dead-letter&sequence=1");
        let why = self.ask("GET", &of_one, &orders, &none, 200);
        assert_eq!(why["reasons"][0]["code"], "not-there");
        self.ask("GET", explain, &topic, &none, 400);
        self.ask("GET", explain, &[("path", "nothing")], &none, 404);
        self.settle();
        self.sessions();
        let id = shown["connection"].as_u64().expect("an id").to_string();
        let page = format!("connections?from={id}&count=1");
        let page = self.ask("GET", &page, &[], &none, 200);
        let connection = &page["connections"][0];
        assert_eq!(connection["clients"], json!(["RootManageSharedAccessKey"]));
        let links = connection["links"].as_array().expect("links");
        let links: Vec<_> = links
            .iter()
            .map(|link| (&link["address"], &link["role"]))
            .collect();
        let expected = [
            (&json!("shown"), &json!("sender")),
            (&json!("shown"), &json!("receiver")),
        ];
        assert_eq!(links, expected);
        self.ask("GET", "connections?count=0", &[], &none, 400);
        self.ask("DELETE", "connections/{id}", &[("id", &id)], &none, 202);
        let error = peer.closed().expect("an error");
        assert_eq!(error.condition, "amqp:connection:forced");
        self.ask("DELETE", "connections/{id}", &[("id", "x")], &none, 404);
    }

    /// Lists sessions, held or not, and shows the state of one.
    fn sessions(&mut self) {
        let (none, queue) = (Value::Null, [("path", "by-session")]);
        let with_sessions = json!({"requires-session": true});
        self.ask("PUT", "entities/{path}", &queue, &with_sessions, 201);
        let list = "entities/{path}/message-sessions";
        let empty = json!({"sessions": [], "next": null});
        assert_eq!(self.ask("GET", list, &queue, &none, 200), empty);
        for id in ["a/b", "c", "d"] {
            let message = json!({"session-id": id, "body": "x"});
            self.ask("POST", "entities/{path}/messages", &queue, &message, 201);
        }
        let (mut ids, mut next) = (BTreeSet::new(), json!(0));
        while let Some(skip) = next.as_u64() {
            let page = format!("{list}?skip={skip}&count=2");
            let page = self.ask("GET", &page, &queue, &none, 200);
            for session in page["sessions"].as_array().expect("a list") {
                assert_eq!(session["hold"], Value::Null);
                ids.insert(session["id"].as_str().expect("a text").to_owned());
            }
            next = page["next"].clone();
        }
        assert_eq!(ids, BTreeSet::from(["a/b", "c", "d"].map(str::to_owned)));
        let state = "entities/{path}/session-state";
        let shown = self.ask("GET", &format!("{state}?session=a%2Fb"), &queue, &none, 200);
        assert_eq!(shown, json!({"id": "a/b", "hold": null, "state": null}));
        self.ask("GET", state, &queue, &none, 400);
        self.ask("GET", &format!("{list}?count=0"), &queue, &none, 400);
        for path in ["events", "shown"] {
            let path = [("path", path)];
            self.ask("GET", list, &path, &none, 400);
            self.ask("GET", &format!("{state}?session=a"), &path, &none, 400);
        }
        let path = [("path", "nothing")];
        self.ask("GET", list, &path, &none, 404);
        self.ask("GET", &format!("{state}?session=a"), &path, &none, 404);
    }

    /// Settles messages one by one.
    fn settle(&mut self) {
        let (none, queue) = (Value::Null, [("path", "settled")]);
        self.ask("PUT", "entities/{path}", &queue, &json!({}), 201);
        let send = |own: &mut Self| {
            let body = json!({"body": "x"});
            let sent = own.ask("POST", "entities/{path}/messages", &queue, &body, 201);
            sent["sequence-number"].clone()
        };
        let settle = |own: &mut Self, body: Value, expected: u16| {
            own.ask("POST", "entities/{path}/settle", &queue, &body, expected)
        };
        let [first, second] = [send(self), send(self)];
        let outcome = |number: &Value, part: &str, outcome: &str| json!({"sequence-number": number, "part": part, "outcome": outcome});
        settle(self, outcome(&first, "active", "defer"), 200);
        settle(self, outcome(&first, "active", "complete"), 409);
        settle(self, outcome(&first, "deferred", "complete"), 200);
        settle(self, outcome(&first, "deferred", "complete"), 409);
        settle(self, outcome(&second, "active", "abandon"), 200);
        settle(self, outcome(&second, "active", "redrive"), 400);
        settle(self, outcome(&second, "scheduled", "complete"), 400);
        let reasons = json!({"sequence-number": second, "outcome": "dead-letter", "reason": "r", "description": "d"});
        settle(self, reasons, 200);
        let dead = self.ask(
            "GET",
            "entities/{path}/messages?part=dead-letter",
            &queue,
            &none,
            200,
        );
        let dead = &dead["messages"][0];
        assert_eq!(dead["properties"]["DeadLetterReason"], "r");
        let mut replaced = outcome(&second, "dead-letter", "redrive");
        replaced["message"] = json!({"body": "mended"});
        let sent = settle(self, replaced, 200)["sent"].clone();
        let left = self.ask("GET", "entities/{path}/messages", &queue, &none, 200);
        assert_eq!(left["messages"][0]["sequence-number"], sent);
        assert_eq!(left["messages"][0]["body"], "mended");
        let entity = self.ask("GET", "entities/{path}", &queue, &none, 200);
        assert_eq!(entity["state"]["dead-letter"], 0);
        assert_eq!(entity["state"]["set"], json!([]));
        let missing = [("path", "nothing")];
        let any = outcome(&first, "active", "complete");
        self.ask("POST", "entities/{path}/settle", &missing, &any, 404);
        self.ask("DELETE", "entities/{path}", &queue, &none, 200);
    }

    /// Reads the first of the events.
    fn watch(&mut self) {
        let path = "/$railbus/events";
        let mut stream = TcpStream::connect(self.broker.address()).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let lines = BufReader::new(stream)
            .lines()
            .map(|line| line.expect("text"));
        let event = lines
            .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned))
            .next()
            .expect("an event");
        let overview: Value = serde_json::from_str(&event).expect("JSON");
        let schema = json!({"$ref": "#/components/schemas/Overview"});
        self.check(&schema, &overview, "an event");
        self.answered.insert((path.to_owned(), "get".to_owned()));
    }

    fn check(&self, schema: &Value, instance: &Value, what: &str) {
        let whole = json!({"allOf": [schema], "components": self.document["components"]});
        let (schemas, index) = compiled(whole);
        if let Err(error) = schemas.validate(instance, index) {
            panic!("{what} is not as the document says: {error:#}\n{instance:#}");
        }
    }
}

fn compiled(schema: Value) -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let place = "http://localhost/schema.json";
    compiler.add_resource(place, schema).expect("a place");
    let index = compiler.compile(place, &mut schemas).expect("a schema");
    (schemas, index)
}

/// A queue `orders` and a topic `events` with a subscription `all`.
fn start() -> Broker {
    Setup::new()
        .arguments(&["--virtual-clock"])
        .configure(
            "lineage = true\n[[topics]]\nname = 'events'\n[[topics.subscriptions]]\nname = 'all'",
        )
        .start()
}

#[test]
fn every_route_answers_as_the_document_says() {
    let mut own = Interface::of(start());
    let none = Value::Null;
    let orders = [("path", "orders")];
    let all = [("path", "events/Subscriptions/all")];
    own.ask("GET", "openapi.json", &[], &none, 200);
    let overview = own.ask("GET", "overview", &[], &none, 200);
    assert!(overview["free-bytes"].as_u64() > Some(0), "{overview}");
    let counts = "counts?search=a&sort=active&order=descending&count=2";
    own.ask("GET", counts, &[], &none, 200);
    own.ask("GET", "counts?sort=name", &[], &none, 400);
    own.ask("GET", "entities", &[], &none, 200);
    let entity = "entities/{path}";
    for values in [orders, all, [("path", "events")]] {
        own.ask("GET", entity, &values, &none, 200);
    }
    own.ask("GET", entity, &[("path", "nothing")], &none, 404);
    let new = [("path", "a/new")];
    let unusual = json!({
        "lock-duration": "PT30S", "forward-to": "orders", "max-message-size": "1MiB", "expiry": "cloud",
    });
    own.ask("PUT", entity, &new, &unusual, 201);
    let shown = own.ask("GET", entity, &new, &none, 200);
    own.ask("PUT", entity, &new, &shown, 200);
    own.ask("PUT", entity, &new, &json!({"speed": 1}), 400);
    own.ask("PUT", entity, &new, &json!({"kind": "topic"}), 400);
    own.ask(
        "PATCH",
        entity,
        &new,
        &json!({"max-delivery-count": 3}),
        200,
    );
    own.ask("PATCH", entity, &new, &json!(5), 400);
    own.ask("DELETE", entity, &new, &none, 200);
    own.ask("DELETE", entity, &new, &none, 404);

    let rule = "entities/{path}/Rules/{rule}";
    let big = [all[0], ("rule", "big")];
    let filter = json!({"filter": {"sql": "n > @n"}, "filter-parameters": {"n": {"type": "int", "value": 5}}});
    own.ask("PUT", rule, &big, &filter, 201);
    own.ask("PUT", rule, &big, &filter, 200);
    own.ask("GET", rule, &big, &none, 200);
    let correlation = json!({"filter": {"correlation": {"subject": "x", "properties": {"a": 1}}}, "action": "SET b = 1"});
    own.ask("PATCH", rule, &big, &correlation, 200);
    own.ask("PATCH", rule, &big, &json!({"action": "SET"}), 400);
    own.ask("GET", "entities/{path}/Rules", &all, &none, 200);
    own.ask(
        "GET",
        "entities/{path}/Rules",
        &[("path", "x/Subscriptions/y")],
        &none,
        404,
    );
    own.ask("DELETE", rule, &big, &none, 200);
    own.ask("DELETE", rule, &big, &none, 404);

    let said = railbus(
        &own.broker,
        &[
            "send",
            "orders",
            "hello",
            "--count",
            "3",
            "--property",
            "n=5",
        ],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let messages = "entities/{path}/messages";
    own.ask("GET", messages, &orders, &none, 200);
    own.ask("GET", &format!("{messages}?part=x"), &orders, &none, 400);
    own.ask("GET", messages, &[("path", "nothing")], &none, 404);
    let some = own.ask(
        "GET",
        &format!("{messages}?filter=n%3D5&body=3"),
        &orders,
        &none,
        200,
    );
    assert_eq!(some["messages"][2]["body-start"], "hel");
    let nothing = own.ask(
        "GET",
        &format!("{messages}?filter=n%3D6"),
        &orders,
        &none,
        200,
    );
    assert_eq!(nothing["messages"], json!([]));
    own.ask(
        "GET",
        &format!("{messages}?filter=n%3D"),
        &orders,
        &none,
        400,
    );
    let described = json!({"subject": "x", "body": "hi", "properties": {"n": 7}});
    own.ask("POST", messages, &orders, &described, 201);
    own.ask("POST", messages, &orders, &json!({"colour": 1}), 400);
    let reasons = "entities/{path}/reasons";
    own.ask("GET", reasons, &orders, &none, 200);
    own.ask("GET", reasons, &[("path", "events")], &none, 400);
    let (purge, redrive) = ("entities/{path}/purge", "entities/{path}/redrive");
    own.ask("POST", purge, &orders, &json!({"dry-run": true}), 200);
    own.ask("POST", purge, &orders, &json!({"filter": "n = 5"}), 200);
    own.ask("POST", purge, &orders, &json!({"filter": "n ="}), 400);
    own.ask("POST", redrive, &orders, &none, 200);
    own.operate();
    let of_all = "namespaces/{name}/history?top=10000";
    let history = own.ask("GET", of_all, &[("name", "default")], &none, 200);
    assert_eq!(history["complete"], true, "{history}");
    own.name_spaces();
    own.sign_in_and_out();
    own.watch();
    own.ask("POST", redrive, &orders, &json!({"part": "active"}), 400);
    own.ask("POST", redrive, &[("path", "nothing")], &none, 404);

    let policy = "policies/{layer}/{name}";
    let short = [("layer", "user"), ("name", "short%20life")];
    let said = json!({"pattern": "^ord", "definition": {"message-ttl": 60_000}, "priority": 1.5});
    own.ask("PUT", policy, &short, &said, 201);
    let shown = own.ask("GET", policy, &short, &none, 200);
    own.ask("PUT", policy, &short, &shown, 200);
    own.ask("PUT", policy, &short, &json!({"pattern": "^ord"}), 400);
    own.ask("GET", "policies", &[], &none, 200);
    let wrong = [("layer", "both"), ("name", "x")];
    own.ask("GET", policy, &wrong, &none, 400);
    own.ask("DELETE", policy, &short, &none, 200);
    own.ask("DELETE", policy, &short, &none, 404);
    own.ask("GET", policy, &short, &none, 404);

    let file = json!({"policies": [{"name": "p", "pattern": "", "definition": {"expires": 9_000_000}}],
        "queues": [{"name": "orders", "max-delivery-count": 4}], "topics": [
        {"name": "events", "subscriptions": [{"name": "all", "rules": [{"name": "r", "filter": {"sql": "n > 1"}}]}]}]});
    own.ask("POST", "plan", &[], &file, 200);
    own.ask("POST", "plan", &[], &json!(5), 400);
    own.ask("POST", "apply", &[], &file, 200);
    let refused = json!({"queues": [{"name": "events"}]});
    own.ask("POST", "plan", &[], &refused, 200);
    own.ask("POST", "apply", &[], &refused, 409);
    own.ask("POST", "apply", &[], &json!({"queue": 1}), 400);

    let test = |sql: &str| json!({"filter": {"sql": sql}, "action": "SET a = 1", "message": {"subject": "x"}});
    own.ask("POST", "rules/test", &[], &test("sys.Label = 'x'"), 200);
    own.ask("POST", "rules/test", &[], &test("sys.Label = "), 400);
    own.ask("POST", "clock", &[], &json!({"freeze": true}), 200);
    own.ask("POST", "clock", &[], &json!({"advance": 5}), 400);
    own.ask("GET", "clock", &[], &none, 200);
    own.ask("POST", "backups", &[], &json!({"directory": "monday"}), 201);
    own.ask("POST", "backups", &[], &json!({"directory": "monday"}), 409);
    own.ask("POST", "backups", &[], &json!({"directory": "../x"}), 400);

    let paths = own.document["paths"].as_object().expect("paths").iter();
    let documented: BTreeSet<_> = paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().expect("methods").keys();
            let methods = methods.filter(|key| *key != "parameters");
            methods.map(move |method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(own.answered, documented, "each was answered once at least");
}

#[test]
fn a_method_that_the_document_does_not_have_is_not_allowed() {
    let own = Interface::of(start());
    for (template, item) in own.document["paths"].as_object().expect("paths") {
        // There they mean an entity of that name.
        let last = template.rsplit('/').next().unwrap_or_default();
        if [
            "messages",
            "reasons",
            "receivers",
            "message-sessions",
            "session-state",
            "explain",
            "settle",
            "purge",
            "redrive",
        ]
        .contains(&last)
        {
            continue;
        }
        let path = template.replace("{path}", "events/Subscriptions/all");
        let path = path.replace("{rule}", "$Default");
        let has = |method: &str| item.get(method.to_lowercase()).is_some();
        for method in METHODS.into_iter().filter(|method| !has(method)) {
            let answer = http::exchange(
                own.broker.address(),
                &format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                ),
            );
            assert!(
                answer.starts_with("HTTP/1.1 405 "),
                "{method} {path}: {answer}"
            );
            let allow = answer.lines().find_map(|line| line.strip_prefix("allow: "));
            let allowed: BTreeSet<_> = allow.expect("what is allowed").split(", ").collect();
            let documented = METHODS.into_iter().filter(|method| has(method));
            let mut documented: BTreeSet<_> = documented.collect();
            if documented.contains("GET") {
                documented.insert("HEAD");
            }
            assert_eq!(allowed, documented, "{path}");
        }
    }
    for path in ["/$railbus/", "/$railbus/nothing", "/$railbus/entitiesx"] {
        assert_eq!(http::get(own.broker.address(), path).0, 404, "{path}");
    }
}

#[test]
fn another_name_and_a_path_that_is_no_resource_are_refused() {
    let broker = start();
    let ask = |method: &str, path: &str, body: &str| {
        let path = format!("/$railbus/{path}");
        let (status, answer) = http::request(broker.address(), method, &path, &[], body);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        (status, answer["error"].to_string())
    };
    for method in ["PATCH", "PUT"] {
        let (status, error) = ask(method, "entities/orders", r#"{"name": "other"}"#);
        assert_eq!(status, 400, "{error}");
        assert!(error.contains("nothing can be renamed"), "{error}");
        let (status, _) = ask(method, "entities/orders", r#"{"name": "Orders"}"#);
        assert_eq!(status, 200);
    }
    // A list of the values in their order is no object.
    let (status, error) = ask("POST", "entities/orders/purge", "[]");
    assert_eq!(status, 400, "{error}");
    let (status, error) = ask("POST", "entities/orders/messages", r#"["id", "other"]"#);
    assert_eq!(status, 400, "{error}");
    for path in ["", "nowhere"] {
        let (status, error) = ask("GET", path, "");
        assert_eq!(status, 404, "{error}");
        assert!(error.contains("/$railbus/openapi.json"), "{error}");
    }
}

#[test]
fn what_the_document_does_not_allow_would_be_found() {
    let own = Interface::of(start());
    let schema = json!({"$ref": "#/components/schemas/Messages"});
    let whole = json!({"allOf": [schema], "components": own.document["components"]});
    let (schemas, index) = compiled(whole);
    let valid = |instance: Value| schemas.validate(&instance, index).is_ok();
    assert!(valid(
        json!({"messages": [{"sequence-number": 1}], "next": 2})
    ));
    for wrong in [
        json!({"messages": []}),
        json!({"messages": [{"sequence-number": "1"}], "next": null}),
        json!({"messages": [{"sequence-number": 1, "color": "red"}], "next": null}),
        json!({"messages": [{"sequence-number": 1, "state": "gone"}], "next": null}),
    ] {
        assert!(!valid(wrong.clone()), "{wrong}");
    }
}

/// The numbers, the bodies and what follows.
fn browse(broker: &Broker, entity: &str, query: &str) -> (Vec<u64>, Vec<String>, Value) {
    let path = format!("/$railbus/entities/{entity}/messages{query}");
    let (status, body) = http::get(broker.address(), &path);
    assert_eq!(status, 200, "{path}: {body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let messages = answer["messages"].as_array().expect("a list");
    let numbers = messages
        .iter()
        .map(|it| it["sequence-number"].as_u64().expect("a number"));
    let bodies = messages
        .iter()
        .map(|it| it["body"].as_str().unwrap_or("-").to_owned());
    (numbers.collect(), bodies.collect(), answer["next"].clone())
}

#[test]
fn messages_are_browsed_by_part_and_left_as_they_are() {
    let broker = start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in ["a", "b", "c", "d", "e"] {
        _ = peer.send(sender, body.as_bytes());
    }
    let receiver = peer.receiver("orders", 3);
    let [deferred, dead, _locked] = [(); 3].map(|()| peer.receive(receiver));
    let defer = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: None,
    };
    _ = peer.settle(&deferred, defer);
    _ = peer.settle(&dead, DeliveryState::Rejected(None));
    let said = railbus(&broker, &["send", "orders", "later", "--delay", "1h"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let check = |query: &str, expected: &[(u64, &str)], next: Value| {
        let (numbers, bodies, found) = browse(&broker, "orders", query);
        let bodies = bodies.iter().map(String::as_str);
        let shown: Vec<_> = numbers.into_iter().zip(bodies).collect();
        assert_eq!((&shown[..], found), (expected, next), "{query}");
    };
    for _ in 0..2 {
        check("", &[(3, "c"), (4, "d"), (5, "e")], Value::Null);
        check("?count=2", &[(3, "c"), (4, "d")], json!(5));
        check("?from=5&count=2", &[(5, "e")], Value::Null);
        check("?part=deferred", &[(1, "a")], Value::Null);
        check("?part=scheduled", &[(6, "later")], Value::Null);
        check("?part=deadletter&count=1", &[(2, "b")], json!(3));
        check("?part=dead-letter&from=3", &[], Value::Null);
        check("?part=transfer-dead-letter", &[], Value::Null);
    }
    let refused = |path: &str, status: u16, why: &str| {
        let path = format!("/$railbus/entities/{path}");
        let (found, body) = http::get(broker.address(), &path);
        assert_eq!(found, status, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        let said = answer["error"].as_str().expect("a sentence");
        assert!(said.contains(why), "{said}");
    };
    refused(
        "orders/messages?count=1001",
        400,
        "count must be a number from 1 to 1000",
    );
    refused("orders/messages?part=all", 400, "part `all` is not active");
    refused("nothing/messages", 404, "does not exist");
    refused(
        "events/messages",
        400,
        "a topic holds scheduled messages only",
    );
    refused(
        "events/Subscriptions/all/Rules/messages",
        404,
        "the rule 'messages' does not exist",
    );
    refused(
        "events/Subscriptions/all/Rules/messages/messages",
        400,
        "only queues and subscriptions",
    );
    let said = railbus(&broker, &["send", "events", "soon", "--delay", "1h"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let (_, bodies, _) = browse(&broker, "events", "?part=scheduled");
    assert_eq!(bodies, ["soon"]);
}

#[test]
fn scheduled_messages_are_browsed_by_due_time_page_by_page() {
    let broker = start();
    for (body, hours) in [
        ("a", "3h"),
        ("b", "1h"),
        ("c", "2h"),
        ("d", "1h"),
        ("e", "4h"),
    ] {
        let said = railbus(&broker, &["send", "orders", body, "--delay", hours]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let query = format!("?part=scheduled&order=due&count=2{next}");
        let (numbers, bodies, found) = browse(&broker, "orders", &query);
        assert!(numbers.len() <= 2, "{numbers:?}");
        all.extend(bodies);
        let Some(text) = found.as_str() else {
            assert_eq!(found, Value::Null);
            break;
        };
        next = format!("&from={text}");
    }
    assert_eq!(all, ["b", "d", "c", "a", "e"]);
    let filter = "?part=scheduled&order=due&filter=sys.SequenceNumber%20%3E%202";
    let (numbers, ..) = browse(&broker, "orders", filter);
    assert_eq!(numbers, [4, 3, 5]);
}

#[test]
fn an_answer_of_messages_is_bounded_in_bytes_and_goes_on_where_it_ended() {
    let broker = start();
    let path = "/$railbus/entities/orders";
    let larger = json!({"max-message-size": "1MiB"}).to_string();
    let (status, said) = http::request(broker.address(), "PATCH", path, &[], &larger);
    assert_eq!(status, 200, "{said}");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let body = "x".repeat(200 << 10);
    for _ in 0..40 {
        _ = peer.send(sender, body.as_bytes());
    }
    _ = peer.send(sender, "y".repeat(257 << 10).as_bytes());
    let (mut seen, mut from) = (Vec::new(), json!(1));
    while let Some(number) = from.as_u64() {
        let (numbers, bodies, next) =
            browse(&broker, "orders", &format!("?count=1000&from={number}"));
        assert!(
            numbers.len() < 30,
            "{} of 200 KiB in one answer",
            numbers.len()
        );
        let whole = bodies.iter().filter(|it| it.len() == body.len()).count();
        let cut = bodies.iter().filter(|it| *it == "-").count();
        assert_eq!(whole + cut, bodies.len());
        assert_eq!(cut, usize::from(numbers.contains(&41)));
        seen.extend(numbers);
        from = next;
    }
    let all: Vec<_> = (1..=41).collect();
    assert_eq!(seen, all);
    let (_, answer) = http::get(
        broker.address(),
        "/$railbus/entities/orders/messages?from=41",
    );
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["messages"][0]["body-bytes"], 257 << 10);
}

#[test]
fn scheduled_and_deferred_messages_are_purged_by_filter_and_limit() {
    let broker = start();
    let send = |body: &str, more: &[&str]| {
        let arguments = [&["send", "orders", body][..], more].concat();
        let said = railbus(&broker, &arguments);
        assert_eq!(said.code, 0, "{}", said.err);
    };
    for number in 0..5 {
        let property = format!("n={number}");
        send("later", &["--delay", "1h", "--property", &property]);
    }
    send("now", &["--count", "3"]);
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 3);
    for received in [(); 3].map(|()| peer.receive(receiver)) {
        let defer = DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: true,
            message_annotations: None,
        };
        _ = peer.settle(&received, defer);
    }
    send("stays", &[]);
    let check = |arguments: &[&str], said: &str, left: [usize; 3]| {
        let arguments = [&["purge", "orders"][..], arguments].concat();
        let purged = railbus(&broker, &arguments);
        assert_eq!((purged.code, &*purged.out), (0, said), "{}", purged.err);
        let parts = ["active", "scheduled", "deferred"];
        let found = parts.map(|part| browse(&broker, "orders", &format!("?part={part}")).0.len());
        assert_eq!(found, left, "{arguments:?}");
    };
    let scheduled = ["--part", "scheduled"];
    check(
        &[&scheduled[..], &["--dry-run"]].concat(),
        "selected 5\n",
        [1, 5, 3],
    );
    check(
        &[&scheduled[..], &["--filter", "n > 2"]].concat(),
        "purged 2\n",
        [1, 3, 3],
    );
    check(
        &[&scheduled[..], &["--limit", "1"]].concat(),
        "purged 1\n",
        [1, 2, 3],
    );
    check(
        &[&scheduled[..], &["--rate", "1000"]].concat(),
        "purged 2\n",
        [1, 0, 3],
    );
    let deferred = ["--part", "deferred"];
    check(
        &[&deferred[..], &["--limit", "2"]].concat(),
        "purged 2\n",
        [1, 0, 1],
    );
    check(&deferred, "purged 1\n", [1, 0, 0]);
    let topic = ["send", "events", "soon", "--delay", "1h"];
    assert_eq!(railbus(&broker, &topic).code, 0);
    let said = railbus(&broker, &["purge", "events", "--part", "scheduled"]);
    assert_eq!((said.code, &*said.out), (0, "purged 1\n"), "{}", said.err);
    let body = json!({"part": "scheduled"}).to_string();
    let path = "/$railbus/entities/orders/redrive";
    let (status, _) = http::request(broker.address(), "POST", path, &[], &body);
    assert_eq!(status, 400);
}
