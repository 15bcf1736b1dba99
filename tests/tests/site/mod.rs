//! Site: a real server in this process, on a store in memory, with TLS.

#![allow(dead_code, reason = "every test uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use access::{AccessRule, AccessRules, Rights, Secret};
use broker::{BrokerSettings, QueueSettings};
use e2e::tls::Trust;
use entity::QueueDefinition;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use server::{BoundServer, Limits, Options, PlaintextPolicy, Server};
use store::MemoryDisk;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};

/// A server with a queue named `orders`.
pub struct Site {
    runtime: Runtime,
    server: Option<Server>,
    certificate: watch::Sender<Arc<ServerConfig>>,
    pub address: SocketAddr,
    /// Trusts the first certificate.
    pub trust: Trust,
}

impl Site {
    pub fn start() -> Self {
        Self::with(Limits::default())
    }

    /// Gives a handshake so little time that no test has to wait for its end.
    pub fn impatient() -> Self {
        Self::with(Limits {
            handshake: Duration::from_millis(300),
            ..Limits::default()
        })
    }

    /// Takes nothing without TLS, not even from this machine.
    pub fn secured() -> Self {
        Self::of(Limits::default(), PlaintextPolicy::Nobody)
    }

    pub fn with(limits: Limits) -> Self {
        Self::of(limits, PlaintextPolicy::Local)
    }

    fn of(limits: Limits, plain: PlaintextPolicy) -> Self {
        let runtime = Runtime::new().expect("threads");
        let (config, trust) = certificate();
        let (certificate, shown) = watch::channel(config);
        let disk = MemoryDisk::new();
        disk.set_automatic(true);
        let bound = runtime.block_on(BoundServer::new(
            Options {
                plain,
                ..options(limits, shown)
            },
            Box::new(disk.open()),
            Arc::new(Notify::new()),
        ));
        let bound = bound.expect("a fresh store and a free port");
        let address = bound.addresses()[0];
        let _inside = runtime.enter();
        let server = Some(bound.serve());
        drop(_inside);
        Self {
            runtime,
            server,
            certificate,
            address,
            trust,
        }
    }

    /// Shows another certificate from now on; the result trusts it.
    pub fn replace_certificate(&self) -> Trust {
        let (config, trust) = certificate();
        self.certificate.send_replace(config);
        trust
    }

    /// Begins to stop the server.
    pub fn stop(&mut self) {
        let server = self.server.take().expect("it is stopped once");
        self.runtime.spawn(server.stop());
    }
}

fn certificate() -> (Arc<ServerConfig>, Trust) {
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let params = CertificateParams::new(names).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let trust = Trust::new(&certificate.pem());
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .expect("ring does both versions");
    let config = builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    (Arc::new(config.expect("they belong together")), trust)
}

fn options(limits: Limits, certificate: watch::Receiver<Arc<ServerConfig>>) -> Options {
    let key = AccessRule {
        name: e2e::Credentials::DEVELOPMENT.rule.to_owned(),
        primary: Secret::new(e2e::Credentials::DEVELOPMENT.key.to_owned()),
        secondary: None,
        rights: Rights::ALL,
        entity: None,
    };
    let handshake = u32::try_from(limits.handshake.as_millis()).expect("a short time");
    let endpoint = endpoint::Config {
        handshake_time_out: handshake,
        ..endpoint::Config::default()
    };
    Options {
        certificate: Some(certificate),
        plain: PlaintextPolicy::default(),
        virtual_clock: false,
        backup_directory: None,
        telemetry: server::TelemetryOptions::default(),
        development_issuer: None,
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        limits,
        admin: admin::Settings::default(),
        connections: servicebus::Settings {
            max_message_size: 1 << 20,
            endpoint,
            ..servicebus::Settings::default()
        },
        rules: AccessRules {
            rules: vec![key],
            is_development: true,
            ..AccessRules::default()
        },
        broker: BrokerSettings::default(),
        queues: vec![QueueDefinition {
            path: "orders".to_owned(),
            settings: QueueSettings::default(),
        }],
        topics: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
        namespaces: Vec::new(),
    }
}
