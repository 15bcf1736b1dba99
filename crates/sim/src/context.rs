//! Context: what a simulated client acts with besides its connection.

use broker::Now;

use crate::ledger::Ledger;
use crate::rng::Rng;

/// What an actor needs to act.
#[allow(missing_docs, reason = "named for what they are")]
pub struct Context<'a> {
    pub rng: &'a mut Rng,
    pub ledger: &'a mut Ledger,
    pub now: Now,
}
