//! The command line: entities, rules and messages of a running broker.

use std::fs;

use e2e::cli::{Said, railbus, railbus_at};
use e2e::{Broker, Setup};
use serde_json::{Value, json};

fn start() -> Broker {
    let text = "[[topics]]\nname = 'events'\n[[topics.subscriptions]]\nname = 'all'";
    Setup::new().configure(text).start()
}

/// Runs a command that is expected to succeed, and returns what it printed.
fn ok(broker: &Broker, command: &str) -> String {
    let arguments: Vec<_> = command.split_whitespace().collect();
    let said = railbus(broker, &arguments);
    assert_eq!(said.code, 0, "{command}: {said:?}");
    said.out
}

fn json_of(broker: &Broker, command: &str) -> Value {
    serde_json::from_str(&ok(broker, command)).expect("JSON")
}

fn fails(broker: &Broker, command: &str, code: i32, part: &str) {
    let arguments: Vec<_> = command.split_whitespace().collect();
    let Said {
        code: found, err, ..
    } = railbus(broker, &arguments);
    assert_eq!(found, code, "{command}: {err}");
    assert!(err.contains(part), "{command}: {err}");
}

#[test]
fn queues_are_listed_made_changed_and_deleted() {
    let broker = start();
    let list = ok(&broker, "queue list");
    assert_eq!(
        list,
        "name    status  active  dead-letter  scheduled  bytes\n\
         orders  active  0       0            0          0\n\
         others  active  0       0            0          0\n"
    );
    ok(
        &broker,
        "queue create in/eu --lock-duration 30s --requires-session --default-message-time-to-live 14d",
    );
    let queue = json_of(&broker, "queue show in/eu --json");
    assert_eq!(queue["lock-duration"], "PT30S");
    assert_eq!(queue["requires-session"], true);
    assert_eq!(queue["default-message-time-to-live"], "P14D");
    ok(
        &broker,
        "queue update in/eu --max-delivery-count 3 --forward-dead-lettered-messages-to orders",
    );
    let queue = json_of(&broker, "queue show in/eu --json");
    assert_eq!(
        (&queue["max-delivery-count"], &queue["lock-duration"]),
        (&json!(3), &json!("PT30S"))
    );
    assert_eq!(queue["forward-dead-lettered-messages-to"], "orders");
    let said = railbus(
        &broker,
        &[
            "queue",
            "update",
            "in/eu",
            "--forward-dead-lettered-messages-to",
            "",
        ],
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains("forward"), "{}", said.out);
    assert_eq!(ok(&broker, "queue delete in/eu"), "");
    fails(
        &broker,
        "queue show in/eu",
        1,
        "refused with 404 Not Found: the entity does not exist",
    );
}

#[test]
fn an_empty_text_takes_a_property_away() {
    let broker = start();
    ok(&broker, "queue create plain");
    let plain = json_of(&broker, "queue show plain --json");
    ok(
        &broker,
        "queue create full --lock-duration 30s --default-message-time-to-live 1h --auto-delete-on-idle 1h \
         --max-delivery-count 3 --max-size-in-megabytes 2048 --forward-to others --status disabled",
    );
    let full = json_of(&broker, "queue show full --json");
    for name in [
        "lock-duration",
        "default-message-time-to-live",
        "auto-delete-on-idle",
        "max-delivery-count",
        "max-size-in-megabytes",
        "forward-to",
        "status",
    ] {
        assert_ne!(full[name], plain[name], "{name}");
        let option = format!("--{name}");
        let said = railbus(&broker, &["queue", "update", "full", &option, ""]);
        assert_eq!(said.code, 0, "{name}: {said:?}");
        let full = json_of(&broker, "queue show full --json");
        assert_eq!(full[name], plain[name], "{name}");
    }
}

#[test]
fn a_queue_that_forwards_to_itself_is_in_an_export_that_can_be_applied() {
    let setup = Setup::new();
    let file = setup.directory().join("exported.toml");
    let broker = setup.start();
    ok(&broker, "queue update others --forward-to others");
    let text = ok(&broker, "config export --format toml");
    fs::write(&file, text).expect("the directory is ours");
    let file = file.to_str().expect("a path in UTF-8");
    ok(&broker, &format!("config check {file}"));
    ok(&broker, &format!("config plan {file}"));
    ok(&broker, "queue delete others");
    ok(&broker, &format!("config apply {file}"));
    let queue = json_of(&broker, "queue show others --json");
    assert_eq!(queue["forward-to"], "others");
}

#[test]
fn names_have_tildes_and_begin_and_end_with_marks() {
    let broker = start();
    for name in ["~", "_a.", "a/-b~"] {
        ok(&broker, &format!("queue create {name}"));
        let queue = json_of(&broker, &format!("queue show {name} --json"));
        assert_eq!(queue["name"], name);
        ok(
            &broker,
            &format!("subscription create events {}", &name[..1]),
        );
    }
    ok(&broker, "queue create -- -a-");
    assert!(ok(&broker, "queue list").contains("\n-a-     active"));
    ok(&broker, "rule create events all _r.");
    ok(&broker, "rule delete events all _r.");
}

#[test]
fn topics_subscriptions_and_rules_are_listed_made_changed_and_deleted() {
    let broker = start();
    ok(&broker, "topic create shop --max-size-in-megabytes 5");
    assert_eq!(
        json_of(&broker, "topic show shop --json")["max-size-in-megabytes"],
        5
    );
    ok(&broker, "topic update shop --status send-disabled");
    assert!(ok(&broker, "topic list").contains("shop    send-disabled"));
    ok(
        &broker,
        "subscription create shop big --max-delivery-count 2",
    );
    ok(
        &broker,
        "subscription update shop big --dead-lettering-on-message-expiration",
    );
    let shown = json_of(&broker, "subscription show shop big --json");
    assert_eq!(shown["dead-lettering-on-message-expiration"], true);
    assert_eq!(shown["max-delivery-count"], 2);
    assert!(ok(&broker, "subscription list shop").contains("\nbig   active"));
    ok(
        &broker,
        "rule create shop big red --correlation {\"subject\":\"red\"}",
    );
    let said = railbus(
        &broker,
        &[
            "rule",
            "create",
            "shop",
            "big",
            "large-ones",
            "--expression",
            "amount > 100",
            "--action",
            "SET big = TRUE",
        ],
    );
    assert_eq!(said.code, 0, "{said:?}");
    ok(&broker, "rule delete shop big $Default");
    assert_eq!(
        ok(&broker, "rule list shop big"),
        "name        filter                             action\n\
         large-ones  amount > 100                       SET big = TRUE\n\
         red         {\"correlation\":{\"subject\":\"red\"}}  -\n"
    );
    ok(&broker, "rule update shop big red --everything");
    let rule = json!({"name": "red", "filter": true});
    assert_eq!(json_of(&broker, "rule show shop big red --json"), rule);
    ok(&broker, "subscription delete shop big");
    ok(&broker, "topic delete shop");
    assert!(!ok(&broker, "topic list").contains("shop"));
}

#[test]
fn what_is_wrong_is_one_sentence_and_an_exit_code() {
    let broker = start();
    fails(
        &broker,
        "queue create orders",
        1,
        "refused with 409 Conflict: a queue of that path exists already",
    );
    fails(
        &broker,
        "queue update orders --requires-session",
        1,
        "cannot be changed after",
    );
    fails(
        &broker,
        "queue show events",
        1,
        "events is a topic, not a queue: use `railbus topic`",
    );
    fails(
        &broker,
        "topic delete orders",
        1,
        "orders is a queue, not a topic",
    );
    fails(
        &broker,
        "queue create a --lock-duration 1h",
        1,
        "PT1H is above the maximum of PT5M",
    );
    fails(
        &broker,
        "queue create a --lock-duration soon",
        2,
        "`soon` is not a duration",
    );
    for name in ["a//b", "a/../b", "/a", "a/", "a!b", "$a"] {
        fails(
            &broker,
            &format!("queue create {name}"),
            1,
            &format!("'{name}' contains character(s) that is not allowed"),
        );
    }
    let said = railbus(&broker, &["queue", "create", ""]);
    assert_eq!(said.code, 2);
    let expected = "a value is required for '<PATH>'";
    assert!(said.err.contains(expected), "{}", said.err);
    fails(
        &broker,
        "subscription create events a/b",
        1,
        "'a/b' contains character(s) that is not allowed",
    );
    fails(
        &broker,
        "rule create events all a~b",
        1,
        "'a~b' contains character(s) that is not allowed",
    );
    fails(
        &broker,
        "queue create a --speed 5",
        2,
        "unexpected argument '--speed'",
    );
    fails(
        &broker,
        "rule create events all x --correlation {",
        2,
        "--correlation is not",
    );
    fails(
        &broker,
        "rule show events all x",
        1,
        "the rule 'x' does not exist",
    );
    fails(
        &broker,
        "subscription create nothing s",
        1,
        "the topic does not exist",
    );
    fails(
        &broker,
        "purge events",
        1,
        "a topic holds scheduled messages only",
    );
    fails(
        &broker,
        "purge orders --filter n>",
        1,
        "the filter: at character",
    );
    fails(
        &broker,
        "send nothing hello",
        1,
        "access to nothing was refused with 404",
    );
    fails(
        &broker,
        "receive nothing",
        1,
        "access to nothing was refused with 404",
    );
    let nobody = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true";
    let said = railbus_at(nobody, &["queue", "list"], "");
    assert_eq!(said.code, 1);
    assert!(
        said.err
            .starts_with("railbus: no connection to 127.0.0.1:1: "),
        "{}",
        said.err
    );
    let wrong = format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=wrong;\
         UseDevelopmentEmulator=true",
        broker.address()
    );
    let said = railbus_at(&wrong, &["send", "orders", "x"], "");
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("access to orders was refused with 401"),
        "{}",
        said.err
    );
}

#[test]
fn messages_are_sent_peeked_and_received() {
    let broker = start();
    ok(
        &broker,
        "send orders hello --subject red --message-id 7 --property n=5 --property color=blue",
    );
    let sent = json!({
        "message-id": "7", "subject": "red", "properties": {"n": 5, "color": "blue"}, "body": "hello",
        "sequence-number": 1,
    });
    let is_sent = |shown: &str| {
        let shown: Value = serde_json::from_str(shown).expect("JSON");
        let same = sent
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, value)| shown[name] == *value);
        assert!(same && shown["enqueued-time"].is_string(), "{shown}");
    };
    is_sent(&ok(&broker, "peek orders --json"));
    is_sent(&ok(&broker, "receive orders --json --abandon"));
    let again = ok(&broker, "receive orders --json");
    assert_eq!(
        serde_json::from_str::<Value>(&again).unwrap()["delivery-count"],
        1
    );
    assert_eq!(ok(&broker, "receive orders"), "");
    assert_eq!(ok(&broker, "peek orders"), "");
}

#[test]
fn many_messages_go_through_pipes() {
    let broker = start();
    let lines: String = (0..600).map(|number| format!("line {number}\n")).collect();
    let connection = format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true",
        broker.address()
    );
    let said = railbus_at(&connection, &["send", "events", "--lines"], &lines);
    assert_eq!((said.code, &*said.err), (0, ""));
    let all = "events/Subscriptions/all";
    assert_eq!(ok(&broker, &format!("peek {all} --count 1000")), lines);
    assert_eq!(ok(&broker, &format!("peek {all} --from 600")), "line 599\n");
    assert_eq!(ok(&broker, &format!("receive {all} --count 1000")), lines);
    let said = railbus_at(
        &connection,
        &["send", "orders", "--count", "3"],
        "from stdin",
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        ok(&broker, "receive orders --count 3 --wait"),
        "from stdin\nfrom stdin\nfrom stdin\n"
    );
}

#[test]
fn a_session_is_received_alone() {
    let broker = start();
    ok(&broker, "queue create s --requires-session");
    ok(&broker, "send s one --session-id a");
    ok(&broker, "send s two --session-id b");
    assert_eq!(ok(&broker, "receive s --session-id b --count 5"), "two\n");
    let next = railbus(
        &broker,
        &["receive", "s", "--session-id", "", "--count", "5"],
    );
    assert_eq!((next.code, &*next.out), (0, "one\n"));
    let none = railbus(&broker, &["receive", "s", "--session-id", ""]);
    assert_eq!((none.code, &*none.out), (0, ""), "{}", none.err);
}

/// A queue with `count` dead letters, each with its number as `n`.
fn dead_letters(broker: &Broker, count: usize) {
    ok(broker, "queue create work --max-delivery-count 1");
    for number in 0..count {
        ok(
            broker,
            &format!("send work m{number} --property n={number}"),
        );
    }
    ok(broker, &format!("receive work --abandon --count {count}"));
}

#[test]
fn dead_letters_are_put_back_with_filter_limit_and_dry_run() {
    let broker = start();
    dead_letters(&broker, 6);
    assert_eq!(ok(&broker, "redrive work --dry-run"), "selected 6\n");
    let even = [
        "redrive",
        "work",
        "--filter",
        "n % 2 = 0 AND DeadLetterReason LIKE 'Max%'",
        "--json",
    ];
    let dry: Vec<_> = even.iter().copied().chain(["--dry-run"]).collect();
    let said = railbus(&broker, &dry);
    let answer: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(answer, json!({"selected": 3, "kept": 0, "dry-run": true}));
    let said = railbus(&broker, &even);
    let answer: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(answer, json!({"redriven": 3, "kept": 0, "dry-run": false}));
    assert_eq!(ok(&broker, "peek work"), "m0\nm2\nm4\n");
    let first = json_of(&broker, "peek work --json --count 1");
    assert_eq!(first["properties"], json!({"n": 0}));
    assert_eq!(
        first
            .get("delivery-count")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        0
    );
    assert_eq!(
        ok(&broker, "redrive work --limit 1 --rate 100"),
        "redriven 1\n"
    );
    assert_eq!(ok(&broker, "peek work --dead-letter"), "m3\nm5\n");
    assert_eq!(ok(&broker, "redrive work"), "redriven 2\n");
    assert_eq!(ok(&broker, "redrive work"), "redriven 0\n");
    assert_eq!(ok(&broker, "receive work --count 9").lines().count(), 6);
}

#[test]
fn messages_are_purged_with_filter_and_limit() {
    let broker = start();
    for number in 0..6 {
        ok(
            &broker,
            &format!("send orders m{number} --property n={number}"),
        );
    }
    let said = railbus(
        &broker,
        &["purge", "orders", "--filter", "n > 3", "--dry-run"],
    );
    assert_eq!((said.code, &*said.out), (0, "selected 2\n"));
    let said = railbus(&broker, &["purge", "orders", "--filter", "n > 3"]);
    assert_eq!((said.code, &*said.out), (0, "purged 2\n"));
    assert_eq!(ok(&broker, "purge orders --limit 1"), "purged 1\n");
    assert_eq!(ok(&broker, "peek orders"), "m1\nm2\nm3\n");
    assert_eq!(ok(&broker, "purge orders"), "purged 3\n");
    assert_eq!(ok(&broker, "purge orders --part dead-letter"), "purged 0\n");
}

#[test]
fn what_was_put_back_survives_the_brokers_death() {
    let setup = Setup::new();
    let broker = setup.start();
    dead_letters(&broker, 3);
    assert_eq!(ok(&broker, "redrive work"), "redriven 3\n");
    broker.kill();
    let broker = setup.start();
    assert_eq!(ok(&broker, "peek work"), "m0\nm1\nm2\n");
    assert_eq!(ok(&broker, "peek work --dead-letter"), "");
}

#[test]
fn everything_is_spoken_within_tls_too() {
    let setup = Setup::new();
    let broker = setup.start();
    let ca = setup.data().join("tls").join("ca.pem");
    let ca = ca.to_str().expect("a path of ours");
    let secure = format!(
        "Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
        broker.address().port()
    );
    let check = |arguments: &[&str], out: &str| {
        let said = railbus_at(&secure, arguments, "");
        assert_eq!((said.code, &*said.out), (0, out), "{}", said.err);
    };
    check(&["send", "orders", "hello", "--ca", ca], "");
    check(&["receive", "orders", "--ca", ca], "hello\n");
    check(&["purge", "orders", "--ca", ca], "purged 0\n");
    let address = broker.address().to_string();
    check(
        &["health", "--listen", &address, "--ca", ca],
        "Service is healthy.\n",
    );
    // Without `--ca` the program does not trust the broker's own authority.
    let said = railbus_at(&secure, &["queue", "list"], "");
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("no connection to localhost:"),
        "{}",
        said.err
    );
    let missing = setup.directory().join("none.pem");
    let said = railbus_at(
        &secure,
        &["queue", "list", "--ca", missing.to_str().unwrap()],
        "",
    );
    assert!(said.err.contains("none.pem cannot be used"), "{}", said.err);
    fs::write(&missing, "").expect("the directory is ours");
    let said = railbus_at(
        &secure,
        &["queue", "list", "--ca", missing.to_str().unwrap()],
        "",
    );
    assert!(
        said.err.contains("there is no certificate in PEM in it"),
        "{}",
        said.err
    );
}

#[test]
fn shells_complete_the_commands() {
    for (shell, part) in [
        ("bash", "_railbus()"),
        ("zsh", "#compdef railbus"),
        ("fish", "complete -c railbus"),
    ] {
        let said = railbus_at("", &["completions", shell], "");
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(
            said.out.contains(part) && said.out.contains("redrive"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::TempDir::new().expect("there is room");
    let said = railbus_at("", &["man", folder.path().to_str().expect("text")], "");
    assert_eq!(said.code, 0, "{}", said.err);
    for (page, part) in [
        ("railbus.1", "railbus\\-serve(1)"),
        ("railbus-serve.1", "\\-\\-exit\\-on\\-stdin\\-close"),
        ("railbus-queue-create.1", "lock\\-duration"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(page)).expect(page);
        assert!(text.contains(part), "{part} is not in {page}: {text}");
    }
    let said = railbus_at("", &["man", "/nowhere"], "");
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("/nowhere cannot be written"),
        "{}",
        said.err
    );
}
