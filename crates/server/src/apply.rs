//! Apply: the namespace becomes as a file says, all of it or nothing.
//!
//! What there is is asked for in several orders, so a plan is made for one version of the namespace,
//! and the broker carries it out only if that is still the version: if somebody has changed something
//! meanwhile another plan is made. What no plan sees (how many subscriptions and rules a topic has room
//! for) is the broker's to say; it says it of a plan that is only shown, too.

use broker::{Batch, EntityError, Order};

use crate::namespace::Survey;
use crate::plan::{DesiredNamespace, Plan, RefusedChange};
use crate::shard_client::{Closed, ShardClient};

/// So often a plan is made while others change what it is made for.
const TRIES: usize = 10;

/// Whether the plan is only shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ApplyMode {
    Show,
    Apply,
}

/// Plans what makes the namespace as `wanted` says, and does it if that is wished. Of a plan that
/// has anything refused nothing is done.
pub async fn apply(
    shard_client: &mut ShardClient,
    wanted: &DesiredNamespace,
    mode: ApplyMode,
) -> Result<Plan, Closed> {
    let mut plan = Plan::default();
    for _ in 0..TRIES {
        let survey = Survey::make(shard_client).await?;
        plan = Plan::new(&survey.into(), wanted);
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
