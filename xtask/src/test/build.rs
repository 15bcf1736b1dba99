//! Build: the release build of the whole workspace, in the background.

use std::path::Path;
use std::process::Command;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::progress::RocksDb;
use crate::shell::{self, Logged};
use crate::summary::{Outcome, Summary};
use crate::workspace::Workspace;

/// How often a long build says that it is alive.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// The step's name in the summary, and of its log.
const NAME: &str = "build";

/// A build that may still be running.
pub struct Build<'scope> {
    workspace: &'scope Workspace,
    began: Instant,
    handle: ScopedJoinHandle<'scope, Result<Logged>>,
}

impl<'scope> Build<'scope> {
    /// Starts building everything that the release steps use.
    pub fn start<'env>(workspace: &'env Workspace, scope: &'scope Scope<'scope, 'env>) -> Self {
        let began = Instant::now();
        println!(
            "building the release workspace in the background; RocksDB takes long the first time"
        );
        Self {
            workspace,
            began,
            handle: scope.spawn(move || build(workspace)),
        }
    }

    /// Waits for the end and says whether there is something to test.
    pub fn finish(self, summary: &mut Summary) -> bool {
        let mut rocksdb = RocksDb::new(&self.workspace.target());
        let mut noted = Instant::now();
        while !self.handle.is_finished() {
            thread::sleep(Duration::from_millis(50));
            if noted.elapsed() >= NOTE_EVERY {
                noted = Instant::now();
                let note = rocksdb.note(noted);
                println!(
                    "still building after {} s: {}",
                    self.began.elapsed().as_secs(),
                    note.unwrap_or_else(|| last_line(self.workspace))
                );
            }
        }
        let took = self.began.elapsed();
        match self.handle.join().expect("the build thread does not panic") {
            Ok(logged) => {
                let success = logged.success;
                summary.add(Outcome::of(NAME, &logged, took));
                success
            }
            Err(error) => {
                summary.add(Outcome::broken(NAME, &error, took));
                false
            }
        }
    }
}

/// What cargo said last.
fn last_line(workspace: &Workspace) -> String {
    let log = shell::read_log(&shell::log_path(workspace, NAME)).unwrap_or_default();
    log.lines().last().unwrap_or_default().trim().to_owned()
}

fn build(workspace: &Workspace) -> Result<Logged> {
    let mut command = release(workspace, &workspace.target(), "build");
    command.args(["--all-targets"]);
    shell::logged(workspace, NAME, command).context("building the workspace")
}

/// `cargo VERB` over the release workspace: always all of it, so that features resolve the same
/// way each time and RocksDB is compiled once.
pub fn release(workspace: &Workspace, target: &Path, verb: &str) -> Command {
    let mut command = shell::cargo(workspace, target);
    command.args([verb, "--release", "--workspace"]);
    command
}
