//! Reload: what `railbus.toml` and the entities file say is taken over while the broker runs.
//!
//! On SIGHUP, and when one of the files has changed, all of it is read as at start. What can not
//! change in a running broker, or can not be, refuses the whole: then nothing changes and one
//! sentence in the log says why. Entities and rules, of which the broker may refuse something that no
//! file shows, are taken over first, as one, and the rest only when they were. What changes is in the log too, but no key. Entities and rules are
//! made or changed and never deleted; limits of a connection hold for those that come from then on;
//! links that rest on a key that is gone are detached.

mod fixed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use server::ServerHandle;
use server::plan::{DesiredNamespace, Plan};
use tokio::signal::unix::Signal;

use crate::arguments::ServeArguments;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::stamp::{self, Stamp};
use crate::tls;

/// How often files are looked at, so that a broker at rest hardly ever wakes up.
const LOOK: Duration = Duration::from_secs(5);
/// The same while one of them is being written.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why nothing is taken over.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Settings(#[from] Refusal),
    #[error("{0} can not change while the broker runs; restart it for that")]
    Fixed(String),
    #[error("{} is empty or not there any more; restart the broker to do without it", .0.display())]
    Gone(PathBuf),
    #[error(
        "there is no key in the configuration any more, and a running broker does not go back to the development key; restart it for that"
    )]
    NoKey,
    #[error("{0}")]
    Plan(String),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Closed(#[from] server::Closed),
    #[error("the files could not be read: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Takes over what files say.
pub struct Reloader {
    arguments: ServeArguments,
    running: Settings,
    data: PathBuf,
    handle: ServerHandle,
    certificate: tls::Bell,
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
        certificate: tls::Bell,
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

    /// Reloads on every signal and change, until the broker stops. A file that is still being written
    /// changes from one look to the next, and is left until it does not.
    pub async fn run(mut self, mut hang_up: Signal) {
        let mut before = self.stamps.clone();
        let mut look = LOOK;
        loop {
            let asked = tokio::time::timeout(look, hang_up.recv()).await.is_ok();
            let stamps = stamps(&self.running.files);
            let is_settled = std::mem::replace(&mut before, stamps.clone()) == stamps;
            look = if is_settled { LOOK } else { LOOK_AGAIN };
            if !asked && (stamps == self.stamps || !is_settled) {
                continue;
            }
            self.stamps = stamps;
            if asked {
                // A keeper that has gone has said so.
                _ = self.certificate.send(tls::Call::Look).await;
            }
            match self.reload().await {
                Ok(()) => {}
                Err(Trouble::Closed(_)) => return,
                Err(trouble) => tracing::error!("the configuration was not reloaded: {trouble}"),
            }
        }
    }

    async fn reload(&mut self) -> Result<(), Trouble> {
        if let Some(file) = self.gone() {
            return Err(Trouble::Gone(file.to_owned()));
        }
        let arguments = self.arguments.clone();
        let read = tokio::task::spawn_blocking(move || Settings::resolve(&arguments));
        let new = read.await??;
        if let Some(name) = fixed::difference(&self.running, &new) {
            return Err(Trouble::Fixed(name));
        }
        if new.server.rules.is_development && !self.running.server.rules.is_development {
            return Err(Trouble::NoKey);
        }
        let certificate = self.certificate(&new).await?;
        let plan = self.apply(&new).await?;
        self.take_over(new, &plan, certificate).await
    }

    /// A file that the broker runs with and that says nothing any more.
    fn gone(&self) -> Option<&Path> {
        let says = |stamp: &Option<Stamp>| stamp.is_some_and(|stamp| stamp::size(stamp) > 0);
        let now = self.stamps.iter().zip(&self.running.stamps);
        let mut files = now.zip(&self.running.files);
        let gone = files.find(|((now, taken), _)| says(taken) && !says(now));
        gone.map(|(_, file)| file.as_path())
    }

    /// Entities and rules become as the files say, all of them or none.
    async fn apply(&self, new: &Settings) -> Result<Plan, Trouble> {
        let wanted = DesiredNamespace {
            queues: new.server.queues.clone(),
            topics: new.server.topics.clone(),
            authoritative: false,
        };
        let plan = self.handle.apply(&wanted).await?;
        if plan.refused.is_empty() {
            return Ok(plan);
        }
        let refused: Vec<_> = plan.refused.iter().map(ToString::to_string).collect();
        Err(Trouble::Plan(refused.join("; ")))
    }

    /// The certificate, if it comes from somewhere else now.
    async fn certificate(&self, new: &Settings) -> Result<Option<tls::Call>, Trouble> {
        if new.tls == self.running.tls {
            return Ok(None);
        }
        let (source, data) = (new.tls.clone(), self.data.clone());
        let opened = tokio::task::spawn_blocking(move || tls::open(&source, &data));
        let (config, kept) = opened.await??;
        Ok(Some(tls::Call::Replace(Box::new(config), kept)))
    }

    /// Nothing of this can be refused; what could be, entities and rules, is taken over by now.
    async fn take_over(
        &mut self,
        new: Settings,
        plan: &Plan,
        certificate: Option<tls::Call>,
    ) -> Result<(), Trouble> {
        for warning in &new.warnings {
            tracing::warn!("{warning}");
        }
        for change in &plan.changes {
            tracing::info!("reloaded: {change}");
        }
        let limits = fixed::limits(&self.running, &new);
        let keys = fixed::keys(&self.running.auth, &new.auth);
        let (of_house, of_connections) =
            (new.server.limits.clone(), new.server.connections.clone());
        let of_broker = new.server.broker.limits();
        self.handle
            .set_limits(of_house, of_connections, of_broker)
            .await?;
        for limit in &limits {
            tracing::info!("reloaded: limits.{limit}");
        }
        let rules = new.server.rules.clone();
        if !keys.is_empty() {
            self.handle.replace_access_rules(rules);
        }
        for key in &keys {
            tracing::info!("reloaded: {key}");
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
