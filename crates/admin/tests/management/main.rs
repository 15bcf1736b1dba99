//! Requests to a broker, as clients of management write them, and what they are answered.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

mod bad_input;
mod dotnet;
mod errors;
mod lists;
mod names;
mod queues;
mod rules;
mod topics;
