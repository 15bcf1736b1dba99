//! The page for browsers at the root of every port, and the headers that confine it.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;

use e2e::tls::Trust;
use e2e::{Broker, Setup, peer};

/// The head of the answer to a browser, and whether the program has the files of the console.
fn check(stream: &mut (impl Read + Write), has_console: bool) {
    let (head, body) = exchange(stream, "/", "text/html,application/xhtml+xml,*/*;q=0.8");
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let has = |header: &str| head.lines().any(|line| line.starts_with(header));
    assert!(has("content-type: text/html"), "{head}");
    let policy = "content-security-policy: default-src 'none'; script-src 'self'; ";
    assert!(has(policy), "{head}");
    assert!(!head.contains("unsafe"), "{head}");
    assert_eq!(has("content-encoding: gzip"), has_console, "{head}");
    let text = String::from_utf8_lossy(&body);
    assert_eq!(text.contains("cargo xtask console"), !has_console);
}

/// The head, in lower case, and the body.
fn exchange(stream: &mut (impl Read + Write), path: &str, accept: &str) -> (String, Vec<u8>) {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\n\r\n"
    );
    let sent = stream.write_all(request.as_bytes());
    sent.expect("the broker reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.expect("an answer has a head"));
    (String::from_utf8_lossy(head).to_lowercase(), body.to_vec())
}

fn addresses(broker: &Broker) -> Vec<SocketAddr> {
    let line = broker.ready_line();
    let (_, list) = line.split_once("listen=").expect("a ready line");
    let list = list.split(' ').next().expect("a list");
    let addresses = list.split(',').map(str::parse);
    addresses
        .map(|address| address.expect("an address"))
        .collect()
}

#[test]
fn a_browser_gets_the_page_on_every_port_within_tls_and_without() {
    // As the container listens: one port for AMQP, one for administration, one for TLS.
    let setup = Setup::new().arguments(&["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
    let broker = setup.start();
    let addresses = addresses(&broker);
    assert_eq!(addresses.len(), 3, "{}", broker.ready_line());
    let authority = setup.data().join("tls/ca.pem");
    let trust = Trust::new(&fs::read_to_string(authority).expect("an authority"));
    // A program that was built without the console does not have its script either.
    let mut stream = peer::connect(addresses[0]);
    let (script, _) = exchange(&mut stream, "/$railbus/console/console.js", "*/*");
    let has_console = script.starts_with("http/1.1 200 ");
    assert!(
        has_console || script.starts_with("http/1.1 404 "),
        "{script}"
    );
    for address in addresses {
        check(&mut peer::connect(address), has_console);
        check(&mut trust.connect(address, "localhost"), has_console);
    }
}
