//! Hostile input: a client that sends it is refused in the terms of its protocol, what it costs is
//! bounded, and another client goes on. TLS garbage, WebSocket frames out of order and certificates
//! without their key are in files of their own (`tls.rs`, `websocket.rs`, `certificate.rs`),
//! malformed AMQP in `refusals.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use amqp::{DeliveryState, Role};
use e2e::{Broker, Credentials, Peer, Setup, http, peer};
use endpoint::LinkId;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// What a single attack may cost in memory, in KiB.
const COST: u64 = 24 * 1_024;

/// A broker under attack, and a client that minds its own business.
struct Scene {
    broker: Broker,
    other: Peer,
    sender: LinkId,
    before: u64,
}

impl Scene {
    fn new() -> Self {
        Self::with(&Setup::new())
    }

    fn with(setup: &Setup) -> Self {
        let broker = setup.start();
        let mut other = Peer::connect(broker.address());
        let sender = other.sender("orders");
        assert_eq!(other.send(sender, b"before"), DeliveryState::Accepted);
        let before = broker.memory("VmRSS");
        Self {
            broker,
            other,
            sender,
            before,
        }
    }

    fn address(&self) -> SocketAddr {
        self.broker.address()
    }

    /// The other client goes on.
    fn go_on(&mut self) {
        let sent = self.other.send(self.sender, b"meanwhile");
        assert_eq!(sent, DeliveryState::Accepted);
    }

    /// The attack is over: the other client goes on, and memory has not grown by much.
    fn end(mut self) {
        self.go_on();
        let grown = self.broker.memory("VmRSS").saturating_sub(self.before);
        assert!(grown < COST, "the attack has cost {grown} KiB");
        assert!(!self.broker.log().contains("panicked"));
    }
}

/// Writes until a write fails or at least `most` bytes are taken; returns how many were.
fn pour(stream: &mut TcpStream, piece: &[u8], most: usize) -> usize {
    let mut taken = 0;
    while taken < most && stream.write_all(piece).is_ok() {
        taken += piece.len();
    }
    taken
}

/// All that still comes.
fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer is no news.
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

/// What the broker answers to `request` on a connection of its own, until it closes it.
fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = peer::connect(address);
    stream
        .write_all(request.as_bytes())
        .expect("the broker reads");
    rest(&mut stream)
}

fn status(answer: &str) -> u16 {
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status in {answer:?}"))
}

fn put(address: SocketAddr, body: &str) -> (u16, String) {
    http::request(address, "PUT", "/new?api-version=2021-05", &[], body)
}

#[test]
fn broken_xml_is_refused_as_a_bad_request() {
    let mut scene = Scene::new();
    let deep = "<a>".repeat(50_000);
    let wide = format!("<entry {}/>", "a='1' ".repeat(20_000));
    for body in [
        "",
        "<entry",
        "<entry><content></entry>",
        "<entry xmlns='http://www.w3.org/2005/Atom'>&unknown;</entry>",
        "\u{0}\u{1}",
        "{}",
        &deep,
        &wide,
    ] {
        let (status, answer) = put(scene.address(), body);
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("<Error>"), "{answer}");
        scene.go_on();
    }
    let (_, found) = http::get(scene.address(), "/new?api-version=2021-05");
    assert!(!found.contains("QueueDescription"), "{found}");
    scene.end();
}

#[test]
fn an_xml_bomb_is_refused_before_anything_is_expanded() {
    let scene = Scene::new();
    let mut bomb = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY a0 \"lol\">".to_owned();
    for level in 1..30 {
        let before = format!("&a{};", level - 1).repeat(10);
        bomb.push_str(&format!("<!ENTITY a{level} \"{before}\">"));
    }
    bomb.push_str("]><entry xmlns=\"http://www.w3.org/2005/Atom\">&a29;</entry>");
    assert_eq!(put(scene.address(), &bomb).0, 400);
    let outside = "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><entry>&b;</entry>";
    let (status, answer) = put(scene.address(), outside);
    assert_eq!(status, 400);
    assert!(!answer.contains("root:"), "{answer}");
    scene.end();
}

#[test]
fn a_body_of_a_gibibyte_is_refused_without_being_taken() {
    let scene = Scene::new();
    let length = 1 << 30;
    let mut stream = peer::connect(scene.address());
    let head = format!(
        "PUT /new?api-version=2021-05 HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the broker reads");
    let taken = pour(&mut stream, &[b' '; 64 * KIB], length);
    assert!(taken < 64 * MIB, "{taken} bytes were taken");
    scene.end();
}

#[test]
fn a_body_whose_length_alone_is_too_much_is_answered() {
    let scene = Scene::new();
    let body = " ".repeat(MIB);
    let head = "POST /$railbus/rules/test HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    assert_eq!(status(&raw(scene.address(), &request)), 413);
    scene.end();
}

#[test]
fn a_body_in_chunks_without_an_end_is_refused() {
    let scene = Scene::new();
    let mut stream = peer::connect(scene.address());
    let head = "PUT /new?api-version=2021-05 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the broker reads");
    let chunk = format!("{:x}\r\n{}\r\n", 64 * KIB, " ".repeat(64 * KIB));
    let taken = pour(&mut stream, chunk.as_bytes(), 1 << 30);
    assert!(taken < 64 * MIB, "{taken} bytes were taken");
    scene.end();
}

#[test]
fn a_compressed_body_is_not_expanded() {
    let scene = Scene::new();
    // The head of a file of gzip; nothing reads what would follow.
    let body = "\u{1f}\u{8}\u{8}";
    let headers = ["content-encoding: gzip"];
    let target = "/new?api-version=2021-05";
    let (status, answer) = http::request(scene.address(), "PUT", target, &headers, body);
    assert_eq!(status, 400, "{answer}");
    scene.end();
}

#[test]
fn a_frame_of_a_size_that_lies_reserves_nothing() {
    let mut scene = Scene::new();
    let sasl: &[u8] = b"AMQP\x03\x01\x00\x00";
    for size in [u32::MAX, i32::MAX as u32, 65_537] {
        for kind in [0, 1] {
            let mut frame = size.to_be_bytes().to_vec();
            frame.extend_from_slice(&[2, kind, 0, 0]);
            // Before a login, where it is refused by its head, and after one.
            let mut stranger = peer::connect(scene.address());
            let bytes = [sasl, &frame].concat();
            stranger.write_all(&bytes).expect("the broker reads");
            drop(rest(&mut stranger));
            let mut known = Peer::connect(scene.address());
            known.stream().write_all(&frame).expect("the broker reads");
            let error = known.closed().expect("the broker says why");
            let condition = "amqp:connection:framing-error";
            assert_eq!(error.condition.as_str(), condition, "{size} {kind}");
            scene.go_on();
        }
    }
    scene.end();
}

#[test]
fn chunked_nonsense_is_refused() {
    let mut scene = Scene::new();
    let head = "POST /$railbus/rules/test HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    for body in [
        "zz\r\n",
        "-1\r\n",
        "ffffffffffffffff1\r\nx\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "\r\n\r\n",
    ] {
        let answer = raw(scene.address(), &format!("{head}{body}"));
        assert_eq!(status(&answer), 400, "{body:?}: {answer}");
        scene.go_on();
    }
    // An extension that never ends.
    let mut stream = peer::connect(scene.address());
    stream.write_all(head.as_bytes()).expect("the broker reads");
    stream.write_all(b"5;").expect("the broker reads");
    let taken = pour(&mut stream, &[b'x'; 64 * KIB], 1 << 30);
    assert!(taken < 64 * MIB, "{taken} bytes were taken");
    scene.end();
}

#[test]
fn a_request_is_never_smuggled_behind_another() {
    let mut scene = Scene::new();
    let hidden = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for headers in [
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 4",
        "content-length: 4\r\ncontent-length: 5",
        "content-length: 4, 5",
        "content-length: +4",
        "content-length: 0x4",
        "content-length : 4",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "transfer-encoding : chunked",
        "transfer-encoding:\u{b}chunked",
        "content-length: 4\r\n folded: 1",
    ] {
        let request = format!(
            "POST /orders/messages HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n\r\n0\r\n\r\n{hidden}"
        );
        let answer = raw(scene.address(), &request);
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{headers}: {answer}");
        assert!(!answer.contains("railbus_"), "{headers}: {answer}");
        assert_eq!(status(&answer), 400, "{headers}: {answer}");
        scene.go_on();
    }
    scene.end();
}

#[test]
fn a_request_names_exactly_one_host() {
    let mut scene = Scene::new();
    for hosts in [
        "",
        "host: localhost\r\nhost: localhost\r\n",
        "host: localhost\r\nhost: other\r\n",
        "host: a/b\r\n",
        "host: user@localhost\r\n",
    ] {
        let request = format!("GET /health HTTP/1.1\r\n{hosts}\r\n");
        let answer = raw(scene.address(), &request);
        assert_eq!(status(&answer), 400, "{hosts}: {answer}");
        assert!(answer.contains("Host header"), "{hosts}: {answer}");
        scene.go_on();
    }
    scene.end();
}

#[test]
fn a_path_with_dots_as_segments_makes_no_entity() {
    let mut scene = Scene::new();
    let description = "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">\
         <QueueDescription xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\"/>\
         </content></entry>";
    for path in [
        "/a/../b",
        "/a/./b",
        "/..",
        "/.",
        "/a/..",
        "/a/%2e%2e/b",
        "/%2E",
        "/a/.%2e",
    ] {
        let target = format!("{path}?api-version=2021-05");
        let (status, answer) = http::request(scene.address(), "PUT", &target, &[], description);
        assert_eq!(status, 400, "{path}: {answer}");
        scene.go_on();
    }
    let (_, entities) = http::get(scene.address(), "/$railbus/entities");
    assert_eq!(entities.matches("\"name\"").count(), 2, "{entities}");
    scene.end();
}

#[test]
fn headers_without_an_end_are_refused() {
    let scene = Scene::new();
    for piece in [
        "x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "aaaaaaaaaaaaaaaa",
    ] {
        let mut stream = peer::connect(scene.address());
        stream
            .write_all(b"GET / HTTP/1.1\r\n")
            .expect("the broker reads");
        let piece = piece.repeat(256);
        let taken = pour(&mut stream, piece.as_bytes(), 1 << 30);
        assert!(taken < 64 * MIB, "{taken} bytes were taken");
    }
    scene.end();
}

#[test]
fn ten_thousand_bad_tokens_open_nothing_and_hinder_nobody() {
    const CONNECTIONS: usize = 500;
    /// Fewer than the broker takes in a row.
    const TOKENS: usize = 20;
    let rules = "[[auth.rules]]\nname = 'RootManageSharedAccessKey'\nprimary-key = 'SAS_KEY_VALUE'\nrights = ['manage', 'send', 'listen']
[limits]
wrong-credentials-per-address = 20000";
    let mut scene = Scene::with(&Setup::new().configure(rules));
    for _ in 0..CONNECTIONS {
        let mut requests = String::new();
        for index in 1..=TOKENS {
            let last = if index == TOKENS {
                "connection: close\r\n"
            } else {
                ""
            };
            requests.push_str(&format!(
                "GET /metrics HTTP/1.1\r\nhost: localhost\r\n{last}authorization: SharedAccessSignature \
                 sr=http%3A%2F%2Flocalhost&sig=bm90aGluZw%3D%3D{index}&se=4000000000&skn=RootManageSharedAccessKey\r\n\r\n"
            ));
        }
        let answers = raw(scene.address(), &requests);
        assert_eq!(answers.matches("HTTP/1.1 401").count(), TOKENS, "{answers}");
        assert!(!answers.contains("HTTP/1.1 200"), "{answers}");
        scene.go_on();
    }
    assert!(
        !scene.broker.log().contains("bm90aGluZw"),
        "no signature is in the log"
    );
    scene.end();
}

#[test]
fn wrong_keys_over_amqp_are_refused_one_like_the_other() {
    let limits = "[limits]\nwrong-credentials-per-address = 1000";
    let mut scene = Scene::with(&Setup::new().configure(limits));
    for rule in ["RootManageSharedAccessKey", "Nobody", ""] {
        for _ in 0..100 {
            let mut stranger = Peer::begin(
                scene.address(),
                Credentials {
                    rule,
                    key: "none-of-them",
                },
            );
            assert_eq!(stranger.sasl_outcome(), amqp::sasl::Code::Auth);
        }
        scene.go_on();
    }
    scene.end();
}

#[test]
fn a_flood_of_strangers_is_let_go_and_hinders_nobody() {
    const STRANGERS: usize = 500;
    let limits = "[limits]\nhandshake-time-out = 'PT1S'";
    let mut scene = Scene::with(&Setup::new().configure(limits));
    let begun: [&[u8]; 5] = [
        b"",
        b"A",
        b"AMQP\x03\x01\x00\x00",
        b"GET / HTTP/1.1\r\nhost:",
        b"\x16\x03\x01\x02\x00\x01",
    ];
    let mut strangers = Vec::new();
    for index in 0..STRANGERS {
        let mut stream = peer::connect(scene.address());
        stream
            .write_all(begun[index % begun.len()])
            .expect("the broker reads");
        strangers.push(stream);
        scene.go_on();
    }
    // Each of them is left by the broker, whatever it had begun with.
    for mut stream in strangers {
        drop(rest(&mut stream));
        scene.go_on();
    }
    scene.end();
}

#[test]
fn a_stranger_may_attach_nothing() {
    let mut scene = Scene::new();
    let mut stranger = Peer::anonymous(scene.address());
    for role in [Role::Sender, Role::Receiver] {
        for node in ["orders", "orders/$management", "nowhere"] {
            let error = stranger.refused(role, node);
            assert_eq!(
                error.condition.as_str(),
                "amqp:unauthorized-access",
                "{node}"
            );
        }
    }
    scene.go_on();
    scene.end();
}
