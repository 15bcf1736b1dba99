//! Log: lines about peers, with safe text and a limit per peer.
//!
//! Audit lines are about changes and are never left out. Lines about refusals are limited by
//! address.

pub mod audit;
pub mod log_text;
pub mod refusals;
pub mod throttle;
