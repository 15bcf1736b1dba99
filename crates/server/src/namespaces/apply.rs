//! Apply: makes the namespace equal to a file, completely or not at all.
//!
//! Reading the namespace takes several orders, so a plan is made for one version of it. The broker
//! carries the plan out only if the namespace still has that version; otherwise a new plan is
//! made. Only the broker knows how many subscriptions and rules a topic may still have, so a plan
//! that is only shown is checked by the broker too.

use broker::{Batch, EntityError, Order};

use crate::namespaces::namespace::NamespaceSnapshot;
use crate::shard::shard_client::{ShardClient, ShardError};
use entity::plan::{DesiredNamespace, Plan, RefusedChange};

/// Plans that are made while other clients change the namespace.
const MAX_ATTEMPTS: usize = 10;

/// Whether the plan is only shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ApplyMode {
    Show,
    Apply,
}

/// Plans the changes that make the namespace equal to `wanted`, and carries them out in
/// [`ApplyMode::Apply`]. A plan with a refused change is not carried out.
pub async fn apply(
    shard_client: &mut ShardClient,
    wanted: &DesiredNamespace,
    mode: ApplyMode,
) -> Result<Plan, ShardError> {
    let mut plan = Plan::default();
    for _ in 0..MAX_ATTEMPTS {
        let snapshot = NamespaceSnapshot::make(shard_client).await?;
        plan = Plan::new(&snapshot.into(), wanted);
        if !plan.refused.is_empty() || plan.changes.is_empty() {
            return Ok(plan);
        }
        let batch = Batch {
            dry_run: mode == ApplyMode::Show,
            ..plan.batch()
        };
        match shard_client.order(Order::Apply(Box::new(batch))).await? {
            Ok(_) => return Ok(plan),
            Err(EntityError::Changed) => {}
            Err(error) => {
                plan.refused.push(RefusedChange::from(error));
                return Ok(plan);
            }
        }
    }
    plan.refused.push(RefusedChange::from(EntityError::Changed));
    Ok(plan)
}
