//! Server state: everything that the connections of one server share.
//!
//! It lives until the last connection is closed. [`LiveSettings`] is the part that can change while
//! the server runs; a connection keeps the settings that hold when it is accepted.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use servicebus::Directory;
use tokio::sync::{mpsc, watch};

use crate::budget::Budget;
use crate::clock::Clock;
use crate::connection_limiter::ConnectionLimiter;
use crate::counts::Counts;
use crate::http::backups::Backups;
use crate::options::{Certificate, Limits, PlaintextPolicy};
use crate::refusals::RefusalLog;
use crate::shard::{DirectoryReceiver, Inbox};
use crate::staging::CommandStager;

/// What all doors share.
pub struct ServerState {
    pub clock: Clock,
    pub live_settings: watch::Sender<LiveSettings>,
    pub connection_limiter: Arc<ConnectionLimiter>,
    pub budget: Arc<Budget>,
    pub counts: Counts,
    pub refusals: Arc<RefusalLog>,
    pub admin: admin::Settings,
    pub directory_receiver: DirectoryReceiver,
    pub certificate: Option<Certificate>,
    pub plain: PlaintextPolicy,
    pub backups: Option<Backups>,
    pub inbox: Inbox,
    /// For large messages.
    pub command_stager: Option<CommandStager>,
    pub next_connection: AtomicU64,
    /// Whether the server stops.
    pub stopping: watch::Receiver<bool>,
    /// Dropped by the last one who leaves.
    pub shutdown_guard: mpsc::Sender<()>,
}

/// What may change while the house is open. A connection goes by what holds when it comes.
#[derive(Clone)]
pub struct LiveSettings {
    pub limits: Arc<Limits>,
    pub settings: Arc<servicebus::Settings>,
}

impl ServerState {
    /// Which entities there are and who may do what, now.
    pub fn directory(&self) -> Arc<Directory> {
        Arc::clone(&self.directory_receiver.borrow())
    }

    /// The limits that hold now.
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.live_settings.borrow().limits)
    }

    /// What holds now for AMQP connections.
    pub fn settings(&self) -> Arc<servicebus::Settings> {
        Arc::clone(&self.live_settings.borrow().settings)
    }

    /// Lets other limits hold from now on.
    pub fn set_limits(&self, limits: Limits, settings: servicebus::Settings) {
        self.connection_limiter.set_limits(&limits);
        self.budget.set_limit(limits.unanswered_bytes);
        self.live_settings.send_replace(LiveSettings {
            limits: Arc::new(limits),
            settings: Arc::new(settings),
        });
    }
}
