//! Site: where the bench's brokers run: the program, the folder, the queues.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use xtask::broker::{Broker, Plan};
use xtask::workspace::Workspace;

use super::group;
use super::place::Place;
use load::receiver::SettleMode;

pub use load::message_sections::SESSION;

/// The queue of every row but one.
pub const QUEUE: &str = "bench";
/// Queues of the rows about features: duplicate detection, forwarding and its end, sessions.
pub const ONCE: &str = "bench-once";
pub const START: &str = "bench-start";
pub const END: &str = "bench-end";
pub const SESSIONS: &str = "bench-sessions";
/// The queue of the largest messages that a broker takes.
pub const HUGE: &str = "bench-huge";
/// Queues of the row with many.
pub const QUEUES: usize = 50;
/// All queues that every broker has.
pub const OWN: usize = QUEUES + 6;
/// The development key, which works on loopback only. (`docs/configuration.md`)
const KEY: (&str, &str) = ("RootManageSharedAccessKey", "SAS_KEY_VALUE");
/// The file with what a broker has besides these.
const ENTITIES: &str = "entities.json";
/// The settings of every broker.
const SETTINGS: &str = "railbus.toml";
/// All clients come from one address, and in one row there are ten thousand.
const LIMITS: &str = "[limits]\nconnections = 20000\nconnections-per-address = 20000\n";
/// `f_type` of a file system in memory, where a sync costs nothing. [statfs(2)]
const TMPFS: u64 = 0x0102_1994;

/// What every broker of a run shares.
#[derive(Clone)]
pub struct Site {
    program: PathBuf,
    folder: Rc<TempDir>,
}

/// A broker on a fresh data directory, which goes with it.
pub struct Fresh {
    /// The process.
    pub broker: Broker,
    /// Its data directory and log.
    pub data: TempDir,
}

impl Site {
    /// Makes a folder for the run under `parent` (or in the cache) and writes the settings of the
    /// brokers, which are `program`.
    pub fn prepare(workspace: &Workspace, parent: Option<&Path>, program: PathBuf) -> Result<Self> {
        let folder = match parent {
            Some(parent) => {
                tempfile::tempdir_in(parent).with_context(|| format!("in {}", parent.display()))?
            }
            None => workspace.temporary()?,
        };
        if u64::try_from(rustix::fs::statfs(folder.path())?.f_type) == Ok(TMPFS) {
            eprintln!(
                "{} is in memory: durable figures mean nothing there",
                folder.path().display()
            );
        }
        std::fs::write(folder.path().join(SETTINGS), settings())?;
        Ok(Self {
            program,
            folder: Rc::new(folder),
        })
    }

    /// A folder for the disk's own measurement.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a broker on an empty data directory.
    pub fn fresh(&self) -> Result<Fresh> {
        let data = tempfile::tempdir_in(self.folder.path())?;
        let broker = self.start(data.path())?;
        Ok(Fresh { broker, data })
    }

    /// Starts a broker on an empty data directory, with more `entities`, in JSON.
    pub fn fresh_with(&self, entities: &str) -> Result<Fresh> {
        let data = tempfile::tempdir_in(self.folder.path())?;
        std::fs::write(data.path().join(ENTITIES), entities)?;
        let broker = self.start(data.path())?;
        Ok(Fresh { broker, data })
    }

    /// Starts a broker on an empty data directory, with more settings, in TOML.
    pub fn fresh_configured(&self, more: &str) -> Result<Fresh> {
        self.fresh_of(settings() + more)
    }

    /// The same with settings of the whole broker, which come before all tables.
    pub fn fresh_set(&self, first: &str) -> Result<Fresh> {
        self.fresh_of(format!("{first}\n{}", settings()))
    }

    fn fresh_of(&self, settings: String) -> Result<Fresh> {
        let data = tempfile::tempdir_in(self.folder.path())?;
        std::fs::write(data.path().join(SETTINGS), settings)?;
        let broker = self.start(data.path())?;
        Ok(Fresh { broker, data })
    }

    /// Starts a broker on what lies in `data`.
    pub fn start(&self, data: &Path) -> Result<Broker> {
        let entities = data.join(ENTITIES);
        let own = data.join(SETTINGS);
        let config = match own.is_file() {
            true => own,
            false => self.folder.path().join(SETTINGS),
        };
        Broker::start(&Plan {
            program: self.program.clone(),
            data: store(data),
            config: Some(config),
            entities: entities.is_file().then_some(entities),
            log: log(data),
            log_filter: Some(group::LOG_FILTER),
        })
    }
}

impl Fresh {
    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        address(&self.broker)
    }

    /// Where it is and how one signs in.
    pub fn place(&self) -> Result<Place> {
        Ok(Place {
            address: self.address()?,
            sasl: Place::plain(KEY.0, KEY.1),
            settle_mode: SettleMode::Second,
            prefix: "",
            pid: self.broker.pid(),
        })
    }

    /// Where it writes its log.
    pub fn log(&self) -> PathBuf {
        log(self.data.path())
    }

    /// Stops it; one that cannot stop has not been measured well.
    pub fn stop(self) -> Result<()> {
        let status = self.broker.stop()?;
        ensure!(status.success(), "the broker ended with {status}");
        Ok(())
    }
}

/// What `program` calls itself, and its place.
///
/// # Errors
/// When it is not there, or is no broker.
pub fn version(program: &Path) -> Result<String> {
    let place = program.display();
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("starting {place}"))?;
    let version = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && version.starts_with("railbus "),
        "{place} is not a Railbus: it says `{}` of its version",
        version.trim()
    );
    Ok(format!("{} at {place}", version.trim()))
}

/// Where a broker keeps its messages.
pub fn store(data: &Path) -> PathBuf {
    data.join("data")
}

fn log(data: &Path) -> PathBuf {
    data.join("log")
}

/// Where `broker` listens.
pub fn address(broker: &Broker) -> Result<SocketAddr> {
    let ready = broker.ready();
    Ok(SocketAddr::new(ready.host.parse()?, ready.port))
}

/// The queue of the `number`th pair.
pub fn pair(number: usize) -> String {
    format!("pair-{number:02}")
}

/// A `railbus.toml` with the queues of every row, large enough to hold a row's backlog.
fn settings() -> String {
    let plain = (0..QUEUES)
        .map(pair)
        .chain([QUEUE.to_owned(), END.to_owned()]);
    let plain = plain.map(|name| (name, String::new()));
    let featured = [
        (ONCE, "requires-duplicate-detection = true\n".to_owned()),
        (START, format!("forward-to = \"{END}\"\n")),
        (SESSIONS, "requires-session = true\n".to_owned()),
        (HUGE, "max-message-size = \"100MiB\"\n".to_owned()),
    ];
    let featured = featured.map(|(name, feature)| (name.to_owned(), feature));
    let table = |(name, feature)| {
        format!(
            "[[queues]]\nname = \"{name}\"\nlock-duration = \"PT5M\"\nmax-size-in-megabytes = 81920\n{feature}"
        )
    };
    let queues = plain.chain(featured).map(table);
    std::iter::once(LIMITS.to_owned())
        .chain(queues)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_broker_is_not_measured() {
        let error = version(Path::new("/bin/true")).expect_err("no broker");
        assert!(
            error
                .to_string()
                .starts_with("/bin/true is not a Railbus: ")
        );
        assert!(version(Path::new("/nowhere/railbus")).is_err());
    }

    #[test]
    fn every_broker_has_so_many_queues() {
        assert_eq!(settings().matches("[[queues]]").count(), OWN);
    }
}
