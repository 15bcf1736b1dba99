//! Errors of configuration files, with file, line and path.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where in a file a value stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceLocation {
    pub file: PathBuf,
    /// From 1.
    pub line: Option<usize>,
    /// From the file's root, such as `queues[2].lock-duration`; empty for the file itself.
    pub path: String,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        Ok(())
    }
}

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file} cannot be read: {error}")]
    Read {
        file: PathBuf,
        error: std::io::Error,
    },
    #[error("{name} is `{value}`, but must be {expected}")]
    Argument {
        name: &'static str,
        value: String,
        expected: &'static str,
    },
    #[error("{location}: {message}")]
    Value {
        location: SourceLocation,
        message: String,
    },
}

/// The text of `file`, without a byte-order mark.
pub fn read(file: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::Read {
        file: file.to_owned(),
        error,
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// The line of a byte of `text`, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    text.bytes()
        .take(byte)
        .filter(|&byte| byte == b'\n')
        .count()
        + 1
}
