//! One message: its row's flags, its changes, its body, and what is read of it.
//!
//! Nothing here knows where a message stands. Bodies are kept for all entities together, within one
//! budget.

pub(crate) mod bodies;
pub(crate) mod id;
pub(crate) mod patch;
pub(crate) mod properties;
pub(crate) mod row;
