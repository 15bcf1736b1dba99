//! Server: from an open store to the end of the last connection.
//!
//! [`BoundServer`] holds the listeners but accepts no connection, and has tried the keys of each
//! issuer; [`BoundServer::serve`] starts accepting. So the ready line can be printed in between,
//! before any client is served.

pub mod backups;
pub mod server_handle;
pub mod server_state;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use access::AccessRules;
use broker::Shard;
use store::{NamespaceId, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::clocks::broker_clock::BrokerClock;
use crate::clocks::clock::Clock;
use crate::connection::budget::Budget;
use crate::counters::counts::Counts;
use crate::credentials::console_sessions::ConsoleSessions;
use crate::credentials::development_issuer;
use crate::credentials::guess_limiter::GuessLimiter;
use crate::credentials::issuer_keys;
use crate::dialects;
use crate::http::console::viewers::Viewers;
use crate::log::refusals::RefusalLog;
use crate::namespaces::namespace_registry::NamespaceRegistry;
use crate::namespaces::setup;
use crate::options::Options;
use crate::server::backups::Backups;
use crate::server::server_handle::ServerHandle;
use crate::server::server_state::{LiveSettings, ServerState};
use crate::shard::placement::Placement;
use crate::shard::staging::CommandStager;
use crate::shard::{Inbox, Message, ShardTask};
use crate::telemetry::{self, Spans, TelemetryOptions, Tracer};
use crate::transport::binding;
use crate::transport::connection_limiter::ConnectionLimiter;
use crate::transport::listener;
use entity::plan::RefusedChange;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What the store held could not be read or understood, or it failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configured entities were refused, and none of them was made or changed.
    #[error("the entities of the configuration were refused: {0}")]
    Entities(RefusedChange),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// The system's reason.
        error: io::Error,
    },
}

/// A server that listens but accepts no connection yet.
pub struct BoundServer {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    state: Arc<ServerState>,
    telemetry: (TelemetryOptions, Spans),
    server: Server,
}

/// A running server.
pub struct Server {
    handle: ServerHandle,
    inbox: Inbox,
    shard: JoinHandle<Result<(), StoreError>>,
    stop: watch::Sender<bool>,
    /// Ends when the last connection has.
    shutdown_guard: mpsc::Receiver<()>,
    shutdown_grace: std::time::Duration,
}

impl BoundServer {
    /// Recovers what `store` holds, makes the configured queues exist, binds every address, and
    /// waits a short time for the keys of configured issuers. `progress` is notified whenever the
    /// store has made progress.
    ///
    /// # Errors
    /// When any of that cannot be done.
    pub async fn new(
        options: Options,
        store: Box<dyn Store>,
        progress: Arc<Notify>,
    ) -> Result<Self, StartError> {
        let clock = Clock::start();
        let backups = options.backup_directory.clone().zip(store.backup());
        let shard = Shard::open(
            options.broker.clone(),
            servicebus::describe_forward_error,
            store,
            clock.now(),
        )?;
        let mut rules = options.rules.clone();
        development_issuer::join(&mut rules, options.development_issuer.as_ref());
        let namespaces = Arc::new(NamespaceRegistry::new(&shard, rules));
        let directory_receiver = namespaces.subscribe(NamespaceId::default());
        let directory_receiver = directory_receiver.expect("the default one is always there");
        let command_stager = shard.store().stager().map(CommandStager::new);
        let clock_of_broker = BrokerClock::new(clock, options.virtual_clock);
        let (task, inbox) =
            ShardTask::new(shard, clock_of_broker, progress, Arc::clone(&namespaces));
        let shard = tokio::spawn(task.run());
        match setup::prepare(&inbox, &options, &namespaces).await {
            Ok(()) => {}
            Err(setup::Error::Refused(error)) => {
                end(&inbox, shard).await?;
                return Err(StartError::Entities(RefusedChange::from(error)));
            }
            Err(setup::Error::Shard(_)) => return Err(StartError::Store(failure(shard.await))),
        }
        let (listeners, addresses) = match bind(&options.listen).await {
            Ok(bound) => bound,
            Err(refused) => {
                end(&inbox, shard).await?;
                return Err(refused);
            }
        };
        let (stop, stopping) = watch::channel(false);
        let (shutdown_guard, last) = mpsc::channel(1);
        let shutdown_grace = options.limits.shutdown_grace;
        let (tracer, spans) = Tracer::new(options.telemetry.sampler);
        let traces = options.telemetry.traces.is_some();
        let state = Arc::new(ServerState {
            clock,
            connection_limiter: Arc::new(ConnectionLimiter::new(&options.limits)),
            open_connections: Arc::default(),
            guess_limiter: GuessLimiter::new(options.limits.wrong_credentials_per_address),
            budget: Arc::new(Budget::new(options.limits.unanswered_bytes)),
            counts: Counts::default(),
            console_sessions: ConsoleSessions::default(),
            viewers: Viewers::default(),
            refusals: Arc::new(RefusalLog::default()),
            live_settings: watch::Sender::new(LiveSettings {
                limits: Arc::new(options.limits),
                settings: dialects::prepared(options.connections),
            }),
            admin: options.admin,
            namespaces,
            directory_receiver,
            certificate: options.certificate,
            plain: options.plain,
            backups: backups.map(|(directory, backup)| Backups {
                directory,
                backup,
                namespaces: Arc::default(),
            }),
            key_demand: Arc::default(),
            development_issuer: options.development_issuer,
            placement: Placement::on_one(inbox.clone()),
            tracer: traces.then(|| Arc::new(tracer)),
            command_stager,
            next_connection: AtomicU64::new(1),
            stopping,
            shutdown_guard,
        });
        issuer_keys::start(&state).made().await;
        let server = Server {
            handle: ServerHandle::new(&state),
            inbox,
            shard,
            stop,
            shutdown_guard: last,
            shutdown_grace,
        };
        Ok(Self {
            listeners,
            addresses,
            state,
            telemetry: (options.telemetry, spans),
            server,
        })
    }

    /// Where it listens, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts accepting connections.
    #[must_use]
    pub fn serve(self) -> Server {
        let (options, spans) = self.telemetry;
        telemetry::start(&self.state, options, spans);
        for listener in self.listeners {
            tokio::spawn(listener::accept_all(listener, Arc::clone(&self.state)));
        }
        self.server
    }
}

impl Server {
    /// The handle that changes the server while it runs.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Replaces the rules of the namespace, as [`ServerHandle::replace_access_rules`] does.
    pub fn replace_access_rules(&self, rules: AccessRules) {
        self.handle.replace_access_rules(rules);
    }

    /// Waits until the store fails, which is final, and says why. Never returns otherwise.
    pub async fn failed(&mut self) -> StoreError {
        failure((&mut self.shard).await)
    }

    /// Accepts no more connections and reads no more from those that exist. Answers what they have
    /// sent, closes them with `amqp:connection:forced`, finishes what was begun and closes the
    /// store.
    ///
    /// # Errors
    /// When the store fails meanwhile.
    pub async fn stop(mut self) -> Result<(), StoreError> {
        self.stop.send_replace(true);
        // A connection that does not close in time is left behind.
        drop(tokio::time::timeout(self.shutdown_grace, self.shutdown_guard.recv()).await);
        end(&self.inbox, self.shard).await
    }
}

/// Lets the shard finish what has arrived and close the store.
async fn end(inbox: &Inbox, shard: JoinHandle<Result<(), StoreError>>) -> Result<(), StoreError> {
    // One that has ended already says why.
    drop(inbox.send(Message::Stop).await);
    shard
        .await
        .unwrap_or_else(|error| Err(StoreError::Poisoned(error.to_string())))
}

async fn bind(wanted: &[SocketAddr]) -> Result<(Vec<TcpListener>, Vec<SocketAddr>), StartError> {
    let mut listeners = Vec::new();
    let mut addresses = Vec::new();
    for &address in wanted {
        let refused = |error| StartError::Listen { address, error };
        let listener = binding::bind(address).await.map_err(refused)?;
        addresses.push(listener.local_addr().map_err(refused)?);
        listeners.push(listener);
    }
    Ok((listeners, addresses))
}

/// Why a shard task ended that was not told to.
fn failure(ended: Result<Result<(), StoreError>, tokio::task::JoinError>) -> StoreError {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => StoreError::Poisoned("the shard ended unexpectedly".to_owned()),
        Err(error) => StoreError::Poisoned(error.to_string()),
    }
}
