//! Rule usage: what the rules of a topic take up, and how many it can have.

use super::{FilterDescription, RuleDescription, RuleError};

/// (docs/spec/entities.md#4)
const MAX_SQL_FILTERS: usize = 2_000;
const MAX_CORRELATION_FILTERS: usize = 100_000;
/// They stay in memory.
const MAX_BYTES: usize = 64 << 20;

/// What the rules of a topic take up. (docs/spec/entities.md#4)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RuleUsage {
    pub(crate) sql: usize,
    pub(crate) correlations: usize,
    pub(crate) bytes: usize,
}

impl RuleUsage {
    /// Adds one more rule.
    ///
    /// # Errors
    /// When a topic cannot have as many of its kind, or rules with as many bytes.
    pub fn add(&mut self, rule: &RuleDescription) -> Result<(), RuleError> {
        let mut more = *self;
        more.put(rule);
        more.check_whole()?;
        *self = more;
        Ok(())
    }

    /// Takes one more rule in, whether there is room or not.
    pub(crate) fn put(&mut self, rule: &RuleDescription) {
        match rule.filter {
            FilterDescription::Correlation(_) => self.correlations += 1,
            _ => self.sql += 1,
        }
        self.bytes = self.bytes.saturating_add(rule.bytes());
    }

    /// A rule that it has taken in goes.
    pub(crate) fn take(&mut self, rule: &RuleDescription) {
        let count = match rule.filter {
            FilterDescription::Correlation(_) => &mut self.correlations,
            _ => &mut self.sql,
        };
        *count = count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(rule.bytes());
    }

    /// Whether it has not taken in more than there is room for.
    pub(crate) fn check_whole(&self) -> Result<(), RuleError> {
        let counts = [
            (self.sql, MAX_SQL_FILTERS, "SQL filters"),
            (
                self.correlations,
                MAX_CORRELATION_FILTERS,
                "correlation filters",
            ),
        ];
        for (count, limit, what) in counts {
            if count > limit {
                return Err(RuleError::TooMany { limit, what });
            }
        }
        if self.bytes > MAX_BYTES {
            return Err(RuleError::TooLarge { limit: MAX_BYTES });
        }
        Ok(())
    }

    /// Whether there is room for one more rule of this kind.
    pub(crate) fn check(&self, is_correlation: bool, bytes: usize) -> Result<(), RuleError> {
        let mut more = *self;
        match is_correlation {
            true => more.correlations += 1,
            false => more.sql += 1,
        }
        more.bytes = more.bytes.saturating_add(bytes);
        more.check_whole()
    }
}
