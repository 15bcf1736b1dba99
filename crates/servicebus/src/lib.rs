//! Azure Service Bus's dialect, without IO: addresses, annotations, `$cbs` and `$management`.
//!
//! The only place where AMQP links and broker entities meet. A [`Client`] is one connection:
//! bytes and broker outputs go in, broker commands and bytes come out.

pub mod client;
pub mod settings;

mod address;
mod admission;
mod attach;
mod attach_reply;
mod cbs;
mod coordinator;
mod credit;
mod credit_window;
mod delivery;
mod disposition;
mod distribution;
mod enlist;
mod errors;
mod events;
mod incoming;
mod link;
mod links;
mod management;
mod message_id;
mod message_list;
mod node_links;
mod oversize;
mod pending_attach;
mod pending_requests;
mod receiver;
mod receiver_link;
mod receiver_source;
mod refusals;
mod request_response;
mod requested_session;
mod response;
mod sasl;
mod sender;
mod session_attach;
mod teardown;
mod transactions;
mod unauthenticated;

use amqp::items as fields;

pub use client::Client;
pub use delivery::browsed;
pub use errors::describe_forward_error;
pub use incoming::read as read_message;
pub use message_id::MessageIds;
pub use settings::Settings;
