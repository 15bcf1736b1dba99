//! Sim: a run of the simulator, as long as wanted and from any seed.
//!
//! It is the simulator's own test in the release profile, told by the environment how far to go,
//! so that what it finds and what the normal test run finds have the same names.

use anyhow::Result;

use crate::shell;
use crate::workspace::Workspace;

/// The test that makes the run.
const TEST: &str = "nothing_accepted_is_lost_whatever_breaks";

/// Runs the simulator for a number of `operations` from a seed on. With a seed alone it is one run,
/// as a violation names it. Fails when there is a violation.
///
/// # Errors
/// When the simulator cannot be built, or finds something.
pub fn run(workspace: &Workspace, operations: Option<u64>, seed: Option<u64>) -> Result<()> {
    let mut command = shell::cargo(workspace, &workspace.quick_target());
    command.args(["test", "--quiet", "--release", "--package", "sim"]);
    command.args(["--test", "simulation", "--", "--exact", "--nocapture", TEST]);
    let wishes = [
        ("RAILBUS_SIM_OPERATIONS", operations),
        ("RAILBUS_SIM_SEED", seed),
    ];
    for (name, wish) in wishes {
        match wish {
            Some(number) => command.env(name, number.to_string()),
            None => command.env_remove(name),
        };
    }
    shell::visible(command)
}
