//! Task: one kind of torture, as the test that does it and the variables that say how much.
//!
//! The table here is all there is of tasks: what they are called, what they count, how much of it
//! one round does, and how much is wanted in all.

use anyhow::{Result, bail};

/// A kind of torture.
#[derive(Debug)]
pub struct Task {
    /// On the command line, and in the table.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// How much of it one round does.
    pub round: u64,
    /// How much of it is wanted before a release.
    pub goal: u64,
    /// What does it.
    pub action: Action,
}

/// What does a round.
#[derive(Debug)]
pub enum Action {
    /// A test of a release build.
    Test(Test),
    /// A fuzz target of the task's name, for as many seconds.
    Fuzz,
}

/// A test, and the variables that it reads.
#[derive(Debug)]
pub struct Test {
    /// The folder of its package.
    pub folder: &'static str,
    /// Its package.
    pub package: &'static str,
    /// The test program: a file of `tests/`, or `lib`.
    pub program: &'static str,
    /// Its name, or a part of several names.
    pub filter: &'static str,
    /// The variable that takes the seed.
    pub seed: Option<&'static str>,
    /// How it is told what to do.
    pub amount: Amount,
    /// What precedes or follows the number of things done in its output, if that is not `round`.
    pub counted: Option<&'static str>,
}

/// How a test is told what to do in a round.
#[derive(Debug)]
pub enum Amount {
    /// It always does the same.
    Fixed,
    /// A variable says how many.
    Count(&'static str),
    /// Two variables say from which number to before which one. The rounds go through all numbers
    /// up to the goal, and begin again.
    Range(&'static str, &'static str),
}

const fn e2e(program: &'static str, filter: &'static str, amount: Amount) -> Action {
    Action::Test(Test {
        folder: "tests",
        package: "e2e",
        program,
        filter,
        seed: Some("RAILBUS_CRASH_SEED"),
        amount,
        counted: None,
    })
}

const fn disk(filter: &'static str, amount: &'static str) -> Action {
    Action::Test(Test {
        folder: "sim",
        package: "sim",
        program: "disk",
        filter,
        seed: Some("RAILBUS_SIM_SEED"),
        amount: Amount::Count(amount),
        counted: None,
    })
}

const fn crash(program: &'static str, filter: &'static str) -> Action {
    e2e(program, filter, Amount::Count("RAILBUS_CRASH_CYCLES"))
}

const fn failed_call(filter: &'static str) -> Action {
    let range = Amount::Range("RAILBUS_FAILED_FROM", "RAILBUS_FAILED_UNTIL");
    e2e("failed_calls", filter, range)
}

const fn task(
    name: &'static str,
    unit: &'static str,
    round: u64,
    goal: u64,
    action: Action,
) -> Task {
    Task {
        name,
        unit,
        round,
        goal,
        action,
    }
}

const fn fuzz(name: &'static str) -> Task {
    task(name, "seconds", 60, 3_600, Action::Fuzz)
}

/// All of them, in the order of their first turns.
pub const TASKS: &[Task] = &[
    task(
        "power-cut-tail",
        "power cuts",
        25,
        2_500,
        crash("power_cut", "files_keep_a_prefix"),
    ),
    task(
        "power-cut-pages",
        "power cuts",
        25,
        2_500,
        crash("power_cut", "files_keep_any_page"),
    ),
    task(
        "kill",
        "kills",
        25,
        2_000,
        crash("kill", "process_is_killed"),
    ),
    task("call-eio", "calls", 5, 500, failed_call("fails_with_eio")),
    task(
        "call-enospc",
        "calls",
        5,
        500,
        failed_call("fails_with_enospc"),
    ),
    task("call-short", "calls", 5, 500, failed_call("is_cut_short")),
    task(
        "full-disk",
        "runs",
        1,
        100,
        Action::Test(Test {
            folder: "tests",
            package: "e2e",
            program: "full_disk",
            filter: "full_disk",
            seed: None,
            amount: Amount::Fixed,
            counted: None,
        }),
    ),
    task(
        "upgrade",
        "power cuts",
        1,
        1_000,
        Action::Test(Test {
            folder: "tests",
            package: "e2e",
            program: "old_stores",
            filter: "interrupted",
            seed: Some("RAILBUS_CRASH_SEED"),
            amount: Amount::Fixed,
            counted: Some("cuts"),
        }),
    ),
    task(
        "bit-flips",
        "flips",
        1,
        10_000,
        Action::Test(Test {
            folder: "rocks",
            package: "rocks",
            program: "lib",
            filter: "bit_flips",
            seed: Some("RAILBUS_FLIP_SEED"),
            amount: Amount::Fixed,
            counted: Some("flips"),
        }),
    ),
    task(
        "bit-flips-worked",
        "flips",
        100,
        10_000,
        Action::Test(Test {
            folder: "rocks",
            package: "rocks",
            program: "lib",
            filter: "worked_on",
            seed: Some("RAILBUS_FLIP_SEED"),
            amount: Amount::Count("RAILBUS_FLIP_COUNT"),
            counted: Some("flips"),
        }),
    ),
    task(
        "mutated",
        "connections",
        5_000,
        1_000_000,
        e2e(
            "mutated",
            "break_rules",
            Amount::Count("RAILBUS_MUTATED_CONNECTIONS"),
        ),
    ),
    task(
        "soak",
        "messages",
        20_000,
        10_000_000,
        e2e(
            "kill",
            "works_for_long",
            Amount::Count("RAILBUS_SOAK_MESSAGES"),
        ),
    ),
    task(
        "sim",
        "operations",
        1_000_000,
        1_000_000_000,
        Action::Test(Test {
            folder: "sim",
            package: "sim",
            program: "simulation",
            filter: "nothing_accepted_is_lost_whatever_breaks",
            seed: Some("RAILBUS_SIM_SEED"),
            amount: Amount::Count("RAILBUS_SIM_OPERATIONS"),
            counted: None,
        }),
    ),
    task(
        "sim-disk",
        "operations",
        200_000,
        100_000_000,
        disk(
            "nothing_acknowledged_is_lost_whatever_the_disk_does",
            "RAILBUS_SIM_OPERATIONS",
        ),
    ),
    task(
        "sim-logs",
        "logs",
        100,
        10_000,
        disk(
            "every_random_log_ends_as_the_model_says_whichever_call_is_the_last",
            "RAILBUS_SIM_LOGS",
        ),
    ),
    fuzz("value"),
    fuzz("frame"),
    fuzz("performative"),
    fuzz("sasl"),
    fuzz("sections"),
    fuzz("session"),
    fuzz("filter"),
    fuzz("websocket"),
    fuzz("token"),
    fuzz("admin"),
    fuzz("data"),
    fuzz("journal"),
    fuzz("rabbitmq"),
];

impl Task {
    /// Whether it needs the fuzz targets.
    pub fn is_fuzzing(&self) -> bool {
        matches!(self.action, Action::Fuzz)
    }

    /// Its part of the time; all fuzz targets together have three.
    pub fn share(&self) -> f64 {
        if self.is_fuzzing() { 0.23 } else { 1.0 }
    }

    /// What the round after `done` rounds is told.
    pub fn variables(&self, seed: u64, done: u64) -> Vec<(&'static str, u64)> {
        let Action::Test(test) = &self.action else {
            return Vec::new();
        };
        let mut variables: Vec<_> = test.seed.map(|name| (name, seed)).into_iter().collect();
        match test.amount {
            Amount::Fixed => {}
            Amount::Count(name) => variables.push((name, self.round)),
            Amount::Range(from, until) => {
                let first = 1 + done * self.round % self.goal;
                variables.extend([(from, first), (until, first + self.round)]);
            }
        }
        variables
    }

    /// The command that repeats a round.
    pub fn repeat(&self, variables: &[(&'static str, u64)]) -> String {
        let Action::Test(test) = &self.action else {
            return format!("cargo xtask fuzz {} --seconds {}", self.name, self.round);
        };
        let mut command = String::new();
        for (name, value) in variables {
            command.push_str(&format!("{name}={value} "));
        }
        let (package, target, filter) = (test.package, test.target(), test.filter);
        command.push_str(&format!(
            "cargo test --release --package {package} {target} -- --nocapture {filter}"
        ));
        command
    }

    /// How much a round has done, by what it printed.
    pub fn count(&self, output: &str) -> u64 {
        match &self.action {
            Action::Test(Test {
                counted: Some(word),
                ..
            }) => output.lines().filter_map(|line| counted(line, word)).sum(),
            _ => self.round,
        }
    }
}

/// The number in `cuts: 5` or in `Closed: 5 flips; refused`.
fn counted(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let mut before = "";
    loop {
        let this = words.next()?;
        if this.strip_suffix(':') == Some(word) {
            return words.next()?.parse().ok();
        }
        if this.strip_suffix(';') == Some(word) {
            return before.parse().ok();
        }
        before = this;
    }
}

/// The options of cargo that select the test programs of `tasks`.
pub fn targets(tasks: &[&Task]) -> Vec<String> {
    let mut targets = Vec::new();
    for task in tasks {
        let Action::Test(test) = &task.action else {
            continue;
        };
        let target = test.target();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

impl Test {
    /// The option of cargo that selects its program.
    fn target(&self) -> String {
        match self.program {
            "lib" => "--lib".to_owned(),
            program => format!("--test={program}"),
        }
    }
}

/// The tasks of these names, or all.
///
/// # Errors
/// When there is none of a name.
pub fn select(names: &[String]) -> Result<Vec<&'static Task>> {
    let is_there = |name: &&String| TASKS.iter().any(|task| task.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_there(name)) {
        let known: Vec<_> = TASKS.iter().map(|task| task.name).collect();
        bail!("there is no task {unknown:?}, only {}", known.join(", "));
    }
    let is_wanted = |task: &&Task| names.is_empty() || names.iter().any(|name| name == task.name);
    Ok(TASKS.iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn named(name: &str) -> &'static Task {
        select(&[name.to_owned()]).expect("it is there")[0]
    }

    #[test]
    fn each_fuzz_target_has_a_task() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("readable");
        let (_, targets) = manifest.split_once("[[bin]]").expect("there are targets");
        let names = targets
            .lines()
            .filter_map(|line| line.strip_prefix("name = \""));
        let mut targets: Vec<_> = names.filter_map(|name| name.strip_suffix('"')).collect();
        let tasks = TASKS.iter().filter(|task| task.is_fuzzing());
        let mut tasks: Vec<_> = tasks.map(|task| task.name).collect();
        targets.sort_unstable();
        tasks.sort_unstable();
        assert_eq!(tasks, targets);
    }

    #[test]
    fn a_range_goes_on_round_by_round_and_begins_again() {
        let eio = named("call-eio");
        let range = |done| eio.variables(9, done)[1..].to_vec();
        let names = ["RAILBUS_FAILED_FROM", "RAILBUS_FAILED_UNTIL"];
        assert_eq!(range(0), [(names[0], 1), (names[1], 6)]);
        assert_eq!(range(99), [(names[0], 496), (names[1], 501)]);
        assert_eq!(range(100), range(0));
    }

    #[test]
    fn a_round_is_repeated_by_one_command() {
        let kill = named("kill");
        assert_eq!(
            kill.repeat(&kill.variables(7, 3)),
            "RAILBUS_CRASH_SEED=7 RAILBUS_CRASH_CYCLES=25 cargo test --release --package e2e \
             --test=kill -- --nocapture process_is_killed"
        );
        let flips = named("bit-flips").repeat(&[("RAILBUS_FLIP_SEED", 1)]);
        assert!(flips.contains("--package rocks --lib -- "), "{flips}");
        assert_eq!(
            named("frame").repeat(&[]),
            "cargo xtask fuzz frame --seconds 60"
        );
    }

    #[test]
    fn what_was_done_is_read_from_the_output_where_a_round_does_not_say() {
        let output = "Closed: 40 flips; refused, healed\n  *.sst [1, 2]\nBackup: 2 flips; x\n";
        assert_eq!(named("bit-flips").count(output), 42);
        assert_eq!(named("upgrade").count("RAILBUS=1\ncuts: 36\n"), 36);
        assert_eq!(named("kill").count(""), 25);
    }

    #[test]
    fn an_unknown_task_is_refused_with_the_known_ones() {
        let error = select(&["nap".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("\"nap\"") && error.contains("kill"),
            "{error}"
        );
    }

    #[test]
    fn a_program_of_several_tasks_is_built_once() {
        let tasks = ["kill", "soak", "frame", "bit-flips"].map(named);
        assert_eq!(targets(&tasks), ["--test=kill", "--lib"]);
    }

    #[test]
    fn names_are_those_of_one_task() {
        for (at, task) in TASKS.iter().enumerate() {
            assert!(TASKS[..at].iter().all(|other| other.name != task.name));
        }
    }
}
