//! Web pages: what a page in a browser of this machine gets from a loopback listener that asks
//! programs for no secret. (docs/spec/admin.md#2.6)

use std::net::SocketAddr;
use std::sync::Arc;

use access::{AccessRule, AccessRules, Rights, Secret};
use server::{BoundServer, Limits, Options, PlaintextPolicy, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// `Basic` with the rule `development` and its key `known-to-all`.
const KEY: &str = "authorization: Basic ZGV2ZWxvcG1lbnQ6a25vd24tdG8tYWxs\r\n";

async fn start(change: impl FnOnce(&mut AccessRules)) -> (Server, SocketAddr) {
    let mut rules = AccessRules {
        rules: vec![AccessRule {
            name: "development".to_owned(),
            primary: Secret::new("known-to-all".to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        }],
        host_names: ["shop.example".to_owned()].into(),
        ..AccessRules::default()
    };
    change(&mut rules);
    let options = Options {
        listen: vec![([127, 0, 0, 1], 0).into()],
        limits: Limits::default(),
        connections: servicebus::Settings::default(),
        admin: admin::Settings::default(),
        rules,
        development_issuer: None,
        certificate: None,
        plain: PlaintextPolicy::Everyone,
        virtual_clock: false,
        backup_directory: None,
        telemetry: server::TelemetryOptions::default(),
        broker: broker::BrokerSettings::default(),
        queues: Vec::new(),
        topics: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
        namespaces: vec![server::ConfiguredNamespace {
            definition: broker::NamespaceDefinition {
                name: "other".to_owned(),
                ..broker::NamespaceDefinition::default()
            },
            queues: Vec::new(),
            topics: Vec::new(),
            policies: Vec::new(),
            faults: Vec::new(),
        }],
    };
    let store = Box::new(store::MemoryStore::new());
    let bound = BoundServer::new(options, store, Arc::default()).await;
    let bound = bound.expect("the store is empty");
    let address = bound.addresses()[0];
    (bound.serve(), address)
}

/// The status of the answer to a request with these headers.
async fn status(address: SocketAddr, path: &str, host: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
    let written = stream.write_all(request.as_bytes()).await;
    written.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_page_whose_name_leads_here_gets_nothing_even_with_the_development_key() {
    let (_server, address) = start(|rules| rules.is_development = true).await;
    for headers in ["", KEY] {
        for path in [
            "/metrics",
            "/$railbus/entities",
            "/orders?api-version=2021-05",
        ] {
            let refused = status(address, path, "evil.example:5672", headers).await;
            assert_eq!(refused, "400", "{path} {headers}");
        }
        for host in ["localhost:5672", "127.0.0.1", "shop.example"] {
            assert_eq!(
                status(address, "/metrics", host, headers).await,
                "200",
                "{host}"
            );
        }
    }
    assert_eq!(status(address, "/health", "evil.example", "").await, "200");
    // A page of another origin, which sends the name of this machine.
    let origin = "origin: http://evil.example\r\n";
    assert_eq!(
        status(address, "/metrics", "localhost", origin).await,
        "401"
    );
}

#[tokio::test]
async fn the_host_counts_where_anonymous_clients_have_a_right_and_not_where_a_key_is_needed() {
    let (_server, address) = start(|rules| rules.anonymous = Rights::ALL).await;
    assert_eq!(status(address, "/metrics", "evil.example", "").await, "400");
    assert_eq!(status(address, "/metrics", "localhost", "").await, "200");
    let (_server, address) = start(|_| {}).await;
    assert_eq!(
        status(address, "/metrics", "proxy.example", "").await,
        "401"
    );
    assert_eq!(
        status(address, "/metrics", "proxy.example", KEY).await,
        "200"
    );
}

#[tokio::test]
async fn a_page_gets_no_socket_by_the_host_of_a_namespace_without_anonymous_clients() {
    let (_server, address) = start(|rules| rules.anonymous = Rights::ALL).await;
    let origin = "origin: http://evil.example\r\nupgrade: websocket\r\n";
    for host in ["localhost", "other.localhost"] {
        let refused = status(address, "/$servicebus/websocket", host, origin).await;
        assert_eq!(refused, "403", "{host}");
    }
}
