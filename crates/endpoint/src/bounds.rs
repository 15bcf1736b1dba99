//! Bounds: limits for a peer within the limits of the configuration.
//!
//! The owner may narrow the bounds while the peer is not authenticated, and drop its unfinished
//! deliveries if those of all connections together take too much memory. Narrower bounds take
//! nothing from the peer that it has already, but stop its growth.

use amqp::Error;
use amqp::error::condition;

use crate::config::Config;
use crate::connection::Connection;
use crate::link::{DetachReason, End};

/// The most that a peer may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Sessions of the connection.
    pub sessions: usize,
    /// Links of all sessions together.
    pub links: usize,
    /// All unfinished multi-frame deliveries of the connection together.
    pub partial_bytes: usize,
}

impl Bounds {
    /// What the configuration allows.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            sessions: config.max_sessions,
            links: config.max_links,
            partial_bytes: config.max_partial_bytes,
        }
    }

    /// What both allow.
    fn narrowed_to(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.min(other.sessions),
            links: self.links.min(other.links),
            partial_bytes: self.partial_bytes.min(other.partial_bytes),
        }
    }
}

impl Connection {
    /// Holds the peer to `narrower` bounds as well as to the configuration; with `None` to the
    /// configuration alone, as it is at first.
    pub fn set_bounds(&mut self, narrower: Option<Bounds>) {
        let widest = Bounds::of(&self.config);
        self.bounds = narrower.map_or(widest, |bounds| widest.narrowed_to(bounds));
    }

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
