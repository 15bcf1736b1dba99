//! Requests of management clients to a broker, and their responses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

mod bad_input;
mod client_affine;
mod denied;
mod dotnet;
mod errors;
mod lists;
mod names;
mod queues;
mod rules;
mod topics;
