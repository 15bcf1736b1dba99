//! Refusals as a whole server logs them: real sockets, a store in memory, one thread for all of it.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use access::{AccessRule, AccessRules, Grant, Issuer, IssuerKeys, KeySource, Rights, Secret};
use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::sasl::Code;
use amqp::{Attach, DeliveryState, Error, Role, Source, Symbol, Target, TargetTerminus, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use entity::QueueDefinition;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use server::{BoundServer, Limits, Options, PlaintextPolicy, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

const KEY: &str = "key-of-the-owner";
/// The owner's name and key, as HTTP shows them.
const OWNER: &str = "authorization: Basic b3duZXI6a2V5LW9mLXRoZS1vd25lcg==";
/// After this long nothing is coming any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the log goes.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut page = self.0.lock().expect("nobody has panicked");
        page.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server with one rule and the queue `orders`, and all that it says.
struct Scene {
    _server: Server,
    address: SocketAddr,
    page: Page,
    _logging: tracing::subscriber::DefaultGuard,
}

impl Scene {
    async fn new(limits: Limits) -> Self {
        Self::with(options(limits)).await
    }

    async fn with(options: Options) -> Self {
        let page = Page::default();
        let writer = page.clone();
        let log = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let logging = tracing::subscriber::set_default(log.finish());
        let store = Box::new(store::MemoryStore::new());
        let prepared = BoundServer::new(options, store, Arc::default()).await;
        let prepared = prepared.expect("the store is empty");
        let address = prepared.addresses()[0];
        Self {
            _server: prepared.serve(),
            address,
            page,
            _logging: logging,
        }
    }

    /// The lines of the log that hold all these words. No secret is in any line.
    fn lines(&self, words: &[&str]) -> Vec<String> {
        let page = self.page.0.lock().expect("nobody has panicked");
        let page = String::from_utf8(page.clone()).expect("a log is text");
        assert!(!page.contains("hush"), "{page}");
        assert!(!page.contains(KEY), "{page}");
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        page.lines().filter(has_all).map(str::to_owned).collect()
    }

    /// There is exactly one line with all these words, at the level of warnings.
    fn has_one(&self, words: &[&str]) {
        let found = self.lines(words);
        assert_eq!(found.len(), 1, "{words:?} in {found:?}");
        assert!(found[0].contains(" WARN "), "{found:?}");
    }

    /// From where a request without a body came, and its answer.
    async fn get(&self, head: &str) -> (SocketAddr, String) {
        self.send(head, "").await
    }

    async fn send(&self, head: &str, body: &str) -> (SocketAddr, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let peer = stream.local_addr().expect("it is bound");
        let length = body.len();
        let rest = format!("host: localhost\r\nconnection: close\r\ncontent-length: {length}");
        let request = format!("{head}\r\n{rest}\r\n\r\n{body}");
        let written = stream.write_all(request.as_bytes()).await;
        written.expect("the server reads");
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
        read.expect("in time").expect("an answer is text");
        (peer, answer)
    }
}

fn options(limits: Limits) -> Options {
    let owner = AccessRule {
        name: "owner".to_owned(),
        primary: Secret::new(KEY.to_owned()),
        secondary: None,
        rights: Rights::ALL,
        entity: None,
    };
    Options {
        listen: vec![([127, 0, 0, 1], 0).into()],
        limits,
        connections: servicebus::Settings::default(),
        admin: admin::Settings::default(),
        rules: AccessRules {
            rules: vec![owner],
            ..AccessRules::default()
        },
        development_issuer: None,
        certificate: None,
        plain: PlaintextPolicy::Everyone,
        virtual_clock: false,
        backup_directory: None,
        telemetry: server::TelemetryOptions::default(),
        broker: broker::BrokerSettings::default(),
        queues: vec![QueueDefinition {
            path: "orders".to_owned(),
            settings: broker::QueueSettings::default(),
        }],
        topics: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
        namespaces: Vec::new(),
    }
}

/// A client of AMQP.
struct Peer {
    connection: Connection,
    stream: TcpStream,
    events: Vec<Event>,
}

impl Peer {
    async fn connect(scene: &Scene, mechanism: &'static str, response: &str) -> Self {
        let config = Config {
            container_id: "peer".to_owned(),
            hostname: Some("localhost".to_owned()),
            client_sasl: Some((Symbol::new(mechanism), response.as_bytes().to_vec())),
            ..Config::default()
        };
        Self {
            connection: Connection::new(Side::Client, config, Mono(0)),
            stream: TcpStream::connect(scene.address).await.expect("it listens"),
            events: Vec::new(),
        }
    }

    fn address(&self) -> String {
        let address = self.stream.local_addr().expect("it is bound");
        format!("peer={address} ")
    }

    /// The first of what `pick` makes of the events to come.
    async fn wait<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> T {
        let mut input = BytesMut::new();
        loop {
            if let Some(found) = self.events.drain(..).find_map(|event| pick(&event)) {
                return found;
            }
            let output = self.connection.output(Mono(0)).split();
            let written = self.stream.write_all(&output).await;
            written.expect("the server reads");
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut input)).await;
            match read.expect("in time").expect("the server writes") {
                0 => self.connection.handle_eof(),
                _ => self.connection.handle_input(Mono(0), &mut input),
            }
            while let Some(event) = self.connection.poll_event() {
                self.events.push(event);
            }
        }
    }

    fn attach(&mut self, session: SessionId, name: &str, role: Role, node: &str) -> LinkId {
        let address = Some(Value::from(node));
        let (source, target) = match role {
            Role::Sender => (None, address),
            Role::Receiver => (address, Some(Value::from("here"))),
        };
        let source = Source {
            address: source,
            ..Source::default()
        };
        let target = Target {
            address: target,
            ..Target::default()
        };
        let attach = Attach {
            name: name.to_owned(),
            handle: 0,
            role,
            snd_settle_mode: None,
            rcv_settle_mode: None,
            source: Some(Box::new(source)),
            target: Some(Box::new(TargetTerminus::Node(target))),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: Some(0).filter(|_| role == Role::Sender),
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        self.connection.attach(session, attach)
    }

    /// Why a link is not let in.
    async fn refused(&mut self, name: &str, node: &str) -> Error {
        let session = self.connection.begin();
        let link = self.attach(session, name, Role::Sender, node);
        let error = self.wait(|event| match event {
            Event::Detached {
                link: of, error, ..
            } if *of == link => Some(error.clone()),
            _ => None,
        });
        error.await.expect("a refusal says why")
    }

    /// Why a message to RabbitMQ's address of `orders` ends its link or its session.
    async fn publish(&mut self, name: &str, outgoing: &Outgoing<'_>, payload: &[u8]) -> Error {
        let session = self.connection.begin();
        let link = self.attach(session, name, Role::Sender, "/queues/orders");
        self.wait(|event| match event {
            Event::Credit { link: of, .. } if *of == link => Some(()),
            _ => None,
        })
        .await;
        let sent = self.connection.send(link, outgoing, &[payload]);
        sent.expect("there is credit");
        self.wait(|event| match event {
            Event::Ended { error, .. } | Event::Detached { error, .. } => error.clone(),
            _ => None,
        })
        .await
    }

    /// What a node answers to a request.
    async fn ask(&mut self, node: &str, properties: &[(&str, &str)], body: Value) -> Bytes {
        let session = self.connection.begin();
        let answers = self.attach(session, &format!("from {node}"), Role::Receiver, node);
        let requests = self.attach(session, &format!("to {node}"), Role::Sender, node);
        self.wait(|event| match event {
            Event::Credit { link, .. } if *link == requests => Some(()),
            _ => None,
        })
        .await;
        self.connection.set_credit(answers, 1, false);
        let request = request(properties, &body);
        let sent = self
            .connection
            .send(requests, &Outgoing::default(), &[&request]);
        sent.expect("there is credit");
        self.wait(|event| match event {
            Event::Delivery { payload, .. } => Some(payload.clone()),
            _ => None,
        })
        .await
    }
}

fn request(properties: &[(&str, &str)], body: &Value) -> Bytes {
    let mut out = BytesMut::new();
    let reply_to = Properties {
        reply_to: Some(Value::from("here")),
        ..Properties::default()
    };
    reply_to.encode(&mut out);
    let properties = properties.iter();
    let properties: Vec<_> = properties
        .map(|&(key, value)| (Value::from(key), Value::from(value)))
        .collect();
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
    amqp::encode::descriptor(&mut out, 0x77);
    amqp::encode::value(&mut out, body);
    out.freeze()
}

#[tokio::test]
async fn each_refusal_over_amqp_is_one_line() {
    let scene = Scene::new(Limits::default()).await;
    let mut stranger = Peer::connect(&scene, "PLAIN", "\0owner\0hush-hush").await;
    let code = stranger.wait(|event| match event {
        Event::SaslOutcome(code) => Some(*code),
        _ => None,
    });
    assert_eq!(code.await, Code::Auth);
    scene.has_one(&["a login is refused: ", &stranger.address()]);

    let mut peer = Peer::connect(&scene, "PLAIN", &format!("\0owner\0{KEY}")).await;
    let from = peer.address();
    peer.refused("a\nlink", "Nowhere").await;
    let attach = [
        "an attach is refused: The messaging entity 'sb://localhost/Nowhere' could not be found.",
        &from,
        "connection=2 ",
        "link=\"a\\\\nlink\" ",
        "entity=\"Nowhere\" ",
        "condition=amqp:not-found",
    ];
    scene.has_one(&attach);

    let put = [
        ("operation", "put-token"),
        ("type", "servicebus.windows.net:sastoken"),
        ("name", "amqps://localhost/orders"),
    ];
    let token = "SharedAccessSignature sr=x&sig=hush&se=1&skn=owner";
    peer.ask("$cbs", &put, Value::from(token)).await;
    let token = [
        "a token is refused: InvalidSignature",
        &from,
        "link=\"to $cbs\" ",
        "entity=\"orders\" ",
        "condition=amqp:unauthorized-access",
    ];
    scene.has_one(&token);

    let renew = [("operation", "com.microsoft:renew-lock")];
    peer.ask("orders/$management", &renew, Value::Map(Vec::new()))
        .await;
    let request = [
        "a request is refused: ",
        &from,
        "link=\"to orders/$management\" ",
        "entity=\"orders\" ",
        "operation=\"com.microsoft:renew-lock\" ",
        "condition=com.microsoft:argument-error",
    ];
    scene.has_one(&request);
    assert_eq!(scene.lines(&[&from]).len(), 3);
}

#[tokio::test]
async fn each_error_over_http_is_one_line() {
    let scene = Scene::new(Limits::default()).await;
    for (head, status, words) in [
        (
            "GET /metrics?sig=hush HTTP/1.1",
            401,
            &[
                "an HTTP request is refused: MissingToken: ",
                "path=\"/metrics\" ",
                "status=401",
            ][..],
        ),
        (
            "GET /orders?api-version=2021-05 HTTP/1.1\r\nauthorization: Bearer hush",
            401,
            &["MalformedToken: ", "path=\"/orders\" ", "subcode=40105"],
        ),
        (
            &format!("DELETE /nowhere?api-version=2021-05 HTTP/1.1\r\n{OWNER}"),
            404,
            &["method=DELETE path=\"/nowhere\" status=404"],
        ),
    ] {
        let (peer, answer) = scene.get(head).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        let peer = format!("peer={peer} ");
        scene.has_one(&[&[peer.as_str()], words].concat());
        assert_eq!(scene.lines(&["peer=", peer.trim()]).len(), 1);
    }
    let (_, answer) = scene.get("GET /health HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (peer, _) = scene.get("GET /a HTTP/1.1\r\nno header").await;
    scene.has_one(&["an HTTP request is refused: ", &format!("peer={peer}")]);
    assert_eq!(scene.lines(&["is refused"]).len(), 4);
}

#[tokio::test]
async fn words_of_an_invalid_request_are_sent_but_not_logged() {
    let scene = Scene::new(Limits::default()).await;
    let batch = "content-type: application/vnd.microsoft.servicebus.json";
    for (head, body, said) in [
        (
            "POST /$railbus/rules/test HTTP/1.1".to_owned(),
            r#"{"message": "hush"}"#,
            "the body is not an object with a rule and a message peer=",
        ),
        (
            format!("POST /orders/messages HTTP/1.1\r\n{batch}"),
            r#"[{"BrokerProperties": "hush"}]"#,
            "Bad Request. The batch is not understood peer=",
        ),
        (
            "POST /orders/messages HTTP/1.1\r\nBrokerProperties: \"hush\"".to_owned(),
            "",
            "Bad Request. The header BrokerProperties is not understood peer=",
        ),
    ] {
        let answer = scene.send(&format!("{head}\r\n{OWNER}"), body).await.1;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("hush"), "{answer}");
        scene.has_one(&[&format!("an HTTP request is refused: {said}")]);
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_lines_until_their_peer_has_had_enough() {
    let scene = Scene::new(Limits {
        connections: 0,
        ..Limits::default()
    })
    .await;
    for _ in 0..30 {
        let mut stream = TcpStream::connect(scene.address).await.expect("it listens");
        let read = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
        assert!(read.expect("in time").is_err(), "it is closed");
    }
    let refused = "a connection is refused: the broker has the maximum of 0 connections";
    assert_eq!(scene.lines(&[refused]).len(), 20);
}

/// A JSON Web Token of an issuer that the server does not know, and one whose issuer's keys it does
/// not have.
const JWTS: [&str; 2] = [
    concat!(
        "eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCJ9.",
        "eyJpc3MiOiAiaHR0cHM6Ly91bmtub3duLmV4YW1wbGUiLCAiYXVkIjogInJh",
        "aWxidXMiLCAiZXhwIjogNDAwMDAwMDAwMH0.",
        "c2lnbmF0dXJlIHNpZ25hdHVyZSBzaWduYXR1cmUgc2lnbmF0dXJlIHNpZ25hdHVyZSBzaWduYXR1cmUg"
    ),
    concat!(
        "eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCJ9.",
        "eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiAicmFp",
        "bGJ1cyIsICJleHAiOiA0MDAwMDAwMDAwfQ.",
        "c2lnbmF0dXJlIHNpZ25hdHVyZSBzaWduYXR1cmUgc2lnbmF0dXJlIHNpZ25hdHVyZSBzaWduYXR1cmUg"
    ),
];
const ISSUER: &str = "https://issuer.example";

/// A server that knows the second token's issuer, and has no key of it.
async fn scene_with_issuer() -> Scene {
    let mut options = options(Limits::default());
    options.rules.issuers.push(Issuer {
        name: ISSUER.to_owned(),
        audiences: vec!["railbus".to_owned()],
        leeway_ms: 0,
        grants: Grant::usual(),
        is_for_loopback: false,
        source: KeySource::Fixed,
        keys: Arc::new(IssuerKeys::missing()),
    });
    Scene::with(options).await
}

/// No part of a token is in any line.
fn check_unsaid(scene: &Scene, token: &str) {
    for part in token.split('.') {
        assert_eq!(scene.lines(&[part]), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_refused_json_web_token_is_one_line_however_it_is_shown() {
    let scene = scene_with_issuer().await;
    let [unknown, _] = JWTS;
    let mut stranger = Peer::connect(&scene, "PLAIN", &format!("\0$jwt\0{unknown}")).await;
    let code = stranger.wait(|event| match event {
        Event::SaslOutcome(code) => Some(*code),
        _ => None,
    });
    assert_eq!(code.await, Code::Auth);
    let login = [
        "a login is refused: PLAIN: IssuerNotFound: The token's issuer is not trusted.",
        &stranger.address(),
    ];
    scene.has_one(&login);

    let mut peer = Peer::connect(&scene, "ANONYMOUS", "").await;
    let from = peer.address();
    let put = [
        ("operation", "put-token"),
        ("type", "jwt"),
        ("name", "amqps://localhost/orders"),
    ];
    peer.ask("$cbs", &put, Value::from(unknown)).await;
    let token = [
        "a token is refused: IssuerNotFound: The token's issuer is not trusted.",
        &from,
        "link=\"to $cbs\" ",
        "entity=\"orders\" ",
        "condition=amqp:unauthorized-access",
    ];
    scene.has_one(&token);

    let head = format!("GET /metrics HTTP/1.1\r\nauthorization: Bearer {unknown}");
    let (peer, answer) = scene.get(&head).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let request = [
        "an HTTP request is refused: IssuerNotFound: The token's issuer is not trusted.",
        &format!("peer={peer} "),
        "path=\"/metrics\" status=401 subcode=40109",
    ];
    scene.has_one(&request);
    check_unsaid(&scene, unknown);
}

#[tokio::test]
async fn an_error_of_the_server_and_a_gone_entity_are_one_line_each() {
    let scene = scene_with_issuer().await;
    let [_, known] = JWTS;
    let head = format!("GET /metrics HTTP/1.1\r\nauthorization: Bearer {known}");
    let (peer, answer) = scene.get(&head).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let request = [
        "an HTTP request is refused: The keys of the token's issuer are not loaded.",
        &format!("peer={peer} "),
        "path=\"/metrics\" status=503",
    ];
    scene.has_one(&request);
    check_unsaid(&scene, known);

    let head = format!("POST /nowhere/messages HTTP/1.1\r\n{OWNER}");
    let (peer, answer) = scene.send(&head, "hello").await;
    assert!(answer.starts_with("HTTP/1.1 410"), "{answer}");
    let request = [
        "an HTTP request is refused: The messaging entity 'nowhere' could not be found.",
        &format!("peer={peer} "),
        "method=POST path=\"/nowhere/messages\" status=410 subcode=41000",
    ];
    scene.has_one(&request);
}

#[tokio::test]
async fn each_failed_handshake_of_tls_is_one_line() {
    let hello = b"\x16\x03\x01\x00\x05hello";
    let certificate = |options: &mut Options| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into());
        let (sender, config) = watch::channel(Arc::new(config.expect("they belong together")));
        options.certificate = Some(config);
        sender
    };
    for (has_certificate, text) in [
        (true, "the TLS handshake failed: "),
        (
            false,
            "the client uses TLS, and this broker has no certificate",
        ),
    ] {
        let mut options = options(Limits::default());
        let _sender = has_certificate.then(|| certificate(&mut options));
        let scene = Scene::with(options).await;
        let mut stream = TcpStream::connect(scene.address).await.expect("it listens");
        let peer = stream.local_addr().expect("it is bound");
        stream.write_all(hello).await.expect("the server reads");
        let mut rest = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        drop(read.expect("in time"));
        let line = format!("a connection is refused: {text}");
        scene.has_one(&[&line, &format!("peer={peer}")]);
        assert_eq!(scene.lines(&["is refused"]).len(), 1);
    }
}

#[tokio::test]
async fn each_refusal_of_rabbitmqs_dialect_is_one_line() {
    let scene = Scene::new(Limits::default()).await;
    let mut peer = Peer::connect(&scene, "PLAIN", &format!("\0owner\0{KEY}")).await;
    let from = peer.address();
    let error = peer.refused("to none", "/queues/none").await;
    assert_eq!(error.condition, "amqp:not-found");
    let attach = [
        "an attach is refused: no queue 'none' in vhost '/' ",
        &from,
        "link=\"to none\" ",
        "entity=\"/queues/none\" ",
        "condition=amqp:not-found",
    ];
    scene.has_one(&attach);

    let large = Outgoing {
        settled: true,
        ..Outgoing::default()
    };
    let detached = peer.publish("large", &large, &[0; 1 << 20]).await;
    assert_eq!(detached.condition, "amqp:link:message-size-exceeded");
    let link = [
        "a link is detached: message size > maximum message size (262144 bytes) ",
        &from,
        "link=\"large\" ",
        "entity=\"orders\" ",
        "condition=amqp:link:message-size-exceeded",
    ];
    scene.has_one(&link);

    let transactional = Outgoing {
        state: Some(DeliveryState::Transactional {
            txn_id: Bytes::from_static(b"none"),
            outcome: None,
        }),
        ..Outgoing::default()
    };
    let ended = peer.publish("transactional", &transactional, b"x").await;
    assert_eq!(ended.condition, "amqp:not-implemented");
    let session = [
        "a session is ended: ",
        &from,
        "condition=amqp:not-implemented",
    ];
    scene.has_one(&session);
    assert_eq!(scene.lines(&[&from]).len(), 3);
}

#[tokio::test]
async fn each_violation_of_websocket_is_one_line() {
    let scene = Scene::new(Limits::default()).await;
    let head = "GET /$servicebus/websocket HTTP/1.1\r\nhost: localhost\r\n\
                connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                sec-websocket-protocol: AMQPWSB10\r\n\r\n";
    for (frame, code, text) in [
        (
            &b"\x82\x04AMQP"[..],
            1002,
            "a frame of the client is not masked",
        ),
        (b"\xc2\x80\0\0\0\0", 1002, "a frame has reserved bits"),
        (b"\x80\x80\0\0\0\0", 1002, "a frame is out of order"),
        (b"\x09\x80\0\0\0\0", 1002, "a control frame is fragmented"),
        (b"\x81\x80\0\0\0\0", 1003, "a text message was received"),
        (
            b"\x82\xff\0\0\x01\0\0\0\0\0\0\0\0\0",
            1009,
            "a frame of 1099511627776 bytes is above the maximum of ",
        ),
    ] {
        let mut stream = TcpStream::connect(scene.address).await.expect("it listens");
        let peer = stream.local_addr().expect("it is bound");
        let request = [head.as_bytes(), frame].concat();
        stream.write_all(&request).await.expect("the server reads");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        drop(read.expect("in time"));
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{answer:?}");
        let line = format!("a WebSocket connection is closed: {text}");
        scene.has_one(&[&line, &format!("peer={peer} code={code}")]);
        assert_eq!(scene.lines(&[&format!("peer={peer}")]).len(), 1);
    }
}
