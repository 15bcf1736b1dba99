//! Links: the attached links of a connection, by id and by kind.
//!
//! They are kept in the order of attachment, so that an operation on several links can be replayed.

pub(crate) mod dynamic_nodes;
pub(crate) mod link;
pub(crate) mod node_links;
pub(crate) mod open_deliveries;
pub(crate) mod receiver_link;

use std::collections::BTreeMap;

use amqp::Role;
use dialect::CreditWindow;
use endpoint::LinkId;

use crate::address::CBS;
use crate::links::link::{Coordinator, Link, LinkKind, Sender};
use crate::links::node_links::{RequestLink, ResponseLink};
use crate::links::receiver_link::Receiver;

/// Every link that is attached.
#[derive(Debug, Default)]
pub(crate) struct Links(BTreeMap<LinkId, Link>);

impl Links {
    pub(crate) fn insert(&mut self, id: LinkId, link: Link) {
        self.0.insert(id, link);
    }

    pub(crate) fn remove(&mut self, id: LinkId) -> Option<Link> {
        self.0.remove(&id)
    }

    pub(crate) fn get(&self, id: LinkId) -> Option<&Link> {
        self.0.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.0.iter().map(|(id, link)| (*id, link))
    }

    /// All links, coordinators last: when all go, what a rollback gives back must not go to a
    /// receiver of the same connection.
    pub(crate) fn ids(&self) -> Vec<LinkId> {
        let mut ids: Vec<_> = self.0.keys().copied().collect();
        ids.sort_by_key(|id| matches!(self.0[id].kind, LinkKind::Coordinator(_)));
        ids
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the client has attached a link to `$cbs` in this role.
    pub(crate) fn has_cbs_link(&self, role: Role) -> bool {
        self.0.values().any(|link| match (&link.kind, role) {
            (LinkKind::Request(request), Role::Sender) => request.node == CBS,
            (LinkKind::Response(response), Role::Receiver) => response.node == CBS,
            _ => false,
        })
    }

    /// The credit window of a link that the client sends on.
    pub(crate) fn credit_window(&mut self, id: LinkId) -> Option<&mut CreditWindow> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Sender(sender) => Some(&mut sender.credit_window),
            LinkKind::Request(request) => Some(&mut request.credit_window),
            LinkKind::Coordinator(coordinator) => Some(&mut coordinator.credit_window),
            LinkKind::Receiver(_) | LinkKind::Response(_) => None,
        }
    }

    /// The link, if the client sends messages on it.
    pub(crate) fn sender(&mut self, id: LinkId) -> Option<&mut Sender> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The link, if the client receives messages on it.
    pub(crate) fn receiver(&mut self, id: LinkId) -> Option<&mut Receiver> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// The link, if the client sends requests on it.
    pub(crate) fn request(&mut self, id: LinkId) -> Option<&mut RequestLink> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The link, if the client declares and discharges transactions on it.
    pub(crate) fn coordinator(&mut self, id: LinkId) -> Option<&mut Coordinator> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Coordinator(coordinator) => Some(coordinator),
            _ => None,
        }
    }

    /// The link, if the client receives answers on it.
    pub(crate) fn response(&mut self, id: LinkId) -> Option<&mut ResponseLink> {
        match &mut self.0.get_mut(&id)?.kind {
            LinkKind::Response(response) => Some(response),
            _ => None,
        }
    }
}
