//! Order: which functions of the broker lie side by side.
//!
//! A start runs functions of 2.8 MiB. Strewn over 19 they have the system map most of
//! these, since it maps 64 KiB around each page that is touched. So the linker is given a list
//! (`crates/railbus/build.rs`): first what a start runs, then what messages take besides.
//! This makes that list. Valgrind watches a broker that starts and stops, then one with some load.
//!
//! Names of C++ and C hold as long as RocksDB's version does; those of Rust change with the
//! compiler, with dependencies and their features, and some with the code. A name that is gone is
//! passed over, so an old list does less and never harm.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::broker::{Broker, Plan};
use crate::workspace::Workspace;
use crate::{run, setup, shell};

/// Where the list is.
const LIST: &str = "crates/railbus/order.txt";
/// Enough for whatever is done now and then to be done.
const MESSAGES: &str = "3000";
const HEAD: &str =
    "# Functions in the order in which they are linked. `cargo xtask order` makes this list.\n";

/// Makes the list anew, of a release build.
///
/// # Errors
/// When something could not be installed, built, started or watched, or when this is not the
/// machine whose names the list has.
pub fn run(workspace: &Workspace) -> Result<()> {
    if !cfg!(all(
        target_arch = "x86_64",
        target_os = "linux",
        target_env = "gnu"
    )) {
        bail!("the list is that of x86-64 Linux with glibc");
    }
    setup::for_order()?;
    run::build(workspace)?;
    let known = symbols(&workspace.railbus())?;
    let start = watch(workspace, |_| Ok(()))?;
    let load = watch(workspace, |broker| load(workspace, broker))?;
    let start: BTreeSet<_> = start.intersection(&known).collect();
    let load: BTreeSet<_> = load.intersection(&known).collect();
    let mut text = HEAD.to_owned();
    for name in start.iter().chain(load.difference(&start)) {
        text.push_str(name);
        text.push('\n');
    }
    fs::write(workspace.root().join(LIST), text).with_context(|| format!("writing {LIST}"))?;
    let more = load.difference(&start).count();
    println!(
        "{LIST}: {} functions of a start, {more} of messages",
        start.len()
    );
    Ok(())
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
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(text
        .lines()
        .filter_map(function)
        .map(str::to_owned)
        .collect())
}

/// The name in a line of `nm`, if it is a function's.
fn function(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    matches!(kind, "t" | "T" | "w" | "W").then(|| words.next())?
}

/// Starts a broker, does `what` with it, stops it, and returns the names of the functions that ran.
fn watch(
    workspace: &Workspace,
    what: impl FnOnce(&Broker) -> Result<()>,
) -> Result<BTreeSet<String>> {
    let folder = workspace.temporary()?;
    let (watched, told) = (folder.path().join("watched"), folder.path().join("told"));
    fs::write(&watched, script(&workspace.railbus(), &told))?;
    fs::set_permissions(&watched, fs::Permissions::from_mode(0o700))?;
    let broker = Broker::start(&Plan {
        program: watched,
        data: folder.path().join("data"),
        config: None,
        entities: None,
        log: folder.path().join("log"),
        log_filter: None,
    })?;
    what(&broker)?;
    let ended = broker.stop()?;
    if !ended.success() {
        bail!("the broker ended with {ended}");
    }
    Ok(names(&shell::read_log(&told)?))
}

/// A program that becomes `program` under Valgrind.
fn script(program: &Path, told: &Path) -> String {
    format!(
        "#!/bin/sh\nexec valgrind --quiet --tool=callgrind --demangle=no --callgrind-out-file='{}' '{}' \"$@\"\n",
        told.display(),
        program.display()
    )
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
