//! Package: the program as it is installed, without debug information, at a path of the caller's.
//!
//! The functions that run lie side by side in it, which halves the memory of a broker at rest: the
//! system maps 64 KiB around each page of code that is touched. Valgrind watches a broker that
//! starts and stops, and one with some load; the linker then places the functions of a start first
//! and those of messages next. An ordinary build does without this step and is the same otherwise.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::broker::{Broker, Plan};
use crate::workspace::Workspace;
use crate::{run, setup, shell};

/// Names the list to `crates/railbus/build.rs`.
const ORDER: &str = "RAILBUS_ORDER";
/// Enough for whatever is done now and then to be done.
const MESSAGES: &str = "3000";

/// Builds the program and writes it to `out`. It keeps the usual order of functions where it cannot
/// be watched or the linker takes no list, as GNU's on Arm.
///
/// # Errors
/// When a tool is missing, or the program could not be built or written.
pub fn run(workspace: &Workspace, out: &Path) -> Result<()> {
    setup::for_packaging()?;
    run::build(workspace)?;
    if let Err(error) = link_in_order(workspace) {
        println!("the usual order of functions: {error:#}");
        run::build(workspace)?;
    }
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(out).arg(workspace.railbus());
    shell::visible(strip)
}

/// Links the program again, in the order that a run of it shows.
fn link_in_order(workspace: &Workspace) -> Result<()> {
    let list = workspace.target().join("order.txt");
    fs::write(&list, order(workspace)?).with_context(|| format!("writing {}", list.display()))?;
    let mut build = run::build_command(workspace);
    build.env(ORDER, &list);
    shell::visible(build)
}

/// The functions in the order in which they are to lie, one a line.
fn order(workspace: &Workspace) -> Result<String> {
    let known = symbols(&workspace.railbus())?;
    let start = watch(workspace, |_| Ok(()))?;
    let load = watch(workspace, |broker| load(workspace, broker))?;
    let start: BTreeSet<_> = start.intersection(&known).collect();
    let load: BTreeSet<_> = load.intersection(&known).collect();
    let more: Vec<_> = load.difference(&start).collect();
    println!(
        "{} functions of a start, {} more of messages",
        start.len(),
        more.len()
    );
    let names = start.iter().chain(more);
    Ok(names.map(|name| format!("{name}\n")).collect())
}

/// The names of all functions that are in `program`.
fn symbols(program: &Path) -> Result<BTreeSet<String>> {
    let listed = Command::new("nm")
        .arg("--defined-only")
        .arg(program)
        .output();
    let listed = listed.context("starting nm")?;
    if !listed.status.success() {
        bail!("nm ended with {}", listed.status);
    }
    let text = String::from_utf8_lossy(&listed.stdout);
    let names = text.lines().filter_map(function);
    Ok(names.map(str::to_owned).collect())
}

/// The name in a line of `nm`, if it is a function's.
fn function(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    matches!(kind, "t" | "T" | "w" | "W").then(|| words.next())?
}

/// Starts a broker, does `work` with it, stops it, and returns the names of the functions that ran.
fn watch(
    workspace: &Workspace,
    work: impl FnOnce(&Broker) -> Result<()>,
) -> Result<BTreeSet<String>> {
    let folder = workspace.temporary()?;
    let profile = folder.path().join("profile");
    let broker = Broker::start(&Plan {
        program: watched(workspace, folder.path(), &profile)?,
        data: folder.path().join("data"),
        config: None,
        entities: None,
        log: folder.path().join("log"),
        log_filter: None,
    })?;
    work(&broker)?;
    let ended = broker.stop()?;
    if !ended.success() {
        bail!("the broker ended with {ended}");
    }
    Ok(names(&shell::read_log(&profile)?))
}

/// A program in `folder` that becomes the broker under Valgrind, which writes `profile`.
fn watched(workspace: &Workspace, folder: &Path, profile: &Path) -> Result<PathBuf> {
    let program = folder.join("watched");
    let script = format!(
        "#!/bin/sh\nexec valgrind --quiet --tool=callgrind --demangle=no --callgrind-out-file='{}' '{}' \"$@\"\n",
        profile.display(),
        workspace.railbus().display()
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    Ok(program)
}

/// Messages are sent, received and completed.
fn load(workspace: &Workspace, broker: &Broker) -> Result<()> {
    let mut bench = Command::new(workspace.railbus());
    bench.args(["bench", "--create", "--messages", MESSAGES]);
    bench.args(["--connection-string", &broker.ready().connection_string]);
    shell::visible(bench)
}

/// The names in a profile of callgrind's. Each stands behind its number, once; a function that
/// calls itself has one more for each depth.
fn names(profile: &str) -> BTreeSet<String> {
    let lines = profile
        .lines()
        .filter(|line| line.starts_with("fn=") || line.starts_with("cfn="));
    let named = lines.filter_map(|line| line.split_once(") "));
    let plain = named.map(|(_, name)| name.split('\'').next().unwrap_or(name));
    plain.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_each_function_once() {
        let profile = "fl=(1) a.c\nfn=(7) first\n12 3\ncfn=(9) _ZN5other17h00E\ncalls=1 2\nfn=(7)\nfn=(8) first'2\n";
        let names = names(profile);
        assert_eq!(Vec::from_iter(names), ["_ZN5other17h00E", "first"]);
    }

    #[test]
    fn functions_are_told_from_other_symbols() {
        let lines = [
            "0000000000001000 T main",
            "0000000000002000 d data",
            "                 U puts",
        ];
        assert_eq!(lines.map(function), [Some("main"), None, None]);
    }
}
