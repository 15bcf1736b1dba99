//! `railbus serve`: from settings to a running broker, and to its end.
//!
//! The order matters: the data directory is locked and recovered before anything is bound, and the
//! ready line is printed when everything is bound and the keys of issuers have been tried, before
//! any client is served.

pub mod data_directory;
pub mod development_key;
pub mod entropy;
pub mod first_start;
pub mod host_name;
pub mod issuers;
pub mod keys;
pub mod ready;
pub mod reload;
pub mod stamp;
pub mod stdin;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use broker::BrokerSettings;
use jiff::Timestamp;
use rocks::RocksStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{BoundServer, Server, StartError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::arguments::ServeArguments;
use crate::command_error::CommandError;
use crate::serve::data_directory::{DataDirectory, Location};
use crate::serve::keys::DEVELOPMENT_KEY;
use crate::serve::reload::Reloader;
use crate::settings::Settings;
use crate::{log, processor, tls};

/// How long stopping may take. What is not finished by then is recovered at the next start.
const STOP: Duration = Duration::from_millis(4_500);
/// How long the store may take to close when there was no time to stop.
const CLOSE: Duration = Duration::from_millis(400);
/// The default directory of backups, in the data directory.
const BACKUPS: &str = "backups";
/// Lower ports need a privilege on most systems.
const UNPRIVILEGED: u16 = 1_024;
/// Threads for reading what is not in memory.
const READERS: usize = 8;

/// Runs the broker until it is asked to stop or fails.
pub fn run(arguments: &ServeArguments) -> Result<(), CommandError> {
    processor::check()?;
    let settings = Settings::resolve(arguments)?;
    log::start(settings.log_format, settings.audit_log.as_deref()).map_err(|error| {
        let path = settings.audit_log.clone().unwrap_or_default();
        CommandError::Write { path, error }
    })?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(READERS)
        .build()
        .map_err(CommandError::System)?;
    let result = runtime.block_on(serve(arguments, settings));
    // A process that ends while the store is still being closed can die of that.
    runtime.shutdown_timeout(CLOSE);
    result
}

async fn serve(arguments: &ServeArguments, settings: Settings) -> Result<(), CommandError> {
    let mut signals = Signals::new().map_err(CommandError::System)?;
    let hang_up = signal(SignalKind::hangup()).map_err(CommandError::System)?;
    warn_about_durability(&settings);
    if settings.server.virtual_clock {
        tracing::warn!(
            "the clock is virtual: locks, time to live and everything else that uses broker time follow it"
        );
    }
    let directory = DataDirectory::open(settings.data.clone())?;
    let (certificate, reloader, reload_sender) = tls::start(&settings.tls, directory.path())?;
    let backups = settings.server.backup_directory.clone();
    let backups = backups.unwrap_or_else(|| directory.path().join(BACKUPS));
    let progress = Arc::new(Notify::new());
    let waker = Arc::clone(&progress);
    let store = RocksStore::open(
        directory.path(),
        settings.store,
        Arc::new(move || waker.notify_one()),
    )
    .map_err(|error| CommandError::Store {
        path: directory.path().to_owned(),
        error,
    })?;
    // A start that is refused is none.
    let first_start = first_start::open(directory.path(), Timestamp::now());
    let is_development = settings.server.rules.is_development;
    let issuer = is_development.then(|| development_key::open(directory.path(), DEVELOPMENT_KEY));
    let options = server::Options {
        development_issuer: issuer.transpose()?,
        certificate: Some(certificate),
        backup_directory: Some(backups),
        broker: BrokerSettings {
            first_start: Some(first_start),
            ..settings.server.broker.clone()
        },
        ..settings.server.clone()
    };
    let bound = BoundServer::new(options, Box::new(store), progress).await;
    let bound = bound.map_err(explained)?;
    let (host, key) = (settings.host.as_ref(), settings.connection_key.as_ref());
    ready::announce(bound.addresses(), host, key);
    let mut server = bound.serve();
    tokio::spawn(reloader.run());
    let handle = server.handle();
    let stdin_matters = arguments.exit_on_stdin_close;
    let arguments = arguments.clone();
    let reloader = Reloader::new(arguments, settings, directory.path(), handle, reload_sender);
    tokio::spawn(reloader.run(hang_up));
    tokio::select! {
        failure = server.failed() => return Err(CommandError::Failed(failure)),
        () = signals.next() => {}
        closed = stdin::closed(), if stdin_matters => {
            closed.map_err(CommandError::System)?;
            tracing::info!("standard input has ended");
        }
    }
    stop(server, signals).await
}

/// A port that needs a privilege comes with the ways to get it.
fn explained(error: StartError) -> CommandError {
    match error {
        StartError::Listen { address, error }
            if error.kind() == ErrorKind::PermissionDenied && address.port() < UNPRIVILEGED =>
        {
            CommandError::PrivilegedPort(address)
        }
        error => error.into(),
    }
}

async fn stop(server: Server, mut signals: Signals) -> Result<(), CommandError> {
    tracing::info!("stopping");
    tokio::select! {
        stopped = tokio::time::timeout(STOP, server.stop()) => match stopped {
            Ok(result) => result.map_err(CommandError::Failed),
            Err(_) => {
                tracing::warn!("stopping took too long; the next start recovers what is left");
                Ok(())
            }
        },
        () = signals.next() => {
            tracing::warn!("stopping at once");
            Ok(())
        }
    }
}

fn warn_about_durability(settings: &Settings) {
    if settings.store.durability == rocks::Durability::Buffered {
        let place = match settings.data {
            Location::Ephemeral => "and the data directory is removed at exit",
            Location::Lasting(_) => "but not a power cut",
        };
        tracing::warn!(
            "durability is buffered: accepted messages survive a crash of the process, {place}"
        );
    }
}

/// SIGTERM and SIGINT, from now on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Asks for as many open files as we may have: the usual soft limit is 1,024, which is less than
/// the connections and the store need.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    ) {
        tracing::warn!(%error, "the limit of open files could not be raised and is {:?}", limit.current);
    }
}
