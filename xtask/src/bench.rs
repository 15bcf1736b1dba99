//! Bench: builds broker and load generator in the release profile and becomes the latter.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{progress, run, setup};

/// Builds broker and load generator and starts the latter with `arguments`. Returns only on
/// failure.
///
/// # Errors
/// When something could not be installed, built or started.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    let mut build = run::build_command(workspace);
    build.args(["--bin", "bench"]);
    progress::build(workspace, build)?;
    let program = workspace.target().join("release/bench");
    let error = Command::new(&program).args(arguments).exec();
    Err(error).with_context(|| format!("starting {}", program.display()))
}
