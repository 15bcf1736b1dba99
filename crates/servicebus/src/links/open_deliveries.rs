//! Open deliveries: receivers that are detached without being closed. (docs/spec/amqp.md#3.8)
//!
//! Their deliveries can still be settled until the session ends. Only those that were detached last
//! are remembered, so that a client which attaches and detaches for ever takes no more memory;
//! dispositions for the deliveries of older ones only fail their transaction, and their locks run
//! out.
//! Invariant: each receiver is in the order in which they were detached, once.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{LinkId, SessionId};

use crate::links::receiver_link::Receiver;

/// Detached receivers of one connection that are remembered.
const MAX_RECEIVERS: usize = 1_024;

/// Detached receivers by their links.
#[derive(Debug, Default)]
pub(crate) struct OpenDeliveries {
    receivers: BTreeMap<LinkId, Receiver>,
    /// The one that was detached first is in front; ids of links do not tell.
    order: VecDeque<LinkId>,
}

impl OpenDeliveries {
    /// A receiver is detached.
    pub(crate) fn insert(&mut self, link: LinkId, receiver: Receiver) {
        if self.order.len() == MAX_RECEIVERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.receivers.remove(&oldest);
        }
        self.order.push_back(link);
        self.receivers.insert(link, receiver);
    }

    /// The receiver of a link that is detached.
    pub(crate) fn receiver(&mut self, link: LinkId) -> Option<&mut Receiver> {
        self.receivers.get_mut(&link)
    }

    /// A session is over, and with it its deliveries.
    pub(crate) fn ended(&mut self, session: SessionId) {
        let receivers = &mut self.receivers;
        receivers.retain(|_, receiver| receiver.session != session);
        self.order.retain(|link| receivers.contains_key(link));
    }
}
