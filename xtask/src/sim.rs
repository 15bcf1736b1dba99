//! Sim: a run of the simulator, as long as wanted and from any seed.
//!
//! It is the simulator's own test in the release profile, told by the environment how far to go,
//! so that what it finds and what the normal test run finds have the same names.

use anyhow::Result;

use crate::shell;
use crate::workspace::Workspace;

/// The file and the test that makes the run.
const BROKERS: [&str; 2] = ["simulation", "nothing_accepted_is_lost_whatever_breaks"];
const DISK: [&str; 2] = [
    "disk",
    "nothing_acknowledged_is_lost_whatever_the_disk_does",
];

/// Runs the simulator for a number of `operations` from a seed on. With a seed alone it is one run,
/// as a violation names it. With `disk` the journal is on a model of one. Fails when there is a
/// violation.
///
/// # Errors
/// When the simulator cannot be built, or finds something.
pub fn run(
    workspace: &Workspace,
    operations: Option<u64>,
    seed: Option<u64>,
    disk: bool,
) -> Result<()> {
    let [file, test] = if disk { DISK } else { BROKERS };
    let mut command = shell::cargo(workspace, &workspace.quick_target());
    command.args(["test", "--quiet", "--release", "--package", "sim"]);
    command.args(["--test", file, "--", "--exact", "--nocapture", test]);
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
