//! Fuzz: builds the fuzz targets, which are a workspace of their own, and runs each for a time.
//!
//! New inputs that reach new code are kept in the cache, so every run starts where the last one
//! ended. An input that breaks a target is kept as well, and its path is in the output.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::executables::Artifact;
use crate::pool;
use crate::shell::{self, Logged};
use crate::workspace::Workspace;
use crate::{setup, shell::cargo};

/// Seconds for each target in the normal test run.
const SMOKE_SECONDS: u64 = 10;
/// Targets that run at once.
const AT_ONCE: usize = 2;

/// A built fuzz target.
#[derive(Clone, Debug)]
pub struct Target {
    name: String,
    program: PathBuf,
}

/// Every target for a short time.
///
/// # Errors
/// When the targets cannot be built or started.
pub fn smoke(workspace: &Workspace) -> Result<Logged> {
    fuzz(workspace, SMOKE_SECONDS, &[])
}

/// The targets called `wanted`, or all of them, for `seconds` each.
///
/// # Errors
/// When there is no such target, or one of them found something.
pub fn run(workspace: &Workspace, seconds: u64, wanted: &[String]) -> Result<()> {
    let logged = fuzz(workspace, seconds, wanted)?;
    println!("{}", logged.output);
    if !logged.success {
        bail!("fuzzing found something");
    }
    Ok(())
}

fn fuzz(workspace: &Workspace, seconds: u64, wanted: &[String]) -> Result<Logged> {
    setup::for_building()?;
    let targets = select(build(workspace)?, wanted)?;
    let results = Mutex::new(Vec::new());
    pool::for_each(targets, AT_ONCE, |target| {
        let result = target.run(workspace, seconds);
        results
            .lock()
            .expect("no target panics while it reports")
            .push((target.name, result));
    });
    let results = results
        .into_inner()
        .expect("no target panics while it reports");
    summarise(results)
}

/// One line for each target that held, the output of each that did not, and the counts.
fn summarise(results: Vec<(String, Result<Logged>)>) -> Result<Logged> {
    let (mut output, mut failed) = (String::new(), 0);
    let count = results.len();
    for (name, result) in results {
        let logged = result?;
        if logged.success {
            output.push_str(&format!("{name}: nothing found\n"));
        } else {
            failed += 1;
            output.push_str(&format!("{name}:\n{}\n", logged.output));
        }
    }
    output.push_str(&format!("{} passed, {failed} failed\n", count - failed));
    Ok(Logged {
        success: failed == 0,
        code: None,
        output,
    })
}

fn select(targets: Vec<Target>, wanted: &[String]) -> Result<Vec<Target>> {
    let is_there = |name: &&String| targets.iter().any(|target| target.name == **name);
    if let Some(unknown) = wanted.iter().find(|name| !is_there(name)) {
        bail!("there is no fuzz target {unknown:?}");
    }
    let is_wanted = |target: &Target| wanted.is_empty() || wanted.contains(&target.name);
    Ok(targets.into_iter().filter(is_wanted).collect())
}

/// Builds with the coverage counters that `fuzz/.cargo/config.toml` asks for.
///
/// # Errors
/// When the targets do not compile.
pub fn build(workspace: &Workspace) -> Result<Vec<Target>> {
    let mut command = cargo(workspace, &workspace.cached("target-fuzz")?);
    command.current_dir(workspace.root().join("fuzz"));
    command.args(["build", "--release", "--locked", "--message-format=json"]);
    let built = command.output().context("starting cargo")?;
    if !built.status.success() {
        bail!(
            "the fuzz targets do not compile:\n{}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
    let listing = String::from_utf8_lossy(&built.stdout);
    let programs = listing.lines().filter_map(Artifact::parse);
    Ok(programs
        .filter_map(|artifact| artifact.executable.and_then(Target::new))
        .collect())
}

impl Target {
    fn new(program: PathBuf) -> Option<Self> {
        let name = program.file_name()?.to_string_lossy().into_owned();
        Some(Self { name, program })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What runs it for `seconds`.
    ///
    /// # Errors
    /// When there is no room for its corpus.
    pub fn command(&self, workspace: &Workspace, seconds: u64) -> Result<Command> {
        let found = workspace.cached(&format!("fuzz/{}/found", self.name))?;
        let corpus = workspace.cached(&format!("fuzz/{}/corpus", self.name))?;
        let mut command = Command::new(&self.program);
        command.arg(format!("-max_total_time={seconds}"));
        command.args([
            "-max_len=4096",
            "-timeout=10",
            "-rss_limit_mb=1024",
            "-print_final_stats=1",
        ]);
        command.arg(format!("-artifact_prefix={}/", found.display()));
        command.arg(corpus);
        Ok(command)
    }

    fn run(&self, workspace: &Workspace, seconds: u64) -> Result<Logged> {
        let command = self.command(workspace, seconds)?;
        shell::logged(workspace, &format!("fuzz-{}", self.name), command)
    }
}
