//! Bench: builds broker and load generator in the release profile and becomes the latter. A broker
//! that `--program` names is measured as it is, and then only the load generator is built.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{progress, setup, shell};

/// Builds load generator and broker, unless `arguments` name another one, and starts the former
/// with them. Returns only on failure.
///
/// # Errors
/// When something could not be installed, built or started.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    let mut build = shell::cargo(workspace, &workspace.target());
    build.args(["build", "--release", "--workspace", "--bin", "bench"]);
    if !is_program_given(arguments) {
        build.args(["--bin", "railbus"]);
    }
    progress::build(workspace, build)?;
    let program = workspace.target().join("release/bench");
    let error = Command::new(&program).args(arguments).exec();
    Err(error).with_context(|| format!("starting {}", program.display()))
}

fn is_program_given(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter();
    arguments.any(|it| it == "--program" || it.starts_with("--program="))
}
