//! Limits: each one of the configuration, set low, refuses in the terms of its protocol, and the
//! refusal is counted. Connections in total and bytes of messages are in `load.rs`, handshakes in
//! `tls.rs`, `websocket.rs` and `hostile.rs`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use amqp::frame::{self, FrameType};
use amqp::sasl::SaslFrame;
use amqp::{Begin, DeliveryState, Performative, Role, Symbol};
use bytes::BytesMut;
use e2e::{Broker, Peer, Setup, http};

const TOO_MANY: &str = "amqp:resource-limit-exceeded";

fn limited(limits: &str) -> Broker {
    Setup::new()
        .configure(&format!("[limits]\n{limits}"))
        .start()
}

/// The value of a metric.
fn metric(broker: &Broker, series: &str) -> u64 {
    let (status, page) = http::get(broker.address(), "/metrics");
    assert_eq!(status, 200);
    let before = format!("{series} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&before));
    value.expect("it is shown").parse().expect("a number")
}

/// How often a connection, a session or a link was told a condition.
fn told(broker: &Broker, scope: &str, condition: &str) -> u64 {
    let series =
        format!("railbus_amqp_errors_total{{scope=\"{scope}\",condition=\"{condition}\"}}");
    metric(broker, &series)
}

/// The peer is closed with `condition`, which is counted, and another goes on.
fn check_closed(broker: &Broker, mut peer: Peer, condition: &str) {
    let error = peer.closed().expect("the broker says why");
    assert_eq!(error.condition.as_str(), condition);
    assert_eq!(told(broker, "connection", condition), 1);
    check_works(broker);
}

fn check_works(broker: &Broker) {
    let mut other = Peer::connect(broker.address());
    let sender = other.sender("orders");
    assert_eq!(other.send(sender, b"hello"), DeliveryState::Accepted);
}

/// Bytes of a frame of that size, as far as its header.
fn header_of_frame(size: u32) -> Vec<u8> {
    let mut frame = size.to_be_bytes().to_vec();
    frame.extend_from_slice(&[2, 0, 0, 0]);
    frame
}

/// A frame that begins a session on `channel`.
fn header_and_begin(channel: u16) -> BytesMut {
    let begin = Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 1,
        outgoing_window: 1,
        handle_max: 0,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    };
    let mut frame = BytesMut::new();
    let start = frame::begin(&mut frame, FrameType::Amqp, channel);
    Performative::Begin(Box::new(begin)).encode(&mut frame);
    frame::finish(&mut frame, start);
    frame
}

#[test]
fn a_frame_larger_than_configured_is_a_framing_error() {
    let broker = limited("frame-size = '4KiB'");
    let mut peer = Peer::connect(broker.address());
    let frame = header_of_frame(4_097);
    peer.stream().write_all(&frame).expect("the broker reads");
    check_closed(&broker, peer, "amqp:connection:framing-error");
}

#[test]
fn before_the_open_a_frame_above_64_kib_is_refused_whatever_is_configured() {
    let broker = limited("frame-size = '1MiB'");
    let mut begun = BytesMut::from(&b"AMQP\x03\x01\x00\x00"[..]);
    let start = frame::begin(&mut begun, FrameType::Sasl, 0);
    let init = SaslFrame::Init {
        mechanism: Symbol::new("ANONYMOUS"),
        initial_response: None,
        hostname: None,
    };
    init.encode(&mut begun);
    frame::finish(&mut begun, start);
    begun.extend_from_slice(b"AMQP\x00\x01\x00\x00");
    begun.extend_from_slice(&header_of_frame(65_537));
    let mut stream = e2e::peer::connect(broker.address());
    stream.write_all(&begun).expect("the broker reads");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("the broker closes");
    let condition = "amqp:connection:framing-error";
    assert!(String::from_utf8_lossy(&said).contains(condition));
    assert_eq!(told(&broker, "connection", condition), 1);
    check_works(&broker);
}

#[test]
fn one_session_too_many_closes_the_connection() {
    let broker = limited("sessions-per-connection = 2");
    let mut peer = Peer::connect(broker.address());
    let links = [peer.sender("orders"), peer.sender("others")];
    for link in links {
        assert_eq!(peer.send(link, b"hello"), DeliveryState::Accepted);
    }
    let begin = header_and_begin(2);
    peer.stream().write_all(&begin).expect("the broker reads");
    check_closed(&broker, peer, "amqp:connection:framing-error");
}

#[test]
fn one_link_too_many_for_the_connection_is_refused() {
    let broker = limited("links-per-connection = 2");
    let mut peer = Peer::connect(broker.address());
    let first = peer.sender("orders");
    let second = peer.sender("others");
    let error = peer.refused(Role::Sender, "orders");
    assert_eq!(error.condition.as_str(), TOO_MANY);
    assert_eq!(told(&broker, "link", TOO_MANY), 1);
    for link in [first, second] {
        assert_eq!(peer.send(link, b"hello"), DeliveryState::Accepted);
    }
}

#[test]
fn unfinished_messages_beyond_the_limit_detach_their_link() {
    let broker = limited("partial-bytes-per-connection = '64KiB'");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    peer.send_only(sender, &vec![7; 200 * 1024]);
    let error = peer.detached(sender).expect("the broker says why");
    assert_eq!(error.condition.as_str(), TOO_MANY);
    assert_eq!(told(&broker, "link", TOO_MANY), 1);
    check_works(&broker);
}

#[test]
fn who_shows_no_right_in_time_is_told_so() {
    let broker = limited("authentication-time-out = 'PT1S'");
    let since = Instant::now();
    let peer = Peer::anonymous(broker.address());
    check_closed(&broker, peer, "amqp:unauthorized-access");
    assert!(since.elapsed().as_millis() >= 1_000, "it had its second");
}

#[test]
fn who_says_nothing_any_more_is_closed() {
    let broker = limited("idle-time-out = 'PT1S'");
    let peer = Peer::connect(broker.address());
    let since = Instant::now();
    check_closed(&broker, peer, "amqp:connection:forced");
    assert!(since.elapsed().as_millis() >= 1_000, "it had its second");
}

#[test]
fn who_never_opens_is_left_and_counted() {
    let broker = limited("handshake-time-out = 'PT1S'");
    let mut silent = e2e::peer::connect(broker.address());
    assert_eq!(silent.read(&mut [0]).expect("the broker closes"), 0);
    let series = "railbus_connections_refused_total{reason=\"handshake-time-out\"}";
    assert_eq!(metric(&broker, series), 1);
    check_works(&broker);
}

/// The answer to a request, whose beginning is `request` and which is not read to its end.
fn answer(broker: &Broker, request: &str) -> String {
    let mut stream: TcpStream = e2e::peer::connect(broker.address());
    stream
        .write_all(request.as_bytes())
        .expect("the broker reads");
    let mut line = [0; 12];
    stream.read_exact(&mut line).expect("the broker answers");
    // What is no request is counted after its answer and before the end.
    drop(stream.read_to_end(&mut Vec::new()));
    String::from_utf8_lossy(&line).into_owned()
}

#[test]
fn headers_and_bodies_of_http_beyond_their_limits_are_refused_and_counted() {
    let broker = limited("http-header-size = '8KiB'\nhttp-body-size = '1KiB'");
    let long = "x".repeat(9 * 1024);
    let head = "host: localhost\r\nconnection: close\r\n";
    let request = format!("GET /metrics HTTP/1.1\r\n{head}x-long: {long}\r\n\r\n");
    assert_eq!(answer(&broker, &request), "HTTP/1.1 431");
    let request = format!(
        "PUT /new?api-version=2021-05 HTTP/1.1\r\n{head}content-length: 1025\r\n\r\n{}",
        "x".repeat(1_025)
    );
    assert_eq!(answer(&broker, &request), "HTTP/1.1 413");
    let refused = metric(&broker, "railbus_http_responses_total{status=\"4xx\"}");
    assert_eq!(refused, 2);
}

/// Of ten thousand viewers of the live figures 64 have a stream, and the others are told so.
#[test]
fn streams_of_events_are_bounded_whatever_the_number_of_viewers() {
    const VIEWERS: usize = 10_000;
    const STREAMS: usize = 64;
    let broker = Setup::new().start();
    let memory = broker.memory("VmRSS");
    let request = "GET /$railbus/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut streams = Vec::new();
    for viewer in 0..VIEWERS {
        let mut stream = TcpStream::connect(broker.address()).expect("the broker listens");
        stream
            .write_all(request.as_bytes())
            .expect("the broker reads");
        let mut status = [0; 13];
        stream
            .read_exact(&mut status)
            .expect("the broker answers at once");
        let expected = match viewer < STREAMS {
            true => b"HTTP/1.1 200 ",
            false => b"HTTP/1.1 503 ",
        };
        assert_eq!(&status, expected, "viewer {viewer}");
        if viewer < STREAMS {
            streams.push(stream);
        }
    }
    let (status, body) = http::get(broker.address(), "/$railbus/events");
    assert_eq!(status, 503);
    assert!(body.contains("the maximum of 64 streams"), "{body}");
    check_works(&broker);
    let grown = broker.memory("VmRSS").saturating_sub(memory);
    assert!(grown < 64 << 10, "{grown} KiB more than before");
}
