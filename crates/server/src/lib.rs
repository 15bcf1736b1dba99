//! The tokio server: listeners, one task per connection, one task per shard.
//!
//! Connections turn bytes into commands and the shard decides them; nothing is decided here. Every
//! hop carries a batch: a connection sends the shard all commands of one read at once, and the
//! shard sends a connection all outputs of one turn at once. The shard never waits for a
//! connection; a connection waits for the shard only while its channel is full.

mod clocks;
mod connection;
mod counters;
mod credentials;
mod dialects;
mod fetch;
mod http;
mod log;
pub mod messages;
mod namespaces;
mod options;
mod random;
mod server;
mod shard;
mod telemetry;
mod transport;

pub use credentials::development_issuer::DevelopmentIssuer;
pub use fetch::{is_fetchable, is_postable};
/// The target of the lines of the audit log.
pub use log::audit::TARGET as AUDIT_TARGET;
pub use options::{Certificate, ConfiguredNamespace, Limits, Options, PlaintextPolicy};
pub use server::server_handle::ServerHandle;
pub use server::{BoundServer, Server, StartError};
pub use shard::shard_client::ShardError;
pub use telemetry::{Collector, OtlpProtocol, Sampler, TelemetryOptions};
