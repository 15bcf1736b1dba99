//! Client certificates: SASL EXTERNAL over real TLS. (docs/spec/amqp.md#1.3)

use std::sync::Arc;

use access::{AccessRules, CertificateRule, Rights};
use amqp::Symbol;
use amqp::sasl::{Code, SaslFrame};
use bytes::{Bytes, BytesMut};
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

/// A server that asks for certificates by `clients`, and what clients trust.
async fn start(clients: &Authority) -> (Server, std::net::SocketAddr, Arc<RootCertStore>) {
    let authority = Authority::new();
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
    let options = Options {
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
        certificate: Some(watch::channel(Arc::new(config)).1),
        plain: PlaintextPolicy::Everyone,
        virtual_clock: false,
        backup_directory: None,
        broker: broker::BrokerSettings::default(),
        queues: Vec::new(),
        topics: Vec::new(),
        policies: Vec::new(),
    };
    let store = Box::new(store::MemoryStore::new());
    let bound = BoundServer::new(options, store, Arc::default()).await;
    let bound = bound.expect("the store is empty");
    let address = bound.addresses()[0];
    (bound.serve(), address, authority.roots())
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

#[tokio::test]
async fn external_is_offered_last_and_to_clients_with_a_certificate_alone() {
    let clients = Authority::new();
    let (server, address, roots) = start(&clients).await;
    let without = log_in(connect(address, &roots, None).await).await;
    let usual = ["MSSBCBS", "PLAIN", "ANONYMOUS"].map(Symbol::new);
    assert_eq!(without, (usual.to_vec(), None));
    let worker = clients.issue(&[], "worker");
    let (offered, code) = log_in(connect(address, &roots, Some(worker)).await).await;
    assert_eq!(offered[..3], usual);
    assert_eq!(offered[3..], [Symbol::new("EXTERNAL")]);
    assert_eq!(code, Some(Code::Ok));
    server.stop().await.expect("the store is closed");
}

#[tokio::test]
async fn a_certificate_of_another_authority_ends_the_handshake() {
    let (server, address, roots) = start(&Authority::new()).await;
    let forged = Authority::new().issue(&[], "worker");
    let mut stream = connect(address, &roots, Some(forged)).await;
    drop(stream.write_all(b"AMQP\x03\x01\x00\x00").await);
    let mut answer = Vec::new();
    let refused = stream.read_to_end(&mut answer).await.unwrap_err();
    assert!(refused.to_string().contains("alert"), "{refused}");
    assert!(answer.is_empty());
    server.stop().await.expect("the store is closed");
}
