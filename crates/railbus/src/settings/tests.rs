//! Tests of settings.

use broker::TransactionSettings;

use super::*;

fn resolve(text: &str, change: impl FnOnce(&mut ServeArguments)) -> Settings {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("railbus.toml");
    std::fs::write(&file, text).unwrap();
    let mut arguments = ServeArguments {
        config: Some(file),
        ..ServeArguments::default()
    };
    change(&mut arguments);
    Settings::resolve(&arguments).unwrap()
}

#[test]
fn a_flag_wins_over_the_file() {
    let settings = resolve(
        "listen = ['127.0.0.1:1']\ndurability = 'buffered'\n",
        |arguments| {
            arguments.listen = vec!["127.0.0.1:2".parse().unwrap()];
        },
    );
    assert_eq!(settings.server.listen, ["127.0.0.1:2".parse().unwrap()]);
    assert_eq!(settings.store.durability, rocks::Durability::Buffered);
}

#[test]
fn the_emulators_port_is_added_to_the_first_address() {
    let listen = |text: &str| vec![text.parse::<SocketAddr>().unwrap()];
    let both = with_port(listen("0.0.0.0:5672"), Some(8_080));
    assert_eq!(both[1], "0.0.0.0:8080".parse().unwrap());
    assert_eq!(
        with_port(listen("0.0.0.0:5672"), Some(5_672)),
        listen("0.0.0.0:5672")
    );
    assert_eq!(with_port(listen("[::1]:1"), None), listen("[::1]:1"));
}

#[test]
fn an_ephemeral_broker_is_buffered_by_default() {
    let settings = resolve("", |arguments| arguments.ephemeral = true);
    assert_eq!(settings.data, Location::Ephemeral);
    assert_eq!(settings.store.durability, rocks::Durability::Buffered);
    let settings = resolve("durability = 'synced'", |arguments| {
        arguments.ephemeral = true;
    });
    assert_eq!(settings.store.durability, rocks::Durability::Synced);
}

#[test]
fn what_happens_to_messages_is_recorded_where_nothing_lasts_or_the_file_says_so() {
    let check = |text: &str, ephemeral: bool, expected: (bool, usize)| {
        let settings = resolve(text, |arguments| arguments.ephemeral = ephemeral);
        let broker = settings.server.broker;
        assert_eq!((broker.lineage, broker.lineage_bytes), expected, "{text}");
    };
    check("", false, (false, 16 << 20));
    check("", true, (true, 16 << 20));
    check("lineage = true", false, (true, 16 << 20));
    check(
        "lineage = false\n[limits]\nlineage-bytes = 0",
        true,
        (false, 0),
    );
}

#[test]
fn paths_in_the_file_are_relative_to_it() {
    let settings = resolve("data-dir = 'data'\n", |_| {});
    let Location::Lasting(path) = settings.data else {
        panic!("not lasting")
    };
    assert!(
        path.is_absolute() && path.ends_with("data"),
        "{}",
        path.display()
    );
}

#[test]
fn the_message_limit_reaches_connections() {
    let settings = resolve("max-message-size = 1048576", |_| {});
    assert_eq!(settings.server.connections.max_message_size, 1_048_576);
}

#[test]
fn the_namespace_has_one_name_over_amqp_and_http() {
    for (text, name) in [("", "railbus"), ("namespace = 'shop'", "shop")] {
        let server = resolve(text, |_| {}).server;
        assert_eq!(server.connections.namespace, name);
        assert_eq!(server.admin.namespace, name);
    }
}

#[test]
fn a_premium_namespace_takes_messages_of_a_mebibyte_by_default() {
    let limit = |text| {
        let server = resolve(text, |_| {}).server;
        assert_eq!(
            server.admin.max_message_size, server.connections.max_message_size,
            "what is taken is shown"
        );
        assert_eq!(
            server.broker.max_message_size, server.connections.max_message_size,
            "and holds for what is forwarded"
        );
        server.connections.max_message_size
    };
    assert_eq!(limit(""), 262_144);
    assert_eq!(limit("sku = 'premium'"), 1_048_576);
    assert_eq!(limit("sku = 'premium'\nmax-message-size = '2KiB'"), 2_048);
}

#[test]
fn a_basic_namespace_has_no_transactions_and_queues_that_forget_after_14_days() {
    let text = "sku = 'basic'\n[[queues]]\nname = 'a'\n";
    let settings = resolve(text, |_| {});
    assert_eq!(settings.server.connections.tier, broker::Tier::Basic);
    assert_eq!(settings.server.broker.tier, broker::Tier::Basic);
    assert_eq!(settings.server.admin.tier, broker::Tier::Basic);
    assert_eq!(settings.server.connections.max_message_size, 262_144);
    let kept = settings.server.queues[0]
        .settings
        .default_message_time_to_live;
    assert_eq!(kept, 14 * 24 * 3_600_000);
}

#[test]
fn limits_of_transactions_and_of_unused_connections_are_taken_over() {
    let text = "[limits]\nunused-connection-time-out = 'PT5M'\ntransaction-time-out = 'PT30S'\n\
                operations-per-transaction = 1000\ntransactions-per-connection = 2\n\
                bytes-per-transaction = '1MiB'\ntransaction-bytes = '2MiB'\n";
    let server = resolve(text, |_| {}).server;
    assert_eq!(server.connections.idle_connection, Some(300_000));
    let expected = TransactionSettings {
        life: 30_000,
        operations: 1_000,
        open: 2,
        bytes: 1 << 20,
        all_bytes: 2 << 20,
    };
    assert_eq!(server.broker.transactions, expected);
    let server = resolve("", |_| {}).server;
    assert_eq!(server.connections.idle_connection, None);
    assert_eq!(server.broker.transactions, TransactionSettings::default());
}

#[test]
fn a_certificate_and_its_key_come_together() {
    let settings = resolve("tls-certificate = 'c.pem'", |arguments| {
        arguments.tls_key = Some(PathBuf::from("k.pem"));
    });
    let tls::Source::Files(pair) = settings.tls else {
        panic!("local")
    };
    assert!(pair.certificate.is_absolute(), "relative to the file");
    assert_eq!(pair.key, Path::new("k.pem"));
    let arguments = ServeArguments {
        tls_key: Some(PathBuf::from("k.pem")),
        ..ServeArguments::default()
    };
    let refusal = Settings::resolve(&arguments).unwrap_err();
    assert!(
        matches!(refusal, CommandError::Tls(tls::Error::Half)),
        "{refusal}"
    );
}

#[test]
fn a_local_certificate_holds_for_what_is_listened_on_and_what_is_asked_for() {
    let settings = resolve("tls-name = ['Broker.example']", |arguments| {
        arguments.listen = vec!["10.1.2.3:0".parse().unwrap(), "[::]:0".parse().unwrap()];
        arguments.allow_development_key = true;
    });
    let tls::Source::Local {
        directory, names, ..
    } = settings.tls
    else {
        panic!("files")
    };
    assert_eq!(directory, None);
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "10.1.2.3",
        "broker.example",
    ] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(!names.iter().any(|known| known == "::"), "{names:?}");
}

#[test]
fn two_brokers_have_different_seeds() {
    assert_ne!(
        resolve("", |_| {}).server.broker.seed,
        resolve("", |_| {}).server.broker.seed
    );
}

/// (docs/spec/amqp.md#13)
#[test]
fn a_premium_namespace_has_jms_unless_that_is_turned_off() {
    let has_jms = |text| resolve(text, |_| {}).server.connections.jms;
    assert!(!has_jms(""));
    assert!(has_jms("sku = 'premium'"));
    assert!(has_jms("jms = true"));
    assert!(!has_jms("sku = 'premium'\njms = false"));
}
