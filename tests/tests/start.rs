//! Starting: what is printed when it works, and what is said when it does not.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use access::Secret;
use broker::Wall;
use e2e::broker::program;
use e2e::cli::railbus;
use e2e::{Broker, Peer, Setup, http};

fn check_refused(setup: &Setup, expected: &[&str]) {
    let (code, stderr) = setup.refused();
    assert_eq!(code, 2, "{stderr}");
    for part in expected {
        assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
    }
    assert_eq!(stderr.lines().count(), 1, "one sentence: {stderr:?}");
}

#[test]
fn the_ready_line_is_what_scripts_rely_on() {
    let broker = Setup::new().arguments(&["--listen", "127.0.0.1:0"]).start();
    let line = broker.ready_line();
    let first = broker.address();
    let (listen, string) = line.split_once(" connection-string=").expect("two parts");
    let addresses: Vec<&str> = listen
        .strip_prefix("railbus ready listen=")
        .expect("a ready line")
        .split(',')
        .collect();
    assert_eq!(addresses.len(), 2);
    assert_eq!(addresses[0], first.to_string());
    assert_eq!(
        string,
        format!(
            "\"Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;\
             SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;\"",
            first.port()
        )
    );
}

#[test]
fn a_loopback_address_that_is_not_localhost_stands_in_the_ready_line() {
    let setup = Setup::new().only_arguments(&["--listen", "127.0.0.9:0"]);
    let broker = setup.start();
    let address = broker.address();
    assert_eq!(address.ip().to_string(), "127.0.0.9");
    assert_ne!(address.port(), 0);
    let endpoint = format!(" connection-string=\"Endpoint=sb://{address};SharedAccessKeyName=");
    let line = broker.ready_line();
    assert!(line.contains(&endpoint), "{line}");
    // The string is that of a client, too.
    let said = railbus(&broker, &["queue", "list", "--json"]);
    assert!(said.code == 0 && said.out.contains("orders"), "{said:?}");
}

#[test]
fn every_address_serves() {
    let broker = Setup::new().arguments(&["--listen", "127.0.0.1:0"]).start();
    let listen = broker.ready_line().split(' ').nth(2).expect("three words");
    for address in listen.trim_start_matches("listen=").split(',') {
        let mut peer = Peer::connect(address.parse().expect("an address"));
        let _ = peer.sender("orders");
    }
}

#[test]
fn a_configured_key_is_never_printed() {
    let setup = Setup::new()
        .configure("[[auth.rules]]\nname = 'owner'\nprimary-key = 'hush-hush'\nrights = ['manage']")
        .environment("RUST_LOG", "trace");
    let broker = setup.start();
    assert!(
        broker
            .ready_line()
            .contains("SharedAccessKeyName=owner;SharedAccessKey=<key of owner>;")
    );
    let mut peer = Peer::begin(
        broker.address(),
        e2e::Credentials {
            rule: "owner",
            key: "hush-hush",
        },
    );
    assert_eq!(peer.sasl_outcome(), amqp::sasl::Code::Ok);
    let _ = peer.sender("orders");
    assert!(!broker.log().contains("hush-hush"));
}

#[test]
fn a_second_process_on_the_same_directory_is_refused() {
    let setup = Setup::new();
    let broker = setup.start();
    let data = setup.directory().join("data");
    let expected = format!(
        "the data directory {0} cannot be used: {0} is used by another process",
        data.display()
    );
    check_refused(&setup, &[&expected]);
    // The first one is unharmed.
    let mut peer = Peer::connect(broker.address());
    let _ = peer.sender("orders");
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    check_refused(
        &Setup::new().arguments(&["--listen", &address]),
        &["cannot listen on", &address],
    );
}

/// What the configuration names has the tier's time to live by then.
#[test]
fn a_basic_namespace_names_what_its_store_has_from_another_tier() {
    let standard = Setup::new().configure(
        "[[topics]]\nname = 'events'\n\n[[queues]]\nname = 'held'\nrequires-session = true\n",
    );
    assert!(standard.start().stop().success());
    let data = standard.data().to_owned();
    let basic = Setup::new().configure("sku = 'basic'").keep_data_at(data);
    let broker = basic.start();
    for (entity, what) in [("events", "topics"), ("held", "RequiresSession")] {
        broker.wait_for_log(&format!("does not have {what} entity=\"{entity}\""));
    }
    let log = broker.log();
    assert_eq!(log.matches("kept from another tier").count(), 2, "{log}");
}

#[test]
fn a_bad_value_in_railbus_toml_is_refused_with_file_line_and_path() {
    check_refused(
        &Setup::new().configure("[limits]\nconnections = 0"),
        &["railbus.toml:2: limits.connections: 0 is below the minimum of 1"],
    );
    check_refused(
        &Setup::new().configure("\nspeed = 9"),
        &["railbus.toml:2: speed: unknown field"],
    );
    check_refused(
        &Setup::new().configure("[[queues]]\nname = 'a'\nlock-duration = 'PT9M'"),
        &["railbus.toml:3: queues[0].lock-duration: PT9M is above the maximum of PT5M"],
    );
}

#[test]
fn a_bad_value_in_an_emulator_file_is_refused_with_file_line_and_path() {
    let setup = Setup::new().arguments(&["--entities", "Config.json"]);
    let text = "{\"UserConfig\": {\"Namespaces\": [{\"Name\": \"n\", \"Queues\": [\n\
                {\"Name\": \"q\", \"Properties\": {\"MaxDeliveryCount\": -1}}]}]}}";
    fs::write(setup.directory().join("Config.json"), text).expect("the directory is ours");
    check_refused(
        &setup,
        &["Config.json:2: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: -1"],
    );
}

#[test]
fn a_missing_file_is_refused() {
    check_refused(
        &Setup::new().arguments(&["--entities", "nowhere.json"]),
        &["nowhere.json cannot be read"],
    );
}

#[test]
fn a_directory_of_a_newer_version_is_refused_and_left_alone() {
    let setup = Setup::new();
    assert!(setup.start().stop().success());
    let format = setup.data().join("format");
    fs::write(&format, "railbus-store 999\n").expect("the directory is ours");
    check_refused(&setup, &["format version 999", "understands up to"]);
    assert_eq!(
        fs::read_to_string(format).expect("it is still there"),
        "railbus-store 999\n"
    );
}

#[test]
fn the_development_key_is_for_loopback_only() {
    let public = ["--listen", "0.0.0.0:0"];
    check_refused(
        &Setup::new().only_arguments(&public),
        &[
            "not a loopback address",
            "[[auth.rules]]",
            "--allow-development-key",
        ],
    );
    let broker = Setup::new()
        .only_arguments(&public)
        .arguments(&["--allow-development-key"])
        .start();
    assert!(broker.ready_line().contains("Endpoint=sb://localhost:"));
    let configured =
        "[[auth.rules]]\nname = 'owner'\nprimary-key = 'key-of-sender'\nrights = ['manage']";
    let _ = Setup::new()
        .only_arguments(&public)
        .configure(configured)
        .start();
}

#[test]
fn the_environment_stands_between_flag_and_file() {
    let setup = Setup::new()
        .configure("durability = 'synced'")
        .environment("RAILBUS_DURABILITY", "buffered");
    let broker = setup.start();
    assert!(broker.log().contains("durability is buffered"));
    let setup = setup.arguments(&["--durability", "synced"]);
    drop(broker);
    fs::remove_file(setup.directory().join("stderr")).expect("there is a log");
    assert!(!setup.start().log().contains("durability is buffered"));
}

#[test]
fn an_ephemeral_broker_leaves_nothing_behind() {
    let setup = Setup::new();
    let directory = setup.directory().to_owned();
    let setup = setup
        .arguments(&["--ephemeral"])
        .environment("TMPDIR", directory.to_str().expect("text"));
    let is_temporary = || {
        let entries = fs::read_dir(&directory)
            .expect("it is there")
            .map(|entry| entry.expect("readable").file_name());
        entries
            .filter(|name| name.to_string_lossy().starts_with("railbus-"))
            .count()
    };
    let broker = setup.start();
    assert_eq!(is_temporary(), 1);
    assert!(broker.stop().success());
    assert_eq!(is_temporary(), 0);
}

/// (docs/spec/entities.md#2.5)
#[test]
fn the_namespace_is_as_old_as_the_first_start_after_a_restart() {
    let created = |broker: &Broker| {
        let key = Secret::new("SAS_KEY_VALUE".to_owned());
        let expires = Wall(4_000_000_000_000);
        let token = access::sign("localhost", "RootManageSharedAccessKey", &key, expires);
        let header = format!("authorization: {token}");
        let answer = http::request(broker.address(), "GET", "/$namespaceinfo", &[&header], "");
        let (_, rest) = answer.1.split_once("<CreatedTime>").expect("it has one");
        let (time, _) = rest.split_once("</CreatedTime>").expect("it ends");
        time.to_owned()
    };
    let setup = Setup::new();
    let first = setup.start();
    let expected = created(&first);
    let noted = fs::read_to_string(setup.data().join("first-start")).expect("it is noted");
    // To the second, which both have.
    assert_eq!(expected[..19], noted[..19]);
    assert!(first.stop().success());
    assert_eq!(created(&setup.start()), expected);
}

#[test]
fn topics_of_an_emulator_file_are_there_and_survive_a_restart() {
    let setup = Setup::new().arguments(&["--entities", "Config.json"]);
    let text = r#"{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "from-file"}],
        "Topics": [{"Name": "t1", "Subscriptions": [{"Name": "s"}]}, {"Name": "t2"}]}]}}"#;
    fs::write(setup.directory().join("Config.json"), text).expect("the directory is ours");
    for _ in 0..2 {
        let broker = setup.start();
        let mut peer = Peer::connect(broker.address());
        let _ = peer.sender("from-file");
        let _ = peer.sender("t1");
        let _ = peer.sender("t2");
        let _ = peer.receiver("t1/Subscriptions/s", 1);
        assert_eq!(broker.log().matches("WARN").count(), 0, "{}", broker.log());
        assert!(broker.stop().success());
    }
}

#[test]
fn a_configuration_can_be_checked_without_starting() {
    let setup = Setup::new();
    let check = |name: &str, text: &str| {
        let file = setup.directory().join(name);
        fs::write(&file, text).expect("the directory is ours");
        let output = Command::new(program())
            .args(["config", "check"])
            .arg(&file)
            .output()
            .expect("the program is there");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("text"))
    };
    let (code, text) = check("good.toml", "[[queues]]\nname = 'a'\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("good.toml is valid: 1 queues, 0 topics"),
        "{text}"
    );
    let (code, text) = check("bad.json", "{\"UserConfig\": {\n\"Namespaces\": []}}");
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("bad.json:2: UserConfig.Namespaces: a namespace is missing"),
        "{text}"
    );
}

/// An emulator file whose only rule has these properties; the rule is in line 2.
fn file_with_rule(properties: &str) -> String {
    format!(
        "{{\"UserConfig\": {{\"Namespaces\": [{{\"Name\": \"n\", \"Topics\": [{{\"Name\": \"t\", \"Subscriptions\": [\n\
         {{\"Name\": \"s\", \"Rules\": [{{\"Name\": \"r\", \"Properties\": {properties}}}]}}]}}]}}]}}}}"
    )
}

/// Files that mean less than they say, each with what is told of it.
fn mistakes() -> [(&'static str, String, &'static str, bool); 5] {
    let unknown = r#"{"FilterType": "Correlation", "CorrelationFilter": {"Subject": "b"}}"#;
    let unused = r#"{"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n > 5"},
        "CorrelationFilter": {"To": "a"}}"#;
    let twice =
        r#"{"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n > 5"}, "filterType": "Sql"}"#;
    [
        (
            "unknown.json",
            file_with_rule(unknown),
            "unknown.json:2: UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.CorrelationFilter.Subject: this member is not known",
            true,
        ),
        (
            "unused.json",
            file_with_rule(unused),
            "CorrelationFilter: this filter has no effect, since the FilterType is Sql",
            false,
        ),
        (
            "twice.json",
            file_with_rule(twice),
            "Properties.filterType: this key is there twice",
            true,
        ),
        (
            "nothing.toml",
            String::new(),
            "nothing.toml:1: the file declares no queue and no topic",
            false,
        ),
        (
            "nothing.json",
            "{}".to_owned(),
            "nothing.json:1: the file declares no queue and no topic",
            false,
        ),
    ]
}

#[test]
fn a_check_tells_what_a_file_hardly_means() {
    for (name, text, told, is_refused) in mistakes() {
        let setup = Setup::new();
        let file = setup.directory().join(name);
        fs::write(&file, text).expect("the directory is ours");
        let mut check = Command::new(program());
        check.args(["config", "check"]).arg(&file);
        let output = check.output().expect("the program is there");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        assert_eq!(output.status.success(), !is_refused, "{name}: {said}");
        assert!(said.contains(told), "{name}: {said}");
    }
}

#[test]
fn a_start_tells_what_a_file_hardly_means() {
    for (name, text, told, is_refused) in mistakes() {
        let setup = Setup::new().arguments(&["--entities", name]);
        fs::write(setup.directory().join(name), text).expect("the directory is ours");
        if is_refused {
            check_refused(&setup, &[told]);
        } else {
            let broker = setup.start();
            let log = broker.log();
            let warning = log.lines().find(|line| line.contains(told));
            assert!(
                warning.is_some_and(|line| line.contains("WARN")),
                "{name}: {log}"
            );
        }
    }
}
