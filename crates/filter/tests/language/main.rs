//! The filter language from outside: tables of cases, an independent interpreter, hostile input.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "expectations and values of a naive interpreter are given away"
)]

mod actions;
mod agreement;
mod correlation;
mod errors;
mod generate;
mod hostile;
mod logic;
mod messages;
mod naive;
mod operators;
mod rules;
mod selectors;
