//! Send credit: waits until the broker has taken all of it, or has given some.

use std::io::{Read, Write};

use endpoint::{Event, LinkId};

use super::Peer;

impl<S: Read + Write> Peer<S> {
    /// Waits until a sender has no credit, or until it has some.
    pub fn wait_for_send_credit(&mut self, link: LinkId, has_some: bool) {
        while (self.connection.send_credit(link) > 0) != has_some {
            self.wait("credit", |event| match event {
                Event::Credit { link: l, .. } if *l == link => Some(()),
                _ => None,
            });
        }
    }
}
