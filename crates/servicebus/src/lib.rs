//! Azure Service Bus's dialect, without IO: addresses, annotations, `$cbs` and `$management`.
//!
//! The only place where AMQP links and broker entities meet. A [`Client`] is one connection:
//! bytes and broker outputs go in, broker commands and bytes come out. The state of a connection
//! (`links`, `pending_requests`, `transactions`) knows no client; `client` owns it and dispatches.
//! All other files are methods of the client, by what a client does: `attach`, `sender`,
//! `receiver`, `request_response`, `management`, `jms`.

pub mod client;
pub mod settings;

mod address;
mod attach;
mod errors;
mod jms;
mod links;
mod management;
mod message;
mod pending_requests;
mod receiver;
mod request_response;
mod sender;
mod tracking;
mod transactions;

pub use client::Client;
pub use errors::describe_forward_error;
pub use message::delivery::browsed;
pub use message::incoming::read as read_message;
pub use receiver::disposition::dead_letter_words;
pub use settings::{CrossEntity, DynamicNodeRight, Settings};
