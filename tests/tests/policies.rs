//! Policies from the outside: commands, files, our own interface and RabbitMQ's, and what becomes
//! of messages.

use amqp::DeliveryState;
use e2e::cli::railbus;
use e2e::http::{rabbitmq as api, rabbitmq_as as api_as};
use e2e::{Peer, Setup, http};
use serde_json::{Value, json};

#[test]
fn commands_set_list_and_clear_policies_that_hold_at_once() {
    let broker = Setup::new().start();
    let run = |arguments: &[&str]| {
        let said = railbus(&broker, arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    run(&["queue", "create", "short"]);
    let definition = r#"{"max-length": 2, "overflow": "reject-publish"}"#;
    let set = [
        "policy",
        "set",
        "two",
        "^short$",
        definition,
        "--apply-to",
        "queues",
    ];
    run(&set);
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("short");
    for body in [b"a", b"b"] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let DeliveryState::Rejected(Some(error)) = peer.send(sender, b"c") else {
        panic!("the queue has two messages");
    };
    assert_eq!(error.condition.as_str(), "amqp:resource-limit-exceeded");
    let cap = r#"{"max-length": 3}"#;
    run(&[
        "policy",
        "set",
        "cap",
        "short",
        cap,
        "--operator",
        "--priority",
        "-1",
    ]);
    let listed = run(&["policy", "list"]);
    let rows: Vec<_> = listed.lines().collect();
    assert_eq!(rows.len(), 3, "{listed}");
    assert!(
        rows[1].starts_with("two ") && rows[2].starts_with("cap "),
        "{listed}"
    );
    run(&["policy", "clear", "two"]);
    // The operators' policy drops the oldest.
    for body in [b"c", b"d"] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let shown = run(&["queue", "show", "short", "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (&shown["state"]["active"], &shown["state"]["dead-letter"]),
        (&json!(3), &json!(1))
    );
    let said = railbus(&broker, &["policy", "clear", "two"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("there is no policy 'two'"),
        "{}",
        said.err
    );
    let said = railbus(&broker, &["policy", "set", "p", "(", cap]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("unclosed group"), "{}", said.err);
}

#[test]
fn policies_of_files_are_planned_applied_and_exported() {
    let policy =
        "[[policies]]\nname = 'ttl'\npattern = '^a'\ndefinition = { message-ttl = 5000 }\n";
    let setup = Setup::new().configure(policy);
    let broker = setup.start();
    let (status, shown) = api(&broker, "GET", "policies/%2F/ttl", &Value::Null);
    assert_eq!(
        (status, &shown["definition"]),
        (200, &json!({"message-ttl": 5000}))
    );
    let exported = railbus(&broker, &["config", "export"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    assert!(exported.out.contains("[[policies]]"), "{}", exported.out);
    let file = setup.directory().join("wanted.toml");
    std::fs::write(&file, exported.out.replace("5000", "6000")).expect("a file");
    let file = file.to_str().expect("a path");
    let planned = railbus(&broker, &["config", "plan", file]);
    assert_eq!(planned.code, 1, "{}", planned.err);
    assert!(
        planned.out.starts_with("update policy ttl: definition"),
        "{}",
        planned.out
    );
    let applied = railbus(&broker, &["config", "apply", file]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    let again = railbus(&broker, &["config", "plan", file]);
    assert_eq!(again.out, "nothing changes\n");
    let (_, shown) = api(&broker, "GET", "policies/%2f/ttl", &Value::Null);
    assert_eq!(shown["definition"], json!({"message-ttl": 6000}));
}

#[test]
fn rabbitmqs_interface_answers_as_rabbitmq_does() {
    let broker = Setup::new().start();
    let none = Value::Null;
    let check = |method: &str, path: &str, body: &Value, expected: (u16, Value)| {
        assert_eq!(
            api(&broker, method, path, body),
            expected,
            "{method} {path}"
        );
    };
    let missing = json!({"error": "Object Not Found", "reason": "Not Found"});
    let policy = json!({"pattern": "^q", "definition": {"max-length": 5}, "priority": 2});
    check("PUT", "policies/%2F/p", &policy, (201, none.clone()));
    check("PUT", "policies/%2F/p", &policy, (204, none.clone()));
    let shown = json!({
        "vhost": "/", "name": "p", "pattern": "^q", "apply-to": "all",
        "definition": {"max-length": 5}, "priority": 2,
    });
    check("GET", "policies/%2F/p", &none, (200, shown.clone()));
    check("GET", "policies", &none, (200, json!([shown])));
    check(
        "POST",
        "policies/%2F/p",
        &policy,
        (
            405,
            json!({
                "error": "Method Not Allowed", "reason": "Method Not Allowed",
            }),
        ),
    );
    let not_json = json!({"error": "bad_request", "reason": "not_json"});
    check("PUT", "policies/%2F/p", &json!([1]), (400, not_json));
    let reason = "Validation failed\n\n-1 is not a valid message TTL\n";
    let wrong = json!({"pattern": "", "definition": {"message-ttl": -1}});
    let refused = json!({"error": "bad_request", "reason": reason});
    check("PUT", "policies/%2F/p", &wrong, (400, refused));
    let vhost = json!({"error": "not_found", "reason": "vhost_not_found"});
    check("GET", "policies/other", &none, (404, vhost));

    let arguments = json!({"x-message-ttl": 600_000, "x-queue-type": "quorum"});
    let queue = json!({"durable": true, "arguments": arguments});
    check("PUT", "queues/%2F/q", &queue, (201, none.clone()));
    check("PUT", "queues/%2F/q", &queue, (204, none.clone()));
    let cap = json!({"pattern": "", "definition": {"max-length": 3}});
    check(
        "PUT",
        "operator-policies/%2F/cap",
        &cap,
        (201, none.clone()),
    );
    let (status, shown) = api(&broker, "GET", "queues/%2F/q", &none);
    assert_eq!(status, 200);
    let names = [&shown["policy"], &shown["operator_policy"]];
    assert_eq!(names, [&json!("p"), &json!("cap")]);
    assert_eq!(
        shown["effective_policy_definition"],
        json!({"max-length": 3})
    );
    assert_eq!(
        (&shown["arguments"], &shown["type"]),
        (&arguments, &json!("quorum"))
    );

    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("q");
    for _ in 0..4 {
        assert_eq!(peer.send(sender, b"a"), DeliveryState::Accepted);
    }
    let (_, shown) = api(&broker, "GET", "queues/%2F/q", &none);
    assert_eq!(shown["messages_ready"], 3);
    check(
        "DELETE",
        "queues/%2F/q/contents",
        &none,
        (204, none.clone()),
    );
    let (_, shown) = api(&broker, "GET", "queues/%2F/q", &none);
    assert_eq!(shown["messages_ready"], 0);

    let (status, definitions) = api(&broker, "GET", "definitions", &none);
    assert_eq!(status, 200);
    check("DELETE", "policies/%2F/p", &none, (204, none.clone()));
    check("DELETE", "policies/%2F/p", &none, (404, missing.clone()));
    check(
        "DELETE",
        "operator-policies/%2F/cap",
        &none,
        (204, none.clone()),
    );
    check("DELETE", "queues/%2F/q", &none, (204, none.clone()));
    check("DELETE", "queues/%2F/q", &none, (404, missing));
    check("POST", "definitions", &definitions, (204, none.clone()));
    assert_eq!(
        api(&broker, "GET", "definitions", &none),
        (200, definitions)
    );
}

#[test]
fn rabbitmqs_tools_get_what_they_can_read() {
    let broker = Setup::new().start();
    let check = |method: &str, path: &str, body: Value, status: u16| {
        let (found, answer) = api(&broker, method, path, &body);
        assert_eq!(found, status, "{method} {path}: {answer}");
        answer
    };
    let read = |path: &str| check("GET", path, Value::Null, 200);
    // Tools that print all values as texts, flags too.
    let flags = json!({"durable": "true", "auto_delete": "false"});
    check("PUT", "queues/%2F/q", flags.clone(), 201);
    check("PUT", "exchanges/%2F/x", flags, 201);
    let wrong = check("PUT", "queues/%2F/r", json!({"auto_delete": "yes"}), 400);
    assert_eq!(wrong["reason"], "[\"not_boolean\",\"yes\"]");
    // What RabbitMQ has and this broker has not, to a client with the right password.
    for path in ["nodes", "users/guest", "health/checks/alarms", "whoami"] {
        let missing = check("GET", path, Value::Null, 404);
        assert_eq!(missing["error"], "Object Not Found", "{path}");
    }
    // Policies of what RabbitMQ's tools do not know.
    for kind in ["topics", "subscriptions"] {
        let policy = json!({"pattern": "t", "definition": {"message-ttl": 5}, "apply-to": kind});
        let path = format!("policies/%2F/{kind}");
        check("PUT", &path, policy, 201);
        assert_eq!(read(&path)["apply-to"], kind);
    }
    assert_eq!(read("policies"), json!([]));
    let definitions = read("definitions");
    assert_eq!(definitions["policies"], json!([]));
    assert_eq!(definitions["users"], json!([]));
    check("POST", "definitions", definitions, 204);
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("q");
    assert_eq!(peer.send(sender, b"a"), DeliveryState::Accepted);
    let overview = read("overview");
    let queues = read("queues").as_array().map(Vec::len);
    assert_eq!(json!(queues), overview["object_totals"]["queues"]);
    assert_eq!(overview["queue_totals"]["messages_ready"], 1);
}

#[test]
fn a_queue_with_a_message_of_any_kind_is_not_empty() {
    let broker = Setup::new().start();
    let later = "BrokerProperties: {\"ScheduledEnqueueTimeUtc\":\"Fri, 01 Jan 2100 00:00:00 GMT\"}";
    let mut peer = Peer::connect(broker.address());
    let deferred = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: Default::default(),
    };
    for (queue, outcome) in [
        ("scheduled", None),
        ("deferred", Some(deferred)),
        ("dead", Some(DeliveryState::Rejected(None))),
    ] {
        let said = railbus(&broker, &["queue", "create", queue]);
        assert_eq!(said.code, 0, "{}", said.err);
        let headers = match &outcome {
            Some(_) => &[][..],
            None => &[later][..],
        };
        let path = format!("/{queue}/messages");
        let (status, answer) = http::request(broker.address(), "POST", &path, headers, "a");
        assert_eq!(status, 201, "{answer}");
        if let Some(outcome) = outcome {
            let receiver = peer.receiver(queue, 1);
            let received = peer.receive(receiver);
            drop(peer.settle(&received, outcome));
        }
        let path = format!("queues/%2F/{queue}");
        let (_, shown) = api(&broker, "GET", &path, &Value::Null);
        assert_eq!(shown["messages"], 0, "{queue}");
        let reason = format!("queue '{queue}' in vhost '/' not empty");
        let refused = (400, json!({"error": "bad_request", "reason": reason}));
        let if_empty = format!("{path}?if-empty=true");
        assert_eq!(api(&broker, "DELETE", &if_empty, &Value::Null), refused);
        assert_eq!(
            api(&broker, "DELETE", &path, &Value::Null),
            (204, Value::Null)
        );
    }
}

#[test]
fn rabbitmqs_interface_needs_the_right_to_manage() {
    let rules = "[[auth.rules]]\nname = 'm'\nprimary-key = 'k7f31c0a95d2'\nrights = ['manage']\n\
                 [[auth.rules]]\nname = 's'\nprimary-key = 'k7f31c0a95d2'\nrights = ['send']\n";
    let broker = Setup::new().configure(rules).start();
    let check = |headers: &[&str], expected: (u16, Value)| {
        let answer = api_as(&broker, "GET", "policies", headers, &Value::Null);
        assert_eq!(answer, expected);
    };
    check(&[], (401, Value::Null));
    // The rules m and s with their key, m with a wrong one, and guest.
    check(
        &["Authorization: Basic bTprN2YzMWMwYTk1ZDI="],
        (200, json!([])),
    );
    let lacking = json!({"error": "not_authorised", "reason": "Not management user"});
    check(
        &["Authorization: Basic czprN2YzMWMwYTk1ZDI="],
        (401, lacking),
    );
    let wrong = json!({"error": "not_authorized", "reason": "Not_Authorized"});
    check(&["Authorization: Basic bTp3cm9uZw=="], (401, wrong.clone()));
    check(&["Authorization: Basic Z3Vlc3Q6Z3Vlc3Q="], (401, wrong));
    let development = Setup::new().start();
    let guest = ["Authorization: Basic Z3Vlc3Q6Z3Vlc3Q="];
    let answer = api_as(&development, "GET", "policies", &guest, &Value::Null);
    assert_eq!(answer, (200, json!([])));
}

#[test]
fn entities_may_be_called_as_parts_of_rabbitmqs_interface_are() {
    let broker = Setup::new().start();
    for queue in ["api", "api/users"] {
        let said = railbus(&broker, &["queue", "create", queue]);
        assert_eq!(said.code, 0, "{}", said.err);
        let path = format!("/{queue}/messages");
        let (status, answer) = http::request(broker.address(), "POST", &path, &[], "a");
        assert_eq!(status, 201, "{answer}");
        let path = format!("/{queue}?api-version=2021-05");
        let (status, answer) = http::get(broker.address(), &path);
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains("QueueDescription"), "{answer}");
    }
}
