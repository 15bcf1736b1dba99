//! Arrived: what has come for a link so far, without a wait for more.

use std::io::{Read, Write};

use endpoint::{Event, LinkId};

use super::Peer;

impl<S: Read + Write> Peer<S> {
    /// Whether a message for a receiver has been read that no call has taken yet.
    #[must_use]
    pub fn has_message(&self, link: LinkId) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, Event::Delivery { link: l, .. } if *l == link))
    }
}
