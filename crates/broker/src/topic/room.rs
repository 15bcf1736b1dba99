//! Room: how many rules a topic can have.

use crate::rules::{FilterDescription, RuleDescription, RuleError};

/// (Entities contract 4)
const MAX_SQL_FILTERS: usize = 2_000;
const MAX_CORRELATION_FILTERS: usize = 100_000;
/// They stay in memory.
const MAX_BYTES: usize = 64 << 20;

/// What the rules of a topic take up. (Entities contract 4)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RuleRoom {
    pub(super) sql: usize,
    pub(super) correlations: usize,
    pub(super) bytes: usize,
}

impl RuleRoom {
    /// Takes one more rule in.
    ///
    /// # Errors
    /// When a topic can not have as many of its kind, or rules of so many bytes.
    pub fn add(&mut self, rule: &RuleDescription) -> Result<(), RuleError> {
        let is_correlation = matches!(rule.filter, FilterDescription::Correlation(_));
        let bytes = rule.bytes();
        self.check(is_correlation, bytes)?;
        match is_correlation {
            true => self.correlations += 1,
            false => self.sql += 1,
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Whether there is room for one more rule of this kind.
    pub(super) fn check(&self, is_correlation: bool, bytes: usize) -> Result<(), RuleError> {
        let (count, limit, what) = match is_correlation {
            true => (
                self.correlations,
                MAX_CORRELATION_FILTERS,
                "correlation filters",
            ),
            false => (self.sql, MAX_SQL_FILTERS, "SQL filters"),
        };
        if count >= limit {
            return Err(RuleError::TooMany { limit, what });
        }
        if self.bytes.saturating_add(bytes) > MAX_BYTES {
            return Err(RuleError::TooLarge { limit: MAX_BYTES });
        }
        Ok(())
    }
}
