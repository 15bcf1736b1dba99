//! Round: starts the program of a task with its seed and waits for it, but not for ever.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::log_of;
use super::plan::{Outcome, Round};
use super::task::{Action, Test};
use crate::shell;
use crate::test::executables::Executable;
use crate::test::fuzz::Target;
use crate::workspace::Workspace;

/// After this long a round hangs, which is a finding.
const LIMIT: Duration = Duration::from_secs(1_800);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What rounds start.
#[derive(Debug)]
pub struct Programs {
    pub executables: Vec<Executable>,
    pub fuzz: Vec<Target>,
}

/// Runs a round. What it printed is kept if it found something.
///
/// # Errors
/// When it cannot be run, or does not end.
pub fn run(workspace: &Workspace, programs: &Programs, round: &Round) -> Result<Outcome> {
    let mut command = match &round.task.action {
        Action::Test(test) => programs.test(workspace, test)?,
        Action::Fuzz => programs
            .target(round.task.name)?
            .command(workspace, round.task.round)?,
    };
    let variables = round.variables.iter();
    command.envs(variables.map(|(name, value)| (name, value.to_string())));
    let path = log_of(workspace, round.task.name, round.seed);
    fs::create_dir_all(workspace.logs())?;
    let log = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let held = wait(command)?;
    let output = shell::read_log(&path)?;
    let count = round.task.count(&output);
    if held {
        fs::remove_file(&path)?;
    }
    // A test that was not found ends well, having done nothing.
    let held = held && !output.contains("running 0 tests");
    Ok(Outcome { held, count })
}

/// Whether it ends with 0.
fn wait(mut command: Command) -> Result<bool> {
    let described = shell::describe(&command);
    let mut child = command
        .spawn()
        .with_context(|| format!("starting {described}"))?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if began.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("no end after {LIMIT:?}");
        }
        thread::sleep(LOOK);
    }
}

impl Programs {
    fn test(&self, workspace: &Workspace, test: &Test) -> Result<Command> {
        let found = self
            .executables
            .iter()
            .find(|executable| executable.is(test.folder, test.program));
        let found = found
            .with_context(|| format!("there is no test {} in {}", test.program, test.folder))?;
        let mut command = found.command(workspace);
        command.args(["--nocapture", "--test-threads=1", test.filter]);
        Ok(command)
    }

    fn target(&self, name: &str) -> Result<&Target> {
        let found = self.fuzz.iter().find(|target| target.name() == name);
        found.with_context(|| format!("there is no fuzz target {name}"))
    }
}
