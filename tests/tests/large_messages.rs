//! Large messages are with the store before the broker decides about them, and no other client
//! waits for that.
//!
//! The store is in memory, and holds what it is to stage until a test lets go.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use access::{AccessRule, AccessRules, Rights, Secret};
use amqp::DeliveryState;
use broker::{BrokerSettings, QueueSettings};
use bytes::Bytes;
use e2e::Peer;
use entity::QueueDefinition;
use server::{BoundServer, Limits, Options, Server};
use store::{CommitId, MemoryStore, Reader, Recovery, Stager, Store, StoreError, WriteSet};
use tokio::task::spawn_blocking;

/// Messages from this size on are large.
const LARGE: usize = 4_096;

/// Where large messages wait.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_open: bool,
    came: usize,
}

impl Gate {
    fn wait_for(&self, came: usize) {
        let state = self.state.lock().expect("no panic");
        let waiting = self.changed.wait_while(state, |state| state.came < came);
        drop(waiting.expect("no panic"));
    }

    fn open(&self) {
        self.state.lock().expect("no panic").is_open = true;
        self.changed.notify_all();
    }
}

impl Stager for Gate {
    fn min_size(&self) -> usize {
        LARGE
    }

    fn stage(&self, body: Bytes) -> Bytes {
        let mut state = self.state.lock().expect("no panic");
        state.came += 1;
        self.changed.notify_all();
        let waiting = self.changed.wait_while(state, |state| !state.is_open);
        drop(waiting.expect("no panic"));
        body
    }
}

struct Gated {
    store: MemoryStore,
    gate: Arc<Gate>,
}

impl Store for Gated {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.store.submit(writes)
    }

    fn durable(&self) -> CommitId {
        self.store.durable()
    }

    fn failure(&self) -> Option<StoreError> {
        self.store.failure()
    }

    fn is_nearly_full(&self) -> bool {
        self.store.is_nearly_full()
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.store.reader()
    }

    fn stager(&self) -> Option<Arc<dyn Stager>> {
        Some(self.gate.clone())
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        self.store.recover()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Box::new(self.store).close()
    }
}

struct Site {
    gate: Arc<Gate>,
    server: Server,
    address: SocketAddr,
}

impl Site {
    /// A server with the queues `orders` and `others`.
    async fn start() -> Self {
        let gate = Arc::<Gate>::default();
        let store = Gated {
            store: MemoryStore::new(),
            gate: Arc::clone(&gate),
        };
        let bound = BoundServer::new(options(), Box::new(store), Arc::default()).await;
        let bound = bound.expect("a fresh store and a free port");
        let address = bound.addresses()[0];
        Self {
            gate,
            server: bound.serve(),
            address,
        }
    }

    async fn with_peer<T: Send + 'static>(
        &self,
        act: impl FnOnce(Peer, &Gate) -> T + Send + 'static,
    ) -> T {
        let (address, gate) = (self.address, Arc::clone(&self.gate));
        let acted = spawn_blocking(move || act(Peer::connect(address), &gate));
        acted.await.expect("the peer does not panic")
    }

    async fn bodies(&self, count: usize) -> Vec<usize> {
        self.with_peer(move |mut peer, _| {
            let receiver = peer.receiver("orders", 10);
            let bodies = (0..count).map(|_| peer.receive(receiver).body().len());
            bodies.collect()
        })
        .await
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
    let queue = |path: &str| QueueDefinition {
        path: path.to_owned(),
        settings: QueueSettings::default(),
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
        queues: vec![queue("orders"), queue("others")],
        topics: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
        namespaces: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_send_and_receive_while_a_large_message_waits_and_its_own_link_keeps_its_order() {
    let site = Site::start().await;
    let sending = site.with_peer(|mut peer, gate| {
        let sender = peer.sender("orders");
        let cookies = [LARGE, 1, 2 * LARGE, 2].map(|len| peer.send_only(sender, &vec![7; len]));
        gate.wait_for(1);
        // The large one is held; what came behind it on this connection is, too.
        (peer, cookies)
    });
    let (mut peer, cookies) = sending.await;
    let others = site.with_peer(|mut other, _| {
        let sender = other.sender("others");
        let accepted = other.send(sender, b"small");
        let receiver = other.receiver("others", 1);
        (accepted, other.receive(receiver).body())
    });
    let others = others.await;
    assert_eq!(others, (DeliveryState::Accepted, b"small".to_vec()));
    let to_the_same = site.with_peer(|mut other, _| {
        let sender = other.sender("orders");
        other.send(sender, &[7; 3])
    });
    assert_eq!(to_the_same.await, DeliveryState::Accepted);
    site.gate.open();
    let outcomes = spawn_blocking(move || cookies.map(|cookie| peer.outcome(cookie)));
    let outcomes = outcomes.await.expect("answered");
    assert_eq!(outcomes, [const { DeliveryState::Accepted }; 4]);
    assert_eq!(site.bodies(5).await, [3, LARGE, 1, 2 * LARGE, 2]);
    site.server.stop().await.expect("it stops well");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_arrived_is_taken_though_its_sender_is_gone() {
    let site = Site::start().await;
    site.with_peer(|mut peer, gate| {
        let sender = peer.sender("orders");
        peer.send_only(sender, &[7; LARGE]);
        peer.send_only(sender, b"behind");
        gate.wait_for(1);
    })
    .await;
    site.gate.open();
    assert_eq!(site.bodies(2).await, [LARGE, 6]);
}
