//! Ending: how links and the connection end, and what the broker hears of it.
//!
//! A link is forgotten the moment it is detached by either side; whatever the broker still says
//! for it is given back. Invariant: `Disconnect` is given once, and nothing after it.

use amqp::Error;
use broker::Command;
use endpoint::{LinkId, Mono};

use crate::client::Client;
use crate::link::{Kind, Link};
use crate::links::Links;
use crate::operation::Operation;
use crate::refusal;
use crate::refused::{Origin, Subject, path_of};
use crate::rights::{Need, Rights};

impl Client {
    /// Detaches links whose right is gone, and refuses those that wait for a session. `why` gives the
    /// error by the link's name, what it needs and what it is for.
    pub(crate) fn check_links_again(&mut self, why: impl Fn(&str, Need, &str) -> Error) {
        let lost = |link: &Link| !self.lasting_rights(&link.path).meet(link.need);
        let lost = self.links.iter().filter(|(_, link)| lost(link));
        let lost = lost.map(|(id, link)| (id, why(&link.name, link.need, &link.resource)));
        for (link, error) in lost.collect::<Vec<_>>() {
            self.detach(link, error);
        }
        let waiting = self.accepting.iter();
        let lost = waiting.filter_map(|(link, accepting)| {
            let path = accepting.path.to_lowercase();
            let resource = self.resource(&accepting.path);
            let is_lost = !self.lasting_rights(&path).meet(Operation::Receive.need());
            is_lost.then(|| {
                (
                    *link,
                    why(accepting.name(), Operation::Receive.need(), &resource),
                )
            })
        });
        for (link, error) in lost.collect::<Vec<_>>() {
            if let Some(accepting) = self.stop_waiting(link) {
                self.refuse_waiting(&accepting, error);
            }
        }
    }

    /// Why a link goes whose token has run out, or whose key was replaced: a client that has another
    /// comes back by itself. (docs/spec/amqp.md#2.7)
    pub(crate) fn renew_token(name: &str, need: Need, resource: &str) -> Error {
        refusal::token_expired(name, need, resource)
    }

    /// What may go on at `path`, which is in lower case.
    pub(crate) fn lasting_rights(&self, path: &str) -> Rights {
        self.claims.lasting_rights(self.directory.access(), path)
    }

    pub(crate) fn detach(&mut self, link: LinkId, error: Error) {
        if let Some(link) = self.links.get(link) {
            let origin = Origin {
                link: Some(&link.name),
                entity: path_of(&link.resource),
                ..Origin::default()
            };
            self.refusals.note(Subject::Link, origin, &error);
        }
        self.forget(link);
        self.connection.detach(link, true, Some(error));
    }

    /// A link is gone, or as good as gone.
    pub(crate) fn forget(&mut self, link: LinkId) {
        let Some(gone) = self.links.remove(link) else {
            self.stop_waiting(link);
            return;
        };
        match &gone.kind {
            Kind::Receiver(receiver) => self.depart(link, receiver),
            Kind::Response(response) => self.drop_responses(response),
            Kind::Coordinator(_) => self.end_coordinator(link),
            Kind::Sender(_) | Kind::Request(_) => {}
        }
        self.note_linkless();
    }

    pub(crate) fn note_linkless(&mut self) {
        if self.links.is_empty() {
            self.linkless_since = Some(self.now.mono);
        }
    }

    pub(crate) fn idle_deadline(&self) -> Option<Mono> {
        let allowed = self.settings.idle_connection?;
        let since = self
            .linkless_since
            .filter(|_| self.links.is_empty() && self.accepting.is_empty() && !self.ended)?;
        Some(Mono(since.0.saturating_add(allowed.into())))
    }

    /// Closes the connection for what its client did or left undone.
    pub(crate) fn close(&mut self, error: Error) {
        let origin = Origin::default();
        self.refusals.note(Subject::Connection, origin, &error);
        self.leave(error);
    }

    /// Closes the connection. Nothing is sent on its links any more, so they are gone at once.
    pub(crate) fn leave(&mut self, error: Error) {
        for link in self.links.ids() {
            self.forget(link);
        }
        for link in self.accepting.keys().copied().collect::<Vec<_>>() {
            self.stop_waiting(link);
        }
        self.linkless_since = None;
        self.connection.close(Some(error));
    }

    /// The connection is over. Links and their receivers go with it.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.command(Command::Disconnect {
                connection: self.id,
            });
            self.ended = true;
            self.links = Links::default();
            self.accepting.clear();
        }
    }
}
