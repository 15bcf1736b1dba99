//! `railbus clock`: shows or moves the clock of a broker that was started with `--virtual-clock`.

use hyper::Method;
use serde::Deserialize;
use serde_json::json;

use crate::arguments::{ClockArguments, ClockCommand};
use crate::connection_string::ConnectionString;
use crate::refusal::Refusal;
use crate::remote;

const PATH: &str = "/$railbus/clock";

/// What the broker says about its clock.
#[derive(Debug, Deserialize)]
struct Face {
    now: String,
    offset: String,
    frozen: bool,
}

/// Asks the broker and prints one line with its answer.
pub fn run(arguments: &ClockArguments) -> Result<(), Refusal> {
    let broker = match &arguments.connection_string {
        Some(text) => ConnectionString::parse(text)?,
        None => ConnectionString::development(),
    };
    let (method, body) = match arguments.command {
        ClockCommand::Show => (Method::GET, None),
        ClockCommand::Advance { millis } => {
            let amount =
                jiff::SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
            (Method::POST, Some(json!({ "advance": amount.to_string() })))
        }
        ClockCommand::Freeze { off } => (Method::POST, Some(json!({ "freeze": !off }))),
    };
    let body = body.map(|body| body.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Refusal::System)?;
    let face: Face = runtime.block_on(remote::call(&broker, method, PATH, body))?;
    println!(
        "now={} offset={} frozen={}",
        face.now, face.offset, face.frozen
    );
    Ok(())
}
