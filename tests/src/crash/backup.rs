//! Backup: one that is made while all kinds are at work, and compared once it is restored.
//!
//! The ledgers' windows are open from before the request until after the answer, so a backup that
//! was answered has each message in a place that was possible in between. It stays whole when the
//! power is cut after its answer.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::book::Book;
use super::cycle::CONFIGURATION;
use super::kinds::{ENTITIES, Kinds, Windows};
use super::survey::Survey;
use super::traffic::QUEUE;
use crate::{Setup, broker, http};

/// A backup that was answered, and what has to be in it.
#[derive(Debug)]
pub(super) struct Backup {
    name: String,
    kinds: Kinds,
    book: Book,
}

impl Backup {
    /// Makes one; `None` when the broker ends before its answer.
    ///
    /// # Errors
    /// When the broker refuses, which it `may` if its disk fails.
    pub fn make(
        address: SocketAddr,
        name: String,
        windows: &Windows<'_>,
        book: &Mutex<&mut Book>,
        may_refuse: bool,
    ) -> Result<Option<Self>, String> {
        let locked = || book.lock().map_err(|_| "a client has panicked".to_owned());
        windows.open();
        locked()?.open_window();
        let body = format!(r#"{{"directory": "{name}"}}"#);
        let length = body.len();
        let request = format!(
            "POST /$railbus/backups HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let answer = http::exchange_or_end(address, &request).unwrap_or_default();
        let (kinds, book) = (windows.close(), locked()?.close_window());
        // The broker may have ended in the middle of the line.
        let is_whole = answer.contains("\r\n\r\n");
        match answer.starts_with("HTTP/1.1 201") && is_whole {
            true => Ok(Some(Self { name, kinds, book })),
            false if is_whole && !may_refuse => Err(format!("a backup is answered {answer}")),
            false => Ok(None),
        }
    }

    /// Restores it from `data` to a directory of its own, and compares what a broker has there.
    pub fn check(mut self, data: &Path) -> Result<(), String> {
        let setup = Setup::new()
            .configure(CONFIGURATION)
            .configure(ENTITIES)
            .environment("RUST_LOG", "info");
        let backup = data.join("backups").join(&self.name);
        let restored = Command::new(broker::program())
            .arg("restore")
            .arg(&backup)
            .arg("--data-dir")
            .arg(setup.data())
            .output();
        let restored = restored.map_err(|error| error.to_string())?;
        if !restored.status.success() {
            let said = String::from_utf8_lossy(&restored.stderr);
            return Err(format!("{} is not restored: {said}", self.name));
        }
        let broker = setup.start();
        let orders = Survey::begin(broker.address())?.messages(QUEUE)?;
        let numbers: Vec<_> = orders.iter().map(|seen| seen.number).collect();
        let compared = self
            .book
            .count(&numbers)
            .and_then(|()| self.kinds.count(broker.address()));
        broker.kill();
        compared.map_err(|text| format!("in the backup {}: {text}", self.name))
    }
}

/// Removes all backups of a data directory, whole or not.
pub(super) fn remove_all(data: &Path) -> Result<(), String> {
    let backups = data.join("backups");
    match backups.is_dir() {
        true => fs::remove_dir_all(backups).map_err(|error| error.to_string()),
        false => Ok(()),
    }
}
