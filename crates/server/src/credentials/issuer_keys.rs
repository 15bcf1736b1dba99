//! Issuer keys: loads the keys of trusted issuers, and loads them again in time.
//! (docs/spec/amqp.md#2.8)
//!
//! Each issuer whose keys can change has a task. Keys at a URL are loaded as [`KeySchedule`] says.
//! A file is read when it has changed. Keys that cannot be loaded leave the known ones in use; a
//! set without one of them withdraws it, and ends the links of its tokens. [`FirstTries`] is the
//! start's wait for the keys at URLs.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use access::key_set::{self, KeySet};
use access::{Issuer, IssuerKeys, KeySource};
use broker::Wall;
use bytes::Bytes;
use dialect::ClockReading;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinHandle};

use crate::clocks::clock::Clock;
use crate::credentials::key_schedule::KeySchedule;
use crate::fetch::{self, FetchError};
use crate::log::log_text::{SENTENCE, printable};
use crate::namespaces::namespace_registry::NamespaceRegistry;
use crate::server::server_state::ServerState;

/// How often a file is looked at.
const FILE_CHECK: Duration = Duration::from_secs(5);
/// How long the start waits for the keys of all issuers together.
const FIRST_WAIT: Duration = Duration::from_secs(2);

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

/// The first try of the keys of each issuer that is there at the start.
pub struct FirstTries {
    server: Arc<ServerState>,
    /// Ends when the last of them has been made.
    pending: mpsc::Receiver<()>,
}

/// Starts to load the keys of all issuers, and keeps them loaded until the server stops.
pub fn start(server: &Arc<ServerState>) -> FirstTries {
    let (first_try, pending) = mpsc::channel(1);
    tokio::spawn(keep_loaded(Arc::clone(server), first_try));
    FirstTries {
        server: Arc::clone(server),
        pending,
    }
}

impl FirstTries {
    /// Waits until each has been made, whether it has loaded the keys or not; at most
    /// [`FIRST_WAIT`], so that an issuer that does not answer keeps no broker from starting.
    pub async fn made(mut self) {
        let made = tokio::time::timeout(FIRST_WAIT, self.pending.recv()).await;
        if made.is_err() {
            let directory = self.server.default_directory();
            let issuers = directory.access().issuers().iter();
            let missing = issuers.filter(|issuer| !issuer.keys.is_loaded());
            let missing: Vec<&str> = missing.map(|issuer| issuer.name.as_str()).collect();
            tracing::warn!(
                issuers = missing.join(", "),
                "started without the keys of these issuers, which were not loaded within {} s",
                FIRST_WAIT.as_secs()
            );
        }
    }
}

async fn keep_loaded(server: Arc<ServerState>, first_try: mpsc::Sender<()>) {
    let mut tasks = Tasks::default();
    let mut directory = server.directory_receiver.clone();
    let mut stopping = server.stopping.clone();
    let mut first_try = Some(first_try);
    loop {
        let now = Arc::clone(&directory.borrow_and_update());
        tasks.update(now.access().issuers(), &server, first_try.take().as_ref());
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
    /// Ends the tasks of issuers that are gone, and starts those of new ones. These hold
    /// `first_try` until they have tried the keys once.
    fn update(
        &mut self,
        issuers: &[Issuer],
        server: &ServerState,
        first_try: Option<&mpsc::Sender<()>>,
    ) {
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
                    namespaces: Arc::clone(&server.namespaces),
                };
                let task = tokio::spawn(loader.run(first_try.cloned()));
                self.0.push((Arc::clone(&issuer.keys), task));
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
    /// Their connections hear of withdrawn keys.
    namespaces: Arc<NamespaceRegistry>,
}

impl Loader {
    async fn run(self, first_try: Option<mpsc::Sender<()>>) {
        match &self.issuer.source {
            KeySource::Discovery(url) => self.keep_fetching(url, true, first_try).await,
            KeySource::Url(url) => self.keep_fetching(url, false, first_try).await,
            KeySource::File(path) => {
                // The settings have read it.
                drop(first_try);
                self.keep_reading(path).await;
            }
            KeySource::Fixed => {}
        }
    }

    async fn keep_fetching(
        &self,
        url: &str,
        is_discovery: bool,
        mut first_try: Option<mpsc::Sender<()>>,
    ) {
        let mut schedule = KeySchedule::new();
        loop {
            let loaded = match is_discovery {
                true => self.discover(url).await,
                false => fetch_keys(url).await,
            };
            self.handle_load(&mut schedule, self.clock.moment(), loaded);
            drop(first_try.take());
            self.wait(&schedule).await;
        }
    }

    /// Takes loaded keys into use, or keeps the known ones.
    fn handle_load(
        &self,
        schedule: &mut KeySchedule,
        now: ClockReading,
        loaded: Result<KeySet, LoadError>,
    ) {
        schedule.handle_load(now, loaded.is_ok());
        match loaded {
            Ok(keys) => {
                tracing::info!(issuer = self.issuer.name, "the issuer's keys are loaded");
                self.replace(keys, schedule.reload_from());
            }
            Err(error) => {
                // It may repeat what the issuer's server has said.
                let error = printable(&error.to_string(), SENTENCE);
                tracing::warn!(
                    issuer = self.issuer.name,
                    error,
                    "the issuer's keys were not loaded"
                );
                self.issuer.keys.keep(schedule.reload_from());
            }
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
            self.namespaces.recheck_access();
        }
    }

    /// Waits until the keys are due, or a demand loads them.
    async fn wait(&self, schedule: &KeySchedule) {
        let due = self.clock.instant(schedule.due());
        let mut demand = pin!(self.demand.notified());
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(due) => return,
                () = demand.as_mut() => {}
            }
            // A demand is heard from here on, also while this one is judged.
            demand.set(self.demand.notified());
            let now = self.clock.moment().wall;
            if schedule.loads_on_demand(now, self.issuer.keys.is_loaded()) {
                return;
            }
        }
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
                            "the issuer's keys are kept unchanged"
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

#[cfg(test)]
mod tests {
    use access::issuer::SERVICE_BUS_AUDIENCE;
    use access::jwt::{self, Error as JwtError};
    use access::{Grant, Locality, SigningKey};
    use endpoint::Mono;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    use serde_json::json;

    use super::*;

    const NAME: &str = "https://issuer.example";
    const START: u64 = 1_700_000_000_000;
    const MINUTE: u64 = 60_000;

    /// A loader whose loads come from the test, at moments that the test names.
    struct World {
        loader: Loader,
        schedule: KeySchedule,
    }

    impl World {
        fn new() -> Self {
            let issuer = Issuer {
                name: NAME.to_owned(),
                audiences: vec![SERVICE_BUS_AUDIENCE.to_owned()],
                leeway_ms: 0,
                grants: Grant::usual(),
                is_for_loopback: false,
                source: KeySource::Url(format!("{NAME}/keys")),
                keys: Arc::new(IssuerKeys::missing()),
            };
            let loader = Loader {
                issuer,
                demand: Arc::default(),
                clock: Clock::start(),
                namespaces: Arc::default(),
            };
            Self {
                loader,
                schedule: KeySchedule::new(),
            }
        }

        /// A load at this many milliseconds after the start.
        fn load(&mut self, after: u64, loaded: Result<KeySet, LoadError>) {
            let now = ClockReading {
                mono: Mono(after),
                wall: Wall(START + after),
            };
            self.loader.handle_load(&mut self.schedule, now, loaded);
        }

        /// What becomes of a token that `key` has signed.
        fn verify(&self, key: &SigningKey, after: u64) -> Result<(), JwtError> {
            let expires = (START + 24 * 60 * MINUTE) / 1_000;
            let claims = json!({"iss": NAME, "aud": SERVICE_BUS_AUDIENCE, "exp": expires});
            let token = key.sign(&claims, &SystemRandom::new()).unwrap();
            let issuers = std::slice::from_ref(&self.loader.issuer);
            jwt::verify(&token, issuers, Locality::Network, Wall(START + after)).map(drop)
        }
    }

    fn key() -> SigningKey {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        SigningKey::from_pkcs8(document.as_ref(), &random).unwrap()
    }

    fn no_set() -> Result<KeySet, LoadError> {
        KeySet::parse(b"<html>").map_err(|error| LoadError::Keys {
            place: format!("{NAME}/keys"),
            error,
        })
    }

    #[test]
    fn a_failed_load_keeps_the_known_keys_and_a_later_one_replaces_them() {
        let (first, second) = (key(), key());
        let mut world = World::new();
        world.load(0, no_set());
        assert_eq!(world.verify(&first, 0), Err(JwtError::KeysNotLoaded));
        world.load(2_000, Ok(first.key_set()));
        assert_eq!(world.verify(&first, 2_000), Ok(()));
        for minute in 10..20 {
            world.load(minute * MINUTE, no_set());
            assert_eq!(world.verify(&first, minute * MINUTE), Ok(()));
        }
        world.load(20 * MINUTE, Ok(second.key_set()));
        assert_eq!(world.verify(&second, 20 * MINUTE), Ok(()));
        assert_eq!(world.verify(&first, 20 * MINUTE), Err(JwtError::Signature));
    }

    #[test]
    fn a_token_of_an_unknown_key_waits_for_a_load_once_in_five_minutes() {
        let (known, unknown) = (key(), key());
        let mut world = World::new();
        world.load(0, Ok(known.key_set()));
        for (begin, loaded) in [(0, Ok(known.key_set())), (5 * MINUTE, no_set())] {
            for after in [0, MINUTE, 5 * MINUTE - 1] {
                let refused = world.verify(&unknown, begin + after);
                assert_eq!(refused, Err(JwtError::Signature), "no load is due");
            }
            let due = begin + 5 * MINUTE;
            let waits = world.verify(&unknown, due);
            assert_eq!(waits, Err(JwtError::KeysNotLoaded));
            let wall = Wall(START + due);
            assert!(world.schedule.loads_on_demand(wall, true));
            world.load(due, loaded);
            let refused = world.verify(&unknown, due);
            assert_eq!(refused, Err(JwtError::Signature), "it was tried");
            assert_eq!(world.verify(&known, due), Ok(()));
        }
    }
}
