//! Plan: which task has its turn, and what becomes of a round that has ended.
//!
//! The task with the least time by its share comes next; one that is running already waits until
//! each of the others runs. A seed is given out once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use super::state::{Failure, State};
use super::task::Task;

/// What a round is told.
#[derive(Clone, Debug)]
pub struct Round {
    /// Of which task.
    pub task: &'static Task,
    /// By which seed.
    pub seed: u64,
    /// For its environment.
    pub variables: Vec<(&'static str, u64)>,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Whether it found nothing.
    pub held: bool,
    /// How much it did.
    pub count: u64,
}

/// The tasks and what they have reached.
#[derive(Debug)]
pub struct Plan {
    tasks: Vec<&'static Task>,
    state: State,
    /// Rounds under way, by task.
    running: BTreeMap<&'static str, u64>,
}

impl Plan {
    /// A plan for `tasks`, which goes on from `state`.
    pub fn new(tasks: Vec<&'static Task>, state: State) -> Self {
        assert!(!tasks.is_empty(), "a selection has at least one task");
        Self {
            tasks,
            state,
            running: BTreeMap::new(),
        }
    }

    /// What takes turns.
    pub fn tasks(&self) -> &[&'static Task] {
        &self.tasks
    }

    /// What was reached.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The next round.
    pub fn begin(&mut self) -> Round {
        let time = |task: &Task| self.state.of(task).seconds / task.share();
        let running = |task: &Task| self.running.get(task.name).copied().unwrap_or(0);
        let least = self.tasks.iter().min_by(|a, b| {
            let by_running = running(a).cmp(&running(b));
            by_running.then(time(a).total_cmp(&time(b)))
        });
        let task = *least.expect("there is at least one");
        let done = self.state.of(task).rounds + running(task);
        let seed = self.state.next_seed;
        self.state.next_seed += 1;
        *self.running.entry(task.name).or_default() += 1;
        Round {
            task,
            seed,
            variables: task.variables(seed, done),
        }
    }

    /// Enters what became of a round; returns a line about it. One that could not be run counts as
    /// one that found something.
    pub fn end(&mut self, round: &Round, outcome: Result<Outcome>, took: Duration) -> String {
        let (name, seed) = (round.task.name, round.seed);
        if let Some(running) = self.running.get_mut(name) {
            *running = running.saturating_sub(1);
        }
        let reached = self.state.reached.entry(name.to_owned()).or_default();
        reached.rounds += 1;
        reached.seconds += took.as_secs_f64();
        match outcome {
            Ok(Outcome { held: true, count }) => {
                reached.count += count;
                format!("{name} seed {seed}: {count} {}, held", round.task.unit)
            }
            outcome => {
                reached.failures += 1;
                let repeat = round.task.repeat(&round.variables);
                let why = outcome
                    .err()
                    .map_or_else(String::new, |error| format!(" ({error:#})"));
                let line = format!("{name} seed {seed}: FAILED{why}: {repeat}");
                self.state.failures.push(Failure {
                    task: name.to_owned(),
                    seed,
                    repeat,
                });
                line
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::torture::task;

    const HELD: Outcome = Outcome {
        held: true,
        count: 25,
    };

    fn plan(names: &[&str], state: State) -> Plan {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Plan::new(task::select(&names).expect("they are there"), state)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_task_that_had_the_least_time_comes_next() {
        let mut plan = plan(&["kill", "soak"], State::new(1));
        let mut order = Vec::new();
        for _ in 0..6 {
            let round = plan.begin();
            order.push(round.task.name);
            let took = if round.task.name == "soak" { 30 } else { 10 };
            plan.end(&round, Ok(HELD), seconds(took));
        }
        assert_eq!(order, ["kill", "soak", "kill", "kill", "kill", "soak"]);
    }

    #[test]
    fn rounds_side_by_side_are_of_different_tasks_and_have_different_seeds() {
        let mut plan = plan(&["kill", "soak"], State::new(1));
        let rounds = [(); 4].map(|()| plan.begin());
        let names = rounds.each_ref().map(|round| round.task.name);
        assert_eq!(names, ["kill", "soak", "kill", "soak"]);
        assert_eq!(rounds.map(|round| round.seed), [1, 2, 3, 4]);
    }

    #[test]
    fn rounds_of_a_sweep_side_by_side_have_different_calls() {
        let mut plan = plan(&["call-eio"], State::new(1));
        let (first, second) = (plan.begin(), plan.begin());
        assert_eq!(first.variables[1].1, 1);
        assert_eq!(second.variables[1].1, 6);
    }

    #[test]
    fn a_plan_goes_on_from_what_another_reached() {
        let mut first = plan(&["kill", "call-eio"], State::new(1));
        for _ in 0..4 {
            let round = first.begin();
            first.end(&round, Ok(HELD), seconds(10));
        }
        // A round under way when it ended is not in its state.
        let _lost = first.begin();
        let mut second = plan(&["kill", "call-eio"], first.state().clone());
        let next = second.begin();
        assert_eq!((next.task.name, next.seed), ("kill", 6));
        let sweep = second.begin();
        assert_eq!(sweep.variables[1].1, 11);
        assert_eq!(second.state().reached["kill"].count, 50);
    }

    #[test]
    fn a_failure_is_kept_with_its_command_and_does_not_count() {
        let mut plan = plan(&["kill"], State::new(1));
        let round = plan.begin();
        let found = Outcome {
            held: false,
            count: 25,
        };
        let line = plan.end(&round, Ok(found), seconds(1));
        assert!(line.contains("FAILED: RAILBUS_CRASH_SEED=1 "), "{line}");
        let round = plan.begin();
        let line = plan.end(&round, Err(anyhow!("no such program")), seconds(1));
        assert!(line.contains("no such program"), "{line}");
        let reached = plan.state().reached["kill"];
        assert_eq!((reached.rounds, reached.failures, reached.count), (2, 2, 0));
        assert_eq!(plan.state().failures.len(), 2);
    }
}
