//! Teardown: how links and the connection end, and the commands that tell the broker.
//!
//! A link is removed as soon as either side detaches it; later deliveries of the broker for it are
//! returned.
//!
//! Invariant: `Disconnect` is issued once, and no command follows it.

use access::{Operation, RequiredRight, Rights};
use amqp::Error;
use broker::Command;
use dialect::{ForcedClose, Origin, Subject};
use endpoint::{LinkId, Mono};

use crate::client::Client;
use crate::client::refusals::path_of;
use crate::errors;
use crate::jms::Jms;
use crate::links::Links;
use crate::links::dynamic_nodes::DynamicNodes;
use crate::links::link::{Link, LinkKind};

impl Client {
    /// Detaches all links. Each detach has a tracking id of its own, but for those of the other
    /// dialect, whose texts have none.
    pub(crate) fn end_links(&mut self, error: &Error) {
        for link in self.links.ids() {
            let error = self.tracked(error.clone());
            self.remove_link(link);
            self.connection.detach(link, true, Some(error));
        }
        self.detach_others(error);
    }

    /// Detaches links without their right, and refuses pending attaches. `why` makes the error from
    /// the link's name, its required right and its resource.
    pub(crate) fn recheck_links(&mut self, why: impl Fn(&str, RequiredRight, &str) -> Error) {
        let lost = |link: &Link| {
            let allowed = |path: &str| {
                let rights = self.rights_within_grace(path);
                rights.allow(link.required_right)
            };
            let destination = link.kind.transfer_to().map(str::to_lowercase);
            !allowed(&link.path) || !destination.is_none_or(|path| allowed(&path))
        };
        let lost = self.links.iter().filter(|(_, link)| lost(link));
        let lost =
            lost.map(|(id, link)| (id, why(&link.name, link.required_right, &link.resource)));
        for (link, error) in lost.collect::<Vec<_>>() {
            self.detach(link, error);
        }
        let waiting = self.pending_attaches.iter();
        let lost = waiting.filter_map(|(link, pending_attach)| {
            let path = pending_attach.path.to_lowercase();
            let resource = self.resource(&pending_attach.path);
            let is_lost = !self
                .rights_within_grace(&path)
                .allow(Operation::Receive.required_right());
            is_lost.then(|| {
                (
                    *link,
                    why(
                        pending_attach.name(),
                        Operation::Receive.required_right(),
                        &resource,
                    ),
                )
            })
        });
        for (link, error) in lost.collect::<Vec<_>>() {
            if let Some(pending_attach) = self.cancel_pending_attach(link) {
                self.refuse_pending_attach(&pending_attach, error);
            }
        }
    }

    /// The error of a link whose token has expired, or whose key was replaced: a client with
    /// another token reconnects by itself. (docs/spec/amqp.md#2.7)
    pub(crate) fn token_expired(
        name: &str,
        required_right: RequiredRight,
        resource: &str,
    ) -> Error {
        errors::token_expired(name, required_right, resource)
    }

    /// The rights of existing links at `path`, which is in lower case.
    pub(crate) fn rights_within_grace(&self, path: &str) -> Rights {
        self.claims
            .rights_within_grace(self.directory.access(), path)
    }

    pub(crate) fn detach(&mut self, link: LinkId, error: Error) {
        let error = self.tracked(error);
        if let Some(link) = self.links.get(link) {
            let origin = Origin {
                link: Some(&link.name),
                entity: path_of(&link.resource),
                ..Origin::default()
            };
            self.refusals.note(Subject::Link, origin, &error);
        }
        self.remove_link(link);
        self.connection.detach(link, true, Some(error));
    }

    /// Removes a link that is detached or is about to be.
    pub(crate) fn remove_link(&mut self, link: LinkId) {
        self.take_link(link);
        self.leave_node(link, true);
        self.leave_jms(link);
    }

    /// Handles a detach of the client's. Unless the link is over, its deliveries can still be
    /// settled. (docs/spec/amqp.md#3.8)
    pub(crate) fn handle_detached(&mut self, link: LinkId, over: bool) {
        let taken = self.take_link(link);
        self.leave_node(link, over);
        self.leave_jms(link);
        if let Some(LinkKind::Receiver(mut receiver)) = taken
            && !over
        {
            receiver.waiting.clear();
            self.open_deliveries.insert(link, receiver);
        }
    }

    fn take_link(&mut self, link: LinkId) -> Option<LinkKind> {
        let Some(gone) = self.links.remove(link) else {
            self.cancel_pending_attach(link);
            return None;
        };
        match &gone.kind {
            LinkKind::Receiver(receiver) => self.detach_receiver(link, receiver),
            LinkKind::Response(response) => self.drop_responses(response),
            LinkKind::Coordinator(_) => self.end_coordinator(link),
            LinkKind::Sender(_) | LinkKind::Request(_) => {}
        }
        self.start_idle_timer();
        Some(gone.kind)
    }

    pub(crate) fn start_idle_timer(&mut self) {
        if self.links.is_empty() && !self.has_others() {
            self.idle_since = Some(self.now.mono);
        }
    }

    fn has_pending_attaches(&self) -> bool {
        !self.pending_attaches.is_empty()
            || !self.dynamic_nodes.pending.is_empty()
            || !self.jms.pending_attaches().is_empty()
    }

    pub(crate) fn idle_deadline(&self) -> Option<Mono> {
        let allowed = self.settings.idle_connection?;
        let since = self
            .idle_since
            .filter(|_| self.links.is_empty() && !self.has_pending_attaches() && !self.ended)
            .filter(|_| !self.has_others())?;
        Some(Mono(since.0.saturating_add(allowed.into())))
    }

    /// Closes the connection for no error of its client.
    ///
    /// A client that has put tokens for entities is one of Service Bus's SDKs: its links are
    /// detached first. Other clients that connect again by themselves attach their links again
    /// after a close alone, but take a detach for the end of a link. (docs/spec/amqp.md#10)
    pub(crate) fn close_by_force(&mut self, why: ForcedClose) {
        if self.claims.has_tokens() && !self.claims.has_namespace_token() {
            self.end_links(&errors::link_forced(why));
        }
        let error = self.tracked(errors::connection_forced(why));
        self.close_unrecorded(error);
    }

    /// Closes the connection for an error of its client.
    pub(crate) fn close(&mut self, error: Error) {
        let error = self.tracked(error);
        self.refusals
            .note(Subject::Connection, Origin::default(), &error);
        self.close_unrecorded(error);
    }

    /// Closes the connection without noting a refusal. Its links are removed at once.
    pub(crate) fn close_unrecorded(&mut self, error: Error) {
        for link in self.links.ids() {
            self.remove_link(link);
        }
        for link in self.pending_attaches.keys().copied().collect::<Vec<_>>() {
            self.cancel_pending_attach(link);
        }
        for link in self
            .dynamic_nodes
            .pending
            .keys()
            .copied()
            .collect::<Vec<_>>()
        {
            self.leave_node(link, true);
        }
        for link in self.jms.pending_attaches() {
            self.leave_jms(link);
        }
        self.close_others();
        self.idle_since = None;
        self.connection.close(Some(error));
    }

    /// Handles the close of the connection. In good order its links are closed with it, one by one;
    /// otherwise the broker takes it for lost. (docs/spec/entities.md#10)
    pub(crate) fn handle_closed(&mut self, in_order: bool) {
        if in_order {
            for link in self.links.ids() {
                self.remove_link(link);
            }
            self.close_others();
        }
        self.end();
    }

    /// Handles the end of the connection and of its links.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.command(Command::Disconnect {
                connection: self.id,
            });
            self.ended = true;
            self.links = Links::default();
            self.link_owner = None;
            self.pending_attaches.clear();
            self.dynamic_nodes = DynamicNodes::default();
            self.jms = Jms::default();
        }
    }
}
