//! `railbus backup`: makes a running broker copy its store, on the broker's machine.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use crate::arguments::BackupArguments;
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};
use crate::stdout;

const PATH: &str = "/$railbus/backups";

/// The broker's response to a backup.
#[derive(Debug, Deserialize)]
struct BackupResponse {
    directory: PathBuf,
    bytes: u64,
    position: Option<u64>,
    entities: Option<u64>,
    messages: Option<u64>,
    took: String,
}

/// Asks the broker, waits until the backup is made and prints one line about it.
pub fn run(arguments: &BackupArguments) -> Result<(), CommandError> {
    let remote = Remote::new(&arguments.broker)?;
    let mut body = json!({ "directory": arguments.directory });
    if let Some(namespace) = &arguments.namespace {
        body["namespace"] = namespace.as_str().into();
    }
    let call = Call::post(PATH, body.to_string());
    let made: BackupResponse = runtime()?.block_on(remote.call(call))?;
    let mut line = format!(
        "directory={} bytes={}",
        made.directory.display(),
        made.bytes
    );
    for (name, count) in [
        ("position", made.position),
        ("entities", made.entities),
        ("messages", made.messages),
    ] {
        if let Some(count) = count {
            line += &format!(" {name}={count}");
        }
    }
    stdout::print_line(format_args!("{line} took={}", made.took))
}
