//! Configuration of a running broker: planned, applied, exported, and reloaded.

use std::fs;
use std::path::PathBuf;

use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Writes a file for a broker to read.
fn write(setup: &Setup, name: &str, text: &str) -> PathBuf {
    let file = setup.directory().join(name);
    fs::write(&file, text).expect("the directory is ours");
    file
}

fn entity(broker: &Broker, path: &str) -> (u16, Value) {
    let (status, body) = http::get(broker.address(), &format!("/$railbus/entities/{path}"));
    (status, serde_json::from_str(&body).expect("JSON"))
}

const FILE: &str = r#"
[[queues]]
name = "orders"
max-delivery-count = 3

[[topics]]
name = "events"
[[topics.subscriptions]]
name = "big"
[[topics.subscriptions.rules]]
name = "a"
filter = { sql = "n > 1" }
"#;

#[test]
fn a_file_is_planned_applied_and_exported() {
    let setup = Setup::new();
    let broker = setup.start();
    let file = write(&setup, "entities.toml", FILE);
    let file = file.to_str().expect("a path of ours");
    let changes = "update queue orders: max-delivery-count 10 -> 3\n\
                   create topic events\n\
                   create subscription events/Subscriptions/big\n\
                   create rule events/Subscriptions/big/Rules/a: filter - -> {\"sql\":\"n > 1\"}\n";
    for (command, code) in [("plan", 1), ("plan", 1), ("apply", 0)] {
        let said = railbus(&broker, &["config", command, file]);
        assert_eq!((said.code, &*said.out), (code, changes), "{}", said.err);
    }
    for (command, code) in [("plan", 0), ("apply", 0)] {
        let said = railbus(&broker, &["config", command, file]);
        assert_eq!((said.code, &*said.out), (code, "nothing changes\n"));
    }
    let said = railbus(&broker, &["config", "plan", file, "--authoritative"]);
    assert_eq!((said.code, &*said.out), (1, "delete queue others\n"));
    let said = railbus(
        &broker,
        &["config", "apply", file, "--authoritative", "--json"],
    );
    let plan: Value = serde_json::from_str(&said.out).expect("JSON");
    let change = json!({"action": "delete", "kind": "queue", "path": "others"});
    assert_eq!(plan, json!({"changes": [change], "refused": []}));
    assert_eq!(entity(&broker, "others").0, 404);
    for format in ["toml", "json", "emulator"] {
        let name = if format == "toml" {
            "again.toml"
        } else {
            "again.json"
        };
        let out = setup.directory().join(name);
        let out = out.to_str().expect("a path of ours");
        let said = railbus(
            &broker,
            &["config", "export", "--format", format, "--out", out],
        );
        assert_eq!((said.code, said.out + &said.err), (0, String::new()));
        let said = railbus(&broker, &["config", "plan", out, "--authoritative"]);
        assert_eq!(
            (said.code, &*said.out),
            (0, "nothing changes\n"),
            "{format}"
        );
    }
}

#[test]
fn a_file_that_can_not_be_applied_changes_nothing() {
    let setup = Setup::new();
    let broker = setup.start();
    let text = "[[queues]]\nname = 'new'\n[[queues]]\nname = 'orders'\nrequires-session = true\n";
    let file = write(&setup, "entities.toml", text);
    let file = file.to_str().expect("a path of ours");
    let refusal = "railbus: orders: requires-session false -> true cannot be changed after creation; \
                   delete it to change that\n";
    let said = railbus(&broker, &["config", "plan", file]);
    assert_eq!((said.code, &*said.out), (2, "create queue new\n"));
    assert_eq!(said.err, refusal);
    let said = railbus(&broker, &["config", "apply", file]);
    assert_eq!((said.code, &*said.out, &*said.err), (2, "", refusal));
    assert_eq!(entity(&broker, "new").0, 404);
}

/// A topic `events` with room for one more rule.
fn nearly_full_topic(broker: &Broker) {
    let rules: Vec<_> = (0..1_999)
        .map(|index| json!({"name": format!("r{index}"), "filter": {"sql": "n > 1"}}))
        .collect();
    let subscription = json!({"name": "full", "rules": rules});
    let body = json!({"topics": [{"name": "events", "subscriptions": [subscription]}]});
    let said = http::request(
        broker.address(),
        "POST",
        "/$railbus/apply",
        &[],
        &body.to_string(),
    );
    assert_eq!(said.0, 200, "{}", said.1);
}

/// What has no room in that topic, behind what could be.
const TOO_MUCH: &str = "[[queues]]\nname = 'new'\n[[topics]]\nname = 'events'\n\
    [[topics.subscriptions]]\nname = 'more'\n\
    [[topics.subscriptions.rules]]\nname = 'a'\nfilter = { sql = 'n > 1' }\n\
    [[topics.subscriptions.rules]]\nname = 'b'\nfilter = { sql = 'n > 2' }\n";

#[test]
fn a_file_for_which_there_is_no_room_is_refused_as_a_whole_and_the_plan_says_so() {
    let setup = Setup::new();
    let broker = setup.start();
    nearly_full_topic(&broker);
    let file = write(&setup, "entities.toml", TOO_MUCH);
    let file = file.to_str().expect("a path of ours");
    let refusal = "railbus: events/Subscriptions/more/Rules/b: a topic can have 2000 SQL filters\n";
    let said = railbus(&broker, &["config", "plan", file]);
    assert_eq!((said.code, &*said.err), (2, refusal));
    let said = railbus(&broker, &["config", "apply", file]);
    assert_eq!((said.code, &*said.out, &*said.err), (2, "", refusal));
    assert_eq!(entity(&broker, "new").0, 404);
    assert_eq!(entity(&broker, "events/Subscriptions/more").0, 404);
    // What goes makes room for what comes.
    let instead = format!("{}\n", TOO_MUCH.replace("'more'", "'full'"));
    let file = write(&setup, "entities.toml", &instead);
    let file = file.to_str().expect("a path of ours");
    let said = railbus(&broker, &["config", "apply", file, "--authoritative"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let rules = &entity(&broker, "events/Subscriptions/full").1["rules"];
    assert_eq!(rules.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_reload_that_the_broker_refuses_takes_over_neither_keys_nor_limits_nor_entities() {
    let setup = Setup::new();
    let broker = setup.start();
    nearly_full_topic(&broker);
    let rest = "[limits]\nconnections = 1\n[[auth.rules]]\nname = 'owner'\n\
                primary-key = 'a-key-of-ones-own'\nrights = ['manage']\n";
    write(&setup, "railbus.toml", &format!("{rest}{TOO_MUCH}"));
    broker.signal(Signal::HUP);
    broker.wait_for_log(
        "the configuration was not reloaded: \
         events/Subscriptions/more/Rules/b: a topic can have 2000 SQL filters",
    );
    for what in ["limits.", "create ", "the rule "] {
        let line = format!("reloaded: {what}");
        assert!(!broker.log().contains(&line), "{line}");
    }
    // One connection stays, so a limit of one would refuse every other connection.
    let mut peer = Peer::connect(broker.address());
    let _ = peer.sender("orders");
    assert_eq!(entity(&broker, "new").0, 404, "and the old key holds");
    assert_eq!(entity(&broker, "events/Subscriptions/more").0, 404);
    drop(peer);
    // The same with room for it is taken over whole.
    let fits = TOO_MUCH.replace(
        "filter = { sql = 'n > 2' }",
        "filter = { correlation = { subject = 'x' } }",
    );
    write(&setup, "railbus.toml", &format!("{rest}{fits}"));
    broker.signal(Signal::HUP);
    broker.wait_for_log("reloaded: limits.connections - -> 1");
    broker.wait_for_log("reloaded: create subscription events/Subscriptions/more");
    broker.wait_for_log("reloaded: the rule owner ");
}

#[test]
fn entities_and_limits_are_reloaded_on_a_signal() {
    let setup = Setup::new();
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let with_limits = |limits: &str| {
        let queues =
            "[[queues]]\nname = 'orders'\nlock-duration = 'PT30S'\n[[queues]]\nname = 'new'\n";
        let text = format!("[limits]\noperations-per-transaction = 5\n{limits}{queues}");
        write(&setup, "railbus.toml", &text);
        broker.signal(Signal::HUP);
    };
    with_limits("");
    broker.wait_for_log("reloaded: limits.operations-per-transaction - -> 5");
    broker.wait_for_log("reloaded: update queue orders: lock-duration PT1M -> PT30S");
    broker.wait_for_log("reloaded: create queue new");
    assert_eq!(entity(&broker, "orders").1["lock-duration"], "PT30S");
    assert_eq!(
        entity(&broker, "others").0,
        200,
        "what is not in the file stays"
    );
    // Last, since a connection over HTTP may count for a moment longer than its request.
    with_limits("connections = 1\n");
    broker.wait_for_log("reloaded: limits.connections - -> 1");
    let _ = peer.sender("new");
    let answer = http::exchange(broker.address(), "GET /health HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(answer, "", "one connection is all there can be");
}

#[test]
fn keys_are_reloaded_and_links_that_rested_on_the_old_ones_end() {
    let rule = |key: &str| {
        format!(
            "[[auth.rules]]\nname = 'RootManageSharedAccessKey'\nprimary-key = '{key}'\nrights = ['manage']\n"
        )
    };
    let setup = Setup::new().configure(&rule("SAS_KEY_VALUE"));
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(railbus(&broker, &["queue", "list"]).code, 0);
    write(&setup, "railbus.toml", &rule("another-key"));
    broker.signal(Signal::HUP);
    broker.wait_for_log("reloaded: the rule RootManageSharedAccessKey has changed");
    assert!(peer.detached(sender).is_some());
    let said = railbus(&broker, &["queue", "list"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("refused with 401"), "{}", said.err);
    assert!(!broker.log().contains("another-key"));
}

#[test]
fn a_file_that_says_nothing_any_more_takes_no_key_away() {
    let key = "primary-key = 'a-key-of-ones-own'";
    let rule = format!("[[auth.rules]]\nname = 'owner'\n{key}\nrights = ['manage']\n");
    let setup = Setup::new().configure(&rule);
    let broker = setup.start();
    let file = setup.directory().join("railbus.toml");
    let check = |said: &str| {
        broker.signal(Signal::HUP);
        broker.wait_for_log(said);
        let asked = http::get(broker.address(), "/$railbus/entities");
        assert_eq!(asked.0, 401);
    };
    write(&setup, "railbus.toml", "");
    check("is empty or not there any more");
    fs::remove_file(&file).expect("it is there");
    check("is empty or not there any more");
    write(&setup, "railbus.toml", "# no rules\n");
    check("the configuration has no key any more");
    write(&setup, "railbus.toml", &rule);
    check("reloaded: nothing has changed");
}

#[test]
fn a_changed_file_is_reloaded_without_being_asked_for() {
    let setup = Setup::new().arguments(&["--entities", "entities.json"]);
    write(&setup, "entities.json", r#"{"queues": [{"name": "a"}]}"#);
    let broker = setup.start();
    write(
        &setup,
        "entities.json",
        r#"{"queues": [{"name": "a"}, {"name": "b"}]}"#,
    );
    broker.wait_for_log("reloaded: create queue b");
    assert_eq!(entity(&broker, "b").0, 200);
}

#[test]
fn what_can_not_change_refuses_the_whole() {
    let setup = Setup::new();
    let broker = setup.start();
    let new = "[[queues]]\nname = 'new'\n";
    for (text, sentence) in [
        (
            "durability = 'buffered'\n",
            "durability cannot change while the broker runs; restart the broker to change it",
        ),
        (
            "limits.reserve-bytes = 5\n",
            "limits.reserve-bytes cannot change while the broker runs; restart the broker to change it",
        ),
        (
            "[[queues]]\nname = 'orders'\nrequires-duplicate-detection = true\n",
            "orders: requires-duplicate-detection false -> true cannot be changed after creation",
        ),
        (
            "tls-certificate = 'a.pem'\ntls-key = 'b.pem'\n",
            "the TLS certificate ",
        ),
        (
            "speed = 'high'\n",
            "railbus.toml:1: speed: unknown field `speed`",
        ),
    ] {
        write(&setup, "railbus.toml", &format!("{text}{new}"));
        broker.signal(Signal::HUP);
        broker.wait_for_log(sentence);
        assert!(
            broker
                .log()
                .contains("the configuration was not reloaded: ")
        );
        assert_eq!(entity(&broker, "new").0, 404, "{text}");
    }
}

#[test]
fn a_hang_up_without_changes_says_so() {
    let broker = Setup::new().start();
    broker.signal(Signal::HUP);
    broker.wait_for_log("reloaded: nothing has changed");
}
