//! Rescue: a second name for every log file of RocksDB while the store is being opened.
//!
//! Only stores in format 1 have any with content. Recovery deletes the log that it has read, even
//! if it had to stop at a damaged record in the middle. The links keep such a log for an analysis;
//! they are removed once the witness confirms the recovery.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Links to the log files of the database.
pub(crate) struct Rescue {
    folder: PathBuf,
}

impl Rescue {
    /// Links every log file of `database` into `folder`. What is there already stays: names of
    /// log files are never used twice. Where links cannot be made, as on a full disk, the
    /// opening goes on without: the witness is checked all the same.
    pub fn link(database: &Path, folder: PathBuf) -> Self {
        let rescue = Self { folder };
        if let Err(error) = rescue.try_link(database) {
            tracing::warn!(%error, "damaged log files would not be kept");
        }
        rescue
    }

    fn try_link(&self, database: &Path) -> io::Result<()> {
        for log in log_files(database)? {
            fs::create_dir_all(&self.folder)?;
            let name = log.file_name().expect("a listed file has a name");
            match fs::hard_link(&log, self.folder.join(name)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Forgets the links: nothing was lost.
    pub fn release(self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps the links under a name of their own: the loss was accepted.
    pub fn keep(self, position: u64) -> io::Result<()> {
        let kept = self
            .folder
            .with_file_name(format!("rescue-after-{position}"));
        match fs::rename(&self.folder, kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn log_files(database: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(database) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut logs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            logs.push(path);
        }
    }
    Ok(logs)
}
