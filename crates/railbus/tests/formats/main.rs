//! Formats: a store of each format that was ever released opens in this program, with all that is
//! in it, and what this program cannot understand is refused with one sentence.
//!
//! `stores/1` was made by `RAILBUS_KEEP_STORE=1 cargo test --release -p railbus --test formats
//! kept`. A store that is there is never made again, since it stands for those that others have; a
//! new format gets a store of its own beside it, and the tests here hold for all of them, and for
//! one just made.

mod namespaces;
mod retries;
mod routers;
mod shop;
mod snapshots;

use std::fs;
use std::path::{Path, PathBuf};

use broker::{
    Command, Delivery, Ensured, FilterDescription, Incoming, Operation, Order, Outcome, Output,
    QueueSettings, ReceiveMode, RefusalReport, RuleDescription, SessionFilter, Subqueue,
    SubqueueId, SubscriptionSettings, Wall,
};
use bytes::Bytes;
use rocks::{Options, RocksStore};
use store::image::MessageKey;
use store::{Index, SequenceNumber, StoreError};
use tempfile::TempDir;

use shop::{NAMESPACE, REQUEST, START, Shop, message};

const HOUR: u64 = 3_600_000;
/// Bodies from here on are kept in files of their own.
const BLOB: usize = 17 << 10;
/// Bodies from here on are kept in pieces, or in files of their own again: format 3 began with
/// these; now they are those of 4 MiB, so only the store that is kept has one.
const LARGE: usize = (1 << 20) + 1;

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/stores")
}

/// A copy of each store that is kept, and a new one.
fn copies() -> Vec<TempDir> {
    let kept = fs::read_dir(stores()).expect("there are stores");
    let copies = kept.map(|store| {
        let copy = TempDir::new().expect("there is room");
        copy_files(&store.expect("listed").path(), copy.path());
        copy
    });
    copies.chain([make()]).collect()
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("listed").path();
        let target = to.join(path.file_name().expect("a listed file has a name"));
        if path.is_dir() {
            copy_files(&path, &target);
        } else {
            fs::copy(&path, &target).expect("there is room");
        }
    }
}

fn incoming(subject: &str, body: &[u8]) -> Incoming {
    Incoming {
        payload: message(subject, body),
        ..Incoming::default()
    }
}

fn send(shop: &mut Shop, path: &str, incoming: Incoming) -> SequenceNumber {
    let payload = shop.stage(incoming.payload);
    let said = shop.tell(Command::Send {
        request: REQUEST,
        entity: shop.id(path),
        messages: vec![Incoming {
            payload,
            ..incoming
        }],
    });
    let sent = said.iter().find_map(|output| match output {
        Output::Sent { result, .. } => result.clone().ok(),
        _ => None,
    });
    sent.unwrap_or_else(|| panic!("{said:?}"))
}

fn payloads(deliveries: &[Delivery]) -> Vec<Bytes> {
    let messages = deliveries.iter().map(|delivery| &delivery.message);
    messages.map(|message| message.payload.clone()).collect()
}

fn session(shop: &mut Shop, id: &'static [u8]) -> Vec<Delivery> {
    let receiver = shop.receiver();
    shop.tell(Command::AcceptSession {
        receiver,
        entity: shop.id("sessions"),
        mode: ReceiveMode::PeekLock,
        session: SessionFilter::ById(Bytes::from_static(id)),
    });
    shop.take(receiver)
}

fn ensure(ensured: Ensured) -> Command {
    Command::Administer {
        request: REQUEST,
        namespace: NAMESPACE,
        order: Box::new(Order::ensure(vec![ensured])),
    }
}

fn make_entities(shop: &mut Shop) {
    let queue = |path: &str, settings| {
        ensure(Ensured::Queue {
            path: path.to_owned(),
            settings,
        })
    };
    shop.tell(queue("orders", QueueSettings::default()));
    shop.tell(queue(
        "sessions",
        QueueSettings {
            requires_session: true,
            ..QueueSettings::default()
        },
    ));
    shop.tell(queue(
        "once",
        QueueSettings {
            requires_duplicate_detection: true,
            duplicate_detection_history_time_window: 24 * HOUR,
            ..QueueSettings::default()
        },
    ));
    shop.tell(ensure(Ensured::Topic {
        path: "events".to_owned(),
        settings: QueueSettings::default(),
    }));
    let red = RuleDescription {
        name: "red".to_owned(),
        filter: FilterDescription::Sql("sys.Label = 'red'".to_owned()),
        action: Some("SET seen = 1".to_owned()),
        ..RuleDescription::default()
    };
    for (name, rules) in [("all", None), ("both", None), ("red", Some(vec![red]))] {
        shop.tell(ensure(Ensured::Subscription {
            topic: "events".to_owned(),
            name: name.to_owned(),
            settings: Box::new(SubscriptionSettings::default()),
            rules,
        }));
    }
}

/// Messages in every state that the disk knows, and a transaction that is never committed.
fn fill(shop: &mut Shop) {
    for subject in ["done", "deferred", "dead", "abandoned", "plain"] {
        send(shop, "orders", incoming(subject, b"small"));
    }
    send(shop, "orders", incoming("blob", &[7; BLOB]));
    send(shop, "orders", incoming("large", &[8; LARGE]));
    let locked = shop.receive("orders", Subqueue::Main);
    let changes = || vec![("why".to_owned(), Bytes::from_static(b"\xa1\x04late"))];
    let outcomes = [
        Outcome::Complete,
        Outcome::Defer { changes: changes() },
        Outcome::DeadLetter { changes: changes() },
        Outcome::abandon(changes()),
    ];
    for (delivery, outcome) in locked.iter().zip(outcomes) {
        shop.settle("orders", delivery, outcome);
    }
    let later = Incoming {
        scheduled: Some(Wall(START + HOUR)),
        ..incoming("scheduled", b"small")
    };
    send(shop, "orders", later);
    for (id, body) in [("a", "1"), ("b", "2"), ("a", "3")] {
        let of_session = Incoming {
            session_id: Some(Bytes::from(id)),
            ..incoming("session", body.as_bytes())
        };
        send(shop, "sessions", of_session);
    }
    session(shop, b"a");
    shop.tell(Command::SetSessionState {
        request: REQUEST,
        entity: shop.id("sessions"),
        session: Bytes::from_static(b"a"),
        state: Some(Bytes::from_static(b"half way")),
    });
    let once = Incoming {
        message_id: Some(Bytes::from_static(b"\xa1\x031st")),
        ..incoming("once", b"small")
    };
    send(shop, "once", once);
    send(shop, "events", incoming("red", b"small"));
    send(shop, "events", incoming("blue", b"small"));
    routers::fill(shop);
    namespaces::fill(shop);
    retries::fill(shop);
    snapshots::fill(shop);
    leave_open(shop);
}

fn leave_open(shop: &mut Shop) {
    let said = shop.tell(Command::Declare {
        request: REQUEST,
        namespace: store::NamespaceId(0),
        coordinator: 0,
    });
    let Some(Output::Declared {
        result: Ok(transaction),
        ..
    }) = said.first()
    else {
        panic!("{said:?}");
    };
    shop.tell(Command::Enlist {
        request: REQUEST,
        transaction: *transaction,
        operation: Box::new(Operation::Send {
            entity: shop.id("orders"),
            messages: vec![incoming("never", b"small")],
        }),
        scope: None,
        refusal: RefusalReport::Reported,
    });
}

/// A store of the current format with all of that in it.
fn make() -> TempDir {
    let made = TempDir::new().expect("there is room");
    let mut shop = Shop::open(made.path(), 0).expect("a new store");
    make_entities(&mut shop);
    fill(&mut shop);
    shop.close();
    // So that the tables have all of that, and the log the rest.
    let mut shop = Shop::open(made.path(), 1_000).expect("a store of ours");
    send(&mut shop, "orders", incoming("last", b"small"));
    shop.close();
    made
}

/// Copies a store without what is not needed to open it.
fn keep(store: &Path, kept: &Path) {
    assert!(!kept.exists(), "a store that is kept stays as it is");
    fs::create_dir_all(kept.join("db")).expect("there is room");
    for file in ["format", "witness"] {
        fs::copy(store.join(file), kept.join(file)).expect("there is room");
    }
    fs::create_dir_all(kept.join("journal")).expect("there is room");
    copy_files(&store.join("journal"), &kept.join("journal"));
    for entry in fs::read_dir(store.join("db")).expect("listed") {
        let path = entry.expect("listed").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if name != "LOCK" && !name.starts_with("LOG") && !name.starts_with("OPTIONS") {
            fs::copy(&path, kept.join("db").join(&*name)).expect("there is room");
        }
    }
}

#[test]
fn a_store_of_the_current_format_is_kept() {
    let made = make();
    let format = |store: &Path| fs::read_to_string(store.join("format")).expect("it has one");
    let current = format(made.path());
    let number = current.trim().rsplit(' ').next().expect("a number");
    let kept = stores().join(number);
    if std::env::var_os("RAILBUS_KEEP_STORE").is_some() {
        keep(made.path(), &kept);
    }
    assert_eq!(format(&kept), current);
}

#[test]
fn every_store_is_whole() {
    for copy in copies() {
        let store = RocksStore::open(copy.path(), Options::default(), std::sync::Arc::new(|| ()));
        let image = store.expect("it opens").image().expect("it is readable");
        let borrows = |key: &MessageKey| snapshots::borrows(&image, key);
        assert_eq!(image.audit_with(borrows), []);
    }
}

#[test]
fn available_dead_and_deferred_messages_are_there() {
    for copy in copies() {
        let copies = if routers::are_in(copy.path()) {
            routers::COPIES.len()
        } else {
            0
        };
        let elsewhere = if namespaces::are_in(copy.path()) {
            namespaces::ENTITIES
        } else {
            0
        };
        let retries = if retries::are_in(copy.path()) {
            retries::ENTITIES
        } else {
            0
        };
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        assert_eq!(shop.entities(), 7 + copies + elsewhere + retries);
        let orders = shop.entity("orders");
        let counts = (
            orders.active,
            orders.dead_letter,
            orders.deferred,
            orders.scheduled,
        );
        assert_eq!(counts, (5, 1, 1, 1));
        let available = shop.receive("orders", Subqueue::Main);
        let expected = [
            message("abandoned", b"small"),
            message("plain", b"small"),
            message("blob", &[7; BLOB]),
            message("large", &[8; LARGE]),
            message("last", b"small"),
        ];
        assert!(payloads(&available) == expected, "other messages");
        let changes = [("why".to_owned(), Bytes::from_static(b"\xa1\x04late"))];
        assert_eq!(available[0].message.changes(), changes);
        assert_eq!(available[0].message.delivery_count, 1);
        let dead = shop.receive("orders", Subqueue::DeadLetter);
        assert_eq!(payloads(&dead), [message("dead", b"small")]);
        assert_eq!(dead[0].message.changes(), changes);
        let said = shop.tell(Command::ReceiveDeferred {
            request: REQUEST,
            session: None,
            subqueue: SubqueueId {
                entity: orders.id,
                subqueue: Subqueue::Main,
            },
            numbers: vec![SequenceNumber(2)],
            mode: ReceiveMode::PeekLock,
            max_bytes: usize::MAX,
        });
        let [
            Output::Deferred {
                result: Ok(deferred),
                ..
            },
        ] = &said[..]
        else {
            panic!("{said:?}");
        };
        assert_eq!(payloads(deferred), [message("deferred", b"small")]);
        shop.close();
    }
}

#[test]
fn a_scheduled_message_comes_at_its_time() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        shop.receive("orders", Subqueue::Main);
        assert_eq!(shop.receive("orders", Subqueue::Main), []);
        // Once to have it read from the disk ahead of its time, and once for the time itself.
        shop.wait_until(HOUR - 1);
        shop.wait_until(HOUR);
        assert_eq!(shop.entity("orders").scheduled, 0);
        let due = shop.receive("orders", Subqueue::Main);
        assert!(payloads(&due).contains(&message("scheduled", b"small")));
        shop.close();
    }
}

#[test]
fn sessions_have_their_messages_and_their_state() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        let a = session(&mut shop, b"a");
        assert_eq!(
            payloads(&a),
            [message("session", b"1"), message("session", b"3")]
        );
        let said = shop.tell(Command::GetSessionState {
            request: REQUEST,
            entity: shop.id("sessions"),
            session: Bytes::from_static(b"a"),
        });
        let [Output::SessionState { result, .. }] = &said[..] else {
            panic!("{said:?}");
        };
        assert_eq!(*result, Ok(Some(Bytes::from_static(b"half way"))));
        let b = session(&mut shop, b"b");
        assert_eq!(payloads(&b), [message("session", b"2")]);
        shop.close();
    }
}

/// Another message with an id.
fn again(id: &'static [u8]) -> Incoming {
    Incoming {
        message_id: Some(Bytes::from_static(id)),
        ..incoming("again", b"small")
    }
}

#[test]
fn an_accepted_message_id_is_remembered() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        send(&mut shop, "once", again(b"\xa1\x031st"));
        assert_eq!(shop.entity("once").active, 1);
        send(&mut shop, "once", again(b"\xa1\x032nd"));
        assert_eq!(shop.entity("once").active, 2);
        shop.close();
    }
}

#[test]
fn an_accepted_message_id_is_forgotten_after_its_window() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        send(&mut shop, "once", again(b"\xa1\x032nd"));
        shop.wait_until(25 * HOUR);
        send(&mut shop, "once", again(b"\xa1\x031st"));
        assert_eq!(shop.entity("once").active, 3);
        shop.wait_until(60 * HOUR);
        shop.close();
        let store = RocksStore::open(copy.path(), Options::default(), std::sync::Arc::new(|| ()));
        let image = store.expect("it opens").image().expect("it is readable");
        let indexes = image.entries.keys().map(|(_, index, _)| *index);
        let history = [Index::DuplicateId, Index::DuplicateTime];
        assert_eq!(indexes.filter(|index| history.contains(index)).count(), 0);
    }
}

#[test]
fn subscriptions_have_their_copies_and_their_rules() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        let (red, blue) = (message("red", b"small"), message("blue", b"small"));
        for name in ["all", "both"] {
            let path = format!("events/Subscriptions/{name}");
            let copies = shop.receive(&path, Subqueue::Main);
            assert_eq!(payloads(&copies), [red.clone(), blue.clone()]);
            shop.settle(&path, &copies[0], Outcome::Complete);
        }
        let path = "events/Subscriptions/red";
        let before = shop.receive(path, Subqueue::Main);
        assert_eq!(before.len(), 1);
        assert_ne!(before[0].message.payload, red, "its action has changed it");
        send(&mut shop, "events", incoming("blue", b"small"));
        send(&mut shop, "events", incoming("red", b"small"));
        let after = shop.receive(path, Subqueue::Main);
        assert_eq!(payloads(&after), payloads(&before));
        shop.close();
    }
}

#[test]
fn new_messages_go_on_where_the_old_ones_end() {
    for copy in copies() {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        let number = send(&mut shop, "orders", incoming("new", b"small"));
        assert_eq!(number, SequenceNumber(10));
        shop.close();
        let mut shop = Shop::open(copy.path(), 3_000).expect("it opens again");
        let available = shop.receive("orders", Subqueue::Main);
        let last = available.last().expect("there are some");
        assert_eq!(last.message.payload, message("new", b"small"));
        shop.close();
    }
}

#[test]
fn a_newer_format_is_refused_with_one_sentence() {
    for copy in copies() {
        fs::write(copy.path().join("format"), "railbus-store 11\n").expect("written");
        let refused = Shop::open(copy.path(), 2_000).err().expect("refused");
        assert_eq!(
            refused.to_string(),
            "the format file names format version 11; this program understands up to 10"
        );
    }
}

#[test]
fn a_damaged_store_is_refused_with_one_sentence() {
    for copy in copies() {
        // Where a store of this format has what it cannot do without.
        let folder = match copy.path().join("journal") {
            journal if journal.exists() => journal,
            _ => copy.path().join("db"),
        };
        let mut paths = fs::read_dir(folder)
            .expect("listed")
            .map(|entry| entry.expect("listed").path());
        let is_log = |extension: &std::ffi::OsStr| extension == "log" || extension == "journal";
        let log = paths.find(|path| path.extension().is_some_and(is_log));
        fs::remove_file(log.expect("it has a log")).expect("removed");
        let refused = Shop::open(copy.path(), 2_000).err().expect("refused");
        assert!(
            matches!(
                refused,
                StoreError::LostCommits { .. } | StoreError::Corrupt { .. }
            ),
            "{refused}"
        );
        assert!(!refused.to_string().contains('\n'));
    }
}
