//! RabbitMQ's dialect of AMQP 1.0, without IO. (docs/spec/rabbitmq.md)
//!
//! A connection belongs to another dialect; [`Links`] owns those of its links that have RabbitMQ's
//! addresses. `attach` accepts links, `publisher` and `consumer` move messages, `management` is the
//! pair of links on which clients declare queues, exchanges and bindings.

mod activity;
mod address;
mod arguments;
mod attach;
mod consumer;
mod dynamic_queue;
mod errors;
mod exclusive_queues;
mod links;
mod management;
mod message;
mod open;
mod publisher;
mod rights;
mod virtual_host;

use access::RequiredRight;

pub use attach::may_share_name;
pub use links::Links;
pub use management::{argument_hash, exchange_settings, router_refusal};
pub use open::{CAPABILITIES, VERSION, open_properties};

/// What the dialect needs to know of its broker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name that stands for the node of a cluster.
    pub node: String,
    /// Largest message where the queue does not say otherwise, in bytes.
    pub max_message_size: u64,
    /// The rights for the namespace that temporary queues take; without any list there are none.
    pub dynamic_nodes: Option<&'static [RequiredRight]>,
}
