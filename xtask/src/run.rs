//! Run: builds the broker and becomes it, with the example entities.
//!
//! The broker takes this process's place, so signals and the exit code are its own.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{setup, shell};

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

/// Builds every program of the workspace in the release profile.
///
/// Always the whole workspace: a selection of packages could resolve other features for a
/// dependency of RocksDB's bindings, and compile RocksDB once more.
pub fn build(workspace: &Workspace) -> Result<()> {
    let target = workspace.target();
    if !target.join("release").exists() {
        println!("building for the first time: RocksDB takes about 25 minutes of processor time");
    }
    let mut build = shell::cargo(workspace, &target);
    build.args(["build", "--release", "--workspace", "--all-targets"]);
    shell::visible(build)
}
