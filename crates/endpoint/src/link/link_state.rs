//! Link state: the links of a connection as an operator sees them at one moment.

use std::collections::BTreeMap;

use amqp::performative::Role;

use crate::connection::Connection;
use crate::id::LinkId;
use crate::link::End;

/// One link at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkState {
    /// The link.
    pub link: LinkId,
    /// Its name.
    pub name: String,
    /// The role of the peer.
    pub peer_role: Role,
    /// Deliveries that its sender may still send.
    pub credit: u32,
    /// Deliveries that are not settled.
    pub unsettled: usize,
}

impl Connection {
    /// The number of links, those included that are not answered yet or wait for their last detach.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The first `most` links.
    #[must_use]
    pub fn link_states(&self, most: usize) -> Vec<LinkState> {
        let links = self.links.keys().take(most).filter_map(|key| {
            let link = self.links.get(key)?;
            let (peer_role, credit) = match &link.end {
                End::Sender(sender) => (Role::Receiver, sender.usable()),
                End::Receiver(receiver) => (Role::Sender, receiver.credit),
            };
            Some(LinkState {
                link: LinkId(key),
                name: link.name.clone(),
                peer_role,
                credit,
                unsettled: 0,
            })
        });
        let mut links: Vec<_> = links.collect();
        let places = links.iter().zip(0..);
        let places: BTreeMap<u32, usize> =
            places.map(|(state, place)| (state.link.0, place)).collect();
        let sessions = self
            .sessions
            .keys()
            .filter_map(|key| self.sessions.get(key));
        let unsettled =
            sessions.flat_map(|session| session.outgoing.links().chain(session.incoming.links()));
        for place in unsettled.filter_map(|link| places.get(&link)) {
            links[*place].unsettled += 1;
        }
        links
    }
}
