//! The tokio server: listeners, one task per connection, one task per shard.
//!
//! Connections turn bytes into commands and the shard decides them; nothing is decided here. Every
//! hop carries a batch: a connection sends the shard all commands of one read at once, and the
//! shard sends a connection all outputs of one turn at once. The shard never waits for a
//! connection; a connection waits for the shard only while its channel is full.

mod apply;
mod audit;
mod backups;
mod broker_clock;
mod budget;
mod client_certificate;
mod clock;
mod commit_mode;
mod connection;
mod connection_limiter;
mod connection_outputs;
mod counter;
mod counts;
mod deletion_pause;
mod development_issuer;
mod dialects;
mod error_counters;
mod fetch;
mod guess_limiter;
mod http;
mod input;
mod issuer_keys;
mod key_schedule;
mod large_message_throttle;
mod listener;
mod log_text;
mod lookup;
pub mod messages;
mod namespace;
mod namespace_backup;
mod namespace_clocks;
mod namespace_registry;
mod namespace_view;
mod open_connections;
mod options;
mod output_buffer;
mod placement;
mod random;
mod refusals;
mod report;
mod server;
mod server_handle;
mod server_state;
mod sessions;
mod setup;
mod shard;
mod shard_client;
mod staging;
mod store_view;
mod stream;
mod task_usage;
mod telemetry;
mod throttle;
mod tls;
mod virtual_clock;
mod websocket;

/// The target of the lines of the audit log.
pub use audit::TARGET as AUDIT_TARGET;
pub use development_issuer::DevelopmentIssuer;
pub use fetch::{is_fetchable, is_postable};
pub use options::{Certificate, ConfiguredNamespace, Limits, Options, PlaintextPolicy};
pub use server::{BoundServer, Server, StartError};
pub use server_handle::ServerHandle;
pub use shard_client::ShardError;
pub use telemetry::TelemetryOptions;
