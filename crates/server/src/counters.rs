//! Counters: what the server counts for metrics, where it happens.
//!
//! The page that shows them is `http::metrics`. Figures of entities and of commits are the core's
//! and the store's.

pub mod counter;
pub mod counts;
pub mod error_counters;
