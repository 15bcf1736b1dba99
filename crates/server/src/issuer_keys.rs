//! Issuer keys: loads the keys of trusted issuers, and loads them again in time.
//! (docs/spec/amqp.md#2.8)
//!
//! Each issuer whose keys can change has a task. Keys at a URL are loaded every ten minutes, and
//! earlier when a token names a key that is not among them, at most once in five minutes. A file is
//! read when it has changed. Keys that cannot be loaded leave the known ones in use; a set without
//! one of them withdraws it, and ends the links of its tokens.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use access::key_set::{self, KeySet};
use access::{Issuer, IssuerKeys, KeySource};
use broker::Wall;
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::fetch::{self, FetchError};
use crate::log_text::{SENTENCE, printable};
use crate::server_handle::ServerHandle;
use crate::server_state::ServerState;

/// How often keys at a URL are loaded.
const REFRESH: Duration = Duration::from_secs(10 * 60);
/// An unknown key id causes no load so soon after another.
const RELOAD: Duration = Duration::from_secs(5 * 60);
/// How soon keys that could not be loaded are tried again, the first time and at most.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(60);
/// How often a file is looked at.
const FILE_CHECK: Duration = Duration::from_secs(5);

/// Why the keys of an issuer were not loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("{url}: {error}")]
    Fetch { url: String, error: FetchError },
    #[error("{url} is not a discovery document of OpenID Connect: {reason}")]
    Discovery { url: String, reason: String },
    #[error("{url} is of the issuer {found}")]
    OtherIssuer { url: String, found: String },
    #[error("{place}: {error}")]
    Keys {
        place: String,
        error: key_set::Error,
    },
    #[error("{path}: {error}")]
    File { path: String, error: std::io::Error },
    #[error("reading the file ended early: {0}")]
    Task(#[from] JoinError),
}

/// The parts of a discovery document that are used.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Keeps the keys of all issuers loaded until the server stops.
pub async fn keep_loaded(server: Arc<ServerState>, handle: ServerHandle) {
    let mut tasks = Tasks::default();
    let mut directory = server.directory_receiver.clone();
    let mut stopping = server.stopping.clone();
    loop {
        let now = Arc::clone(&directory.borrow_and_update());
        tasks.update(now.access().issuers(), &server, &handle);
        tokio::select! {
            changed = directory.changed() => if changed.is_err() {
                return;
            },
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// One task for each set of keys.
#[derive(Default)]
struct Tasks(Vec<(Arc<IssuerKeys>, JoinHandle<()>)>);

impl Tasks {
    /// Ends the tasks of issuers that are gone, and starts those of new ones.
    fn update(&mut self, issuers: &[Issuer], server: &ServerState, handle: &ServerHandle) {
        self.0.retain(|(keys, task)| {
            let stays = issuers.iter().any(|issuer| Arc::ptr_eq(&issuer.keys, keys));
            if !stays {
                task.abort();
            }
            stays
        });
        for issuer in issuers {
            let is_running = |(keys, _): &_| Arc::ptr_eq(&issuer.keys, keys);
            if issuer.source != KeySource::Fixed && !self.0.iter().any(is_running) {
                let loader = Loader {
                    issuer: issuer.clone(),
                    demand: Arc::clone(&server.key_demand),
                    clock: server.clock,
                    handle: handle.clone(),
                };
                let task = (Arc::clone(&issuer.keys), tokio::spawn(loader.run()));
                self.0.push(task);
            }
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, task)| task.abort());
    }
}

/// Loads the keys of one issuer.
struct Loader {
    issuer: Issuer,
    demand: Arc<Notify>,
    clock: Clock,
    handle: ServerHandle,
}

impl Loader {
    async fn run(self) {
        match &self.issuer.source {
            KeySource::Discovery(url) => self.keep_fetching(url, true).await,
            KeySource::Url(url) => self.keep_fetching(url, false).await,
            KeySource::File(path) => self.keep_reading(path).await,
            KeySource::Fixed => {}
        }
    }

    async fn keep_fetching(&self, url: &str, is_discovery: bool) {
        let mut retry = FIRST_RETRY;
        loop {
            let loaded = match is_discovery {
                true => self.discover(url).await,
                false => fetch_keys(url).await,
            };
            let reload_from = self.after(RELOAD);
            let wait = match loaded {
                Ok(keys) => {
                    tracing::info!(issuer = self.issuer.name, "the issuer's keys are loaded");
                    self.replace(keys, reload_from);
                    retry = FIRST_RETRY;
                    REFRESH
                }
                Err(error) => {
                    // It may repeat what the issuer's server has said.
                    let error = printable(&error.to_string(), SENTENCE);
                    tracing::warn!(
                        issuer = self.issuer.name,
                        error,
                        "the issuer's keys were not loaded"
                    );
                    self.issuer.keys.keep(reload_from);
                    let wait = retry;
                    retry = (retry * 2).min(LAST_RETRY);
                    wait
                }
            };
            self.wait(wait, reload_from).await;
        }
    }

    /// Takes keys into use.
    fn replace(&self, keys: KeySet, reload_from: Wall) {
        if keys.is_empty() {
            tracing::warn!(
                issuer = self.issuer.name,
                "the issuer has no key that can be used, so its tokens are refused"
            );
        }
        if self.issuer.keys.replace(keys, reload_from) {
            self.handle.recheck_access();
        }
    }

    /// Waits until keys that are there should be loaded again, for lack of a key or after `wait`.
    /// Keys that never were there are tried after `wait` alone.
    async fn wait(&self, wait: Duration, reload_from: Wall) {
        let until = Instant::now() + wait;
        loop {
            let demanded = tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = self.demand.notified() => self.clock.moment().wall,
            };
            if self.issuer.keys.is_loaded() && demanded >= reload_from {
                return;
            }
        }
    }

    fn after(&self, duration: Duration) -> Wall {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Wall(self.clock.moment().wall.0.saturating_add(millis))
    }

    /// The keys at the address that a discovery document names.
    async fn discover(&self, url: &str) -> Result<KeySet, LoadError> {
        let text = fetch(url).await?;
        let document: Discovery =
            serde_json::from_slice(&text).map_err(|error| LoadError::Discovery {
                url: url.to_owned(),
                reason: error.to_string(),
            })?;
        if document.issuer != self.issuer.name {
            return Err(LoadError::OtherIssuer {
                url: url.to_owned(),
                found: document.issuer,
            });
        }
        fetch_keys(&document.jwks_uri).await
    }

    /// The keys of a file are there from the start.
    async fn keep_reading(&self, path: &Path) {
        let mut known = None;
        loop {
            let modified = stamp(path).await;
            if modified.is_some() && modified != known {
                match read(path).await {
                    Ok(keys) => {
                        self.replace(keys, Wall(u64::MAX));
                        if known.is_some() {
                            tracing::info!(
                                issuer = self.issuer.name,
                                "the issuer's keys are replaced"
                            );
                        }
                    }
                    Err(error) => {
                        let error = printable(&error.to_string(), SENTENCE);
                        tracing::error!(
                            issuer = self.issuer.name,
                            error,
                            "the issuer's keys stay as they were"
                        );
                    }
                }
                known = modified;
            }
            tokio::time::sleep(FILE_CHECK).await;
        }
    }
}

async fn fetch(url: &str) -> Result<Bytes, LoadError> {
    fetch::get(url).await.map_err(|error| LoadError::Fetch {
        url: url.to_owned(),
        error,
    })
}

async fn fetch_keys(url: &str) -> Result<KeySet, LoadError> {
    let text = fetch(url).await?;
    KeySet::parse(&text).map_err(|error| LoadError::Keys {
        place: url.to_owned(),
        error,
    })
}

/// When a file was written, and its size.
async fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let path = path.to_owned();
    let metadata = tokio::task::spawn_blocking(move || std::fs::metadata(path)).await;
    let metadata = metadata.ok()?.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

async fn read(path: &Path) -> Result<KeySet, LoadError> {
    let place = path.display().to_string();
    let path = path.to_owned();
    let text = tokio::task::spawn_blocking(move || std::fs::read(path)).await?;
    let text = text.map_err(|error| LoadError::File {
        path: place.clone(),
        error,
    })?;
    KeySet::parse(&text).map_err(|error| LoadError::Keys { place, error })
}
