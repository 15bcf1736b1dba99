//! End-to-end tests: the real binary, real sockets, a real store.
//!
//! A [`Broker`] is a process of its own on a directory of its own; a [`Peer`] is an AMQP client
//! that does what a test says and nothing else. Both wait for what can be observed, never for time
//! to pass; only a wait that would last for ever ends with an error, after [`PATIENCE`].

pub mod broker;
pub mod cli;
pub mod crash;
pub mod credentials;
pub mod disk_faults;
pub mod http;
pub mod message;
pub mod node;
pub mod peer;
pub mod secrets;
pub mod small_disk;
pub mod tls;
pub mod websocket;

pub use broker::{Broker, Setup};
pub use credentials::Credentials;
pub use disk_faults::{DiskFaults, Fault};
pub use node::{ask_node, request_node};
pub use peer::{Peer, Received};
pub use small_disk::SmallDisk;

use std::time::Duration;

/// After this long nothing is coming any more.
pub const PATIENCE: Duration = Duration::from_secs(60);
