//! Violation: an invariant that did not hold, where, and how to see it again.

use std::fmt;

/// What went wrong in a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// As docs/spec/invariants.md names it, e.g. `I1`.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    seed: Option<u64>,
    step: Option<u64>,
}

impl Violation {
    /// A violation seen just now.
    #[must_use]
    pub fn new(invariant: &'static str, what: String) -> Self {
        Self {
            invariant,
            what,
            seed: None,
            step: None,
        }
    }

    /// Names the run.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Names the step within the run.
    #[must_use]
    pub fn with_step(mut self, step: u64) -> Self {
        self.step = self.step.or(Some(step));
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)?;
        if let Some(step) = self.step {
            write!(f, " (step {step})")?;
        }
        if let Some(seed) = self.seed {
            write!(f, "; replay with cargo xtask sim --seed {seed}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
