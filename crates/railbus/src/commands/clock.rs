//! `railbus clock`: shows or moves the clock of a broker that was started with `--virtual-clock`,
//! or that of one of its namespaces.

use serde::Deserialize;
use serde_json::json;

use crate::arguments::{ClockArguments, ClockCommand};
use crate::command_error::CommandError;
use crate::commands::administration::namespace_path;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};
use crate::stdout;

/// The broker's response about its clock.
#[derive(Debug, Deserialize)]
struct ClockResponse {
    now: String,
    offset: String,
    frozen: bool,
}

/// Asks the broker and prints one line with its answer.
pub fn run(arguments: &ClockArguments) -> Result<(), CommandError> {
    let remote = Remote::new(&arguments.broker)?;
    let body = match arguments.command {
        ClockCommand::Show => None,
        ClockCommand::Advance { millis } => {
            let amount =
                jiff::SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
            Some(json!({ "advance": amount.to_string() }))
        }
        ClockCommand::Freeze { off } => Some(json!({ "freeze": !off })),
    };
    let path = arguments.namespace.as_deref().map_or_else(
        || "/$railbus/clock".to_owned(),
        |name| format!("{}/clock", namespace_path(name)),
    );
    let call = body.map_or_else(
        || Call::get(&path),
        |body| Call::post(&path, body.to_string()),
    );
    let face: ClockResponse = runtime()?.block_on(remote.call(call))?;
    stdout::print_line(format_args!(
        "now={} offset={} frozen={}",
        face.now, face.offset, face.frozen
    ))
}
