//! Client certificates: SASL EXTERNAL over real TLS. (docs/spec/amqp.md#1.3)

use std::sync::Arc;

use access::{AccessRules, CertificateRule, Rights};
use amqp::sasl::{Code, SaslFrame};
use amqp::{Attach, DeliveryState, Error, Role, Source, Symbol, Target, TargetTerminus, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, Side};
use entity::QueueDefinition;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use server::{BoundServer, Limits, Options, PlaintextPolicy, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An authority and its certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

/// A certificate and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    fn issue(&self, dns_names: &[&str], common: &str) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<_> = dns_names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names of hosts");
        params.distinguished_name.push(DnType::CommonName, common);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), key.into())
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("an authority");
        Arc::new(roots)
    }
}

/// A server with the queue `orders` and a rule for the certificates of a worker.
struct Site {
    server: Server,
    address: std::net::SocketAddr,
    authority: Authority,
    /// What it shows and asks for.
    sender: watch::Sender<Arc<ServerConfig>>,
}

impl Site {
    /// It asks for certificates by `clients`.
    async fn start(clients: &Authority) -> Self {
        let authority = Authority::new();
        let (sender, certificate) = watch::channel(config(&authority, clients));
        let options = options(certificate);
        let store = Box::new(store::MemoryStore::new());
        let bound = BoundServer::new(options, store, Arc::default()).await;
        let bound = bound.expect("the store is empty");
        let address = bound.addresses()[0];
        Self {
            server: bound.serve(),
            address,
            authority,
            sender,
        }
    }

    /// From now on it asks for certificates by `clients`, as after a change of the files.
    fn ask_for(&self, clients: &Authority) {
        self.sender.send_replace(config(&self.authority, clients));
    }

    async fn connect(&self, identity: Option<Identity>) -> TlsStream<TcpStream> {
        connect(self.address, &self.authority.roots(), identity).await
    }

    async fn stop(self) {
        self.server.stop().await.expect("the store is closed");
    }
}

/// A certificate by `authority`, and the wish for one by `clients`.
fn config(authority: &Authority, clients: &Authority) -> Arc<ServerConfig> {
    let (certificate, key) = authority.issue(&["localhost"], "server");
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(clients.roots(), provider.clone())
        .allow_unauthenticated()
        .build()
        .expect("an authority");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    Arc::new(config)
}

fn options(certificate: watch::Receiver<Arc<ServerConfig>>) -> Options {
    Options {
        listen: vec![([127, 0, 0, 1], 0).into()],
        limits: Limits::default(),
        connections: servicebus::Settings::default(),
        admin: admin::Settings::default(),
        rules: AccessRules {
            certificates: vec![CertificateRule {
                name: "worker".to_owned(),
                rights: Rights::ALL,
                entity: None,
            }],
            ..AccessRules::default()
        },
        development_issuer: None,
        certificate: Some(certificate),
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

async fn connect(
    address: std::net::SocketAddr,
    roots: &Arc<RootCertStore>,
    identity: Option<Identity>,
) -> TlsStream<TcpStream> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(Arc::clone(roots));
    let config = match identity {
        Some((certificate, key)) => builder
            .with_client_auth_cert(vec![certificate], key)
            .expect("they belong together"),
        None => builder.with_no_client_auth(),
    };
    let stream = TcpStream::connect(address).await.expect("it listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.expect("a handshake")
}

/// The next frame of SASL.
async fn read(stream: &mut TlsStream<TcpStream>) -> SaslFrame {
    let size = stream.read_u32().await.expect("a frame");
    let mut rest = vec![0; size as usize - 4];
    stream.read_exact(&mut rest).await.expect("all of it");
    SaslFrame::decode(&Bytes::from(rest).slice(4..)).expect("a frame of SASL")
}

/// The mechanisms that the server offers, and the outcome of EXTERNAL if that is one of them.
async fn log_in(mut stream: TlsStream<TcpStream>) -> (Vec<Symbol>, Option<Code>) {
    let header = b"AMQP\x03\x01\x00\x00";
    stream.write_all(header).await.expect("it reads");
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await.expect("a header");
    assert_eq!(&answer, header);
    let SaslFrame::Mechanisms(offered) = read(&mut stream).await else {
        panic!("mechanisms come first");
    };
    if !offered.contains(&Symbol::new("EXTERNAL")) {
        return (offered, None);
    }
    let mut init = BytesMut::new();
    let start = amqp::frame::begin(&mut init, amqp::frame::FrameType::Sasl, 0);
    SaslFrame::Init {
        mechanism: Symbol::new("EXTERNAL"),
        initial_response: None,
        hostname: None,
    }
    .encode(&mut init);
    amqp::frame::finish(&mut init, start);
    stream.write_all(&init).await.expect("it reads");
    let SaslFrame::Outcome { code, .. } = read(&mut stream).await else {
        panic!("the outcome comes next");
    };
    (offered, Some(code))
}

/// A client of AMQP that logs in by its certificate and puts no token.
struct Peer {
    connection: Connection,
    stream: TlsStream<TcpStream>,
}

impl Peer {
    fn new(stream: TlsStream<TcpStream>) -> Self {
        let config = Config {
            container_id: "peer".to_owned(),
            hostname: Some("localhost".to_owned()),
            client_sasl: Some((Symbol::new("EXTERNAL"), Vec::new())),
            ..Config::default()
        };
        let connection = Connection::new(Side::Client, config, Mono(0));
        Self { connection, stream }
    }

    /// The first of what `pick` makes of the events to come.
    async fn wait<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> T {
        let mut input = BytesMut::new();
        loop {
            while let Some(event) = self.connection.poll_event() {
                if let Some(found) = pick(&event) {
                    return found;
                }
            }
            let output = self.connection.output(Mono(0)).split();
            self.stream.write_all(&output).await.expect("it reads");
            let read = self.stream.read_buf(&mut input).await;
            assert_ne!(read.expect("it writes"), 0, "it does not close");
            self.connection.handle_input(Mono(0), &mut input);
        }
    }

    fn attach(&mut self, name: &str) -> LinkId {
        let target = Target {
            address: Some(Value::from("orders")),
            ..Target::default()
        };
        let session = self.connection.begin();
        let attach = Attach {
            name: name.to_owned(),
            handle: 0,
            role: Role::Sender,
            snd_settle_mode: None,
            rcv_settle_mode: None,
            source: Some(Box::new(Source::default())),
            target: Some(Box::new(TargetTerminus::Node(target))),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: Some(0),
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        self.connection.attach(session, attach)
    }

    /// Sends a message to `orders` over a new link.
    async fn send(&mut self, name: &str) -> Result<(), Error> {
        let link = self.attach(name);
        let credit = self.wait(|event| match event {
            Event::Credit { link: of, .. } if *of == link => Some(Ok(())),
            Event::Detached {
                link: of, error, ..
            } if *of == link => Some(Err(error.clone().expect("a reason"))),
            _ => None,
        });
        credit.await?;
        let outgoing = Outgoing {
            tag: b"t",
            ..Outgoing::default()
        };
        let payload = b"\x00\x53\x75\xa0\x01x";
        let sent = self.connection.send(link, &outgoing, &[payload]);
        sent.expect("there is credit");
        let outcome = self.wait(|event| match event {
            Event::Disposed { state, .. } => state.clone(),
            _ => None,
        });
        assert_eq!(outcome.await, DeliveryState::Accepted);
        Ok(())
    }
}

/// A certificate of an authority that is not asked for ends the handshake, when the client hears
/// of it.
async fn check_refused(site: &Site, identity: Identity) {
    let mut stream = site.connect(Some(identity)).await;
    drop(stream.write_all(b"AMQP\x03\x01\x00\x00").await);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    let refused = read.expect_err("it is refused");
    assert!(refused.to_string().contains("alert"), "{refused}");
    assert!(answer.is_empty());
}

#[tokio::test]
async fn external_is_offered_last_and_to_clients_with_a_certificate_alone() {
    let clients = Authority::new();
    let site = Site::start(&clients).await;
    let without = log_in(site.connect(None).await).await;
    let usual = ["MSSBCBS", "PLAIN", "ANONYMOUS"].map(Symbol::new);
    assert_eq!(without, (usual.to_vec(), None));
    let worker = clients.issue(&[], "worker");
    let (offered, code) = log_in(site.connect(Some(worker)).await).await;
    assert_eq!(offered[..3], usual);
    assert_eq!(offered[3..], [Symbol::new("EXTERNAL")]);
    assert_eq!(code, Some(Code::Ok));
    site.stop().await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_ends_the_handshake() {
    let site = Site::start(&Authority::new()).await;
    check_refused(&site, Authority::new().issue(&[], "worker")).await;
    site.stop().await;
}

#[tokio::test]
async fn a_client_sends_by_the_rule_of_its_certificate_and_none_without_one() {
    let clients = Authority::new();
    let site = Site::start(&clients).await;
    // The DNS names count where there are any.
    for names in [(&[][..], "worker"), (&["other", "worker"], "x")] {
        let worker = clients.issue(names.0, names.1);
        let mut peer = Peer::new(site.connect(Some(worker)).await);
        assert_eq!(peer.send("sender").await, Ok(()));
    }
    for names in [(&[][..], "stranger"), (&["stranger"], "worker")] {
        let stranger = clients.issue(names.0, names.1);
        let mut peer = Peer::new(site.connect(Some(stranger)).await);
        let refused = peer.send("sender").await.expect_err("it has no right");
        assert_eq!(refused.condition, "amqp:unauthorized-access");
    }
    site.stop().await;
}

#[tokio::test]
async fn another_authority_counts_for_connections_that_begin_later() {
    let (first, second) = (Authority::new(), Authority::new());
    let site = Site::start(&first).await;
    let worker = first.issue(&[], "worker");
    let mut before = Peer::new(site.connect(Some(worker)).await);
    assert_eq!(before.send("one").await, Ok(()));
    site.ask_for(&second);
    check_refused(&site, first.issue(&[], "worker")).await;
    let worker = second.issue(&[], "worker");
    let mut after = Peer::new(site.connect(Some(worker)).await);
    assert_eq!(after.send("one").await, Ok(()));
    assert_eq!(before.send("two").await, Ok(()), "it goes on");
    site.stop().await;
}
