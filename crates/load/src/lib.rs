//! Load: AMQP connections that send and receive at full speed, or at a fixed rate, in one thread
//! that never waits but for all of them.
//!
//! `cargo xtask bench` and `railbus bench` both use it, so users measure what our own figures
//! measure. A [`Client`] is one connection, a [`Workload`] is its task, and
//! [`run_once`](event_loop::run_once) lets all of them go on.

pub mod bodies;
mod cbs_authorization;
mod client;
mod error;
pub mod event_loop;
pub mod latency;
pub mod message_sections;
mod peer;
pub mod receiver;
pub mod request_client;
pub mod sender;
mod stamp;
pub mod wire;
mod workload;

pub use client::Client;
pub use error::Error;
pub use peer::{Peer, Token};
pub use stamp::{STAMP, Stamp};
pub use workload::Workload;
