//! Reload: applies changes of `railbus.toml` and the entities file while the broker runs.
//!
//! On SIGHUP, and when one of the files has changed, all of it is read as at start. A change that
//! a running broker cannot make refuses the whole reload: then nothing changes and one sentence in
//! the log gives the reason. Entities and rules, of which the broker may refuse one that no file
//! shows to be wrong, are applied first, as one, and the rest only if they succeed. The changes
//! are logged too, but no key. Entities and rules are created or changed and never deleted; the
//! limits of one connection apply to new connections; links that rest on a removed key are
//! detached.

mod fixed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use entity::plan::{DesiredNamespace, Plan};
use server::{ServerHandle, ShardError};
use tokio::signal::unix::Signal;

use crate::arguments::ServeArguments;
use crate::command_error::CommandError;
use crate::log::AUDIT;
use crate::serve::stamp;
use crate::serve::stamp::Stamp;
use crate::settings::Settings;
use crate::tls;

/// How often files are looked at, so that a broker at rest hardly ever wakes up.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The same while one of them is being written.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a reload is refused.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Settings(#[from] CommandError),
    #[error("{0} cannot change while the broker runs; restart the broker to change it")]
    Fixed(String),
    #[error("{} is empty or not there any more; restart the broker to do without it", .0.display())]
    Gone(PathBuf),
    #[error(
        "the configuration has no key any more, and a running broker cannot return to the development key; restart the broker to do so"
    )]
    NoKey,
    #[error("{0}")]
    Plan(String),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Shard(#[from] server::ShardError),
    #[error("the files could not be read: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Applies changes of the files.
pub struct Reloader {
    arguments: ServeArguments,
    running: Settings,
    data: PathBuf,
    handle: ServerHandle,
    certificate: tls::ReloadSender,
    /// Of the files when they were last read.
    stamps: Vec<Option<Stamp>>,
}

impl Reloader {
    /// One for a broker that runs with `running`, with its data in `data`.
    pub fn new(
        arguments: ServeArguments,
        running: Settings,
        data: &Path,
        handle: ServerHandle,
        certificate: tls::ReloadSender,
    ) -> Self {
        Self {
            stamps: running.stamps.clone(),
            arguments,
            running,
            data: data.to_owned(),
            handle,
            certificate,
        }
    }

    /// Reloads on every signal and change, until the broker stops. A file that is still being
    /// written changes from one look to the next, and is left until it does not.
    pub async fn run(mut self, mut hang_up: Signal) {
        let mut before = self.stamps.clone();
        let mut interval = CHECK_INTERVAL;
        loop {
            let asked = tokio::time::timeout(interval, hang_up.recv()).await.is_ok();
            let stamps = stamps(&self.running.files);
            let is_settled = std::mem::replace(&mut before, stamps.clone()) == stamps;
            interval = if is_settled {
                CHECK_INTERVAL
            } else {
                RECHECK_INTERVAL
            };
            if !asked && (stamps == self.stamps || !is_settled) {
                continue;
            }
            self.stamps = stamps;
            if asked {
                // A reloader that has ended has logged it.
                _ = self.certificate.send(tls::ReloadRequest::Check).await;
            }
            match self.reload().await {
                Ok(()) => {}
                Err(ReloadError::Shard(ShardError::Stopping)) => return,
                Err(error) => tracing::error!("the configuration was not reloaded: {error}"),
            }
        }
    }

    async fn reload(&mut self) -> Result<(), ReloadError> {
        if let Some(file) = self.missing_file() {
            return Err(ReloadError::Gone(file.to_owned()));
        }
        let arguments = self.arguments.clone();
        let read = tokio::task::spawn_blocking(move || Settings::resolve(&arguments));
        let mut new = read.await??;
        // A certificate that cannot be read leaves the old one in use, and so its names.
        if new.server.rules.host_names.len() == usize::from(new.host.is_some()) {
            let names = &self.running.server.rules.host_names;
            new.server.rules.host_names.clone_from(names);
        }
        if let Some(name) = fixed::difference(&self.running, &new) {
            return Err(ReloadError::Fixed(name));
        }
        if new.server.rules.is_development && !self.running.server.rules.is_development {
            return Err(ReloadError::NoKey);
        }
        let certificate = self.certificate(&new).await?;
        let plan = self.apply(&new).await?;
        self.apply_settings(new, &plan, certificate).await
    }

    /// A file in use that is empty or missing now.
    fn missing_file(&self) -> Option<&Path> {
        let says = |stamp: &Option<Stamp>| stamp.is_some_and(|stamp| stamp::size(stamp) > 0);
        let now = self.stamps.iter().zip(&self.running.stamps);
        let mut files = now.zip(&self.running.files);
        let missing_file = files.find(|((now, taken), _)| says(taken) && !says(now));
        missing_file.map(|(_, file)| file.as_path())
    }

    /// Makes entities and rules equal to the files, all of them or none.
    async fn apply(&self, new: &Settings) -> Result<Plan, ReloadError> {
        let wanted = DesiredNamespace {
            queues: new.server.queues.clone(),
            topics: new.server.topics.clone(),
            policies: new.server.policies.clone(),
            authoritative: false,
        };
        let plan = self.handle.apply(&wanted).await?;
        if plan.refused.is_empty() {
            return Ok(plan);
        }
        let refused: Vec<_> = plan.refused.iter().map(ToString::to_string).collect();
        Err(ReloadError::Plan(refused.join("; ")))
    }

    /// The certificate, if it comes from somewhere else now.
    async fn certificate(&self, new: &Settings) -> Result<Option<tls::ReloadRequest>, ReloadError> {
        if new.tls == self.running.tls {
            return Ok(None);
        }
        let (source, data) = (new.tls.clone(), self.data.clone());
        let opened = tokio::task::spawn_blocking(move || tls::open(&source, &data));
        let (config, certificate_source) = opened.await??;
        Ok(Some(tls::ReloadRequest::Replace(
            Box::new(config),
            Box::new(certificate_source),
        )))
    }

    /// Nothing of this can be refused; what could be, entities and rules, is taken over by now.
    async fn apply_settings(
        &mut self,
        new: Settings,
        plan: &Plan,
        certificate: Option<tls::ReloadRequest>,
    ) -> Result<(), ReloadError> {
        for warning in &new.warnings {
            tracing::warn!("{warning}");
        }
        for change in &plan.changes {
            tracing::info!(target: AUDIT, "reloaded: {change}");
        }
        let limits = fixed::limits(&self.running, &new);
        let mut keys = fixed::keys(&self.running.auth, &new.auth);
        keys.extend(fixed::host_names(&self.running, &new));
        let (server_limits, connection_settings) =
            (new.server.limits.clone(), new.server.connections.clone());
        let broker_limits = new.server.broker.limits();
        self.handle
            .set_limits(server_limits, connection_settings, broker_limits)
            .await?;
        for limit in &limits {
            tracing::info!("reloaded: limits.{limit}");
        }
        let rules = new.server.rules.clone();
        if !keys.is_empty() {
            self.handle.replace_access_rules(rules);
        }
        for key in &keys {
            tracing::info!(target: AUDIT, "reloaded: {key}");
        }
        let is_silent = limits.is_empty() && keys.is_empty() && certificate.is_none();
        if let Some(call) = certificate {
            _ = self.certificate.send(call).await;
        }
        if is_silent && plan.is_empty() {
            tracing::info!("reloaded: nothing has changed");
        }
        self.stamps.clone_from(&new.stamps);
        self.running = new;
        Ok(())
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| stamp::of(file)).collect()
}
