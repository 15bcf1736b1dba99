//! State: the connection as an operator sees it.

use dialect::{ConnectionState, Dialect};
use endpoint::LinkId;

use crate::client::Client;
use crate::client::refusals::path_of;
use crate::links::link::LinkKind;

impl Client {
    /// The present state, with this number of links at most.
    pub(crate) fn connection_state(&self, most_links: usize) -> ConnectionState {
        let links = self.connection.link_states(most_links).into_iter();
        let links = links.map(|state| {
            let address = self.address(state.link).map(str::to_owned);
            (state, address)
        });
        ConnectionState {
            container_id: self.container_id.clone(),
            client_names: self.client_names(),
            links: links.collect(),
            link_count: self.connection.link_count(),
        }
    }

    /// The address of a link's node.
    fn address(&self, link: LinkId) -> Option<&str> {
        if let Some(link) = self.links.get(link) {
            return match &link.kind {
                LinkKind::Request(request) => Some(&request.node),
                LinkKind::Response(response) => Some(&response.node),
                _ => path_of(&link.resource),
            };
        }
        if let Some(pending_attach) = self.pending_attaches.get(&link) {
            return Some(&pending_attach.path);
        }
        self.link_owner.as_ref()?.address(link)
    }
}
