//! Interop: the suites of other people's clients, each against a broker of its own.
//!
//! A suite is a folder of `interop/` with an executable `run`, which a crate of the workspace has
//! for use by hand only; so is each folder of `interop/frameworks/`. `setup` installs the client,
//! while the broker is still compiling; exit code 3 says that the language is missing on this
//! machine, which is reported by name and fails only under `CI=true`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{executables, logs};
use crate::broker::{Broker, Plan, Ready};
use crate::pool;
use crate::shell::{self, Logged};
use crate::summary::{Outcome, Summary};
use crate::workspace::Workspace;

/// Suites that run at once; they mostly wait for locks to expire.
const AT_ONCE: usize = 3;
/// The folder of `interop/` whose folders are suites: a language each, with its frameworks.
const FRAMEWORKS: &str = "frameworks";
/// Tells a suite to run the server that it compares with.
const WITH_SERVER: &str = "RAILBUS_WITH_SERVER";
/// What `setup` says when the machine lacks the language.
pub const MISSING: i32 = 3;

/// A suite and how its set-up went.
struct Suite {
    name: String,
    with_server: bool,
    setup: Result<Logged>,
}

/// The suites that are being set up.
pub struct Suites<'scope> {
    handle: ScopedJoinHandle<'scope, Vec<Suite>>,
}

/// The names of all suites. Those of frameworks begin with the name of their folder.
pub fn names(workspace: &Workspace) -> Result<Vec<String>> {
    let interop = workspace.root().join("interop");
    let mut names = suites_within(&interop)?;
    let frameworks = suites_within(&interop.join(FRAMEWORKS))?;
    names.extend(frameworks.iter().map(|name| format!("{FRAMEWORKS}-{name}")));
    names.sort();
    Ok(names)
}

/// The folders in `folder` that have a suite.
fn suites_within(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        if entry.path().join("run").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Starts setting up the suites called `names`, one after the other.
pub fn prepare<'scope, 'env>(
    workspace: &'env Workspace,
    scope: &'scope Scope<'scope, 'env>,
    names: Vec<String>,
    with: &'env [String],
) -> Suites<'scope> {
    let set_up = move |name: String| {
        let with_server = with.contains(&name);
        Suite {
            setup: set_up(workspace, &name, with_server),
            name,
            with_server,
        }
    };
    Suites {
        handle: scope.spawn(move || names.into_iter().map(set_up).collect()),
    }
}

impl Suites<'_> {
    /// Runs the suites that could be set up, and returns their names.
    pub fn run(self, workspace: &Workspace, summary: &mut Summary) -> Vec<String> {
        let suites = self
            .handle
            .join()
            .expect("the set-up thread does not panic");
        let able = suites.iter().filter(|suite| suite.is_able());
        let able = able.map(|suite| suite.name.clone()).collect();
        let summary = Mutex::new(summary);
        pool::for_each(suites, AT_ONCE, |suite| {
            let outcome = suite.run(workspace);
            summary
                .lock()
                .expect("no suite panics while it reports")
                .add(outcome);
        });
        able
    }
}

impl Suite {
    fn is_able(&self) -> bool {
        self.setup.as_ref().is_ok_and(|setup| setup.success)
    }

    fn run(self, workspace: &Workspace) -> Outcome {
        let began = Instant::now();
        let result = match self.setup {
            Ok(setup) if setup.code == Some(MISSING) => {
                return Outcome::not_run(&self.name, setup.output.trim(), is_ci());
            }
            Ok(setup) if !setup.success => Ok(setup),
            Ok(_) => against_a_broker(workspace, &self.name, self.with_server),
            Err(error) => Err(error),
        };
        match result {
            Ok(logged) => Outcome::of_suite(&self.name, &logged, began.elapsed()),
            Err(error) => Outcome::broken(&self.name, &error, began.elapsed()),
        }
    }
}

fn set_up(workspace: &Workspace, name: &str, with_server: bool) -> Result<Logged> {
    let setup = folder(workspace, name).join("setup");
    if is_crate(workspace, name) || !setup.is_file() {
        return Ok(Logged {
            success: true,
            code: Some(0),
            output: String::new(),
        });
    }
    let mut command = script(&setup);
    if with_server {
        command.env(WITH_SERVER, "1");
    }
    shell::logged(workspace, &format!("setup-{name}"), command)
}

/// Runs the suite, then sees to it that the broker it used can still stop as it should.
fn against_a_broker(workspace: &Workspace, name: &str, with_server: bool) -> Result<Logged> {
    let data = workspace.temporary()?;
    let plan = plan(workspace, name, data.path())?;
    let broker = Broker::start(&plan)?;
    let authority = export_authority(workspace, data.path())?;
    let mut environment = environment(broker.ready(), &authority);
    if with_server {
        environment.push((WITH_SERVER, "1".to_owned()));
    }
    let mut logged = execute(workspace, name, environment)?;
    let status = broker.stop()?;
    if !status.success() {
        logged.success = false;
        logged
            .output
            .push_str(&format!("\nthe broker ended with {status}\n"));
    }
    Ok(logged)
}

/// Writes down what clients of the broker have to trust.
fn export_authority(workspace: &Workspace, data: &Path) -> Result<PathBuf> {
    let file = data.join("ca.pem");
    let mut command = Command::new(workspace.railbus());
    command
        .args(["ca", "export", "--data-dir"])
        .arg(data.join("data"));
    let status = command.arg("--out").arg(&file).status()?;
    ensure!(status.success(), "`railbus ca export` ended with {status}");
    Ok(file)
}

fn execute(
    workspace: &Workspace,
    name: &str,
    mut environment: Vec<(&'static str, String)>,
) -> Result<Logged> {
    environment.extend(logs::environment(workspace, name)?);
    if is_crate(workspace, name) {
        return executables::suite(workspace, &folder(workspace, name), &environment);
    }
    let mut command = script(&folder(workspace, name).join("run"));
    command.envs(environment);
    shell::logged(workspace, name, command)
}

/// What a suite is told about its broker.
fn environment(ready: &Ready, authority: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("RAILBUS_CA", authority.to_string_lossy().into_owned()),
        ("RAILBUS_CONNECTION_STRING", ready.connection_string.clone()),
        ("RAILBUS_HOST", ready.host.clone()),
        ("RAILBUS_PORT", ready.port.to_string()),
    ]
}

fn plan(workspace: &Workspace, name: &str, data: &Path) -> Result<Plan> {
    let interop = workspace.root().join("interop");
    Ok(Plan {
        program: workspace.railbus(),
        data: data.join("data"),
        config: Some(interop.join("railbus.toml")),
        entities: Some(interop.join("Config.json")),
        log: logs::folder(workspace, name)?.join("main.log"),
        // Whatever could be logged is, so that it can be searched.
        log_filter: Some("trace"),
    })
}

fn script(path: &Path) -> Command {
    let mut command = Command::new("bash");
    command.arg(path);
    command
}

/// Where the suite called `name` lies.
pub fn folder(workspace: &Workspace, name: &str) -> PathBuf {
    let interop = workspace.root().join("interop");
    let framework = name
        .strip_prefix(FRAMEWORKS)
        .and_then(|rest| rest.strip_prefix('-'));
    match framework {
        Some(language) => interop.join(FRAMEWORKS).join(language),
        None => interop.join(name),
    }
}

/// Whether the suite is a crate of the workspace, compiled with everything else.
fn is_crate(workspace: &Workspace, name: &str) -> bool {
    folder(workspace, name).join("Cargo.toml").is_file()
}

/// Whether a missing language is a failure.
pub fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
