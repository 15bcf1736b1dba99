//! Azure Service Bus's dialect, without IO: addresses, annotations, `$cbs` and `$management`.
//!
//! The only place where AMQP links and broker entities meet. A [`Client`] is one connection:
//! bytes and broker outputs go in, broker commands and bytes come out.

pub mod access;
pub mod authorization;
pub mod client;
pub mod directory;
pub mod moment;
pub mod rights;
pub mod settings;

mod accepting;
mod address;
mod admission;
mod attach;
mod cbs;
mod choice;
mod claims;
mod coordinator;
mod credit;
mod delivery;
mod disposition;
mod distributing;
mod echo;
mod embedded;
mod ending;
mod incoming;
mod link;
mod links;
mod management;
mod message_id;
pub mod operation;
mod oversize;
mod pending;
mod receiver;
mod refusal;
pub mod refused;
mod request_response;
mod response;
mod sasl;
mod sender;
mod stranger;
mod token;
mod transactions;

use amqp::items as fields;

pub use access::Access;
pub use authorization::Unauthorized;
pub use client::Client;
pub use delivery::browsed;
pub use directory::{Directory, Entity};
pub use incoming::read as read_message;
pub use message_id::MessageIds;
pub use moment::Moment;
pub use operation::Operation;
pub use refusal::describe_forward_error;
pub use refused::{Refusals, Refused, Subject, Weight};
pub use rights::{AccessRule, AccessRules, Need, Rights, Secret};
pub use settings::Settings;
pub use token::sign;
