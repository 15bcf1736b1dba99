//! Messages: how they come from publishers, and how consumers get them.

mod deaths;
pub(crate) mod delivery;
pub(crate) mod incoming;

/// Descriptors of sections. [AMQP 3.2]
pub(crate) const MESSAGE_ANNOTATIONS: u8 = 0x72;
pub(crate) const APPLICATION_PROPERTIES: u8 = 0x74;
pub(crate) const AMQP_VALUE: u8 = 0x77;
