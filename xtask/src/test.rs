//! Test: everything a reviewer would check, as named steps with one line each.
//!
//! The release build, RocksDB included, goes on in the background while the steps run that do
//! not need it. The suites of `interop/` come last, several at a time, each with a broker of its
//! own. At the very end the logs of all brokers are searched for secrets. The last line printed is
//! `N passed, N failed`.

use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::summary::{Outcome, Summary};
use crate::workspace::Workspace;
use crate::{console, setup};

mod build;
pub mod checks;
pub mod executables;
pub mod fuzz;
mod interop;
mod logs;
mod packages;
mod secrets;
mod step;

use build::Build;
use step::{Group, Step};

/// Runs the steps in `wanted`, or all of them; with `quick` only those that need no RocksDB and
/// take seconds. Suites named in `with` are told to run the server that they compare with. Fails
/// when one of them does.
pub fn run(workspace: &Workspace, quick: bool, wanted: &[String], with: &[String]) -> Result<()> {
    let steps = select(step::all(workspace)?, quick, wanted)?;
    if let Some(name) = with.iter().find(|name| !suites(&steps).contains(name)) {
        bail!("--with {name}: no suite of this name is to run");
    }
    prepare(&steps)?;
    if steps.iter().any(|step| step.group.needs_build()) {
        console::run(workspace)?;
    }
    logs::begin(workspace)?;
    let mut summary = Summary::default();
    thread::scope(|scope| {
        let needs_build = steps.iter().any(|step| step.group.needs_build());
        let build = needs_build.then(|| Build::start(workspace, scope));
        let suites = interop::prepare(workspace, scope, suites(&steps), with);
        in_turn(workspace, &steps, Group::Quick, &mut summary);
        in_turn(workspace, &steps, Group::Pure, &mut summary);
        let built = build.is_none_or(|build| build.finish(&mut summary));
        if built {
            in_turn(workspace, &steps, Group::Built, &mut summary);
            if steps.iter().any(|step| step.group == Group::Tests) {
                executables::test(workspace, &mut summary);
            }
            let mut heard = suites.run(workspace, &mut summary);
            if steps.iter().any(|step| step.group == Group::Tests) {
                heard.push(executables::END_TO_END.to_owned());
            }
            if steps.iter().any(|step| step.group == Group::Logs) || !heard.is_empty() {
                logs::search(workspace, &heard, &mut summary);
            }
        }
    });
    summary.print();
    if summary.is_failure() {
        bail!("the test run failed");
    }
    Ok(())
}

/// Prints the names that select steps.
pub fn list(workspace: &Workspace) -> Result<()> {
    for step in step::all(workspace)? {
        println!("{:<18} {}", step.name, step.about);
    }
    Ok(())
}

fn select(steps: Vec<Step>, quick: bool, wanted: &[String]) -> Result<Vec<Step>> {
    let unknown = wanted
        .iter()
        .find(|name| !steps.iter().any(|step| step.name == **name));
    if let Some(name) = unknown {
        bail!("there is no step {name:?}; `cargo xtask test --list` names them");
    }
    let is_wanted = |step: &Step| {
        (wanted.is_empty() || wanted.contains(&step.name)) && (!quick || step.group == Group::Quick)
    };
    Ok(steps.into_iter().filter(is_wanted).collect())
}

fn prepare(steps: &[Step]) -> Result<()> {
    if steps.iter().any(|step| step.group.needs_build()) {
        setup::for_testing()
    } else {
        setup::components()
    }
}

fn suites(steps: &[Step]) -> Vec<String> {
    let suites = steps.iter().filter(|step| step.group == Group::Interop);
    suites.map(|step| step.name.clone()).collect()
}

fn in_turn(workspace: &Workspace, steps: &[Step], group: Group, summary: &mut Summary) {
    for step in steps.iter().filter(|step| step.group == group) {
        let began = Instant::now();
        let outcome = match step.run(workspace) {
            Ok(checked) => Outcome::of(&step.name, &checked, began.elapsed()),
            Err(error) => Outcome::broken(&step.name, &error, began.elapsed()),
        };
        summary.add(outcome);
    }
}
