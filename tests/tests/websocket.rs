//! WebSocket on the port that speaks everything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use amqp::DeliveryState;
use e2e::websocket::{Bytes, open};
use e2e::{Credentials, Peer, Setup, http, peer};
use server::Limits;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};
use tungstenite::{Message, WebSocket};

mod site;

use site::Site;

const AZURE: &str = "/$servicebus/websocket";

fn socket(site: &Site) -> WebSocket<TcpStream> {
    open(peer::connect(site.address), AZURE, "AMQPWSB10", &[]).expect("the broker agrees")
}

/// Sends a message and receives it, both over a socket at `path`.
fn check_exchange<S: Read + Write>(stream: S, path: &str, sub_protocol: &str, body: &[u8]) {
    let socket = open(stream, path, sub_protocol, &[]).expect("the broker agrees");
    let mut peer = Peer::over(Bytes::new(socket), Credentials::DEVELOPMENT);
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert!(received.body() == body);
    let settled = peer.settle(&received, DeliveryState::Accepted);
    assert_eq!(settled, Some(DeliveryState::Accepted));
}

#[test]
fn amqp_goes_by_websocket_where_clients_look_for_it() {
    let site = Site::start();
    let connect = || peer::connect(site.address);
    check_exchange(connect(), AZURE, "AMQPWSB10", b"hello");
    check_exchange(connect(), "/$servicebus/websocket/", "amqp", b"hello");
    check_exchange(connect(), "/", "amqp", b"hello");
    check_exchange(
        connect(),
        "/%24servicebus/websocket",
        "AMQPWSB10",
        &vec![7; 900 << 10],
    );
}

#[test]
fn amqp_goes_by_websocket_within_tls() {
    let site = Site::start();
    let connect = || site.trust.connect(site.address, "localhost");
    check_exchange(connect(), AZURE, "AMQPWSB10", b"hello");
    check_exchange(connect(), "/", "amqp", &vec![7; 900 << 10]);
}

#[test]
fn what_is_no_websocket_is_refused_in_the_terms_of_http() {
    let site = Site::start();
    let status = |path: &str, sub_protocol: &str, headers: &[(&str, &str)]| {
        open(peer::connect(site.address), path, sub_protocol, headers).err()
    };
    assert_eq!(status("/", "AMQPWSB10", &[]), Some(400));
    assert_eq!(status(AZURE, "mqtt", &[]), Some(400));
    assert_eq!(status("/elsewhere", "amqp", &[]), Some(404));
    assert_eq!(
        status(AZURE, "amqp", &[("Origin", "https://evil.example")]),
        Some(403)
    );
    assert_eq!(
        status(AZURE, "amqp", &[("Origin", "http://localhost:3000")]),
        None
    );
    assert_eq!(e2e::http::get(site.address, AZURE).0, 426);
}

/// Sends `frames` and expects the broker to close with `code`; another client does not notice.
fn check_breach(site: &Site, frames: &[Frame], code: u16) {
    let mut other = Peer::connect(site.address);
    let mut socket = socket(site);
    for frame in frames {
        socket
            .write(Message::Frame(frame.clone()))
            .expect("the socket takes it");
    }
    // The broker may have closed already.
    drop(socket.flush());
    let close = std::iter::from_fn(|| socket.read().ok()).find_map(|message| match message {
        Message::Close(frame) => Some(frame.expect("the broker says why").code.into()),
        _ => None,
    });
    assert_eq!(close, Some(code));
    let sender = other.sender("orders");
    assert_eq!(other.send(sender, b"hello"), DeliveryState::Accepted);
}

fn frame(kind: Data, is_final: bool, payload: &'static [u8]) -> Frame {
    Frame::message(payload, OpCode::Data(kind), is_final)
}

#[test]
fn text_is_refused_with_1003() {
    let site = Site::start();
    check_breach(&site, &[frame(Data::Text, true, b"hello")], 1003);
    let late = [
        frame(Data::Binary, true, b"AMQP"),
        frame(Data::Text, true, b"hello"),
    ];
    check_breach(&site, &late, 1003);
}

#[test]
fn frames_out_of_order_are_refused_with_1002() {
    let site = Site::start();
    check_breach(&site, &[frame(Data::Continue, true, b"hello")], 1002);
    let twice = [
        frame(Data::Binary, false, b"AM"),
        frame(Data::Binary, true, b"QP"),
    ];
    check_breach(&site, &twice, 1002);
    let mut reserved = frame(Data::Binary, true, b"hello");
    reserved.header_mut().rsv1 = true;
    check_breach(&site, &[reserved], 1002);
}

#[test]
fn a_frame_beyond_the_limit_is_refused_with_1009() {
    let site = Site::with(Limits {
        unanswered_bytes: 64 << 10,
        ..Limits::default()
    });
    static LARGE: [u8; (64 << 10) + 1] = [0; (64 << 10) + 1];
    check_breach(&site, &[frame(Data::Binary, true, &LARGE)], 1009);
}

#[test]
fn a_frame_that_is_not_masked_is_refused_with_1002() {
    let site = Site::start();
    let mut socket = socket(&site);
    let mut bytes = Vec::new();
    FrameHeader {
        opcode: OpCode::Data(Data::Binary),
        ..FrameHeader::default()
    }
    .format(4, &mut bytes)
    .unwrap();
    bytes.extend(b"AMQP");
    socket.get_mut().write_all(&bytes).unwrap();
    let closed = socket.read().unwrap();
    assert!(matches!(closed, Message::Close(Some(frame)) if u16::from(frame.code) == 1002));
}

#[test]
fn a_message_may_come_in_fragments_with_pings_in_between() {
    let site = Site::start();
    let mut socket = socket(&site);
    let header: &'static [u8] = b"AMQP\x03\x01\x00\x00";
    for (index, byte) in header.chunks(1).enumerate() {
        let kind = if index == 0 {
            Data::Binary
        } else {
            Data::Continue
        };
        let is_final = index + 1 == header.len();
        socket
            .write(Message::Frame(frame(kind, is_final, byte)))
            .unwrap();
        socket
            .write(Message::Ping(tungstenite::Bytes::from_static(byte)))
            .unwrap();
    }
    socket.flush().unwrap();
    let (mut pongs, mut answer) = (Vec::new(), Vec::new());
    while pongs.last() != Some(&0) || answer.len() < 8 {
        match socket.read().unwrap() {
            Message::Pong(payload) => pongs.extend(payload),
            Message::Binary(payload) => answer.extend(payload),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(&answer[..8], header);
}

#[test]
fn a_close_frame_is_answered_with_one() {
    let site = Site::start();
    let mut socket = socket(&site);
    socket.close(None).unwrap();
    assert!(matches!(socket.read().unwrap(), Message::Close(_)));
    assert!(matches!(
        socket.read(),
        Err(tungstenite::Error::ConnectionClosed)
    ));
}

#[test]
fn who_opens_a_websocket_and_says_nothing_is_left() {
    let site = Site::impatient();
    let mut silent = socket(&site);
    while silent.read().is_ok() {}
    // Cut within a frame.
    let mut cut = socket(&site);
    cut.get_mut().write_all(&[0x82, 0xfe, 0x10]).unwrap();
    while cut.read().is_ok() {}
    // And gone within one.
    let mut gone = socket(&site);
    gone.get_mut()
        .write_all(&[0x82, 0x85, 1, 2, 3, 4, 5])
        .unwrap();
    gone.get_mut().shutdown(Shutdown::Write).unwrap();
    while gone.read().is_ok() {}
}

#[test]
fn stopping_is_said_by_amqp_and_by_a_close_frame() {
    let mut site = Site::start();
    let mut peer = Peer::over(Bytes::new(socket(&site)), Credentials::DEVELOPMENT);
    assert!(peer.try_open());
    site.stop();
    let error = peer.closed().expect("the broker says why");
    assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    let stream = peer.inner();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(stream.closed, Some(1000));
}

#[test]
fn a_page_that_leads_its_own_name_here_is_refused_with_and_without_the_key() {
    let broker = Setup::new().start();
    // The name and the key of the development rule.
    let key = "authorization: Basic Um9vdE1hbmFnZVNoYXJlZEFjY2Vzc0tleTpTQVNfS0VZX1ZBTFVF\r\n";
    let status = |path: &str, host: &str, header: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{header}\r\n");
        let answer = http::exchange(broker.address(), &request);
        answer.split(' ').nth(1).map(str::to_owned)
    };
    for header in ["", key] {
        for path in [
            "/$railbus/entities",
            "/metrics",
            "/orders?api-version=2021-05",
        ] {
            let refused = status(path, "evil.example:5672", header);
            assert_eq!(refused.as_deref(), Some("400"), "{path}");
        }
        let allowed = status("/metrics", "127.0.0.1:5672", header);
        assert_eq!(allowed.as_deref(), Some("200"));
    }
    let health = status("/health", "evil.example", "");
    assert_eq!(health.as_deref(), Some("200"));
}
