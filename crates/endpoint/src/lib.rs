//! AMQP 1.0 endpoints without IO: connection, session, link and SASL.
//!
//! Bytes go in, events and bytes come out. The same engine serves both sides, so a test joins two
//! of them in memory. It knows no queue: what a delivery means is the caller's business.
//! Everything a peer can make it keep is bounded by [`Config`].

mod attach;
mod begin;
pub mod bounds;
mod closing;
pub mod config;
pub mod connection;
mod debug;
mod detach;
mod detached_handles;
pub mod detected_error;
mod dispatch;
mod dispose;
mod disposition_range;
mod ending;
pub mod error_counts;
pub mod event;
mod fault;
mod flow;
mod handles;
mod handshake;
pub mod id;
mod link;
mod link_state;
mod outbox;
mod output;
mod payload;
mod phase;
mod receive;
mod receiver;
mod sasl;
mod send;
mod sender;
mod serial;
mod session;
mod shed;
mod slab;
mod time_outs;
mod timers;
mod unsettled;

pub use bounds::Bounds;
pub use config::{Config, Side};
pub use connection::{Connection, NoCredit, Outgoing};
pub use detected_error::{DetectedError, ErrorScope};
pub use error_counts::Scope;
pub use event::Event;
pub use id::{LinkId, Mono, SessionId};
pub use link_state::LinkState;
pub use output::Output;
