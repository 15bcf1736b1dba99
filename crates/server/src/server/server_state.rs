//! Server state: everything that the connections of one server share.
//!
//! [`LiveSettings`] is the part that can change while the server runs; a connection keeps the
//! settings that apply when it is accepted.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use access::Directory;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::clocks::clock::Clock;
use crate::connection::budget::Budget;
use crate::connection::open_connections::OpenConnections;
use crate::counters::counts::Counts;
use crate::credentials::console_sessions::ConsoleSessions;
use crate::credentials::development_issuer::DevelopmentIssuer;
use crate::credentials::guess_limiter::GuessLimiter;
use crate::dialects;
use crate::http::console::viewers::Viewers;
use crate::log::refusals::RefusalLog;
use crate::namespaces::namespace_registry::NamespaceRegistry;
use crate::options::{Certificate, Limits, PlaintextPolicy};
use crate::server::backups::Backups;
use crate::shard::DirectoryReceiver;
use crate::shard::placement::Placement;
use crate::shard::staging::CommandStager;
use crate::telemetry::Tracer;
use crate::transport::connection_limiter::ConnectionLimiter;

/// The state that all listeners and connections share.
pub struct ServerState {
    pub clock: Clock,
    pub live_settings: watch::Sender<LiveSettings>,
    pub connection_limiter: Arc<ConnectionLimiter>,
    pub open_connections: Arc<OpenConnections>,
    pub guess_limiter: GuessLimiter,
    pub budget: Arc<Budget>,
    pub counts: Counts,
    /// Browsers that are signed in.
    pub console_sessions: ConsoleSessions,
    pub viewers: Viewers,
    pub refusals: Arc<RefusalLog>,
    pub admin: admin::Settings,
    pub namespaces: Arc<NamespaceRegistry>,
    /// Watches the directory of the default namespace.
    pub directory_receiver: DirectoryReceiver,
    pub certificate: Option<Certificate>,
    pub plain: PlaintextPolicy,
    pub backups: Option<Backups>,
    /// Reports that the token of a client needs keys of its issuer that are not loaded.
    pub key_demand: Arc<Notify>,
    /// Makes tokens for clients on this machine while the development key is in force.
    pub development_issuer: Option<DevelopmentIssuer>,
    pub placement: Placement,
    /// Takes spans, if a collector of traces is configured.
    pub tracer: Option<Arc<Tracer>>,
    /// For large messages.
    pub command_stager: Option<CommandStager>,
    pub next_connection: AtomicU64,
    /// Whether the server stops.
    pub stopping: watch::Receiver<bool>,
    /// Each connection holds a clone; the shutdown waits until the last is dropped.
    pub shutdown_guard: mpsc::Sender<()>,
}

/// Settings that may change while the server runs. A connection keeps those of the time when it is
/// accepted.
#[derive(Clone)]
pub struct LiveSettings {
    pub limits: Arc<Limits>,
    pub settings: Arc<servicebus::Settings>,
}

impl ServerState {
    /// The current entities and access rules of the default namespace.
    pub fn default_directory(&self) -> Arc<Directory> {
        Arc::clone(&self.directory_receiver.borrow())
    }

    /// The current limits.
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.live_settings.borrow().limits)
    }

    /// The current settings of AMQP connections.
    pub fn settings(&self) -> Arc<servicebus::Settings> {
        Arc::clone(&self.live_settings.borrow().settings)
    }

    /// Counts wrong credentials that a peer at `address` has shown. Returns the moment when they
    /// may be answered, if that is not at once.
    pub fn delay_refusal(&self, address: IpAddr, wrong: u64) -> Option<Instant> {
        let until = self.guess_limiter.count(Instant::now(), address, wrong)?;
        self.counts.delayed_refusals.increment();
        Some(until)
    }

    /// Sets new limits.
    pub fn set_limits(&self, limits: Limits, settings: servicebus::Settings) {
        self.connection_limiter.set_limits(&limits);
        self.guess_limiter
            .set_allowed(limits.wrong_credentials_per_address);
        self.budget.set_limit(limits.unanswered_bytes);
        self.live_settings.send_replace(LiveSettings {
            limits: Arc::new(limits),
            settings: dialects::prepared(settings),
        });
    }
}
