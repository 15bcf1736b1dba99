//! Logs: to stderr, filtered by `RUST_LOG`, `info` by default. stdout is for the ready line.
//!
//! The lines of the audit log go to a file of their own instead if one is configured: JSON, one
//! object a line, whatever `RUST_LOG` says.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use tracing::Level;
use tracing_subscriber::filter::{FilterExt, Targets, filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;

/// The target of lines about changes of entities, rules, policies, keys and the clock.
pub use server::AUDIT_TARGET as AUDIT;

/// Starts logging, with the audit log in `audit_file` if there is one.
///
/// # Errors
/// When the file cannot be opened.
pub fn start(format: LogFormat, audit_file: Option<&Path>) -> io::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let audit = match audit_file {
        Some(file) => {
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o600).open(file)?;
            let layer = fmt::layer().json().with_writer(Arc::new(file));
            Some(layer.with_filter(Targets::new().with_target(AUDIT, Level::INFO)))
        }
        None => None,
    };
    let is_elsewhere = audit.is_some();
    let is_here = filter_fn(move |line| !(is_elsewhere && line.target() == AUDIT));
    let log = fmt::layer().with_writer(io::stderr).with_target(false);
    let log = match format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => log.json().with_target(true).boxed(),
    };
    let log = log.with_filter(filter.and(is_here));
    tracing_subscriber::registry().with(audit).with(log).init();
    Ok(())
}
