//! Messages: how they come from publishers, and how consumers get them.

pub(crate) mod delivery;
pub(crate) mod incoming;

/// The exchange that a message was published to, among its annotations.
pub(crate) const EXCHANGE: &str = "x-exchange";
/// The routing key that it was published with.
pub(crate) const ROUTING_KEY: &str = "x-routing-key";

/// Descriptors of sections. [AMQP 3.2]
pub(crate) const MESSAGE_ANNOTATIONS: u8 = 0x72;
pub(crate) const APPLICATION_PROPERTIES: u8 = 0x74;
pub(crate) const AMQP_VALUE: u8 = 0x77;
