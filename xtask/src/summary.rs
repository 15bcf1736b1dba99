//! Summary: what the steps of a test run came to, told as they end and as a table at the end.

use std::time::Duration;

use crate::shell::Logged;
use crate::tally::Tally;

/// How many lines of a failed step's output are shown.
const SHOWN_LINES: usize = 250;

/// One step's end.
#[derive(Debug)]
pub struct Outcome {
    name: String,
    tally: Tally,
    took: Duration,
    /// What to show of a failure, or why the step was not run.
    note: String,
}

/// The steps that have ended.
#[derive(Debug, Default)]
pub struct Summary {
    outcomes: Vec<Outcome>,
}

impl Outcome {
    /// A program that ran.
    pub fn of(name: &str, logged: &Logged, took: Duration) -> Self {
        let tally = Tally::of(&logged.output, logged.success);
        let note = if tally.failed > 0 {
            tail(&logged.output)
        } else {
            String::new()
        };
        Self {
            name: name.to_owned(),
            tally,
            took,
            note,
        }
    }

    /// A suite of tests that ran; one that ran no test shows nothing, so it has failed.
    pub fn of_suite(name: &str, logged: &Logged, took: Duration) -> Self {
        let mut outcome = Self::of(name, logged, took);
        if outcome.tally.passed + outcome.tally.failed == 0 {
            outcome.tally.failed = 1;
            outcome.note = format!("no test was run\n{}", tail(&logged.output));
        }
        outcome
    }

    /// A step that could not do its work.
    pub fn broken(name: &str, error: &anyhow::Error, took: Duration) -> Self {
        Self {
            name: name.to_owned(),
            tally: Tally::one(false),
            took,
            note: format!("{error:#}"),
        }
    }

    /// A suite whose language this machine lacks; a failure only where all must be there.
    pub fn not_run(name: &str, why: &str, is_failure: bool) -> Self {
        let tally = Tally {
            passed: 0,
            failed: is_failure.into(),
            skipped: 0,
        };
        Self {
            name: name.to_owned(),
            tally,
            took: Duration::ZERO,
            note: format!("not run: {why}"),
        }
    }

    /// Whether nothing of it was run.
    fn is_not_run(&self) -> bool {
        self.note.starts_with("not run: ")
    }

    fn state(&self) -> &'static str {
        match (self.is_not_run(), self.tally.failed) {
            (true, _) => "not run",
            (false, 0) => "ok",
            (false, _) => "FAILED",
        }
    }

    fn line(&self) -> String {
        let Self {
            name, tally, took, ..
        } = self;
        let skipped = if tally.skipped > 0 {
            format!(", {} skipped", tally.skipped)
        } else {
            String::new()
        };
        format!(
            "{name:<20} {:<8} {:>6} passed {:>4} failed {:>7.1} s{skipped}",
            self.state(),
            tally.passed,
            tally.failed,
            took.as_secs_f64()
        )
    }
}

impl Summary {
    /// Takes a step's end and tells of it.
    pub fn add(&mut self, outcome: Outcome) {
        println!("{}", outcome.line());
        if !outcome.note.is_empty() {
            println!("{}", indented(&outcome.note));
        }
        self.outcomes.push(outcome);
    }

    /// Whether anything failed.
    pub fn is_failure(&self) -> bool {
        self.total().failed > 0
    }

    /// Prints the table; its last line is the count that other tools read.
    pub fn print(&self) {
        println!("\nsummary");
        for outcome in &self.outcomes {
            println!("  {}", outcome.line());
        }
        for outcome in self.outcomes.iter().filter(|outcome| outcome.is_not_run()) {
            println!("  {}: {}", outcome.name, outcome.note);
        }
        let total = self.total();
        println!("{} passed, {} failed", total.passed, total.failed);
    }

    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for outcome in &self.outcomes {
            total += outcome.tally;
        }
        total
    }
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("    | {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
