//! Injected end: a fault rule ends the link that asked for something, its session or the whole
//! connection.
//!
//! What was asked for is not carried out and has no other answer. A link that has gone meanwhile
//! takes nothing else with it.

use amqp::Error;
use broker::{Asker, InjectedEnd};
use dialect::{Origin, Subject, owner_token};
use endpoint::LinkId;

use crate::client::Client;
use crate::client::refusals::path_of;
use crate::errors;

impl Client {
    pub(super) fn handle_ended(&mut self, asker: Asker, end: InjectedEnd) {
        let Some(link) = self.take_asking_link(asker) else {
            return;
        };
        let resource = self.links.get(link).map_or("", |link| &link.resource);
        match end {
            InjectedEnd::Link(error) => self.end_link(link, errors::injected(error, resource)),
            InjectedEnd::Session(error) => {
                self.end_session(link, errors::injected(error, resource));
            }
            InjectedEnd::Connection(error) => self.close(errors::injected(error, "")),
        }
    }

    /// The link that asked, if it is there. A request of it is not pending any more.
    fn take_asking_link(&mut self, asker: Asker) -> Option<LinkId> {
        match asker {
            Asker::Receiver(receiver) => Some(LinkId(receiver.link)),
            Asker::Request(request) if owner_token(request).is_some() => {
                self.with_owner(|owner, _| owner.take_request(request))?
            }
            Asker::Request(request) => {
                let pending = self.pending_requests.remove(request.token)?;
                Some(pending.link())
            }
        }
    }

    fn end_link(&mut self, link: LinkId, error: Error) {
        if self.is_others(link) {
            self.with_owner(|owner, cx| owner.detach_link(cx, link, error));
            self.start_idle_timer();
        } else if let Some(pending_attach) = self.cancel_pending_attach(link) {
            self.refuse_pending_attach(&pending_attach, error);
        } else {
            self.detach(link, error);
        }
    }

    fn end_session(&mut self, link: LinkId, error: Error) {
        let Some(session) = self.connection.session_of(link) else {
            return;
        };
        let error = self.tracked(error);
        let known = self.links.get(link);
        let origin = Origin {
            link: known.map(|link| link.name.as_str()),
            entity: known.and_then(|link| path_of(&link.resource)),
            ..Origin::default()
        };
        self.refusals.note(Subject::Session, origin, &error);
        self.connection.end(session, Some(error));
    }
}
