//! Standard output: what a command answers.
//!
//! A reader that closes the pipe before the end, as `head` does, has what it wants: the command
//! goes on without it and ends as it would have ended.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use crate::command_error::CommandError;

/// Prints a line.
pub fn print_line(line: impl Display) -> Result<(), CommandError> {
    print(format!("{line}\n"))
}

/// Prints text as it is.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_ref())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::Write {
            path: PathBuf::from("stdout"),
            error,
        }),
        _ => Ok(()),
    }
}
