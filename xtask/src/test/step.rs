//! Step: one named check of the test run, and what must have happened before it.

use anyhow::{Result, bail};

use super::{checks, fuzz, interop, logs, packages};
use crate::shell::Logged;
use crate::workspace::Workspace;

/// When a step can run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Group {
    /// In the inner loop: seconds, without RocksDB.
    Quick,
    /// Without RocksDB, but too slow for the inner loop.
    Pure,
    /// After the release build.
    Built,
    /// The release build's test programs.
    Tests,
    /// After the release build, beside other suites, with a broker.
    Interop,
    /// After everything that starts brokers; it follows each of those unasked.
    Logs,
}

impl Group {
    /// Whether the release build has to be there.
    pub fn needs_build(self) -> bool {
        matches!(self, Self::Built | Self::Tests | Self::Interop | Self::Logs)
    }
}

/// What a step does.
type Action = fn(&Workspace) -> Result<Logged>;

/// A named check.
#[derive(Debug)]
pub struct Step {
    /// Selects it on the command line.
    pub name: String,
    /// One line for `--list`.
    pub about: String,
    /// When it can run.
    pub group: Group,
    action: Option<Action>,
}

impl Step {
    fn new(name: &str, group: Group, about: &str, action: Action) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            group,
            action: Some(action),
        }
    }

    /// A step that becomes several lines of the summary, run by a module of its own.
    fn many(name: &str, group: Group, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            group,
            action: None,
        }
    }

    /// Does the check.
    pub fn run(&self, workspace: &Workspace) -> Result<Logged> {
        match self.action {
            Some(action) => action(workspace),
            None => bail!("{} is more than one check", self.name),
        }
    }
}

/// All steps, in the order in which they run.
pub fn all(workspace: &Workspace) -> Result<Vec<Step>> {
    let mut steps = vec![
        Step::new("fmt", Group::Quick, "rustfmt", checks::format),
        Step::new(
            "tidy",
            Group::Quick,
            "the project's own rules",
            checks::tidy,
        ),
        Step::new(
            "clippy",
            Group::Quick,
            "lints of the pure crates",
            checks::clippy_pure,
        ),
        Step::new(
            "unit",
            Group::Quick,
            "tests of the pure crates",
            checks::test_pure,
        ),
        Step::new(
            "doc",
            Group::Pure,
            "documentation of the pure crates",
            checks::documentation,
        ),
        Step::new(
            "deny",
            Group::Pure,
            "bans, licences and sources of dependencies",
            checks::deny,
        ),
        Step::new(
            "alerts",
            Group::Pure,
            "each alert rule on recorded series",
            checks::alerts,
        ),
        Step::new(
            "fuzz",
            Group::Pure,
            "every fuzz target for a short time",
            fuzz::smoke,
        ),
        Step::new(
            "clippy-all",
            Group::Built,
            "lints of every crate",
            checks::clippy_all,
        ),
        Step::new(
            "packages",
            Group::Built,
            "packages of the program, each used where nothing else is",
            packages::check,
        ),
        Step::many("workspace", Group::Tests, "tests of every crate in release"),
    ];
    for name in interop::names(workspace)? {
        let folder = interop::folder(workspace, &name);
        let folder = folder.strip_prefix(workspace.root())?.display();
        let about = format!("{folder} against a running broker");
        steps.push(Step::many(&name, Group::Interop, &about));
    }
    let about = "no log of any broker of the run holds a secret";
    steps.push(Step::many(logs::NAME, Group::Logs, about));
    Ok(steps)
}
