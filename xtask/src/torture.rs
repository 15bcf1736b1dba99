//! Torture: the tests that have no end, for as long as is wanted, in rounds.
//!
//! Each round is one seed of one task: some power cuts, some kills, some mutated connections. The
//! tasks take turns by the time that they have had. What was reached is in a file in the cache, so
//! the next run goes on where the last one ended, however it ended.

mod plan;
mod round;
mod state;
mod task;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::test::executables;
use crate::workspace::Workspace;
use crate::{setup, shell};
use plan::Plan;
use round::Programs;
use state::{State, StateFile};
use task::Task;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long rounds begin.
    pub hours: f64,
    /// Rounds at a time.
    pub at_once: usize,
    /// Forget what earlier runs reached.
    pub is_fresh: bool,
    /// Names of tasks; all of them if there is none.
    pub tasks: Vec<String>,
}

/// Runs rounds until the time is over, and prints a table.
///
/// # Errors
/// When a round found something, or nothing can be run.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let tasks = task::select(&options.tasks)?;
    let length = Duration::try_from_secs_f64(options.hours * 3_600.0)?;
    setup::for_building()?;
    let file = StateFile::at(&workspace.cached("torture")?);
    let state = match options.is_fresh {
        true => State::new(first_seed()),
        false => file.read()?.unwrap_or_else(|| State::new(first_seed())),
    };
    let programs = Programs::build(workspace, &tasks)?;
    let end = Instant::now() + length;
    let shared = Mutex::new(Plan::new(tasks, state));
    thread::scope(|scope| {
        for _ in 0..options.at_once.max(1) {
            scope.spawn(|| work(workspace, &programs, &file, &shared, end));
        }
    });
    let plan = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{}", plan.state().table(plan.tasks()));
    match plan.state().failures.len() {
        0 => Ok(()),
        found => bail!("{found} rounds found something"),
    }
}

/// Takes rounds until the time is over.
fn work(
    workspace: &Workspace,
    programs: &Programs,
    file: &StateFile,
    shared: &Mutex<Plan>,
    end: Instant,
) {
    while Instant::now() < end {
        let round = lock(shared).begin();
        let began = Instant::now();
        let outcome = round::run(workspace, programs, &round);
        let mut plan = lock(shared);
        let line = plan.end(&round, outcome, began.elapsed());
        println!("{line}");
        if let Err(error) = file.write(plan.state()) {
            println!("{error:#}");
        }
    }
}

/// What another worker has changed is whole, also if that worker panicked.
fn lock(shared: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seeds count from here, so that two machines do not repeat each other.
fn first_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs() % 1_000_000_000)
}

/// The test programs and fuzz targets that rounds start.
impl Programs {
    fn build(workspace: &Workspace, tasks: &[&'static Task]) -> Result<Self> {
        crate::run::build(workspace)?;
        let targets = task::targets(tasks);
        println!("building {}", targets.join(" "));
        let executables = match targets.is_empty() {
            true => Vec::new(),
            false => executables::some(workspace, &targets)?,
        };
        let fuzz = match tasks.iter().any(|task| task.is_fuzzing()) {
            true => crate::test::fuzz::build(workspace)?,
            false => Vec::new(),
        };
        Ok(Self { executables, fuzz })
    }
}

/// Where the output of a round goes.
fn log_of(workspace: &Workspace, name: &str, seed: u64) -> std::path::PathBuf {
    shell::log_path(workspace, &format!("torture-{name}-{seed}"))
}
