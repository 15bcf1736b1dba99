//! Bounds: limits for a peer within the limits of the configuration.
//!
//! The owner may narrow the bounds while the peer is not authenticated. Narrower bounds take
//! nothing from the peer that it has already, but stop its growth.

use crate::config::Config;

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
    pub(crate) fn narrowed_to(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.min(other.sessions),
            links: self.links.min(other.links),
            partial_bytes: self.partial_bytes.min(other.partial_bytes),
        }
    }
}
