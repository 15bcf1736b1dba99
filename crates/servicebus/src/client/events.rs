//! Events: what the endpoint reports of deliveries, as one value each.

use amqp::DeliveryState;
use bytes::Bytes;
use endpoint::{LinkId, SessionId};

/// A delivery as the endpoint reports it.
pub(crate) struct IncomingDelivery {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) message_format: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
    pub(crate) payload: Bytes,
}

/// A disposition as the endpoint reports it.
pub(crate) struct ReceivedDisposition {
    pub(crate) link: LinkId,
    pub(crate) cookie: u128,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
}

/// A delivery that has outgrown its link.
pub(crate) struct OversizeDelivery {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
    /// The largest message that the link takes, in bytes.
    pub(crate) limit: u64,
}
