//! A disk that is slow or fails, under a real server in this process.
//!
//! The store is in memory, so that a test decides when something is durable.

use std::net::SocketAddr;
use std::sync::Arc;

use access::{AccessRule, AccessRules, Rights, Secret};
use amqp::DeliveryState;
use broker::{BrokerSettings, QueueSettings};
use e2e::Peer;
use entity::QueueDefinition;
use server::{BoundServer, Limits, Options, Server};
use store::{CommitId, MemoryDisk, MemoryStore, Reader, Recovery, Store, StoreError, WriteSet};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

/// A server with a queue named `orders` on a disk on which nothing is durable until a test says so.
struct Site {
    disk: MemoryDisk,
    progress: Arc<Notify>,
    server: Server,
    address: SocketAddr,
}

impl Site {
    async fn start() -> Self {
        let disk = MemoryDisk::new();
        let store = disk.open();
        disk.set_automatic(true);
        let progress = Arc::new(Notify::new());
        let bound = BoundServer::new(options(), Box::new(store), Arc::clone(&progress))
            .await
            .expect("a fresh store and a free port");
        disk.set_automatic(false);
        let address = bound.addresses()[0];
        Self {
            disk,
            progress,
            server: bound.serve(),
            address,
        }
    }

    /// Connects and sends a message; returns once the broker has decided on it.
    async fn send(&self) -> (Peer, u128) {
        let (address, before) = (self.address, self.disk.submitted());
        let sent = spawn_blocking(move || {
            let mut peer = Peer::connect(address);
            let sender = peer.sender("orders");
            let cookie = peer.send_only(sender, b"hello");
            (peer, cookie)
        });
        let sent = sent.await.expect("the peer does not panic");
        while self.disk.submitted() == before {
            tokio::task::yield_now().await;
        }
        sent
    }

    fn make_progress(&self) {
        self.disk.sync_all();
        self.progress.notify_one();
    }
}

fn options() -> Options {
    let key = AccessRule {
        name: e2e::Credentials::DEVELOPMENT.rule.to_owned(),
        primary: Secret::new(e2e::Credentials::DEVELOPMENT.key.to_owned()),
        secondary: None,
        rights: Rights::ALL,
        entity: None,
    };
    Options {
        development_issuer: None,
        certificate: None,
        plain: server::PlaintextPolicy::default(),
        virtual_clock: false,
        backup_directory: None,
        telemetry: server::TelemetryOptions::default(),
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        limits: Limits::default(),
        connections: servicebus::Settings::default(),
        admin: admin::Settings::default(),
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

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_accepted_once_it_is_durable() {
    let site = Site::start().await;
    let (mut peer, cookie) = site.send().await;
    site.make_progress();
    let outcome = spawn_blocking(move || peer.outcome(cookie)).await.unwrap();
    assert_eq!(outcome, DeliveryState::Accepted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_disk_ends_the_server_and_what_was_not_durable_is_never_accepted() {
    let mut site = Site::start().await;
    let (mut peer, cookie) = site.send().await;
    site.disk.fail("the disk is gone");
    site.progress.notify_one();
    let failure = site.server.failed().await;
    assert!(
        matches!(&failure, StoreError::Poisoned(_) | StoreError::Io(_)),
        "{failure}"
    );
    assert!(
        failure.to_string().contains("the disk is gone"),
        "{failure}"
    );
    let outcome = spawn_blocking(move || peer.outcome_or_end(cookie))
        .await
        .unwrap();
    assert_eq!(outcome, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_waits_until_all_that_was_decided_is_durable() {
    let site = Site::start().await;
    let (peer, _) = site.send().await;
    // It is gone, and so its goodbye is not waited for.
    drop(peer);
    let submitted = site.disk.submitted();
    let (disk, progress) = (site.disk.clone(), Arc::clone(&site.progress));
    let stopping = tokio::spawn(site.server.stop());
    while std::net::TcpStream::connect(site.address).is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished());
    disk.sync_all();
    progress.notify_one();
    stopping.await.unwrap().unwrap();
    assert!(disk.durable() >= submitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_while_the_server_stops_is_accepted_before_the_connection_is_closed() {
    let site = Site::start().await;
    let (mut peer, cookie) = site.send().await;
    let (disk, progress) = (site.disk.clone(), Arc::clone(&site.progress));
    let stopping = tokio::spawn(site.server.stop());
    while std::net::TcpStream::connect(site.address).is_ok() {
        tokio::task::yield_now().await;
    }
    disk.sync_all();
    progress.notify_one();
    let (outcome, error) = spawn_blocking(move || (peer.outcome(cookie), peer.closed()))
        .await
        .unwrap();
    assert_eq!(outcome, DeliveryState::Accepted);
    let error = error.expect("the broker says why");
    assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    stopping.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_more_and_still_reads_hears_that_its_message_is_accepted() {
    let site = Site::start().await;
    let (mut peer, cookie) = site.send().await;
    peer.stream()
        .shutdown(std::net::Shutdown::Write)
        .expect("the socket is open");
    site.make_progress();
    let outcome = spawn_blocking(move || peer.outcome(cookie)).await.unwrap();
    assert_eq!(outcome, DeliveryState::Accepted);
}

/// A store that does all but its last work.
struct FailsAtTheEnd(MemoryStore);

impl Store for FailsAtTheEnd {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.0.submit(writes)
    }

    fn durable(&self) -> CommitId {
        self.0.durable()
    }

    fn failure(&self) -> Option<StoreError> {
        None
    }

    fn is_nearly_full(&self) -> bool {
        false
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.0.reader()
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        self.0.recover()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Err(StoreError::Io("the last sync".to_owned()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_while_the_store_is_closed_is_told_by_how_the_server_ends() {
    let store = Box::new(FailsAtTheEnd(MemoryStore::new()));
    let bound = BoundServer::new(options(), store, Arc::default()).await;
    let server = bound.expect("a fresh store and a free port").serve();
    assert_eq!(
        server.stop().await,
        Err(StoreError::Io("the last sync".to_owned()))
    );
}
