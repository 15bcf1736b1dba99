//! Data directory: a permanent one that is created if missing, or a temporary one that is deleted
//! at exit.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::command_error::CommandError;

/// Where a broker keeps its store, as configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Location {
    Lasting(PathBuf),
    Ephemeral,
}

/// A directory that is there.
#[derive(Debug)]
pub enum DataDirectory {
    Lasting(PathBuf),
    /// Removed on drop, so it has to outlive the store.
    Ephemeral(TempDir),
}

impl DataDirectory {
    /// Makes the directory if need be.
    pub fn open(location: Location) -> Result<Self, CommandError> {
        match location {
            Location::Lasting(path) => match std::fs::create_dir_all(&path) {
                Ok(()) => Ok(Self::Lasting(path)),
                Err(error) => Err(CommandError::DataDirectory { path, error }),
            },
            Location::Ephemeral => {
                let directory = tempfile::Builder::new().prefix("railbus-").tempdir();
                let refused = |error| CommandError::DataDirectory {
                    path: std::env::temp_dir(),
                    error,
                };
                Ok(Self::Ephemeral(directory.map_err(refused)?))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Self::Lasting(path) => path,
            Self::Ephemeral(directory) => directory.path(),
        }
    }
}
