//! Run: builds the broker and becomes it, with the example entities.
//!
//! The broker takes this process's place, so signals and the exit code are its own.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{console, progress, setup, shell};

/// Builds the broker and starts it; `arguments` go to `railbus serve`. Returns only on failure.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    build(workspace)?;
    let mut serve = Command::new(workspace.railbus());
    serve.current_dir(workspace.root()).arg("serve");
    if !arguments
        .iter()
        .any(|argument| argument.starts_with("--entities"))
    {
        serve.args(["--entities", "examples/Config.json"]);
    }
    serve.args(arguments);
    let error = serve.exec();
    Err(error).with_context(|| format!("starting {}", workspace.railbus().display()))
}

/// Builds the console and the broker in the release profile, and says how far RocksDB is.
///
/// # Errors
/// When the build fails.
pub fn build(workspace: &Workspace) -> Result<()> {
    console::build_if_possible(workspace)?;
    progress::build(workspace, build_command(workspace))
}

/// What builds the broker and nothing else. Its dependencies get the features that the whole
/// workspace asks for, so that a test run finds most of them compiled.
pub fn build_command(workspace: &Workspace) -> Command {
    let mut build = shell::cargo(workspace, &workspace.target());
    build.args(["build", "--release", "--workspace", "--bin", "railbus"]);
    build
}
