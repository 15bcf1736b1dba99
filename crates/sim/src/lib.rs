//! Whole brokers and clients in one thread under virtual time, with faults by seed.
//!
//! A [`World`] joins client endpoints, `servicebus` clients, a broker shard and the memory store.
//! Chance decides what happens next: a client acts, bytes arrive in pieces, the shard takes a
//! turn, the disk gets further, a read comes back late, time passes, something breaks. A
//! [`Ledger`](ledger::Ledger) that knows nothing of the broker's insides writes down what clients
//! were told, looks at everything that each turn of the shard writes and says, and says when that
//! cannot be. One seed replays one run exactly.

pub mod actor;
pub mod books;
pub mod context;
pub mod controller;
pub mod declarer;
pub mod directories;
pub mod faults;
pub mod holder;
pub mod inbox;
pub mod journaled;
pub mod ledger;
pub mod manager;
pub mod message;
pub mod model_disk;
pub mod owners;
pub mod pipe;
pub mod publisher;
pub mod receiver;
pub mod recording_store;
pub mod remote;
mod report;
pub mod request;
pub mod rng;
pub mod rule;
pub mod sender;
pub mod server;
pub mod session;
pub mod spoken;
pub mod storage;
pub mod topology;
pub mod unsettled;
pub mod violation;
pub mod world;

pub use faults::Faults;
pub use journaled::Control;
pub use report::Report;
pub use storage::StorageKind;
pub use violation::Violation;
pub use world::{Ending, Plan, Swept, World};

/// Runs a plan to its end, the final drain included.
///
/// # Errors
/// The first invariant that did not hold, with the seed that shows it again.
pub fn run(plan: Plan) -> Result<Report, Violation> {
    let seed = plan.seed;
    World::new(plan)
        .run()
        .map_err(|violation| violation.with_seed(seed))
}
