//! TLS on the port that speaks everything.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use amqp::DeliveryState;
use e2e::{Credentials, Peer, http, peer};

mod site;

use site::Site;

/// Sends a message and receives it, both by `peer`.
fn check_exchange<S: Read + Write>(peer: &mut Peer<S>, body: &[u8]) {
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    assert!(received.body() == body);
    let settled = peer.settle(&received, DeliveryState::Accepted);
    assert_eq!(settled, Some(DeliveryState::Accepted));
}

fn secured(site: &Site) -> Peer<e2e::tls::Secured> {
    let stream = site.trust.connect(site.address, "localhost");
    let mut peer = Peer::over(stream, Credentials::DEVELOPMENT);
    assert!(peer.try_open());
    peer
}

/// Reads until the broker has closed the connection.
fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // Without a goodbye within TLS.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the broker does not close: {error}"),
    }
    bytes
}

#[test]
fn amqp_goes_within_tls_and_beside_it() {
    let site = Site::start();
    let mut inside = secured(&site);
    let mut beside = Peer::connect(site.address);
    check_exchange(&mut inside, b"hello");
    check_exchange(&mut beside, b"hello");
    check_exchange(&mut inside, &vec![7; 900 << 10]);
}

#[test]
fn https_goes_within_tls() {
    let site = Site::start();
    let mut stream = site.trust.connect(site.address, "localhost");
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    // Its end is said within TLS, so an attacker cannot cut an answer short.
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with(r#"{"status":"healthy","message":"Service is healthy."}"#));
}

#[test]
fn a_client_may_ask_for_tls_by_amqps_own_header() {
    let site = Site::start();
    let mut stream = peer::connect(site.address);
    stream.write_all(b"AMQP\x02\x01\x00\x00").unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"AMQP\x02\x01\x00\x00");
    let stream = site.trust.secure(stream, "localhost");
    let mut peer = Peer::over(stream, Credentials::DEVELOPMENT);
    check_exchange(&mut peer, b"hello");
}

#[test]
fn who_has_to_come_within_tls_is_told_so() {
    let site = Site::secured();
    let mut stream = peer::connect(site.address);
    stream.write_all(b"AMQP\x03\x01\x00\x00").unwrap();
    assert_eq!(read_to_end(&mut stream), b"AMQP\x02\x01\x00\x00");
    let upgrade = "GET /$servicebus/websocket HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
        upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-protocol: amqp\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let (head, body) = split(&http::exchange(site.address, upgrade));
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    assert!(body.contains("https"), "{body}");
    for path in ["/metrics", "/orders", "/$railbus/clock"] {
        assert_eq!(http::get(site.address, path).0, 403, "{path}");
    }
    assert_eq!(http::get(site.address, "/health").0, 200);
    check_exchange(&mut secured(&site), b"hello");
}

fn split(answer: &str) -> (String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    (head.to_owned(), body.to_owned())
}

#[test]
fn garbage_ends_its_own_connection_alone() {
    let site = Site::start();
    let mut other = secured(&site);
    for garbage in [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"\x16\xff\xff\xff\xff\xff\xff",
        b"\x16AMQP\x00\x01\x00\x00",
    ] {
        let mut stream = peer::connect(site.address);
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read_to_end(&mut stream);
        assert!(
            answer.is_empty() || answer[0] == 0x15,
            "an alert or nothing"
        );
    }
    // And within TLS that was fine until then.
    let mut peer = secured(&site);
    let stream: &mut TcpStream = &mut peer.inner().sock;
    stream
        .write_all(b"\x17\x03\x03\x00\x20garbage instead of ciphertext, ok")
        .unwrap();
    read_to_end(stream);
    check_exchange(&mut other, b"hello");
}

#[test]
fn who_is_slow_with_a_handshake_is_left() {
    let site = Site::impatient();
    let mut first = peer::connect(site.address);
    let mut second = peer::connect(site.address);
    second.write_all(b"\x16\x03\x01").unwrap();
    let mut third = peer::connect(site.address);
    third.write_all(b"AMQP\x03").unwrap();
    let mut fourth = site.trust.connect(site.address, "localhost");
    fourth.flush().unwrap();
    let mut fifth = site.trust.connect(site.address, "localhost");
    fifth.write_all(b"AMQP\x03").unwrap();
    let mut sixth = site.trust.connect(site.address, "localhost");
    sixth.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut seventh = peer::connect(site.address);
    seventh.write_all(b"AMQP\x02\x01\x00\x00").unwrap();
    for stream in [&mut first, &mut second, &mut third, &mut seventh] {
        read_to_end(stream);
    }
    for stream in [&mut fourth, &mut fifth, &mut sixth] {
        read_to_end(stream);
    }
    check_exchange(&mut Peer::connect(site.address), b"hello");
}

#[test]
fn a_replaced_certificate_is_shown_to_those_who_come_later() {
    let site = Site::start();
    let mut before = secured(&site);
    let trust = site.replace_certificate();
    let mut distrusting = site.trust.connect(site.address, "localhost");
    assert!(distrusting.write_all(b"AMQP").is_err());
    let stream = trust.connect(site.address, "localhost");
    check_exchange(&mut Peer::over(stream, Credentials::DEVELOPMENT), b"hello");
    check_exchange(&mut before, b"hello");
}

#[test]
fn a_name_that_the_certificate_does_not_hold_for_is_the_clients_to_refuse() {
    let site = Site::start();
    let mut stream = site.trust.connect(site.address, "elsewhere");
    assert!(stream.write_all(b"AMQP").is_err());
    drop(stream);
    assert_eq!(http::get(site.address, "/health").0, 200);
}

/// As CVE-2026-39304 had it: each may ask for an answer, and answers must not pile up.
#[test]
fn a_flood_of_key_updates_ends_its_own_connection_alone() {
    let site = Site::start();
    let mut other = secured(&site);
    let mut flooding = secured(&site);
    let stream = flooding.inner();
    let mut flood = (0..10_000).map(|_| {
        stream.conn.refresh_traffic_keys().expect("TLS 1.3");
        stream.flush()
    });
    // The broker may close before it has been sent all of it.
    let _ = flood.any(|flushed| flushed.is_err());
    // By an alert, a reset or its end, whichever of them gets through, and before the reader's
    // patience ends.
    let end = stream.read_to_end(&mut Vec::new());
    let is_open = end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!is_open, "the broker still listens");
    check_exchange(&mut other, b"hello");
}

#[test]
fn keys_may_be_updated_between_messages() {
    let site = Site::start();
    let mut peer = secured(&site);
    for _ in 0..100 {
        peer.inner().conn.refresh_traffic_keys().expect("TLS 1.3");
        check_exchange(&mut peer, b"hello");
    }
}

#[test]
fn stopping_is_said_within_tls() {
    let mut site = Site::start();
    let mut peer = secured(&site);
    site.stop();
    let error = peer.closed().expect("the broker says why");
    assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    let mut rest = Vec::new();
    // An end that was not said would be an error.
    peer.inner().read_to_end(&mut rest).unwrap();
}
