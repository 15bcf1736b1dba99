//! Console: builds the web console, which the build of the broker embeds.
//!
//! It takes Node.js and npm. What npm installs is pinned by a lockfile and checked against its
//! hashes. Nothing is done if no source is newer than what was built last.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{setup, shell};

/// Sources beside the folder `src`.
const SOURCES: [&str; 5] = [
    "compress.js",
    "index.html",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
];

/// Installs Node.js if it is missing, and builds the console.
///
/// # Errors
/// When a tool or a package could not be installed, or the console does not compile.
pub fn run(workspace: &Workspace) -> Result<()> {
    setup::for_console()?;
    build(workspace)
}

/// Builds the console if npm is there; otherwise says what the broker goes without.
///
/// # Errors
/// When the console does not compile.
pub fn build_if_possible(workspace: &Workspace) -> Result<()> {
    if shell::is_installed("npm") {
        return build(workspace);
    }
    println!("without the web console: npm is missing; `cargo xtask console` installs it");
    Ok(())
}

fn build(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root().join("console");
    if is_current(&folder)? {
        return Ok(());
    }
    for arguments in [
        &["ci", "--silent", "--no-audit", "--no-fund"][..],
        &["run", "--silent", "build"],
    ] {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder).args(arguments);
        shell::visible(npm)?;
    }
    Ok(())
}

/// Whether no source is newer than the last file of a build.
fn is_current(folder: &Path) -> Result<bool> {
    let Ok(built) = modified(&folder.join("dist/console.css.gz")) else {
        return Ok(false);
    };
    let mut newest = newest_below(&folder.join("src"))?;
    for source in SOURCES {
        newest = newest.max(modified(&folder.join(source))?);
    }
    Ok(newest < built)
}

fn newest_below(folder: &Path) -> Result<SystemTime> {
    let mut newest = modified(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let time = match path.is_dir() {
            true => newest_below(&path)?,
            false => modified(&path)?,
        };
        newest = newest.max(time);
    }
    Ok(newest)
}

fn modified(path: &Path) -> Result<SystemTime> {
    let metadata = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(metadata.modified()?)
}
