//! `railbus backup`: has a running broker make a copy of its store, on the broker's machine.

use std::path::PathBuf;

use hyper::Method;
use serde::Deserialize;
use serde_json::json;

use crate::arguments::BackupArguments;
use crate::connection_string::ConnectionString;
use crate::refusal::Refusal;
use crate::remote;

const PATH: &str = "/$railbus/backups";

/// What the broker says about a backup.
#[derive(Debug, Deserialize)]
struct Made {
    directory: PathBuf,
    bytes: u64,
    position: u64,
    took: String,
}

/// Asks the broker, waits until the backup is made and prints one line about it.
pub fn run(arguments: &BackupArguments) -> Result<(), Refusal> {
    let broker = match &arguments.connection_string {
        Some(text) => ConnectionString::parse(text)?,
        None => ConnectionString::development(),
    };
    let body = json!({ "directory": arguments.directory }).to_string();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Refusal::System)?;
    let call = remote::call(&broker, Method::POST, PATH, Some(body));
    let Made {
        directory,
        bytes,
        position,
        took,
    } = runtime.block_on(call)?;
    println!(
        "directory={} bytes={bytes} position={position} took={took}",
        directory.display()
    );
    Ok(())
}
