//! `railbus backup`: makes a running broker copy its store, on the broker's machine.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use crate::arguments::BackupArguments;
use crate::command_error::CommandError;
use crate::remote::{Call, Remote};
use crate::runtime::runtime;

const PATH: &str = "/$railbus/backups";

/// The broker's response to a backup.
#[derive(Debug, Deserialize)]
struct BackupResponse {
    directory: PathBuf,
    bytes: u64,
    position: u64,
    took: String,
}

/// Asks the broker, waits until the backup is made and prints one line about it.
pub fn run(arguments: &BackupArguments) -> Result<(), CommandError> {
    let remote = Remote::new(&arguments.broker)?;
    let body = json!({ "directory": arguments.directory }).to_string();
    let BackupResponse {
        directory,
        bytes,
        position,
        took,
    } = runtime()?.block_on(remote.call(Call::post(PATH, body)))?;
    println!(
        "directory={} bytes={bytes} position={position} took={took}",
        directory.display()
    );
    Ok(())
}
