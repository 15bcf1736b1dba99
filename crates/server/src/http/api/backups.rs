//! `POST /$railbus/backups`: makes a copy of the store while it goes on working.
//!
//! `{"directory": "monday"}` is answered with the path of the backup once it is on stable storage
//! and holds everything that was acknowledged before. Backups lie in one directory of the broker's
//! machine, which the configuration names; the request chooses only the name of the backup in it.
//! With `"namespace": "shop"` it is a file with what that namespace alone has, which `POST` to
//! `/$railbus/namespaces/NAME/restore` gives to a namespace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{fs, io, thread};

use broker::{EntityError, LoadTarget, NamespaceOrder};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use store::BackupError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::namespaces::{self, ApiError};
use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::log::audit::with_changes;
use crate::namespaces::namespace_backup;
use crate::namespaces::namespace_backup::{Exported, Loading};
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::backups::Backups;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};

/// More than enough for a request's body.
const BODY_BYTES: usize = 8 << 10;
/// What a backup's name has at most; no file system takes much more.
const NAME_BYTES: usize = 200;

/// A request's body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupRequest {
    directory: PathBuf,
    /// The one that alone is in it.
    namespace: Option<String>,
}

/// An answer's body.
#[derive(Debug, Serialize)]
struct BackupResponse {
    directory: PathBuf,
    bytes: u64,
    /// Of a backup of the whole store.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// Of a backup of a namespace.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    namespace: Option<NamespaceCounts>,
    took: String,
}

/// What is in the backup of a namespace.
#[derive(Debug, Serialize)]
struct NamespaceCounts {
    entities: usize,
    messages: u64,
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
    #[error(transparent)]
    Namespace(#[from] ApiError),
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
            Self::Namespace(error) => error.status(),
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
pub async fn respond(request: Request<Incoming>, server: &Arc<NamespaceView>) -> Response {
    let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let wanted: BackupRequest = match parse_object(&body) {
        Ok(wanted) => wanted,
        Err(error) => {
            let message = format!("the body is not {{\"directory\": \"...\"}}: {error}");
            return answer::error(StatusCode::BAD_REQUEST, &message);
        }
    };
    let change = wanted.namespace.as_ref().map(|namespace| {
        let directory = wanted.directory.display();
        format!("back up namespace {namespace} to {directory}")
    });
    let made = match server.backups.clone() {
        Some(backups) => {
            let server = Arc::clone(server);
            on_own_thread(move |runtime| {
                let made = make(&backups, wanted, &server, runtime);
                match &made {
                    Ok(made) => {
                        tracing::info!(directory = %made.directory.display(), made.bytes, "a backup was made");
                    }
                    Err(refusal) => tracing::warn!("a backup was not made: {refusal}"),
                }
                made
            })
            .await
        }
        None => Err(Error::None),
    };
    match made {
        Ok(made) => match serde_json::to_string(&made) {
            Ok(body) => {
                let response = answer::json(StatusCode::CREATED, body);
                match change {
                    Some(change) => with_changes(response, vec![change]),
                    None => response,
                }
            }
            Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        },
        Err(refusal) => answer::error(refusal.status(), &refusal.to_string()),
    }
}

/// Runs on a thread of its own, since it may take long and reads need the shared ones. It goes on
/// if its client has gone.
async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce(&Handle) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (answer, made) = oneshot::channel();
    let runtime = Handle::current();
    let thread = thread::Builder::new().name("backup".to_owned());
    let started = thread.spawn(move || drop(answer.send(work(&runtime))));
    started.map_err(Error::Thread)?;
    made.await.unwrap_or(Err(Error::Fault))
}

fn make(
    backups: &Backups,
    wanted: BackupRequest,
    server: &NamespaceView,
    runtime: &Handle,
) -> Result<BackupResponse, Error> {
    let started = Instant::now();
    let directory = place(backups, &wanted.directory)?;
    let (bytes, position, namespace) = match wanted.namespace {
        None => {
            let made = backups.backup.back_up(&directory)?;
            (made.bytes, Some(made.position), None)
        }
        Some(name) => {
            let made = runtime.block_on(export(backups, name, &directory, server))?;
            let counts = NamespaceCounts {
                entities: made.entities,
                messages: made.messages,
            };
            (made.bytes, None, Some(counts))
        }
    };
    let took = jiff::SignedDuration::try_from(started.elapsed()).unwrap_or_default();
    Ok(BackupResponse {
        directory,
        bytes,
        position,
        namespace,
        took: took.to_string(),
    })
}

async fn export(
    backups: &Backups,
    name: String,
    target: &Path,
    server: &NamespaceView,
) -> Result<Exported, Error> {
    let Ok(_one) = backups.namespaces.try_lock() else {
        return Err(BackupError::Busy.into());
    };
    if fs::symlink_metadata(target).is_ok() {
        let path = target.display().to_string();
        return Err(BackupError::Exists { path }.into());
    }
    let shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await;
    let mut shard = shard.map_err(ApiError::from)?;
    let exported = namespace_backup::export(&mut shard, name, target, &*backups.backup).await;
    Ok(exported.map_err(ApiError::from)?)
}

/// Gives a namespace what a backup of one has. It is made if it is not there, and answered with a
/// connection string to the endpoint then.
pub async fn restore(
    name: String,
    backup: PathBuf,
    endpoint: String,
    server: &Arc<NamespaceView>,
) -> Response {
    let change = format!("restore namespace {name} from backup {}", backup.display());
    let restored = match server.backups.clone() {
        Some(backups) => {
            let server = Arc::clone(server);
            on_own_thread(move |runtime| {
                let path = place(&backups, &backup)?;
                Ok(runtime.block_on(load(name, &path, &endpoint, &server))?)
            })
            .await
        }
        None => Err(Error::None),
    };
    match restored {
        Ok((status, json)) => with_changes(answer::value(status, &json), vec![change]),
        Err(refusal) => answer::error(refusal.status(), &refusal.to_string()),
    }
}

async fn load(
    name: String,
    path: &Path,
    endpoint: &str,
    server: &NamespaceView,
) -> Result<(StatusCode, Json), ApiError> {
    if !path.exists() {
        return Err(ApiError::NoBackup(path.display().to_string()));
    }
    namespace_backup::check(path).map_err(namespace_backup::Error::from)?;
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    // What cannot be made is refused before anything is loaded.
    let definition = match namespaces::describe(&mut shard, name.clone()).await {
        Ok(_) => None,
        Err(ApiError::Entity(EntityError::NoNamespace(_))) => {
            let definition = namespaces::new(server, name.clone(), Vec::new(), None)?;
            definition.check()?;
            Some(definition)
        }
        Err(error) => return Err(error),
    };
    let loading = Loading::load(&mut shard, path).await?;
    let load = loading.0;
    let end = |target| NamespaceOrder::EndLoad { load, target };
    let ended = match definition {
        None => {
            let order = end(LoadTarget::Existing(name));
            let ended = namespaces::ask(&mut shard, order).await;
            ended.map(|_| (StatusCode::OK, json!({})))
        }
        Some(definition) => {
            let order = |definition| end(LoadTarget::New(definition));
            namespaces::create(&mut shard, definition, order, endpoint).await
        }
    };
    if ended.is_err() {
        loading.release(&mut shard).await;
    }
    ended
}

/// Where a backup of a name is, or will be.
fn place(backups: &Backups, wanted: &Path) -> Result<PathBuf, Error> {
    let unusable = |error| Error::Directory(backups.directory.clone(), error);
    fs::create_dir_all(&backups.directory).map_err(unusable)?;
    let home = fs::canonicalize(&backups.directory).map_err(unusable)?;
    let found = resolve_target(&home, &backups.directory, wanted);
    found.ok_or(Error::Place(home))
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
