//! Limits of a batch: the most entities, rules and bytes of rules in one.

use super::{Batch, Ensured, MAX_BATCH, MAX_BATCH_BYTES};
use crate::administration::EntityError;
use crate::api::rule::RuleDescription;

/// Whether a batch is not too large to be carried out in one turn.
pub(super) fn check(batch: &Batch) -> Result<(), EntityError> {
    let count = batch.removed.len() + batch.removed_rules.len() + batch.ensured.len();
    if count.saturating_add(rules(batch).count()) > MAX_BATCH {
        let (limit, what) = (MAX_BATCH, "entities and rules in one batch");
        return Err(EntityError::TooMany { limit, what });
    }
    let bytes: usize = rules(batch).map(RuleDescription::bytes).sum();
    if bytes > MAX_BATCH_BYTES {
        let (limit, what) = (MAX_BATCH_BYTES, "bytes of rules in one batch");
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(())
}

fn rules(batch: &Batch) -> impl Iterator<Item = &RuleDescription> {
    let rules = batch.ensured.iter().filter_map(|ensured| match ensured {
        Ensured::Subscription { rules, .. } => rules.as_ref(),
        Ensured::Queue { .. } | Ensured::Topic { .. } => None,
    });
    rules.flatten()
}
