//! The little HTTP that the tests need: one request on one connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value as Json;

use crate::{Broker, PATIENCE, secrets};

/// Sends `request` as it stands and returns all that comes back until the connection is closed.
///
/// # Panics
/// When the broker does not answer.
#[must_use]
pub fn exchange(address: SocketAddr, request: &str) -> String {
    exchange_or_end(address, request).expect("the broker listens and reads")
}

/// The same with a broker that may end; then what has come until then, or nothing.
///
/// # Panics
/// When the answer is no text.
#[must_use]
pub fn exchange_or_end(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // A reset after the answer is no news.
    drop(stream.read_to_end(&mut answer));
    Some(String::from_utf8(answer).expect("an answer is text"))
}

/// Asks for `path` and returns the status and the body.
///
/// # Panics
/// When the answer is no HTTP.
#[must_use]
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    request(address, "GET", path, &[], "")
}

/// Sends a request with more `headers`, each a whole line, and returns the status and the body.
///
/// # Panics
/// When the answer is no HTTP.
#[must_use]
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> (u16, String) {
    headers.iter().for_each(|line| secrets::note_header(line));
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let answer = exchange(
        address,
        &format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        ),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("an answer has a status"), body.to_owned())
}

/// Asks RabbitMQ's interface, below `/api/`. The answer is null if it has no body.
///
/// # Panics
/// When the answer is no HTTP.
#[must_use]
pub fn rabbitmq(broker: &Broker, method: &str, path: &str, body: &Json) -> (u16, Json) {
    rabbitmq_as(broker, method, path, &[], body)
}

/// The same with headers.
///
/// # Panics
/// When the answer is no HTTP.
#[must_use]
pub fn rabbitmq_as(
    broker: &Broker,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &Json,
) -> (u16, Json) {
    let body = match body {
        Json::Null => String::new(),
        body => body.to_string(),
    };
    let path = format!("/api/{path}");
    let (status, answer) = request(broker.address(), method, &path, headers, &body);
    (status, serde_json::from_str(&answer).unwrap_or_default())
}
