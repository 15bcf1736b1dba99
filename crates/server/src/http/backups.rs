//! `POST /$railbus/backups`: makes a copy of the store while it goes on working.
//!
//! `{"directory": "monday"}` is answered with the path of the backup once it is on stable storage
//! and holds everything that was acknowledged before. Backups lie in one directory of the broker's
//! machine, which the configuration names; the request chooses only the name of the backup in it.

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io, thread};

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};
use store::BackupError;
use tokio::sync::oneshot;

use super::answer::{self, Response};
use super::body;
use crate::backups::Backups;
use crate::namespace_view::NamespaceView;

/// More than enough for a request's body.
const BODY_BYTES: usize = 8 << 10;
/// What a backup's name has at most; no file system takes much more.
const NAME_BYTES: usize = 200;

/// A request's body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupRequest {
    directory: PathBuf,
}

/// An answer's body.
#[derive(Debug, Serialize)]
struct BackupResponse {
    directory: PathBuf,
    bytes: u64,
    position: u64,
    took: String,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("this broker has no directory for backups")]
    None,
    #[error(
        "directory: a backup must be directly in {}, with a name of letters, digits, `.`, `-` and `_` that does not begin with `.`",
        .0.display()
    )]
    Place(PathBuf),
    #[error("the directory of backups, {}, cannot be used: {}", .0.display(), .1)]
    Directory(PathBuf, io::Error),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    #[error("the backup ended because of an internal error")]
    Fault,
}

impl Error {
    fn status(&self) -> StatusCode {
        match self {
            Self::Place(_) => StatusCode::BAD_REQUEST,
            Self::None
            | Self::Backup(
                BackupError::Exists { .. }
                | BackupError::Busy
                | BackupError::OtherFileSystem { .. },
            ) => StatusCode::CONFLICT,
            Self::Backup(BackupError::NearlyFull) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Backup(BackupError::Store(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Backup(BackupError::Io(_))
            | Self::Directory(..)
            | Self::Thread(_)
            | Self::Fault => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Answers a request. The caller has the right to manage.
pub async fn respond(request: Request<Incoming>, server: &NamespaceView) -> Response {
    let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let wanted: BackupRequest = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => {
            let message = format!("the body is not {{\"directory\": \"...\"}}: {error}");
            return answer::error(StatusCode::BAD_REQUEST, &message);
        }
    };
    let made = match server.backups.clone() {
        Some(backups) => make_on_own_thread(backups, wanted).await,
        None => Err(Error::None),
    };
    match made {
        Ok(made) => match serde_json::to_string(&made) {
            Ok(body) => answer::json(StatusCode::CREATED, body),
            Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        },
        Err(refusal) => answer::error(refusal.status(), &refusal.to_string()),
    }
}

/// Runs on a thread of its own, since it may take long and reads need the shared ones. It goes on
/// if its client has gone.
async fn make_on_own_thread(
    backups: Backups,
    wanted: BackupRequest,
) -> Result<BackupResponse, Error> {
    let (answer, made) = oneshot::channel();
    let thread = thread::Builder::new().name("backup".to_owned());
    let started = thread.spawn(move || {
        let made = make(&backups, &wanted.directory);
        match &made {
            Ok(made) => {
                tracing::info!(directory = %made.directory.display(), made.bytes, "a backup was made");
            }
            Err(refusal) => tracing::warn!("a backup was not made: {refusal}"),
        }
        drop(answer.send(made));
    });
    started.map_err(Error::Thread)?;
    made.await.unwrap_or(Err(Error::Fault))
}

fn make(backups: &Backups, wanted: &Path) -> Result<BackupResponse, Error> {
    let started = Instant::now();
    let unusable = |error| Error::Directory(backups.directory.clone(), error);
    fs::create_dir_all(&backups.directory).map_err(unusable)?;
    let home = fs::canonicalize(&backups.directory).map_err(unusable)?;
    let directory = resolve_target(&home, &backups.directory, wanted)
        .ok_or_else(|| Error::Place(home.clone()))?;
    let made = backups.backup.back_up(&directory)?;
    let took = jiff::SignedDuration::try_from(started.elapsed()).unwrap_or_default();
    Ok(BackupResponse {
        directory,
        bytes: made.bytes,
        position: made.position,
        took: took.to_string(),
    })
}

/// Where `wanted` is in `home`, which may also be called `alias`. Nothing is looked up for it, so
/// no link leads elsewhere.
fn resolve_target(home: &Path, alias: &Path, wanted: &Path) -> Option<PathBuf> {
    let name = wanted.file_name()?.to_str()?;
    let parent = wanted.parent()?;
    let is_home = parent.as_os_str().is_empty() || parent == home || parent == alias;
    (is_home && is_plain(name)).then(|| home.join(name))
}

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.starts_with('.') && name.len() <= NAME_BYTES && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, expected: Option<&str>) {
        let found = resolve_target(
            Path::new("/srv/backups"),
            Path::new("backups"),
            wanted.as_ref(),
        );
        assert_eq!(found.as_deref(), expected.map(Path::new), "{wanted}");
    }

    #[test]
    fn a_backup_is_in_the_directory_of_backups_by_whatever_way_it_is_named() {
        for wanted in [
            "monday-1.a_b",
            "/srv/backups/monday-1.a_b",
            "backups/monday-1.a_b",
        ] {
            check(wanted, Some("/srv/backups/monday-1.a_b"));
        }
    }

    #[test]
    fn a_backup_is_nowhere_else() {
        for wanted in [
            "",
            ".",
            "..",
            "/",
            "../monday",
            "/etc/monday",
            "/srv/backups",
            "/srv/backups/a/b",
            "/srv/backups/../monday",
            "a/../../b",
            "a/..",
            ".hidden",
            "a b",
            "a\0b",
            "tür",
            "a\\b",
        ] {
            check(wanted, None);
        }
        check(
            &"a".repeat(NAME_BYTES),
            Some(&format!("/srv/backups/{}", "a".repeat(NAME_BYTES))),
        );
        check(&"a".repeat(NAME_BYTES + 1), None);
    }
}
