//! Shed: drops unfinished deliveries, if those of all connections together take too much memory.

use amqp::Error;
use amqp::error::condition;

use crate::connection::Connection;
use crate::link::{DetachReason, End};

/// Why there is an unfinished delivery.
const HAS_PARTIAL: &str = "a receiver was found to have an unfinished delivery";

impl Connection {
    /// Drops unfinished deliveries, the largest first, until `bytes` are free: their links are
    /// detached with `amqp:resource-limit-exceeded`.
    pub fn shed_partials(&mut self, bytes: usize) {
        let enough = self.partial_bytes.saturating_sub(bytes);
        for (_, key) in self.partials() {
            if self.partial_bytes <= enough {
                return;
            }
            let text = "the unfinished deliveries of all connections exceed their limit of memory";
            let error = Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text);
            self.break_link(key, DetachReason::with(error));
        }
    }

    /// Forgets unfinished deliveries, of which no more will be read.
    pub(crate) fn forget_partials(&mut self) {
        for (cost, key) in self.partials() {
            let link = self.links.get_mut(key).expect(HAS_PARTIAL);
            let End::Receiver(receiver) = &mut link.end else {
                unreachable!("{HAS_PARTIAL}");
            };
            let partial = receiver.partial.take().expect(HAS_PARTIAL);
            self.partial_bytes -= cost;
            // One that is refused has an answer to come.
            if partial.waits
                && !partial.refused
                && let Some(session) = self.sessions.get_mut(link.session)
            {
                session.settle_incoming(partial.delivery_id);
            }
        }
    }

    /// What each unfinished delivery costs and its link, the largest first.
    fn partials(&self) -> Vec<(usize, u32)> {
        let cost = |key: u32| match &self.links.get(key)?.end {
            End::Receiver(receiver) => receiver.partial.as_ref().map(|partial| partial.cost()),
            End::Sender(_) => None,
        };
        let mut partials: Vec<_> = self
            .links
            .keys()
            .filter_map(|key| Some((cost(key)?, key)))
            .collect();
        partials.sort_unstable_by(|a, b| b.cmp(a));
        partials
    }
}
