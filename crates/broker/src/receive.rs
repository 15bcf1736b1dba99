//! Receive: clients come for messages, and get them.
//!
//! Receivers with credit are handed messages; deferred ones are fetched by number, and a peek takes
//! none. What a subqueue's receivers wait in line for is in `subqueue`.

pub(crate) mod attach;
pub(crate) mod credit;
pub(crate) mod deferred;
pub(crate) mod disconnect;
pub(crate) mod dispatch;
pub(crate) mod evict;
pub(crate) mod hand_out;
pub(crate) mod leave;
pub(crate) mod page;
pub(crate) mod peek;
pub(crate) mod pending_peek;
pub(crate) mod pending_schedule_peek;
pub(crate) mod retrieval;
pub(crate) mod run;
pub(crate) mod schedule_peek;
