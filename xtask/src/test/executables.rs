//! Executables: the release build's test programs, found once and run by us rather than by cargo.
//!
//! Cargo would have to be asked for a part of the workspace to leave out the crates that need a
//! broker, and a part of the workspace resolves other features and compiles everything again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::build::release;
use super::logs;
use crate::pool;
use crate::shell::{self, Logged};
use crate::summary::{Outcome, Summary};
use crate::workspace::Workspace;

/// Test programs that run at once; each uses several threads itself.
const AT_ONCE: usize = 2;

/// The crate whose tests start brokers.
pub const END_TO_END: &str = "tests";

/// A test program.
#[derive(Clone, Debug)]
pub struct Executable {
    /// The package it tests.
    package: String,
    /// The package's folder, where cargo would start it.
    folder: PathBuf,
    program: PathBuf,
}

/// What cargo says about a thing it built, as far as it matters here.
#[derive(Deserialize)]
pub struct Artifact {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    /// The program, if it is one.
    #[serde(default)]
    pub executable: Option<PathBuf>,
    #[serde(default)]
    profile: Profile,
}

#[derive(Default, Deserialize)]
struct Profile {
    test: bool,
}

/// Runs the tests of every crate that needs no broker, one outcome per crate.
pub fn test(workspace: &Workspace, summary: &mut Summary) {
    let began = Instant::now();
    let mut packages = match packages(workspace) {
        Ok(packages) => packages,
        Err(error) => return summary.add(Outcome::broken("workspace", &error, began.elapsed())),
    };
    packages.retain(|executables| !is_suite(workspace, executables));
    let summary = Mutex::new(summary);
    pool::for_each(packages, AT_ONCE, |executables| {
        let outcome = package(workspace, &executables);
        summary
            .lock()
            .expect("no test run panics while it reports")
            .add(outcome);
    });
}

/// Runs the tests of the crate in `folder` with `environment` set.
pub fn suite(
    workspace: &Workspace,
    folder: &Path,
    environment: &[(&str, String)],
) -> Result<Logged> {
    let packages = packages(workspace)?;
    let executables = packages
        .into_iter()
        .find(|executables| executables[0].folder == folder);
    let executables = executables.with_context(|| format!("no tests in {}", folder.display()))?;
    // Its tests share queues.
    run(workspace, &executables, &["--test-threads=1"], environment)
}

/// The test programs of the release build that `targets`, options of cargo, select.
///
/// # Errors
/// When they cannot be built.
pub fn some(workspace: &Workspace, targets: &[String]) -> Result<Vec<Executable>> {
    let listing = listing(workspace, targets)?;
    Ok(listing.lines().filter_map(parse).collect())
}

/// Whether the crate lies in `interop/` and so waits for a broker.
fn is_suite(workspace: &Workspace, executables: &[Executable]) -> bool {
    executables[0]
        .folder
        .starts_with(workspace.root().join("interop"))
}

fn package(workspace: &Workspace, executables: &[Executable]) -> Outcome {
    let began = Instant::now();
    let name = format!("{} (release)", executables[0].package);
    let logged = environment(workspace, &executables[0].package)
        .and_then(|environment| run(workspace, executables, &[], &environment));
    match logged {
        Ok(logged) => Outcome::of(&name, &logged, began.elapsed()),
        Err(error) => Outcome::broken(&name, &error, began.elapsed()),
    }
}

/// Where brokers hand their logs in, for tests that start them.
fn environment(workspace: &Workspace, package: &str) -> Result<Vec<(&'static str, String)>> {
    if package != END_TO_END {
        return Ok(Vec::new());
    }
    let folder = logs::folder(workspace, package)?;
    Ok(vec![(
        "RAILBUS_LOGS",
        folder.to_string_lossy().into_owned(),
    )])
}

/// Runs `executables` one after the other. The output of those that failed comes last.
fn run(
    workspace: &Workspace,
    executables: &[Executable],
    arguments: &[&str],
    environment: &[(&str, String)],
) -> Result<Logged> {
    let mut all = Logged {
        success: true,
        code: None,
        output: String::new(),
    };
    let mut failures = String::new();
    for executable in executables {
        let mut command = executable.command(workspace);
        command.args(arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let logged = shell::logged(workspace, &executable.log_name(), command)?;
        let output = if logged.success {
            &mut all.output
        } else {
            &mut failures
        };
        output.push_str(&logged.output);
        all.success &= logged.success;
    }
    all.output.push_str(&failures);
    Ok(all)
}

impl Executable {
    /// Whether it is that of a file below `tests/` of the package in a folder of this name, or its
    /// unit tests, which are called `lib`.
    pub fn is(&self, folder: &str, program: &str) -> bool {
        let name = self.program.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let (name, _) = name.rsplit_once('-').unwrap_or((&name, ""));
        let wanted = if program == "lib" { folder } else { program };
        self.package == folder && name == wanted
    }

    /// What starts it where cargo would.
    pub fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--quiet").current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("RAILBUS_BIN", workspace.railbus());
        command
    }

    fn log_name(&self) -> String {
        let file = self
            .program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        format!("test-{}-{file}", self.package)
    }
}

/// What cargo says of the test programs that `targets` select, once they are built.
fn listing(workspace: &Workspace, targets: &[String]) -> Result<String> {
    let mut command = release(workspace, &workspace.target(), "test");
    command.args(["--no-run", "--quiet", "--message-format=json"]);
    command.args(targets);
    let built = command
        .output()
        .context("asking cargo for the test programs")?;
    if !built.status.success() {
        bail!(
            "the tests do not compile:\n{}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&built.stdout).into_owned())
}

/// The test programs of the release build, grouped by package.
fn packages(workspace: &Workspace) -> Result<Vec<Vec<Executable>>> {
    let listing = listing(workspace, &[])?;
    let mut packages: Vec<Vec<Executable>> = Vec::new();
    for executable in listing.lines().filter_map(parse) {
        match packages
            .iter_mut()
            .find(|group| group[0].folder == executable.folder)
        {
            Some(group) => group.push(executable),
            None => packages.push(vec![executable]),
        }
    }
    Ok(packages)
}

/// One line of cargo's messages, if it is about a test program.
fn parse(line: &str) -> Option<Executable> {
    let artifact = Artifact::parse(line).filter(|artifact| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    Some(Executable {
        package,
        folder,
        program: artifact.executable?,
    })
}

impl Artifact {
    /// One line of cargo's messages, if it is about something built.
    pub fn parse(line: &str) -> Option<Self> {
        let artifact: Self = serde_json::from_str(line).ok()?;
        (artifact.reason == "compiler-artifact").then_some(artifact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_other_artifacts() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/x/crates/store/Cargo.toml","profile":{"test":true},"executable":"/x/t/store-1"}"#;
        let executable = parse(test).expect("a test program");
        assert_eq!(executable.package, "store");
        assert_eq!(executable.program, Path::new("/x/t/store-1"));
        assert!(executable.is("store", "lib") && executable.is("store", "store"));
        assert!(!executable.is("store", "other") && !executable.is("rocks", "lib"));
        let library = test.replace("true", "false");
        assert!(parse(&library).is_none());
        assert!(parse(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
