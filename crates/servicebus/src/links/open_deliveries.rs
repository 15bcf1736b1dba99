//! Open deliveries: receivers that are detached without being closed. (docs/spec/amqp.md#3.8)
//!
//! Their deliveries can still be settled until the session ends. Only the newest are remembered, so
//! that a client which attaches and detaches for ever takes no more memory; dispositions for the
//! deliveries of older ones are ignored, and their locks run out.

use std::collections::BTreeMap;

use endpoint::{LinkId, SessionId};

use crate::links::receiver_link::Receiver;

/// Detached receivers of one connection that are remembered.
const MAX_RECEIVERS: usize = 1_024;

/// Detached receivers by their links.
#[derive(Debug, Default)]
pub(crate) struct OpenDeliveries(BTreeMap<LinkId, Receiver>);

impl OpenDeliveries {
    /// A receiver is detached.
    pub(crate) fn insert(&mut self, link: LinkId, receiver: Receiver) {
        if self.0.len() == MAX_RECEIVERS {
            self.0.pop_first();
        }
        self.0.insert(link, receiver);
    }

    /// The receiver of a link that is detached.
    pub(crate) fn receiver(&mut self, link: LinkId) -> Option<&mut Receiver> {
        self.0.get_mut(&link)
    }

    /// A session is over, and with it its deliveries.
    pub(crate) fn ended(&mut self, session: SessionId) {
        self.0.retain(|_, receiver| receiver.session != session);
    }
}
