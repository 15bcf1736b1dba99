//! AMQP 1.0 endpoints without IO: connection, session, link and SASL.
//!
//! Bytes go in, events and bytes come out. The same engine serves both sides, so a test joins two
//! of them in memory. It knows no queue: what a delivery means is the caller's business.
//! Everything a peer can make it keep is bounded by [`Config`].

pub mod bounds;
pub mod config;
pub mod connection;
mod debug;
pub mod detected_error;
pub mod error_counts;
pub mod event;
mod handles;
pub mod id;
mod link;
mod output;
mod serial;
mod session;
mod slab;

pub use bounds::Bounds;
pub use config::{Config, Side};
pub use connection::{Connection, NoCredit, Outgoing};
pub use detected_error::{DetectedError, ErrorScope};
pub use error_counts::Scope;
pub use event::Event;
pub use id::{LinkId, Mono, SessionId};
pub use link::link_state::LinkState;
pub use output::Output;
