//! Service Bus over HTTP, without IO: management by Atom requests, and messages by REST ([`data`]).
//!
//! An [`Exchange`] is one request. It parses the whole request first, returns the orders for the
//! broker, and turns the broker's answers into the response. The caller checks rights, reads the
//! body and knows the time. (docs/spec/admin.md#1 to #8)

mod authorization;
pub mod data;
mod description;
mod entry;
mod error;
mod exchange;
mod feed;
pub mod query;
mod resource;
mod rule;
mod settings;
mod typed;
mod xml;

pub use error::Error;
pub use exchange::{Exchange, ReasonPhrase, RequestContext, Response, Step, TrackingId};
pub use settings::Settings;

/// More than any description that is accepted; longer bodies are not looked at.
pub const MAX_BODY: usize = 256 << 10;
