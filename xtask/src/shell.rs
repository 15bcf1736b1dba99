//! Shell: running other programs, with their output in a log file or passed through.
//!
//! A logged program is silent while it runs; its log is shown when it fails, so that a long test
//! run reads as one line per step.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// What a logged program left behind.
#[derive(Debug)]
pub struct Logged {
    /// Whether it exited with zero.
    pub success: bool,
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Everything it printed.
    pub output: String,
}

/// A cargo command that builds into `target`.
pub fn cargo(workspace: &Workspace, target: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_TERM_COLOR", "never");
    forget_outer_cargo(&mut command);
    command
}

/// Takes out what the cargo that runs us put into the environment. A child must not inherit it: the
/// build scripts of some dependencies compile again when one of these variables changes.
fn forget_outer_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_outer = text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_");
        if is_outer || text == "RUSTFLAGS" {
            command.env_remove(&name);
        }
    }
}

/// Where the log of the step `name` lies.
pub fn log_path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.logs().join(format!("{name}.log"))
}

/// The log file of the step `name`, empty.
fn log_file(workspace: &Workspace, name: &str) -> Result<(PathBuf, File)> {
    let path = log_path(workspace, name);
    fs::create_dir_all(workspace.logs())?;
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    Ok((path, file))
}

/// Sends both of `command`'s outputs to `log`.
fn redirect(command: &mut Command, log: &File) -> Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?);
    Ok(())
}

/// Runs `command` with its output in the log of the step `name`.
pub fn logged(workspace: &Workspace, name: &str, mut command: Command) -> Result<Logged> {
    let (path, log) = log_file(workspace, name)?;
    redirect(&mut command, &log)?;
    let status = command
        .status()
        .with_context(|| format!("starting {}", describe(&command)))?;
    Ok(Logged {
        success: status.success(),
        code: status.code(),
        output: read_log(&path)?,
    })
}

/// A log's text; a client's output need not be UTF-8.
pub fn read_log(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs `command` in the open and fails when it does.
pub fn visible(mut command: Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {}", describe(&command)))?;
    if !status.success() {
        bail!("{} ended with {status}", describe(&command));
    }
    Ok(())
}

/// Whether a program called `name` is on the path.
pub fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// `command` as one would type it.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
