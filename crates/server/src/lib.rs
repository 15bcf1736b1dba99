//! The tokio server: listeners, one task per connection, one task per shard.
//!
//! Bytes are turned into commands at the rim and decided in the shard; nothing is decided here.
//! Every hop carries a batch: a connection sends the shard all commands of one read at once, and
//! the shard sends a connection all outputs of one turn at once. The shard never waits for a
//! connection; a connection waits for the shard only while its channel is full.

mod administrator;
mod apply;
mod breath;
mod broker_clock;
mod budget;
mod clock;
mod connection;
mod counts;
mod crowd;
mod desk;
mod door;
pub mod duration;
mod effort;
pub mod entities;
mod entrance;
mod http;
mod input;
mod log_text;
pub mod messages;
mod namespace;
mod options;
mod paper;
pub mod plan;
mod random;
mod refusals;
mod rest;
pub mod rules;
mod server;
mod setup;
mod shard;
mod staging;
mod stream;
mod throttle;
mod tls;
mod told;
mod virtual_clock;
mod websocket;

pub use administrator::Administrator;
pub use desk::Closed;
pub use namespace::Namespace;
pub use options::{
    Certificate, Limits, Options, Plain, QueueDefinition, SubscriptionDefinition, TopicDefinition,
};
pub use server::{Prepared, Server, StartError};
