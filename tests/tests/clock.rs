//! The virtual clock: hours pass in milliseconds, and only for clients that may manage.

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amqp::message::{descriptor, encode_map_section};
use amqp::{DeliveryState, Value};
use bytes::BytesMut;
use e2e::{Broker, Peer, Setup, broker, http, message};
use serde_json::json;

const PATH: &str = "/$railbus/clock";

/// Queues with the longest lock, and with a day to live.
const QUEUES: &str = "
[[queues]]
name = 'long-lock'
lock-duration = 'PT5M'
default-message-time-to-live = 'P14D'

[[queues]]
name = 'a-day'
default-message-time-to-live = 'P1D'
dead-lettering-on-message-expiration = true
";

fn start() -> Broker {
    Setup::new()
        .configure(QUEUES)
        .arguments(&["--virtual-clock"])
        .start()
}

fn ask(broker: &Broker, headers: &[&str], body: Option<&str>) -> (u16, serde_json::Value) {
    let method = if body.is_some() { "POST" } else { "GET" };
    let (status, text) = http::request(broker.address(), method, PATH, headers, body.unwrap_or(""));
    (status, serde_json::from_str(&text).expect("JSON"))
}

fn change(broker: &Broker, body: &str) -> serde_json::Value {
    let (status, face) = ask(broker, &[], Some(body));
    assert_eq!(status, 200, "{face}");
    face
}

fn advance(broker: &Broker, amount: &str) -> serde_json::Value {
    change(broker, &json!({ "advance": amount }).to_string())
}

/// Whole hours.
fn hours(face: &serde_json::Value) -> u64 {
    let offset = face["offset"].as_str().expect("an offset is text");
    let hours = offset
        .strip_prefix("PT")
        .and_then(|rest| rest.split('H').next());
    hours.and_then(|hours| hours.parse().ok()).expect("hours")
}

#[test]
fn a_lock_of_five_minutes_ends_when_they_have_passed() {
    let broker = start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("long-lock");
    assert_eq!(peer.send(sender, b"once more"), DeliveryState::Accepted);
    let receiver = peer.receiver("long-lock", 1);
    let first = peer.receive(receiver);
    advance(&broker, "PT4M59S");
    assert_eq!(peer.drain(receiver, 1).len(), 0, "still locked");
    advance(&broker, "PT1S");
    let refused = peer.settle(&first, DeliveryState::Accepted);
    let Some(DeliveryState::Rejected(Some(error))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.condition.as_str(), "com.microsoft:message-lock-lost");
    peer.credit(receiver, 1);
    let again = peer.receive(receiver);
    assert_eq!(again.body(), b"once more");
    assert_eq!(
        peer.settle(&again, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
}

#[test]
fn messages_with_a_day_to_live_are_dead_lettered_when_an_advance_of_a_day_answers() {
    let broker = start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("a-day");
    // More than one turn's work.
    let sent: Vec<u128> = (0..900u32)
        .map(|number| peer.send_only(sender, &number.to_be_bytes()))
        .collect();
    for cookie in sent {
        assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
    }
    advance(&broker, "PT23H");
    let dead = peer.receiver("a-day/$DeadLetterQueue", 0);
    assert_eq!(peer.drain(dead, 1).len(), 0, "nothing is dead yet");
    let face = advance(&broker, "PT1H");
    assert_eq!(hours(&face), 24);
    let receiver = peer.receiver("a-day", 0);
    assert_eq!(peer.drain(receiver, 1).len(), 0, "all have expired");
    let bodies: Vec<Vec<u8>> = peer
        .drain(dead, 1_000)
        .iter()
        .map(e2e::Received::body)
        .collect();
    let expected: Vec<Vec<u8>> = (0..900u32).map(|n| n.to_be_bytes().to_vec()).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn every_lock_that_ends_on_the_way_counts() {
    let broker = start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("long-lock");
    assert_eq!(peer.send(sender, b"never settled"), DeliveryState::Accepted);
    let receiver = peer.receiver("long-lock", 100);
    let _ = peer.receive(receiver);
    // Locked, lost and delivered again every five minutes, ten times in all.
    advance(&broker, "PT1H");
    for _ in 1..10 {
        let _ = peer.receive(receiver);
    }
    let dead = peer.receiver("long-lock/$DeadLetterQueue", 1);
    assert_eq!(peer.receive(dead).body(), b"never settled");
}

#[test]
fn a_frozen_clock_stands_until_it_is_let_go() {
    let broker = start();
    let frozen = change(&broker, r#"{"freeze": true}"#);
    assert_eq!(frozen["frozen"], true);
    let (_, later) = ask(&broker, &[], None);
    assert_eq!(later["now"], frozen["now"]);
    let moved = advance(&broker, "PT1H");
    assert_eq!(moved["frozen"], true);
    assert_ne!(moved["now"], frozen["now"]);
    assert_eq!(ask(&broker, &[], None).1["now"], moved["now"]);
    let running = change(&broker, r#"{"freeze": false}"#);
    assert_eq!(running["frozen"], false);
}

/// A request to a namespace, by its host.
fn at(broker: &Broker, name: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let answer = http::exchange(
        broker.address(),
        &format!(
            "{method} {path} HTTP/1.1\r\nhost: {name}.localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        ),
    );
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = answer.split_once("\r\n\r\n").expect("a head").1;
    (status.expect("a status"), body.to_owned())
}

/// Two namespaces with a queue each, where messages live for a day.
fn start_with_namespaces() -> Broker {
    let namespaces = ["left", "right"].map(|name| {
        format!(
            "
[[namespaces]]
name = '{name}'

[[namespaces.queues]]
name = 'a-day'
default-message-time-to-live = 'P1D'
"
        )
    });
    Setup::new()
        .configure(&namespaces.concat())
        .arguments(&["--virtual-clock"])
        .start()
}

#[test]
fn one_namespace_advances_a_day_and_its_neighbour_does_not_notice() {
    let broker = start_with_namespaces();
    for name in ["left", "right"] {
        assert_eq!(
            at(&broker, name, "POST", "/a-day/messages", "for a day").0,
            201
        );
    }
    let owner = connection_string(&broker, "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    let offset = |name: &str, arguments: &[&str]| {
        let output = clock(&[arguments, &["--namespace", name]].concat(), &owner);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let offset = stdout.split_whitespace().nth(1).expect("an offset");
        offset.to_owned()
    };
    assert_eq!(offset("left", &["advance", "24h"]), "offset=PT24H");
    assert_eq!(offset("left", &["show"]), "offset=PT24H");
    assert_eq!(offset("right", &["show"]), "offset=PT0S");
    assert_eq!(ask(&broker, &[], None).1["offset"], "PT0S");
    let left = ["left", "right"].map(|name| {
        let (status, text) = at(&broker, name, "GET", "/$railbus/entities/a-day", "");
        assert_eq!(status, 200, "{text}");
        let queue: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        queue["state"]["active"].clone()
    });
    assert_eq!(left, [0, 1]);
}

#[test]
fn advances_of_many_namespaces_at_once_do_not_add_up() {
    let broker = start_with_namespaces();
    let advance = |name: &str| {
        let path = format!("/$railbus/namespaces/{name}/clock");
        let body = r#"{"advance": "PT10H"}"#;
        let (status, text) = http::request(broker.address(), "POST", &path, &[], body);
        assert_eq!(status, 200, "{text}");
        hours(&serde_json::from_str(&text).expect("JSON"))
    };
    thread::scope(|scope| {
        let advances = ["left", "right", "default", "left"].map(|name| {
            let advance = &advance;
            scope.spawn(move || advance(name))
        });
        let mut offsets = advances.map(|it| it.join().expect("an advance is answered"));
        offsets.sort_unstable();
        assert_eq!(offsets, [10, 10, 10, 20]);
    });
}

#[test]
fn two_advances_at_once_both_happen() {
    let broker = start();
    let offsets: Vec<u64> = thread::scope(|scope| {
        let handles: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| hours(&advance(&broker, "PT10H"))))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("an advance is answered"))
            .collect()
    });
    assert!(
        offsets.contains(&10) && offsets.contains(&20),
        "{offsets:?}"
    );
}

#[test]
fn tokens_and_connections_stay_on_real_time() {
    let broker = start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("long-lock");
    advance(&broker, "P30D");
    // Thirty days of silence for the broker, none for the connection.
    assert_eq!(peer.send(sender, b"still here"), DeliveryState::Accepted);
}

#[test]
fn bad_requests_are_refused_and_move_nothing() {
    let broker = start();
    change(&broker, r#"{"freeze": true}"#);
    let before = ask(&broker, &[], None).1;
    for body in [
        "",
        "{}",
        "[]",
        r#"{"advance": "soon"}"#,
        r#"{"advance": "-PT1H"}"#,
        r#"{"advance": "P101Y"}"#,
        r#"{"advance": "P10675199DT2H48M5.4775807S"}"#,
        r#"{"advance": "PT1H", "freeze": true}"#,
        r#"{"freeze": 1}"#,
    ] {
        let (status, answer) = ask(&broker, &[], Some(body));
        assert_eq!(status, 400, "{body}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    let (status, _) = ask(&broker, &[], Some(&" ".repeat(5_000)));
    assert_eq!(status, 413);
    let (status, _) = http::request(broker.address(), "DELETE", PATH, &[], "");
    assert_eq!(status, 405);
    assert_eq!(ask(&broker, &[], None).1["now"], before["now"]);
}

#[test]
fn a_real_clock_can_not_be_moved() {
    let broker = Setup::new().start();
    for body in [None, Some(r#"{"advance": "PT1H"}"#)] {
        let (status, answer) = ask(&broker, &[], body);
        assert_eq!(status, 409);
        let error = answer["error"].as_str().expect("a sentence");
        assert!(error.contains("--virtual-clock"), "{error}");
    }
}

/// `Basic` for a rule's name and key.
const OWNER: &str = "authorization: Basic b3duZXI6aHVzaC1odXNo";
const OWNER_WRONG_KEY: &str = "authorization: Basic b3duZXI6bG91ZA==";
const SENDER: &str = "authorization: Basic c2VuZGVyOmh1c2gtaHVzaA==";

const RULES: &str = "
[[auth.rules]]
name = 'owner'
primary-key = 'hush-hush'
rights = ['manage']

[[auth.rules]]
name = 'sender'
primary-key = 'hush-hush'
rights = ['send', 'listen']
";

#[test]
fn with_keys_of_ones_own_only_manage_may_see_or_move_the_clock() {
    let broker = Setup::new()
        .configure(RULES)
        .arguments(&["--virtual-clock"])
        .start();
    for body in [None, Some(r#"{"advance": "PT1H"}"#)] {
        for headers in [
            &[][..],
            &[OWNER_WRONG_KEY],
            &[SENDER],
            &["authorization: Bearer x"],
        ] {
            let (status, answer) = ask(&broker, headers, body);
            assert_eq!(status, 401, "{headers:?}");
            assert!(answer["error"].is_string(), "{answer}");
        }
        assert_eq!(ask(&broker, &[OWNER], body).0, 200);
    }
    assert_eq!(hours(&ask(&broker, &[OWNER], None).1), 1);
    assert_eq!(http::get(broker.address(), "/$railbus/else").0, 401);
    assert_eq!(http::get(broker.address(), "/health").0, 200);
}

#[test]
fn the_development_key_is_asked_for_only_beyond_loopback_and_of_web_pages() {
    let broker = start();
    assert_eq!(ask(&broker, &["origin: https://example.org"], None).0, 401);
    assert_eq!(ask(&broker, &[OWNER], None).0, 401);
    assert_eq!(ask(&broker, &[], None).0, 200);
    let public = Setup::new()
        .only_arguments(&[
            "--listen",
            "0.0.0.0:0",
            "--allow-development-key",
            "--virtual-clock",
        ])
        .start();
    assert_eq!(ask_at(&public, &[]).0, 401);
    // RootManageSharedAccessKey:SAS_KEY_VALUE
    let key = "authorization: Basic Um9vdE1hbmFnZVNoYXJlZEFjY2Vzc0tleTpTQVNfS0VZX1ZBTFVF";
    assert_eq!(ask_at(&public, &[key]).0, 200);
}

/// Asks a broker that listens everywhere.
fn ask_at(broker: &Broker, headers: &[&str]) -> (u16, String) {
    let address = ([127, 0, 0, 1], broker.address().port()).into();
    http::request(address, "GET", PATH, headers, "")
}

fn clock(arguments: &[&str], connection_string: &str) -> Output {
    Command::new(broker::program())
        .arg("clock")
        .args(arguments)
        .env("RAILBUS_CONNECTION_STRING", connection_string)
        .output()
        .expect("the program is there")
}

fn connection_string(broker: &Broker, rule: &str, key: &str) -> String {
    let address = broker.address();
    format!(
        "Endpoint=sb://{address};SharedAccessKeyName={rule};SharedAccessKey={key};UseDevelopmentEmulator=true"
    )
}

#[test]
fn the_command_line_shows_and_moves_the_clock() {
    let broker = Setup::new()
        .configure(RULES)
        .arguments(&["--virtual-clock"])
        .start();
    let owner = connection_string(&broker, "owner", "hush-hush");
    let check = |arguments: &[&str], parts: [&str; 2]| {
        let output = clock(arguments, &owner);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(parts.iter().all(|part| stdout.contains(part)), "{stdout}");
    };
    check(&["show"], ["offset=PT0S", "frozen=false"]);
    check(&["advance", "24h"], ["offset=PT24H", "frozen=false"]);
    check(&["advance", "PT30M"], ["offset=PT24H30M", "frozen=false"]);
    check(&["freeze"], ["now=2", "frozen=true"]);
    check(&["freeze", "--off"], ["now=2", "frozen=false"]);
}

#[test]
fn the_command_line_says_what_is_wrong() {
    let broker = Setup::new().configure(RULES).start();
    let check = |arguments: &[&str], connection: &str, code: i32, part: &str| {
        let output = clock(arguments, connection);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
    };
    let owner = connection_string(&broker, "owner", "hush-hush");
    check(&["show"], &owner, 1, "--virtual-clock");
    let wrong = connection_string(&broker, "owner", "loud");
    check(&["show"], &wrong, 1, "refused with 401");
    let sender = connection_string(&broker, "sender", "hush-hush");
    check(&["advance", "1h"], &sender, 1, "Manage");
    check(&["advance", "soon"], &owner, 2, "`soon` is not a duration");
    check(&["show"], "hello", 2, "there is no Endpoint in it");
    let nobody = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true";
    check(&["show"], nobody, 1, "no connection to 127.0.0.1:1");
}

/// A message that is to be enqueued `hours` from now, as its sender's clock shows it.
fn scheduled(hours: u64, body: &[u8]) -> BytesMut {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let due = now.expect("after 1970") + Duration::from_secs(hours * 3_600);
    let due = Value::Timestamp(i64::try_from(due.as_millis()).expect("not yet that late"));
    let key = Value::Symbol("x-opt-scheduled-enqueue-time".into());
    let mut message = BytesMut::new();
    encode_map_section(&mut message, descriptor::MESSAGE_ANNOTATIONS, &[(key, due)]);
    message.extend_from_slice(&message::encode(body));
    message
}

#[test]
fn what_is_scheduled_for_hours_from_now_is_due_when_they_have_passed_whatever_passed_before() {
    let broker = start();
    advance(&broker, "PT24H");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("a-day");
    for (hours, body) in [(2, b"second"), (1, b"first!")] {
        let sent = peer.send_encoded(sender, &scheduled(hours, body));
        assert_eq!(peer.outcome(sent), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("a-day", 5);
    advance(&broker, "PT59M");
    assert_eq!(peer.drain(receiver, 5).len(), 0, "not yet");
    advance(&broker, "PT2H");
    assert_eq!(peer.drain(receiver, 10).len(), 2);
}
