//! Faults on purpose where links begin and messages are handed out: the attach of senders, and
//! `receive`, over AMQP and over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use amqp::{DeliveryState, Role};
use e2e::{Broker, PATIENCE, Peer, Setup, http};
use serde_json::{Value as Json, json};

const FAULTS: &str = "/$railbus/namespaces/default/faults";

fn ask(broker: &Broker, method: &str, path: &str, body: &Json) -> String {
    let (status, text) = http::request(broker.address(), method, path, &[], &body.to_string());
    assert_eq!(status, 200, "{text}");
    text
}

/// One rule for the first operation of that kind.
fn inject(broker: &Broker, operation: &str, effect: &Json) {
    let matches = json!({"operations": [operation], "times": 1});
    let rule = json!({"name": "a rule", "match": matches, "effect": effect});
    ask(broker, "PUT", FAULTS, &json!({"faults": [rule]}));
}

/// Waits until the rule has had its effect.
fn wait_for_effect(broker: &Broker) {
    let since = Instant::now();
    loop {
        let text = ask(broker, "GET", FAULTS, &Json::Null);
        let found: Json = serde_json::from_str(&text).expect("the broker answers in JSON");
        if found["faults"][0]["injected"] == 1 {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "no operation fails: {text}");
        thread::yield_now();
    }
}

fn advance(broker: &Broker, by: &str) {
    ask(broker, "POST", "/$railbus/clock", &json!({"advance": by}));
}

fn virtual_broker() -> Broker {
    Setup::new().arguments(&["--virtual-clock"]).start()
}

fn send(broker: &Broker, body: &[u8]) {
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
}

#[test]
fn a_sender_is_refused_once_and_may_come_again() {
    let broker = Setup::new().start();
    for operation in ["attach", "attach-sender"] {
        let mut peer = Peer::connect(broker.address());
        inject(&broker, operation, &json!({"refuse": "server-busy"}));
        let error = peer.refused(Role::Sender, "orders");
        assert_eq!(error.condition.as_str(), "com.microsoft:server-busy");
        let sender = peer.sender("orders");
        assert_eq!(peer.send(sender, b"again"), DeliveryState::Accepted);
    }
}

#[test]
fn a_sender_whose_connection_is_dropped_is_not_answered() {
    let broker = Setup::new().start();
    for time in ["before", "after"] {
        inject(&broker, "attach-sender", &json!({"disconnect": time}));
        let mut peer = Peer::connect(broker.address());
        assert_eq!(peer.sender_or_end("orders"), None, "{time}");
        send(&broker, b"again");
    }
}

#[test]
fn a_sender_is_let_in_later_by_the_virtual_clock() {
    let broker = virtual_broker();
    inject(&broker, "attach-sender", &json!({"delay-ms": 60_000}));
    let address = broker.address();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut peer = Peer::connect(address);
            let sender = peer.sender("orders");
            peer.send(sender, b"late")
        });
        wait_for_effect(&broker);
        // Another one does not wait.
        send(&broker, b"first");
        assert!(!waiting.is_finished());
        advance(&broker, "PT1M");
        let outcome = waiting.join().expect("it is let in");
        assert_eq!(outcome, DeliveryState::Accepted);
    });
}

#[test]
fn a_connection_that_is_dropped_at_a_delivery_leaves_the_message_there() {
    let broker = virtual_broker();
    send(&broker, b"m");
    for (time, comes_at_once) in [("before", true), ("after", false)] {
        inject(&broker, "receive", &json!({"disconnect": time}));
        let mut peer = Peer::connect(broker.address());
        let link = peer.receiver("orders", 1);
        assert!(peer.receive_or_end(link).is_none(), "{time}");
        let mut peer = Peer::connect(broker.address());
        let link = peer.receiver("orders", 0);
        assert_eq!(peer.drain(link, 1).len(), usize::from(comes_at_once));
        // What was handed out is locked, whether its client knows or not.
        advance(&broker, "PT5M");
    }
    let mut peer = Peer::connect(broker.address());
    let link = peer.receiver("orders", 1);
    assert_eq!(peer.receive(link).body(), b"m");
}

#[test]
fn a_receiver_is_detached_at_a_delivery_with_the_named_condition() {
    let broker = Setup::new().start();
    send(&broker, b"m");
    let mut peer = Peer::connect(broker.address());
    inject(&broker, "receive", &json!({"detach": "server-busy"}));
    let link = peer.receiver("orders", 1);
    let error = peer.detached(link).expect("it says why");
    assert_eq!(error.condition.as_str(), "com.microsoft:server-busy");
    let link = peer.receiver("orders", 1);
    assert_eq!(peer.receive(link).body(), b"m");
}

#[test]
fn a_message_is_handed_out_later_by_the_virtual_clock() {
    let broker = virtual_broker();
    send(&broker, b"m");
    inject(&broker, "receive", &json!({"delay-ms": 10_000}));
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let link = peer.receiver("orders", 1);
    wait_for_effect(&broker);
    // Its answer comes behind all that was said before.
    assert_eq!(peer.send(sender, b"x"), DeliveryState::Accepted);
    assert!(!peer.has_message(link));
    advance(&broker, "PT10S");
    assert_eq!(peer.receive(link).body(), b"m");
}

#[test]
fn credit_is_withheld_from_the_connection_that_is_handed_a_message() {
    let broker = virtual_broker();
    send(&broker, b"m");
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    inject(&broker, "receive", &json!({"withhold-credit-ms": 60_000}));
    let link = peer.receiver("orders", 1);
    assert_eq!(peer.receive(link).body(), b"m");
    peer.wait_for_send_credit(sender, false);
    advance(&broker, "PT1M");
    peer.wait_for_send_credit(sender, true);
    assert_eq!(peer.send(sender, b"x"), DeliveryState::Accepted);
}

/// What a request for a message is answered.
fn head(broker: &Broker, timeout: u32) -> String {
    let mut stream = TcpStream::connect(broker.address()).expect("it listens");
    let request = format!(
        "POST /orders/messages/head?timeout={timeout} HTTP/1.1\r\nHost: localhost\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    // A connection may be reset that has sent what was not read.
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// The same, if the answer is a message.
fn is_message(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 201 ") && answer.ends_with("kept")
}

#[test]
fn a_message_that_is_not_handed_out_over_http_stays() {
    let broker = virtual_broker();
    assert_eq!(
        http::request(broker.address(), "POST", "/orders/messages", &[], "kept").0,
        201
    );
    inject(&broker, "receive", &json!({"detach": "server-busy"}));
    let refused = head(&broker, 0);
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let answer = head(&broker, 0);
    assert!(is_message(&answer), "{answer}");
}

#[test]
fn a_message_is_handed_out_over_http_later_by_the_virtual_clock() {
    let broker = virtual_broker();
    assert_eq!(
        http::request(broker.address(), "POST", "/orders/messages", &[], "kept").0,
        201
    );
    inject(&broker, "receive", &json!({"delay-ms": 5_000}));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| head(&broker, 60));
        wait_for_effect(&broker);
        // The same message is not for another one meanwhile.
        let locked = head(&broker, 0);
        assert!(locked.starts_with("HTTP/1.1 204 "), "{locked}");
        assert!(!waiting.is_finished());
        advance(&broker, "PT5S");
        let answer = waiting.join().expect("it is answered");
        assert!(is_message(&answer), "{answer}");
    });
}
