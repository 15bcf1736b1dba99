//! Health: HTTP on the port that speaks AMQP.

use std::process::Command;

use e2e::broker::program;
use e2e::{Peer, Setup, http};

#[test]
fn health_is_told_on_every_port_as_the_emulator_tells_it() {
    let broker = Setup::new().start();
    let (status, body) = http::get(broker.address(), "/health");
    assert_eq!(status, 200);
    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        body,
        serde_json::json!({"status": "healthy", "message": "Service is healthy."})
    );
}

#[test]
fn it_can_only_be_read() {
    let broker = Setup::new().start();
    let answer = http::exchange(
        broker.address(),
        "POST /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

#[test]
fn a_request_that_is_broken_or_endless_is_refused() {
    let broker = Setup::new().start();
    let answer = http::exchange(broker.address(), "GET /health HTTP/9.9\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let endless = format!(
        "GET /health HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let answer = http::exchange(broker.address(), &endless);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    let mut peer = Peer::connect(broker.address());
    let _ = peer.sender("orders");
}

#[test]
fn the_program_asks_for_the_health_of_another() {
    let broker = Setup::new().start();
    let address = broker.address().to_string();
    let string = format!(
        "Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
    );
    let health = |name: &str, value: &str| {
        let mut command = Command::new(program());
        command.args(["health", name, value]);
        command.output().expect("the program is there")
    };
    for (name, value) in [("--listen", &address), ("--connection-string", &string)] {
        let healthy = health(name, value);
        assert!(healthy.status.success(), "{healthy:?}");
        assert_eq!(healthy.stdout, b"Service is healthy.\n");
    }
    drop(broker);
    let gone = health("--listen", &address);
    assert_eq!(gone.status.code(), Some(1));
    let said = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(
        said.contains(&format!("no connection to {address}")),
        "{said}"
    );
}
