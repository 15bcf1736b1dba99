//! State: what was reached so far, kept in a file that is replaced whole after each round.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::task::Task;

/// What all rounds came to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct State {
    /// The seed of the next round.
    pub next_seed: u64,
    /// By task.
    pub reached: BTreeMap<String, Reached>,
    /// Rounds that found something, in the order of their ends.
    pub failures: Vec<Failure>,
}

/// What the rounds of one task came to.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Reached {
    /// Rounds that have ended.
    pub rounds: u64,
    /// Of what the task counts, without what rounds that found something did.
    pub count: u64,
    /// Rounds that found something.
    pub failures: u64,
    /// How long they took.
    pub seconds: f64,
}

/// A round that found something.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Failure {
    /// Of which task.
    pub task: String,
    /// By which seed.
    pub seed: u64,
    /// The command that repeats it.
    pub repeat: String,
}

impl State {
    /// Nothing was reached yet.
    pub fn new(next_seed: u64) -> Self {
        Self {
            next_seed,
            reached: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// What a task has reached.
    pub fn of(&self, task: &Task) -> Reached {
        self.reached.get(task.name).copied().unwrap_or_default()
    }

    /// A line for each task, and one for each failure.
    pub fn table(&self, tasks: &[&Task]) -> String {
        let mut table = format!(
            "{:<16} {:>7} {:>13} {:>13} {:<12} {:>8} {:>9}\n",
            "task", "rounds", "done", "wanted", "of", "failed", "minutes"
        );
        for task in tasks {
            let reached = self.of(task);
            table.push_str(&format!(
                "{:<16} {:>7} {:>13} {:>13} {:<12} {:>8} {:>9.1}\n",
                task.name,
                reached.rounds,
                reached.count,
                task.goal,
                task.unit,
                reached.failures,
                reached.seconds / 60.0
            ));
        }
        for failure in &self.failures {
            table.push_str(&format!(
                "failed: {} seed {}: {}\n",
                failure.task, failure.seed, failure.repeat
            ));
        }
        table
    }
}

/// Where the state is kept.
#[derive(Debug)]
pub struct StateFile(PathBuf);

impl StateFile {
    /// The file in `folder`.
    pub fn at(folder: &Path) -> Self {
        Self(folder.join("state.json"))
    }

    /// What an earlier run reached, if there was one.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn read(&self) -> Result<Option<State>> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("reading {}", self.0.display()))?,
        };
        let state = serde_json::from_str(&text);
        let state =
            state.with_context(|| format!("reading {}; `--fresh` begins anew", self.0.display()));
        state.map(Some)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, state: &State) -> Result<()> {
        let new = self.0.with_extension("new");
        let text = serde_json::to_string_pretty(state)?;
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.0));
        written.with_context(|| format!("writing {}", self.0.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::task;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = StateFile::at(folder.path());
        assert_eq!(file.read().expect("nothing is fine"), None);
        let mut state = State::new(5);
        let reached = Reached {
            rounds: 2,
            count: 50,
            failures: 1,
            seconds: 1.5,
        };
        state.reached.insert("kill".to_owned(), reached);
        state.failures.push(Failure {
            task: "kill".to_owned(),
            seed: 4,
            repeat: "again".to_owned(),
        });
        file.write(&state).expect("written");
        assert_eq!(file.read().expect("read"), Some(state));
    }

    #[test]
    fn a_file_that_is_no_state_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("state.json"), "{").expect("written");
        let error = StateFile::at(folder.path()).read().unwrap_err();
        assert!(error.to_string().contains("--fresh"), "{error}");
    }

    #[test]
    fn the_table_has_each_task_and_each_failing_seed() {
        let mut state = State::new(5);
        state.failures.push(Failure {
            task: "kill".to_owned(),
            seed: 4,
            repeat: "again".to_owned(),
        });
        let table = state.table(&task::select(&[]).expect("all"));
        assert_eq!(table.lines().count(), 2 + task::TASKS.len());
        assert!(table.ends_with("failed: kill seed 4: again\n"), "{table}");
    }
}
